{{/* Names, labels and addresses that several objects share. */}}

{{- define "sleuth.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "sleuth.fullname" -}}
{{- $name := include "sleuth.name" . -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The Deployments of the mode, separated by spaces. */}}
{{- define "sleuth.components" -}}
{{ get (dict "single" "server" "split" "gateway agent executor" "hub" "gateway agent" "executor" "executor") .Values.mode }}
{{- end }}

{{/* Who answers HTTP, who answers questions, who runs commands; whether the mode has it or not. */}}
{{- define "sleuth.http" -}}{{ eq .Values.mode "single" | ternary "server" "gateway" }}{{- end }}
{{- define "sleuth.grpc" -}}{{ eq .Values.mode "single" | ternary "server" "agent" }}{{- end }}
{{- define "sleuth.runner" -}}{{ eq .Values.mode "single" | ternary "server" "executor" }}{{- end }}

{{/* Labels that never change, of (dict "root" $ "component" name). */}}
{{- define "sleuth.selector" -}}
app.kubernetes.io/name: {{ include "sleuth.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "sleuth.labels" -}}
app.kubernetes.io/name: {{ include "sleuth.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "sleuth.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{- define "sleuth.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "sleuth.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* Not empty if there are toolsets of the operator. */}}
{{- define "sleuth.toolsets" -}}
{{- if or .Values.toolsets .Values.mcp_servers -}}
{{ dict "toolsets" .Values.toolsets "mcp_servers" .Values.mcp_servers | toYaml }}
{{- end }}
{{- end }}

{{- define "sleuth.scheme" -}}{{ empty .Values.tls.certificateSecret | ternary "http" "https" }}{{- end }}

{{/* Not empty if a component asks clients for certificates. */}}
{{- define "sleuth.asksCertificates" -}}
{{- $asked := .root.Values.tls.clientCertificates -}}
{{- if or (eq $asked "all") (and (eq $asked "services") (has .component (list "agent" "executor"))) -}}
{{- if not (and .root.Values.tls.certificateSecret .root.Values.tls.caSecret) -}}
{{ fail "tls.clientCertificates needs tls.certificateSecret and tls.caSecret" }}
{{- end -}}
true
{{- end }}
{{- end }}

{{/* Not empty if an executor that dials out cannot share its volume. */}}
{{- define "sleuth.alone" -}}
{{- with .Values.executor.connect -}}
{{ and (eq $.Values.mode "executor") (not .existingClaim) (not (has "ReadWriteMany" .accessModes)) | ternary "true" "" }}
{{- end }}
{{- end }}

{{/* The claim in which an executor that dials out keeps its key. */}}
{{- define "sleuth.keyClaim" -}}
{{ default (printf "%s-executor" (include "sleuth.fullname" .)) .Values.executor.connect.existingClaim }}
{{- end }}

{{- define "sleuth.keySecret" -}}
{{ default (printf "%s-api-key" (include "sleuth.fullname" .)) .Values.apiKey.existingSecret }}
{{- end }}
