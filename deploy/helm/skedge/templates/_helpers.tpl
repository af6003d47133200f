{{- define "skedge.labels" -}}
app.kubernetes.io/name: skedge
app.kubernetes.io/instance: {{ .Values.name }}
{{- end }}
