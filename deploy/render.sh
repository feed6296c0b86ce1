#!/usr/bin/env bash
# Renders the chart with its default values, but no token (a Secret is not for a file), into deploy/manifests/htas.yaml, for those who use kubectl alone.
#
#   render.sh [FILE]      HELM names helm (default: helm on PATH)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kubernetes=1.36.0 # a helm built from its module alone believes in 1.20
out=${1:-$here/manifests/htas.yaml}
{
  echo "# Rendered from deploy/helm/htas by deploy/render.sh: change values there. Namespace: htas-system (create it first)."
  "${HELM:-helm}" template htas "$here/helm/htas" --namespace htas-system --kube-version "$kubernetes" --set http.createToken=false | sed -e 's/^\(  *app.kubernetes.io\/managed-by: \).*/\1kubectl/'
} >"$out.new"
mv "$out.new" "$out"
