#!/usr/bin/env bash
# Every suite, one after the other, and the sum of them all. Called by `make test`, which builds
# the libraries first and sets TARGET, SHARED, STATIC and the programs to use.
#
# A suite that fails does not stop the others. What cannot run here is skipped with a reason;
# the reasons are left in $TARGET/test-report/skips, one a line.
set -uo pipefail
cd "$(dirname "$0")/.."

report=$TARGET/test-report
rm -rf "$report" && mkdir -p "$report"
export LSMKV_SKIPS=$report/skips
: > "$LSMKV_SKIPS"
export LD_LIBRARY_PATH=${SHARED%/*} PYTHONDONTWRITEBYTECODE=1
passed=0 failed=0

title() { printf '\n== %s\n' "$1"; }
skip() { # what, reason
    echo "SKIPPED $1: $2"
    echo "$1: $2" >> "$LSMKV_SKIPS"
}
# Adds one check to the sum: `check NAME COMMAND...`.
check() {
    local name=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED $name"; fi
}
# Adds the counts that a program printed last: `N passed, N failed, N skipped`. A program that
# died before that, or failed without a failed story, counts as one failure.
tally() { # log, exit status
    local line p=0 f=0
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$1" | tail -n 1)
    if [ -n "$line" ]; then read -r p _ f _ <<< "$line"; fi
    if [ "$2" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f))
}

cargo_suite() {
    title "cargo test"
    "$CARGO" test --no-fail-fast 2>&1 | tee "$report/cargo.log"
    local status=${PIPESTATUS[0]} p f i
    read -r p f i < <(awk '/^test result:/ { p += $4; f += $6; i += $8 }
        END { print p + 0, f + 0, i + 0 }' "$report/cargo.log")
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    # A Rust test that notes a skip ends as passed; it is counted as what it was.
    passed=$((passed + p - $(wc -l < "$LSMKV_SKIPS"))) failed=$((failed + f))
    local n
    for ((n = 0; n < i; n++)); do skip "cargo test" "an ignored test"; done
}

# A program of tests/c or tests/cpp, on the library that is shipped.
program() { # name, compiler and flags...
    local name=$1
    shift
    "$@" -Wall -Wextra -O1 -g -Iinclude -Ibindings/cpp -o "$report/$name"
}
run_program() { # name, prefix of the command...
    local name=$1
    shift
    rm -rf "$report/stores"
    LSMKV_TEST_LIBRARY=$SHARED "$@" "$report/$name" "$report/stores" 2>&1 | tee "$report/$name.log"
    tally "$report/$name.log" "${PIPESTATUS[0]}"
}

c_suite() {
    local name
    for name in strings misuse processes threads; do
        title "tests/c/$name.c on the shipped shared library"
        if program "$name" "$CC" -std=gnu99 "tests/c/$name.c" "$SHARED" -lpthread -ldl; then
            run_program "$name"
        else
            check "compile $name.c" false
        fi
    done
    title "tests/c/strings.c on the shipped static library"
    if program static "$CC" -std=gnu99 tests/c/strings.c "$STATIC" -lpthread -ldl -lm; then
        run_program static
    else
        check "link the static library" false
    fi
}

valgrind_suite() {
    local name
    for name in strings misuse; do
        title "tests/c/$name.c under valgrind"
        if ! command -v valgrind >/dev/null; then
            skip "valgrind::$name" "there is no valgrind"
            continue
        fi
        run_program "$name" valgrind -q --error-exitcode=99 --leak-check=full \
            --errors-for-leak-kinds=definite,possible --suppressions=tests/testdata/valgrind.supp
    done
}

cpp_suite() {
    title "tests/cpp/binding.cpp"
    if ! command -v "$CXX" >/dev/null; then
        skip "cpp" "there is no C++ compiler"
    elif program cpp "$CXX" -std=c++17 tests/cpp/binding.cpp "$SHARED"; then
        run_program cpp
    else
        check "compile binding.cpp" false
    fi
}

python_suite() {
    title "tests/python"
    if ! command -v "$PYTHON" >/dev/null; then
        skip "python" "there is no python3"
        return
    fi
    LSMKV_LIBRARY=$SHARED PYTHONPATH=bindings/python \
        "$PYTHON" -m unittest discover -v -s tests/python 2>&1 | tee "$report/python.log"
    local status=${PIPESTATUS[0]} run bad s
    run=$(sed -n 's/^Ran \([0-9]*\) tests\{0,1\} in .*/\1/p' "$report/python.log")
    bad=$(grep -cE '^(FAIL|ERROR): ' "$report/python.log")
    s=$(sed -n 's/.*skipped=\([0-9]*\).*/\1/p' "$report/python.log")
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + ${run:-0} - bad - ${s:-0})) failed=$((failed + bad))
    local n
    for ((n = 0; n < ${s:-0}; n++)); do skip "python" "a skipped test"; done
}

# The programs a newcomer runs first, and what `make install` puts in place.
demo_suite() {
    title "make demo"
    check "make demo" "$MAKE" --no-print-directory demo
}
installed_program() {
    local prefix=$report/prefix flags
    "$MAKE" --no-print-directory install PREFIX="$prefix" || return 1
    flags=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs lsmkv) || return 1
    # shellcheck disable=SC2086
    "$CC" bindings/c/quickstart.c -o "$report/installed" $flags || return 1
    LD_LIBRARY_PATH=$prefix/lib "$report/installed"
}
install_suite() {
    title "make install, and a program built with pkg-config"
    if command -v pkg-config >/dev/null; then
        check "install" installed_program
    else
        skip "install" "there is no pkg-config"
    fi
}

cargo_suite
c_suite
valgrind_suite
cpp_suite
python_suite
demo_suite
install_suite

skipped=$(wc -l < "$LSMKV_SKIPS")
if [ "$skipped" -gt 0 ]; then
    title "skipped (scripts/setup.sh installs what is missing)"
    cat "$LSMKV_SKIPS"
fi
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
