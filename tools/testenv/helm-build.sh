#!/usr/bin/env bash
# Builds helm from its Go module, unless it is there already, and prints where it is.
#
#   HTAS_HELM_DIR   where it goes   (default ${XDG_CACHE_HOME:-~/.cache}/htas/helm)
#
# Needs Go 1.26 and nothing else. The first build takes a minute and a half on two cores.
set -euo pipefail
version=v3.22.0
dir=${HTAS_HELM_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/htas/helm}/$version
if [[ ! -x $dir/helm ]]; then
  command -v go >/dev/null || { echo "helm-build: no go on PATH" >&2; exit 1; }
  mkdir -p "$dir"
  exec 9>"$dir/.lock"
  flock 9
  [[ -x $dir/helm ]] || CGO_ENABLED=0 GOBIN=$dir go install -trimpath "helm.sh/helm/v3/cmd/helm@$version" >&2
fi
echo "$dir/helm"
