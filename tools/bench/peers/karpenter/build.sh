#!/usr/bin/env bash
# Builds the real Karpenter with its KWOK provider from its Go module, and copies its CRDs beside it. Prints the folder.
#
#   XDG_CACHE_HOME     the folder is ${XDG_CACHE_HOME:-~/.cache}/htas/peers/karpenter-VERSION
#
# Needs Go 1.26. On two cores the first build takes 3 minutes; a version that is there already is left alone.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off
version=$(go list -m -f '{{.Version}}' sigs.k8s.io/karpenter)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/htas/peers/karpenter-$version
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
if [[ ! -x $folder/karpenter ]]; then
  go mod download sigs.k8s.io/karpenter # before it there is no folder to tell of
  source=$(go list -m -f '{{.Dir}}' sigs.k8s.io/karpenter)
  install -m 644 "$source"/pkg/apis/crds/*.yaml "$source"/kwok/apis/crds/*.yaml "$folder/"
  go build -trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags "-s -w" -o "$folder/karpenter.new" sigs.k8s.io/karpenter/kwok
  mv "$folder/karpenter.new" "$folder/karpenter" # whole or not at all
fi
echo "$folder"
