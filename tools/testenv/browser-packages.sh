#!/usr/bin/env bash
# What the browser tests and `make screenshots` need: Debian's Chromium, fonts, and in the virtual environment Playwright
# and axe-core, pinned. Nothing of it is shipped with HTAS.
set -euo pipefail
cd "$(dirname "$0")/../.."
AXE=out/axe # axe-core is a few files of JavaScript: pages are judged by it, none loads it
mkdir -p "$AXE"
if ! command -v chromium >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  apt-get install -yq --no-install-recommends chromium fonts-inter fonts-noto-core fonts-dejavu-core
fi
.venv/bin/python -c 'import playwright' 2>/dev/null ||
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r tools/testenv/browser/requirements.txt
[ -f "$AXE/node_modules/axe-core/axe.min.js" ] || npm install --silent --no-save --no-package-lock --no-fund --no-audit --prefix "$AXE" axe-core@4.10.3
