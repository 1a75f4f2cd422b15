#!/usr/bin/env bash
# Runs the tests of the library and of the server with instrumentation and prints which share of the
# lines of src/ ran, by directory. Fails below 92%. Needs cargo-llvm-cov and the component llvm-tools of the toolchain,
# which it installs where that is possible.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
export CARGO_TARGET_DIR=${TARGET:-$PWD/target}/coverage
export PATH=$CARGO_TARGET_DIR/tools/bin:$PATH
command -v cargo-llvm-cov >/dev/null ||
    "$CARGO" install cargo-llvm-cov --locked --root "$CARGO_TARGET_DIR/tools"
command -v rustup >/dev/null && rustup component add llvm-tools

report=$CARGO_TARGET_DIR/lcov.info
# A failed test does not end the measurement, and fails it all the same.
failed=0
"$CARGO" llvm-cov --no-report --no-fail-fast --lib --tests || failed=1
# The server is a process of its own there, and writes down what ran when it ends.
"$CARGO" llvm-cov --no-report --no-fail-fast --no-clean -p lsmkv -p lsmkv-cli --test server || failed=1
"$CARGO" llvm-cov report --lcov --output-path "$report"
scripts/coverage.py "$report" 92
exit $failed
