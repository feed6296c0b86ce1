{{- define "htas.name" -}}{{ .Values.fullnameOverride | default .Release.Name | trunc 50 | trimSuffix "-" }}{{- end }}
{{- define "htas.app" -}}{{ .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" }}{{- end }}
{{- define "htas.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "htas.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}
{{- define "htas.image" -}}
{{- .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}
{{- define "htas.selector" -}}
app.kubernetes.io/name: {{ include "htas.app" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "htas.labels" -}}
{{ include "htas.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- /* Roles of the whole cluster have names of the whole cluster. */ -}}
{{- define "htas.clusterName" -}}{{ printf "%s-%s" .Release.Namespace (include "htas.name" .) | trunc 63 | trimSuffix "-" }}{{- end }}
{{- /* config.mode: in recommend the daemon reads, and writes its own lease and status. */ -}}
{{- define "htas.mode" -}}{{ .Values.config.mode | default "automatic" }}{{- end }}
{{- /* Whether daemons have volumes: then they are a StatefulSet, which also ends the old daemon before the new one begins. */ -}}
{{- define "htas.kind" -}}{{ ternary "StatefulSet" "Deployment" .Values.persistence.enabled }}{{- end }}

{{/* The keys of store.cassandra: those given, and where the chart puts the buffer and what comes from Secrets. */}}
{{- define "htas.cassandra" -}}
{{- $own := dict "buffer" (dict "path" "/var/lib/htas/htas-buffer.db") }}
{{- if .Values.store.passwordSecret }}{{ $_ := set $own "passwordFile" "/etc/htas-store/password/password" }}{{ end }}
{{- if .Values.store.tlsSecret }}{{ $_ := set $own "tls" (dict "caFile" "/etc/htas-store/tls/ca.crt") }}{{ end }}
{{- mergeOverwrite (deepCopy .Values.store.cassandra) $own | toYaml }}
{{- end }}

{{/* Which methods that make twins pods are moved by, as JSON: any of them, and the kubelet's checkpoints. That of a group, and
     one that is set up: moves under way are finished when the groups have gone back to evict. `replace`, and `checkpoint` with
     KWOK, need no setting up: of them a group's word alone is known. */}}
{{- define "htas.moves" -}}
{{- $methods := list }}
{{- range .Values.config.nodeGroups }}{{ $methods = append $methods (toString (.cleaning).migration) }}{{ end }}
{{- $migration := .Values.config.migration | default dict }}
{{- $asked := has "kubelet-checkpoint" $methods }}
{{- $keys := or .Values.moves.sshSecret .Values.moves.agentSecret ($migration.scp).identityFile ($migration.registry).agentTokenFile }}
{{- $command := or (has "command" $methods) ($migration.commands).checkpoint }}
{{- $kubelet := or $asked (not (empty $keys)) }}
{{- dict "kubelet" $kubelet "any" (or $kubelet (not (empty $command)) (has "replace" $methods) (has "checkpoint" $methods)) "asked" $asked "keys" (not (empty $keys)) | toJson }}
{{- end }}

{{/* What names of images HTAS's checkpoints may go by, as an expression (RE2) for names in small letters: by their repository
     on a node and in the registry, by their tag wherever else a registry may be reached, and by an id, which names whatever
     is on a node: containerd takes the first digits of one for the whole. */}}
{{- define "htas.checkpoints" -}}
{{- $names := list "localhost/htas-checkpoint/.*" ".*:([0-9a-f]{8}-)?[0-9a-f]{12}-[0-9]+-[0-9a-f]{32}(-[a-z0-9-]+)?(@.*)?" "sha(256|384|512):.*" }}
{{- $registry := (.Values.config.migration).registry | default dict }}
{{- $from := $registry.pullFrom }}
{{- if and (not $from) $registry.url }}{{ $from = printf "%s/htas" ($registry.url | splitList "://" | last | trimAll "/") }}{{ end }}
{{- if $from }}
{{- $host := $from | lower | splitList "/" | first }}
{{- $path := $from | lower | splitList "/" | rest | join "/" }}
{{- $hosts := printf "%s(:443|:80)?/" ($host | trimSuffix ":443" | trimSuffix ":80" | regexQuoteMeta) }}
{{- if eq $host "docker.io" }}{{ $hosts = `((index\.)?docker\.io/)?` }}{{ end }}
{{- $names = append $names (printf "%s%s([:@].*)?" $hosts ($path | regexQuoteMeta)) }}
{{- end }}
{{- printf "^(%s)$" (join "|" $names) }}
{{- end }}

{{/* Who may make twins: HTAS's account, and those of the operator's own. */}}
{{- define "htas.makers" -}}
{{- $own := printf "system:serviceaccount:%s:%s" .Release.Namespace (include "htas.account" .) }}
{{- concat (list $own) .Values.moves.marksAllowedTo | toJson | replace "\"" "'" }}
{{- end }}

{{/* The configuration as given, and where the chart puts the keys of moves that come from a Secret. */}}
{{- define "htas.config" -}}
{{- $config := deepCopy (omit .Values.config "logging") }}
{{- if gt (len (include "htas.providers" . | fromJsonArray)) 0 }}
{{- $config = set $config "provider" (omit $config.provider "none") }}
{{- end }}
{{- if .Values.moves.sshSecret }}
{{- $keys := dict "identityFile" "/etc/htas-moves/ssh/id" "knownHostsFile" "/etc/htas-moves/ssh/known_hosts" }}
{{- $config = mergeOverwrite $config (dict "migration" (dict "scp" $keys)) }}
{{- end }}
{{- if .Values.moves.agentSecret }}
{{- $keys := dict "agentTokenFile" "/etc/htas-moves/agent/token" }}
{{- if .Values.moves.registryCredentials }}{{ $_ := set $keys "credentialsFile" "/etc/htas-moves/agent/credentials" }}{{ end }}
{{- if .Values.moves.registryCA }}{{ $_ := set $keys "caFile" "/etc/htas-moves/agent/ca.crt" }}{{ end }}
{{- $config = mergeOverwrite $config (dict "migration" (dict "transfer" "registry" "registry" $keys)) }}
{{- end }}
{{- $config | toYaml }}
{{- end }}

{{/* The Secret with the token that those show who ask over HTTP; empty: there is none. */}}
{{- define "htas.token" -}}
{{- if .Values.moves.tokenSecret }}{{ .Values.moves.tokenSecret }}{{ else if .Values.http.createToken }}{{ include "htas.name" . }}-token{{ end }}
{{- end -}}

{{/* The providers that are named beside none, as JSON. */}}
{{- define "htas.providers" -}}
{{- $named := list }}
{{- range $name, $what := .Values.config.provider }}
{{- if and (ne $name "none") (not (kindIs "invalid" $what)) }}{{ $named = append $named $name }}{{ end }}
{{- end }}
{{- $named | toJson }}
{{- end }}
