#!/usr/bin/env bash
# Runs the unit tests of the layers with unsafe code, of the codecs and of the encodings under the
# address and the thread sanitizer; SANITIZERS names one of them. The thread sanitizer must know the
# locks of the standard library, so this compiles it too: it needs the component rust-src of a nightly
# toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
tests=(io:: encoding:: engine::memtable engine::batch engine::sstable engine::wal engine::snapshot
    txn:: ffi::)
for sanitizer in ${SANITIZERS:-address thread}; do
    echo "== $sanitizer"
    export CARGO_TARGET_DIR=${TARGET:-$PWD/target}/sanitizers/$sanitizer
    export RUSTFLAGS="-Zsanitizer=$sanitizer" CARGO_PROFILE_DEV_OPT_LEVEL=1
    case $sanitizer in
    address) command=(env RUSTC_BOOTSTRAP=1 "$CARGO" test) ;;
    *) command=("$CARGO" +nightly test -Zbuild-std) ;;
    esac
    "${command[@]}" --target x86_64-unknown-linux-gnu -p lsmkv --lib -- "${tests[@]}"
done
