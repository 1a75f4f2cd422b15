#!/usr/bin/env bash
# Tests the bindings for Node and LuaJIT on the shipped library. Called by scripts/test.sh.
set -uo pipefail
cd "$(dirname "$0")/.."

scratch=$TARGET/test-report/runtimes
rm -rf "$scratch" && mkdir -p "$scratch"
export LSMKV_LIBRARY=$SHARED
passed=0 failed=0

check() { # name, command...
    local name=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED $name"; fi
}
skip() { # name, reason
    echo "SKIPPED $1: $2"
    echo "$1: $2" >> "$LSMKV_SKIPS"
}

# In cargo's target directory, so that it is fetched once.
modules=$TARGET/node
koffi() {
    mkdir -p "$modules" && cp bindings/node/package.json "$modules" &&
        { [ -d "$modules/node_modules/koffi" ] ||
            timeout 120 npm install --prefix "$modules" --no-audit --no-fund --loglevel=error; }
}
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    skip "runtimes::node" "there is no node or no npm"
elif ! koffi || ! NODE_PATH=$modules/node_modules node -e 'require("koffi")'; then
    skip "runtimes::koffi" "npm could not install koffi"
else
    check "node" env NODE_PATH="$modules/node_modules" node tests/node/test.js "$scratch/node"
fi
if command -v luajit >/dev/null; then
    check "luajit" luajit tests/luajit/test.lua "$scratch/luajit"
else
    skip "runtimes::luajit" "there is no luajit"
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
