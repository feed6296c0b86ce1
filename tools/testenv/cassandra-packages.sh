#!/usr/bin/env bash
# Installs what cassandra-up.sh needs from Debian's packages: Java 17 and, to fetch the server's jars once, Maven.
# Needs root and apt-get where they are missing, and some 30 s.
set -euo pipefail
# Cassandra 5.0 starts on Java 17 and 11 alone, whichever else is there.
has_java() {
  local candidate
  for candidate in $(command -v java || true) $(update-alternatives --list java 2>/dev/null || true); do
    "$candidate" -XshowSettings:properties -version 2>&1 | grep -qE 'java\.specification\.version = (11|17)$' && return
  done
  return 1
}
missing=()
has_java || missing+=(openjdk-17-jre-headless)
command -v mvn >/dev/null || missing+=(maven)
[[ ${#missing[@]} -gt 0 ]] || exit 0
[[ $EUID -eq 0 ]] || { echo "cassandra-packages: not root; install: ${missing[*]}" >&2; exit 1; }
export DEBIAN_FRONTEND=noninteractive
begun=$SECONDS log=$(mktemp)
if ! { apt-get update -qq && apt-get install -y -qq -o DPkg::Lock::Timeout=300 --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  exit 1
fi
echo "cassandra-packages: installed in $((SECONDS - begun)) s"
