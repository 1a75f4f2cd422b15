#!/usr/bin/env bash
# Runs the unit tests of the layers with unsafe code, of the codecs and of the encodings under the
# address and the thread sanitizer; SANITIZERS names one of them. They are the tests of scripts/miri.sh
# and more. First each sanitizer must report a planted bug.
#
# The thread sanitizer must know the locks of the standard library, so this compiles it too: it needs
# the component rust-src of the usual toolchain, which it installs where that is possible.
set -euo pipefail
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
# The sanitizers of a stable compiler.
export RUSTC_BOOTSTRAP=1
target=x86_64-unknown-linux-gnu
tests=(io:: encoding:: engine::memtable engine::entry engine::batch engine::sstable engine::wal
    engine::snapshot txn:: ffi::)
sources=$(rustc --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock
for sanitizer in ${SANITIZERS:-address thread}; do
    echo "== $sanitizer"
    export CARGO_TARGET_DIR=${TARGET:-$PWD/target}/sanitizers/$sanitizer
    export RUSTFLAGS="-Zsanitizer=$sanitizer" CARGO_PROFILE_DEV_OPT_LEVEL=1
    export CARGO_PROFILE_DEV_DEBUG=line-tables-only
    mkdir -p "$CARGO_TARGET_DIR"
    canary=$CARGO_TARGET_DIR/canary
    # The installed standard library has no sanitizer. That hides none of the planted bugs.
    rustc --edition 2024 "$RUSTFLAGS" -Cunsafe-allow-abi-mismatch=sanitizer -O --target $target \
        -o "$canary" tests/sanitizers/canary.rs
    if "$canary" "$sanitizer" 2> "$canary.log" || ! grep -q "SUMMARY: .*Sanitizer" "$canary.log"; then
        echo "the $sanitizer sanitizer misses a planted bug"
        exit 1
    fi
    grep SUMMARY "$canary.log"
    case $sanitizer in
    address) std=() ;;
    *)
        [ -e "$sources" ] || rustup component add rust-src
        std=(-Zbuild-std)
        ;;
    esac
    "$CARGO" test "${std[@]}" --target $target -p lsmkv --lib -- "${tests[@]}"
done
