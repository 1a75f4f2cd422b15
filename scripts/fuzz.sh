#!/usr/bin/env bash
# Fuzzes the targets of tests/fuzz, all or those named, for N executions each. SECONDS_EACH ends a
# target earlier. Inputs that reach new code are kept in $TARGET/fuzz/corpus; inputs that fail, in
# $TARGET/fuzz/artifacts. Needs cargo-fuzz (`cargo install cargo-fuzz`) and a C++ compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

TARGET=${TARGET:-$PWD/target}
CARGO=${CARGO:-cargo}
work=$TARGET/fuzz
export CARGO_TARGET_DIR=$work/build
# The sanitizers of a stable compiler.
export RUSTC_BOOTSTRAP=1
export PATH=$work/tools/bin:$PATH

command -v cargo-fuzz >/dev/null || "$CARGO" install cargo-fuzz --locked --root "$work/tools"

if [ $# = 0 ]; then
    mapfile -t targets < <(ls tests/fuzz/fuzz_targets | sed 's/\.rs$//')
else
    targets=("$@")
fi
failed=0
for name in "${targets[@]}"; do
    echo "== $name"
    mkdir -p "$work/corpus/$name" "$work/artifacts/$name"
    max_len=65536
    more=()
    build=()
    unset ASAN_OPTIONS LSMKV_FUZZ_RECORD
    case $name in
    commands | store_directory)
        # Whole stores run in these: short inputs, nothing but coverage is traced, and not how often.
        # The sanitizer remembers neither who allocated a block nor much of what was freed.
        max_len=${MAX_LEN:-400}
        build=(--no-trace-compares)
        more=(-entropic=0 -reduce_inputs=0 -use_counters=0)
        export ASAN_OPTIONS=malloc_context_size=0:quarantine_size_mb=8:max_malloc_fill_size=0
        ASAN_OPTIONS+=:detect_stack_use_after_return=0:intercept_memcmp=0
        # The inputs of the pair of stores that fails, in one.
        export LSMKV_FUZZ_RECORD=$work/artifacts/$name/record
        ;;
    esac
    # A single allocation beyond 256 MiB is a failure: no input has over 64 KiB.
    "$CARGO" fuzz run --fuzz-dir tests/fuzz "${build[@]}" "$name" "$work/corpus/$name" \
        "tests/fuzz/corpus/$name" -- "${more[@]}" \
        -runs="${N:-10000000}" -max_total_time="${SECONDS_EACH:-0}" -max_len=$max_len -len_control=100 \
        -malloc_limit_mb=256 -rss_limit_mb=3000 -timeout=20 -print_final_stats=1 -detect_leaks=0 \
        -dict="tests/fuzz/words.dict" \
        -artifact_prefix="$work/artifacts/$name/" 2>&1 | tee "$work/$name.log" | grep -E "ERROR|panicked|stat::number_of|SUMMARY" || true
    grep -q "^stat::number_of_executed_units" "$work/$name.log" && ! grep -q "ERROR\|deadly signal" "$work/$name.log" || failed=1
done
exit $failed
