#!/usr/bin/env bash
# Runs every suite and prints the sum. Called by `make test`, which builds the libraries first and
# exports TARGET, SHARED, STATIC and the programs to use.
#
# A suite that fails does not stop the others. A test that cannot run is skipped with a reason.
# $TARGET/test-report/skips lists the reasons, one per line.
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
# Adds the counts that a program printed last: `N passed, N failed, N skipped`. A program that ended
# before that, or failed without a failed story, counts as one failure.
tally() { # log, exit status
    local line p=0 f=0
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$1" | tail -n 1)
    if [ -n "$line" ]; then read -r p _ f _ <<< "$line"; fi
    if [ "$2" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f))
}

# Rust tests: `cargo_suite TITLE ARGUMENTS...`.
cargo_suite() {
    title "$1"
    shift
    local noted
    noted=$(wc -l < "$LSMKV_SKIPS")
    "$CARGO" test --no-fail-fast "$@" 2>&1 | tee "$report/cargo.log"
    local status=${PIPESTATUS[0]} p f i
    read -r p f i < <(awk '/^test result:/ { p += $4; f += $6; i += $8 }
        END { print p + 0, f + 0, i + 0 }' "$report/cargo.log")
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    # cargo counts a Rust test that notes a skip as passed.
    noted=$(($(wc -l < "$LSMKV_SKIPS") - noted))
    passed=$((passed + p - noted)) failed=$((failed + f))
    local n
    for ((n = 0; n < i; n++)); do skip "cargo test" "an ignored test"; done
}

# Compiles a program of tests/c or tests/cpp against the shipped library.
program() { # name, compiler and flags...
    local name=$1
    shift
    "$@" -Wall -Wextra -Wno-unused-function -O1 -g -Iinclude -Ibindings/cpp -o "$report/$name"
}
run_program() { # name, prefix of the command...
    local name=$1
    shift
    rm -rf "$report/stores"
    LSMKV_TEST_LIBRARY=$SHARED "$@" "$report/$name" "$report/stores" 2>&1 | tee "$report/$name.log"
    tally "$report/$name.log" "${PIPESTATUS[0]}"
}

# Programs for every type and kind of handle; programs that fork, load the library or take long.
types="strings misuse values hashes lists sets zsets keys commands scripts handles messages serving damage"
others="processes threads resources"

c_suite() {
    local name
    for name in $types $others; do
        title "tests/c/$name.c on the shipped shared library"
        if program "$name" "$CC" -std=gnu99 "tests/c/$name.c" "$SHARED" -lpthread -ldl -lm; then
            run_program "$name"
        else
            check "compile $name.c" false
        fi
    done
    for name in strings handles zsets; do
        title "tests/c/$name.c on the shipped static library"
        if program "static-$name" "$CC" -std=gnu99 "tests/c/$name.c" "$STATIC" -lpthread -ldl -lm; then
            run_program "static-$name"
        else
            check "link the static library" false
        fi
    done
}

# Finds leaks and accesses out of bounds in the same programs.
with_valgrind() { # program
    if ! command -v valgrind >/dev/null; then
        skip "valgrind::$1" "there is no valgrind"
        return
    fi
    run_program "$1" valgrind -q --error-exitcode=99 --leak-check=full \
        --errors-for-leak-kinds=definite,possible --suppressions=tests/testdata/valgrind.supp
}
valgrind_suite() {
    local name
    for name in $types; do
        title "tests/c/$name.c under valgrind"
        with_valgrind "$name"
    done
}
sanitizer_suite() {
    local name
    for name in $types processes threads; do
        title "tests/c/$name.c with the address and undefined-behaviour sanitizers"
        if program "asan-$name" "$CC" -std=gnu99 -fsanitize=address,undefined \
            -fno-sanitize-recover "tests/c/$name.c" "$SHARED" -lpthread -ldl -lm; then
            run_program "asan-$name"
        else
            check "compile $name.c with sanitizers" false
        fi
    done
}

# Example programs: each must end with status 0.
example_suite() {
    local name
    for name in bindings/c/*.c; do
        title "$name"
        rm -rf "$report/example-store"
        if program example "$CC" -std=c99 "$name" "$SHARED"; then
            check "$name" "$report/example" "$report/example-store"
        else
            check "compile $name" false
        fi
    done
}

# Programs of the C++ binding: on both libraries, under valgrind and with sanitizers.
cpp_suite() {
    local name
    if ! command -v "$CXX" >/dev/null; then
        skip "cpp" "there is no C++ compiler"
        return
    fi
    for name in binding commands handles; do
        title "tests/cpp/$name.cpp on the shipped shared library"
        if program "cpp-$name" "$CXX" -std=c++17 "tests/cpp/$name.cpp" "$SHARED" -lpthread; then
            run_program "cpp-$name"
            title "tests/cpp/$name.cpp under valgrind"
            with_valgrind "cpp-$name"
        else
            check "compile $name.cpp" false
        fi
        title "tests/cpp/$name.cpp with sanitizers, on the shipped static library"
        if program "asan-cpp-$name" "$CXX" -std=c++20 -fsanitize=address,undefined \
            -fno-sanitize-recover "tests/cpp/$name.cpp" "$STATIC" -lpthread -ldl -lm; then
            run_program "asan-cpp-$name"
        else
            check "compile $name.cpp with sanitizers" false
        fi
    done
}

# An environment with redis-py, diskcache and mypy for tests/python; without a network their tests are skipped.
python_environment() {
    "$PYTHON" -m venv "$report/venv" &&
        "$report/venv/bin/pip" install -q --disable-pip-version-check redis diskcache==5.6.3 mypy
}
python_suite() {
    title "tests/python"
    if ! command -v "$PYTHON" >/dev/null; then
        skip "python" "there is no python3"
        return
    fi
    local python=$PYTHON status run bad name reason
    if python_environment > "$report/pip.log" 2>&1; then python=$report/venv/bin/python; fi
    LSMKV_LIBRARY=$SHARED PYTHONPATH=bindings/python \
        "$python" -m unittest discover -v -s tests/python 2>&1 | tee "$report/python.log"
    status=${PIPESTATUS[0]}
    run=$(sed -n 's/^Ran \([0-9]*\) tests\{0,1\} in .*/\1/p' "$report/python.log")
    # A test that fails in several cases counts once.
    bad=$(grep -E '^(FAIL|ERROR): ' "$report/python.log" | awk '{ print $2, $3 }' | sort -u | wc -l)
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + ${run:-0} - bad)) failed=$((failed + bad))
    while IFS=$'\t' read -r name reason; do
        skip "python::$name" "$reason"
        passed=$((passed - 1))
    done < <(sed -nE "s/^(test_[a-z0-9_]*) .*\.\.\. skipped ['\"](.*)['\"]$/\1\t\2/p" "$report/python.log")
}

# redis-py's own tests, in process: fails if fewer pass than before.
redis_py_suite() {
    title "redis-py's own tests through lsmkv.ConnectionPool"
    local suite=tests/python/redis_py_suite.py tools=$TARGET/test-tools sources
    sources=$tools/redis-py-$(sed -n 's/^VERSION = "\(.*\)"$/\1/p' "$suite")
    if [ ! -d "$sources" ] || [ ! -d "$tools/pytest/pytest_asyncio" ]; then
        skip "redis-py-suite" "its sources or pytest could not be downloaded"
        return
    fi
    LSMKV_LIBRARY=$SHARED PYTHONPATH=bindings/python:$tools/pytest timeout 300 \
        "$PYTHON" "$suite" "$sources" 2>&1 | tee "$report/redis-py.log"
    tally "$report/redis-py.log" "${PIPESTATUS[0]}"
}

# Real programs on the server and in process: fails if one stops working that docs/COMPATIBILITY.md
# calls working.
compat_suite() {
    title "programs of the package registries (tests/compat), the short form"
    timeout 600 "$PYTHON" tests/compat/run.py --cache "$TARGET/compat" --short \
        --lsmkv "$TARGET/debug/lsmkv" --library "$SHARED" 2>&1 | tee "$report/compat.log"
    tally "$report/compat.log" "${PIPESTATUS[0]}"
}

# The programs a newcomer runs first.
demo_suite() {
    title "make demo"
    check "make demo" "$MAKE" --no-print-directory demo
}
# Scripts that print their own counts and note their own skips.
script_suite() { # script
    title "$1"
    "$1" 2>&1 | tee "$report/script.log"
    tally "$report/script.log" "${PIPESTATUS[0]}"
}

# In one call, so that the library is compiled once, with the features of all packages.
cargo_suite "cargo test of the library, the program, the bench and the generator" \
    -p lsmkv -p lsmkv-cli -p lsmkv-bench -p lsmkv-codegen
# A build of its own.
CARGO_TARGET_DIR=$TARGET/core CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0 \
    cargo_suite "the library without any feature" \
    -p lsmkv --no-default-features --lib --test c_abi --test model --test golden --test reopen
# What a server needs, but no Lua; the dependencies of both are in one directory.
CARGO_TARGET_DIR=$TARGET/core CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0 \
    cargo_suite "the library with a server and without scripts" \
    -p lsmkv --no-default-features --features server,remote,tls --test c_abi
# The lock-free parts in every order of their threads. A build of its own, of about a minute.
CARGO_TARGET_DIR=$TARGET/loom RUSTFLAGS="--cfg loom" CARGO_PROFILE_DEV_OPT_LEVEL=1 \
    CARGO_PROFILE_DEV_DEBUG=0 cargo_suite "the models of loom" --test schedules
c_suite
valgrind_suite
sanitizer_suite
example_suite
cpp_suite
python_suite
redis_py_suite
compat_suite
demo_suite
script_suite scripts/test-install.sh
script_suite scripts/test-runtimes.sh
script_suite tests/instructions/run.sh

skipped=$(wc -l < "$LSMKV_SKIPS")
if [ "$skipped" -gt 0 ]; then
    title "skipped (scripts/setup.sh installs what is missing)"
    cat "$LSMKV_SKIPS"
fi
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
