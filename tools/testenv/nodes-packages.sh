#!/usr/bin/env bash
# Installs what nodes-up.sh needs: ip, iptables and ssh from Debian's packages where they are missing (needs root and apt-get), and
# CRIU, runc and containerd in a prefix of their own (criu-prefix.sh: a minute or two the first time, needs Go).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
missing=()
command -v ip >/dev/null || missing+=(iproute2)
command -v iptables >/dev/null || missing+=(iptables)
command -v ssh-keygen >/dev/null && command -v scp >/dev/null || missing+=(openssh-client)
if [[ ${#missing[@]} -gt 0 ]]; then
  [[ $EUID -eq 0 ]] || { echo "nodes-packages: not root; install: ${missing[*]}" >&2; exit 1; }
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  if ! { apt-get update -qq && apt-get install -y -qq -o DPkg::Lock::Timeout=300 --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    exit 1
  fi
fi
begun=$SECONDS
"$here/criu-prefix.sh" >/dev/null
echo "nodes-packages: ready in $((SECONDS - begun)) s"
