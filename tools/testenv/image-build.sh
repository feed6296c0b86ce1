#!/usr/bin/env bash
# Builds the container image from deploy/Dockerfile, without a Docker daemon and without an image registry, and prints where
# its archive is: buildah runs the Dockerfile's steps in a chroot, and Debian 12 from packages stands in for the base image.
#
#   image-build.sh [TAG]      an OCI archive that `ctr -n k8s.io images import --index-name` takes (TAG: default htas:VERSION)
#
#   HTAS_IMAGE_DIR   where base, layers and archives are kept (default ${XDG_CACHE_HOME:-~/.cache}/htas/image). Layers are those of
#                    one set of locks: others' are removed. An archive is made anew when what is in it changes.
#
# Measured on two cores: 2 min where the locks are new (1 min of CPU), 45 s where only htas is, nothing where neither is; the base took
# three minutes once. 193 MB compressed, of which 90 are Debian and ssh, 99 the dependencies and 3 htas itself.
# Needs root on Debian 12 and image-packages.sh. The steps reach package registries as this machine does, by its CA certificates.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$root/htas/__init__.py")
tag=${1:-htas:$version}
dir=${HTAS_IMAGE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/htas/image}
base=docker.io/library/python:3.11-slim # stands in for the first FROM of the Dockerfile
release=bookworm
[[ $EUID -eq 0 ]] || { echo "image-build: needs root: a chroot and its mounts" >&2; exit 1; }
command -v buildah >/dev/null && command -v mmdebstrap >/dev/null || { echo "image-build: run image-packages.sh first" >&2; exit 1; }
[[ -n $version ]] || { echo "image-build: no __version__ in $root/htas/__init__.py" >&2; exit 1; }
mkdir -p "$dir"
exec 9>"$dir/.lock"
flock 9

cd "$root"
digest() { sha256sum | cut -c 1-16; }
locks=$(cat requirements.lock deploy/requirements.lock | digest)
content=$(find .dockerignore deploy/Dockerfile pyproject.toml README.md config htas -type f -not -path '*/__pycache__/*' -print0 | sort -z | xargs -0 sha256sum | cat - <(echo "$locks $tag") | digest)
archive=$dir/$content.tar
if [[ -f $archive ]]; then
  touch "$archive"
  echo "$archive"
  exit 0
fi

build() { buildah --root "${layers:-$dir/layers/$locks}" --runroot "$dir/run" "$@" 9>&-; }
export BUILDAH_ISOLATION=chroot
for layers in "$dir"/layers/*; do
  [[ -d $layers ]] || continue
  build rm --all >/dev/null # a build that was broken off leaves its container mounted
  [[ $layers != "$dir/layers/$locks" ]] || continue
  umount "$layers/overlay" 2>/dev/null || true # the storage library mounts it on itself
  rm -rf "$layers"
done
unset layers
mkdir -p "$dir/layers/$locks"
if ! build inspect --type image "$base" >/dev/null 2>&1; then
  if [[ ! -f $dir/$release.tar ]]; then
    mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,python-is-python3,ca-certificates \
      --aptopt='DPkg::Lock::Timeout "300"' "$release" "$dir/new.tar" >&2
    mv "$dir/new.tar" "$dir/$release.tar"
  fi
  container=$(build from scratch)
  build add --quiet "$container" "$dir/$release.tar" / >/dev/null
  build commit --quiet --rm "$container" "$base" >/dev/null
fi
build bud --layers --pull-never --from "$base" --volume /etc/ssl/certs:/etc/ssl/certs:ro --file deploy/Dockerfile --tag "$tag" . >&2
rm -f "$dir/new.tar"
build push --quiet "$tag" "oci-archive:$dir/new.tar:$tag" >&2
mv "$dir/new.tar" "$archive"
find "$dir" -maxdepth 1 -name '????????????????.tar' -not -newermt '-7 days' -delete
echo "$archive"
