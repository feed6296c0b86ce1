#!/usr/bin/env bash
# Installs what cassandra-up.sh needs from Debian's packages: Java 17 and, to fetch the server's jars once, Maven.
# Needs root and apt-get where they are missing, and some 30 s.
set -euo pipefail
missing=()
command -v java >/dev/null || missing+=(openjdk-17-jre-headless)
command -v mvn >/dev/null || missing+=(openjdk-17-jre-headless maven)
[[ ${#missing[@]} -gt 0 ]] || exit 0
[[ $EUID -eq 0 ]] || { echo "cassandra-packages: not root; install: ${missing[*]}" >&2; exit 1; }
export DEBIAN_FRONTEND=noninteractive
begun=$SECONDS log=$(mktemp)
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  exit 1
fi
echo "cassandra-packages: installed in $((SECONDS - begun)) s"
