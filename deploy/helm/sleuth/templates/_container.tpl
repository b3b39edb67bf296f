{{/* What differs between the services, each of (dict "root" $ "component" name). */}}

{{- define "sleuth.env" -}}
{{- $root := .root }}{{ $values := .root.Values }}{{ $fullname := include "sleuth.fullname" .root }}{{ $listen := $values.listen }}
{{- $scheme := include "sleuth.scheme" .root }}
- name: SLEUTH_API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ include "sleuth.keySecret" $root }}
      key: {{ $values.apiKey.secretKey }}
- name: SLEUTH_CONFIG
  value: /etc/sleuth/config/config.yaml
- name: SLEUTH_LOG_FORMAT
  value: json
{{- if $values.tls.certificateSecret }}
- name: SLEUTH_TLS_CERT
  value: /etc/sleuth/tls/tls.crt
- name: SLEUTH_TLS_KEY
  value: /etc/sleuth/tls/tls.key
{{- end }}
{{- if $values.tls.caSecret }}
- name: SLEUTH_TLS_CA
  value: /etc/sleuth/ca/ca.crt
{{- end }}
{{- if include "sleuth.asksCertificates" . }}
- name: SLEUTH_TLS_CLIENT_CA
  value: /etc/sleuth/ca/ca.crt
{{- end }}
{{- with $values.otel.endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- if eq .component (include "sleuth.http" $root) }}
- name: SLEUTH_HTTP
  value: {{ printf "%s:8080" $listen | quote }}
{{- if $values.approvals.existingSecret }}
- name: SLEUTH_SIGNING_KEY
  valueFrom:
    secretKeyRef:
      name: {{ $values.approvals.existingSecret }}
      key: {{ $values.approvals.secretKey }}
{{- end }}
{{- end }}
{{- if and (eq .component "executor") $values.approvals.trustedKeys }}
- name: SLEUTH_GRANT_KEYS
  value: {{ join "," $values.approvals.trustedKeys | quote }}
{{- end }}
{{- if eq .component "gateway" }}
- name: SLEUTH_AGENT
  value: {{ $scheme }}://{{ $fullname }}-agent:{{ $values.service.grpcPort }}
{{- end }}
{{- if eq .component (include "sleuth.grpc" $root) }}
- name: SLEUTH_GRPC
  value: {{ printf "%s:50051" $listen | quote }}
{{- if $values.modelList }}
- name: MODEL_LIST_FILE_LOCATION
  value: /etc/sleuth/models/model_list.yaml
{{- end }}
- name: SLEUTH_DATA_DIR
  value: /var/lib/sleuth
{{- if $values.store.existingSecret }}
- name: SLEUTH_STORE
  valueFrom:
    secretKeyRef:
      name: {{ $values.store.existingSecret }}
      key: {{ $values.store.secretKey }}
# The name is what their certificate is for.
- name: SLEUTH_ADVERTISE
  value: {{ $scheme }}://{{ $fullname }}-agent:50051
- name: SLEUTH_ADVERTISE_IP
  valueFrom:
    fieldRef: {fieldPath: status.podIP}
{{- end }}
{{- with $values.clusterName }}
- name: CLUSTER_NAME
  value: {{ . | quote }}
{{- end }}
{{- with $values.runbooks }}
- name: SLEUTH_RUNBOOKS
  value: /etc/sleuth/runbooks
{{- end }}
{{- with $values.enabledPrompts }}
- name: ENABLED_PROMPTS
  value: {{ join "," . | quote }}
{{- end }}
{{- with $values.additionalEnvVars }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- if eq .component "agent" }}
- name: SLEUTH_EXECUTOR
  value: {{ eq $values.mode "hub" | ternary "none" (printf "%s://%s-executor:50052" $scheme $fullname) }}
{{- end }}
{{- if or (eq .component "agent") (eq $values.mode "executor") }}
- name: SLEUTH_METRICS
  value: {{ printf "%s:9090" $listen | quote }}
{{- end }}
{{- if and (eq .component (include "sleuth.runner" $root)) (include "sleuth.toolsets" $root) }}
- name: SLEUTH_TOOLSETS
  value: /etc/sleuth/toolsets/toolsets.yaml
{{- end }}
{{- if eq $values.mode "executor" }}
- name: SLEUTH_CONNECT
  value: {{ required "mode executor needs executor.connect.urls" (join "," $values.executor.connect.urls) | quote }}
- name: SLEUTH_CLUSTER
  value: {{ required "mode executor needs executor.connect.cluster" $values.executor.connect.cluster | quote }}
- name: SLEUTH_EXECUTOR_STATE
  value: /var/lib/sleuth
{{- with $values.executor.connect.joinToken }}
{{- if .existingSecret }}
- name: SLEUTH_JOIN_TOKEN
  valueFrom:
    # It counts once: later it need not be there.
    secretKeyRef: {name: {{ .existingSecret }}, key: {{ .secretKey }}, optional: true}
{{- end }}
{{- end }}
{{- else if eq .component "executor" }}
- name: SLEUTH_LISTEN
  value: {{ printf "%s:50052" $listen | quote }}
{{- end }}
{{- with (index $values .component).env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "sleuth.ports" -}}
{{- if eq .component (include "sleuth.http" .root) }}
- {name: http, containerPort: 8080}
{{- end }}
{{- if eq .component (include "sleuth.grpc" .root) }}
- {name: grpc, containerPort: 50051}
{{- end }}
{{- if or (eq .component "agent") (eq .root.Values.mode "executor") }}
- {name: metrics, containerPort: 9090}
{{- end }}
{{- if and (eq .component "executor") (ne .root.Values.mode "executor") }}
- {name: grpc, containerPort: 50052}
{{- end }}
{{- end }}

{{/* The key is not asked for by health checks. Kubelets neither speak gRPC under TLS nor have certificates: where that
     would be needed, they only look whether somebody listens. */}}
{{- define "sleuth.probes" -}}
{{- $http := eq .component (include "sleuth.http" .root) }}
{{- $dials := eq .root.Values.mode "executor" }}
{{- $port := $http | ternary "http" ($dials | ternary "metrics" "grpc") }}
{{- $alive := dict "tcpSocket" (dict "port" $port) }}{{ $ready := $alive }}
{{- if or $http $dials }}
{{- if not (include "sleuth.asksCertificates" .) }}
{{- $scheme := include "sleuth.scheme" .root | upper }}
{{- $alive = dict "httpGet" (dict "path" "/healthz" "port" $port "scheme" $scheme) }}
{{- $ready = dict "httpGet" (dict "path" ($http | ternary "/readyz" "/healthz") "port" $port "scheme" $scheme) }}
{{- end }}
{{- else if not .root.Values.tls.certificateSecret }}
{{- $alive = dict "grpc" (dict "port" (eq .component "agent" | ternary 50051 50052)) }}{{ $ready = $alive }}
{{- end }}
startupProbe:
  {{- toYaml $alive | nindent 2 }}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  {{- toYaml $alive | nindent 2 }}
  timeoutSeconds: 5
readinessProbe:
  {{- toYaml $ready | nindent 2 }}
  timeoutSeconds: 5
{{- end }}
