{{/* What differs between the services, each of (dict "root" $ "component" name). */}}

{{- define "sleuth.env" -}}
{{- $root := .root }}{{ $values := .root.Values }}{{ $fullname := include "sleuth.fullname" .root }}{{ $listen := $values.listen }}
- name: SLEUTH_API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ include "sleuth.keySecret" $root }}
      key: {{ $values.apiKey.secretKey }}
- name: SLEUTH_CONFIG
  value: /etc/sleuth/config/config.yaml
- name: SLEUTH_LOG_FORMAT
  value: json
{{- with $values.otel.endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- if eq .component (include "sleuth.http" $root) }}
- name: SLEUTH_HTTP
  value: {{ printf "%s:8080" $listen | quote }}
{{- end }}
{{- if eq .component "gateway" }}
- name: SLEUTH_AGENT
  value: http://{{ $fullname }}-agent:{{ $values.service.grpcPort }}
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
  value: http://{{ $fullname }}-executor:50052
- name: SLEUTH_METRICS
  value: {{ printf "%s:9090" $listen | quote }}
{{- end }}
{{- if and (eq .component (include "sleuth.runner" $root)) (include "sleuth.toolsets" $root) }}
- name: SLEUTH_TOOLSETS
  value: /etc/sleuth/toolsets/toolsets.yaml
{{- end }}
{{- if eq .component "executor" }}
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
{{- if eq .component "agent" }}
- {name: metrics, containerPort: 9090}
{{- end }}
{{- if eq .component "executor" }}
- {name: grpc, containerPort: 50052}
{{- end }}
{{- end }}

{{/* The key is not asked for by health checks. Only HTTP tells being alive from being ready. */}}
{{- define "sleuth.probes" -}}
{{- if eq .component (include "sleuth.http" .root) }}
startupProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: http}
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: http}
  timeoutSeconds: 5
{{- else }}
{{- $grpc := dict "port" (eq .component "agent" | ternary 50051 50052) | toYaml }}
startupProbe:
  grpc: {{- $grpc | nindent 4 }}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  grpc: {{- $grpc | nindent 4 }}
  timeoutSeconds: 5
readinessProbe:
  grpc: {{- $grpc | nindent 4 }}
  timeoutSeconds: 5
{{- end }}
{{- end }}
