#!/usr/bin/env bash
# Runs unit tests under Miri, which interprets them and reports undefined behaviour: those of the
# layers with unsafe code, of the codecs and of the encodings. Arguments name other tests. Needs the
# components miri and rust-src of a nightly toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/miri
# The tests read files of the repository; properties are tried with a few inputs.
export MIRIFLAGS="-Zmiri-disable-isolation ${MIRIFLAGS:-}" PROPTEST_CASES=${PROPTEST_CASES:-1}
tests=("$@")
if [ $# = 0 ]; then
    tests=(io::codec encoding::keys encoding::order encoding::meta encoding::packed
        engine::memtable engine::entry engine::batch ffi::)
fi
# Without unsafe code, and long: a packed record against a map. With a whole store each: tests
# of handles and of the boundary, which the sanitizers run.
cargo +nightly miri test -p lsmkv --lib -- --skip it_holds_what_a_map_holds \
    --skip ffi::handle --skip ffi::boundary "${tests[@]}"
