#!/usr/bin/env bash
# The main job in a real VS Code; screenshots land in .e2e/shots. `--picture` also renews docs/images.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../../.." && pwd)
export EVOKERNEL_E2E_DIR=${EVOKERNEL_E2E_DIR:-$ROOT/.e2e}
E2E=$EVOKERNEL_E2E_DIR

bash "$HERE/setup.sh"

# A new memory for each run, and nothing observed yet; the compiled twin is kept.
export EVOKERNEL_HOME=$E2E/evokernel-home
mkdir -p "$EVOKERNEL_HOME/cache"
find "$EVOKERNEL_HOME" -mindepth 1 -maxdepth 1 ! -name cache -exec rm -rf {} +
find "$EVOKERNEL_HOME/cache" -mindepth 1 -maxdepth 1 ! -name twin -exec rm -rf {} +
"$ROOT/.venv/bin/evokernel" doctor --prepare

timeout --kill-after=20 7200 "$E2E/bin/node" "$HERE/story.mjs" "$E2E" "$ROOT/.venv/bin/evokernel" lsp

if [ "${1:-}" = --picture ]; then
  mkdir -p "$ROOT/docs/images"
  cp "$E2E/shots/05-ready.png" "$ROOT/docs/images/vscode.png"
  cp "$E2E/shots/06-review.png" "$ROOT/docs/images/vscode-review.png"
  cp "$E2E/shots/09-accepted.png" "$ROOT/docs/images/vscode-edit.png"
fi
