#!/usr/bin/env bash
# Installs what image-build.sh needs from Debian's packages: buildah, which needs no daemon, and mmdebstrap for the base image.
# Needs root and apt-get where they are missing, and some 40 s.
set -euo pipefail
missing=()
for package in buildah mmdebstrap uidmap; do
  dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null | grep -q '^installed$' || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0
[[ $EUID -eq 0 ]] || { echo "image-packages: not root; install: ${missing[*]}" >&2; exit 1; }
export DEBIAN_FRONTEND=noninteractive
begun=$SECONDS log=$(mktemp)
wait=-oDPkg::Lock::Timeout=300 # somebody else may be installing
if ! { apt-get update -qq "$wait" && apt-get install -y -qq --no-install-recommends "$wait" "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  exit 1
fi
echo "image-packages: installed in $((SECONDS - begun)) s"
