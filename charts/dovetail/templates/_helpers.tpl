{{- define "dovetail.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "dovetail.account" -}}
{{- .Values.serviceAccount.name | default (include "dovetail.name" .) -}}
{{- end -}}

{{/* Cluster-scoped objects carry the namespace in their name, so that two releases never share one. */}}
{{- define "dovetail.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "dovetail.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "dovetail.selector" -}}
app.kubernetes.io/name: dovetail
app.kubernetes.io/instance: {{ include "dovetail.name" . }}
{{- end -}}

{{- define "dovetail.labels" -}}
{{ include "dovetail.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "dovetail.image" -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository is not set: Dovetail has no public image. Build one (make image IMAGE=registry.example.com/dovetail:TAG), push it, and name it: --set image.repository=registry.example.com/dovetail" -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}
