#!/usr/bin/env bash
# Checks that `make install` is complete: builds programs against an installation with pkg-config and
# with CMake. Checks that `make uninstall` leaves nothing. Called by scripts/test.sh.
set -uo pipefail
cd "$(dirname "$0")/.."

scratch=$TARGET/test-report/install
rm -rf "$scratch" && mkdir -p "$scratch"
prefix=$scratch/prefix
quiet="$MAKE --no-print-directory"
# The program that cargo has built for its tests, if there is one: `make cli` would compile the whole
# library again.
program=$TARGET/debug/lsmkv
if [ -x "$program" ]; then quiet="$quiet -o cli PROGRAM=$program"; fi
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
passed=0 failed=0

check() { # name, command...
    local name=$1
    shift
    if (set -e; "$@") > "$scratch/log" 2>&1; then
        echo "ok $name"
        passed=$((passed + 1))
    else
        echo "FAILED $name"
        cat "$scratch/log"
        failed=$((failed + 1))
    fi
}
skip() { # name, reason
    echo "SKIPPED $1: $2"
    echo "$1: $2" >> "$LSMKV_SKIPS"
}
# Runs a program on a fresh store, with the installed library only.
runs() { rm -rf "$scratch/store" && LD_LIBRARY_PATH=$prefix/lib "$1" "$scratch/store"; }
flags() { pkg-config "$@" lsmkv; }

installs() { $quiet install PREFIX="$prefix"; }
# Neither symbols nor debug information; the functions of the header stay.
is_stripped() {
    local file left
    # A Rust program names its pretty printers for gdb in a section of 34 bytes. The sections go to a
    # file: a reader that ends early would make the pipe fail.
    for file in lib/liblsmkv.so bin/lsmkv lib/liblsmkv.a; do
        # A section may be named for a function with such a word in its name.
        left='] \.(rela\.)?(debug_|llvmbc'
        if [ "$file" != lib/liblsmkv.a ]; then left="$left|symtab"; fi
        left="$left)"
        readelf -SW "$prefix/$file" > "$scratch/sections"
        sed -i '/\.debug_gdb_scripts/d' "$scratch/sections"
        if grep -E "$left" "$scratch/sections"; then return 1; fi
    done
    readelf -sW "$prefix/lib/liblsmkv.so" > "$scratch/symbols"
    grep ' lsmkv_open$' "$scratch/symbols"
}
links_are_relative() {
    [ "$(readlink "$prefix/lib/liblsmkv.so")" = liblsmkv.so.0 ] && [ -f "$prefix/lib/liblsmkv.so.0" ]
}
program_runs() {
    local version
    version=$(sed -n 's/^Version: //p' "$PKG_CONFIG_PATH/lsmkv.pc")
    [ "$("$prefix/bin/lsmkv" --version)" = "lsmkv $version" ] &&
        grep -q '^\.TH lsmkv 1' "$prefix/share/man/man1/lsmkv.1"
}
in_c() {
    # shellcheck disable=SC2046
    "$CC" bindings/c/quickstart.c -o "$scratch/in_c" $(flags --cflags --libs) && runs "$scratch/in_c"
}
in_cpp() {
    # shellcheck disable=SC2046
    "$CXX" -std=c++17 bindings/cpp/quickstart.cpp -o "$scratch/in_cpp" $(flags --cflags --libs) &&
        runs "$scratch/in_cpp"
}
static_in_c() {
    # shellcheck disable=SC2046
    "$CC" -static bindings/c/quickstart.c -o "$scratch/static" $(flags --cflags) \
        $(flags --static --libs) || return 1
    rm -rf "$scratch/store" && "$scratch/static" "$scratch/store" && ! ldd "$scratch/static"
}
# In both orders: the linker takes from the second library what the first one lacks.
beside_a_second_rust_library() {
    local ours=$prefix/lib/liblsmkv.a other=$scratch/libsecond.a libraries
    rustc --edition 2024 -O --crate-type staticlib tests/installed/second_library.rs -o "$other" || return 1
    for libraries in "$ours $other" "$other $ours"; do
        # shellcheck disable=SC2086
        "$CC" -I"$prefix/include" tests/installed/two_libraries.c $libraries -lpthread -ldl -lm \
            -o "$scratch/two_libraries" && "$scratch/two_libraries" || return 1
    done
}
with_cmake() {
    cmake -S tests/installed -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" &&
        env -u MAKE -u MAKEFLAGS cmake --build "$scratch/build" &&
        runs "$scratch/build/in_c" && runs "$scratch/build/in_cpp" &&
        rm -rf "$scratch/store" && "$scratch/build/in_c_static" "$scratch/store"
}
staged() {
    $quiet install PREFIX=/usr DESTDIR="$scratch/stage" &&
        grep -qx prefix=/usr "$scratch/stage/usr/lib/pkgconfig/lsmkv.pc" &&
        ! grep -rqF --include='*.pc' --include='*.cmake' "$scratch" "$scratch/stage" &&
        $quiet uninstall PREFIX=/usr DESTDIR="$scratch/stage"
}
leaves_nothing() {
    [ -f "$prefix/lib/liblsmkv.a" ] && $quiet uninstall PREFIX="$prefix" &&
        [ -z "$(find "$prefix" "$scratch/stage" ! -type d)" ]
}
refuses_a_relative_prefix() {
    local said
    said=$($quiet install PREFIX=here 2>&1) && return 1
    grep -q "must be an absolute path" <<< "$said"
}
# Cargo.toml names the same headers for cargo-c.
as_cargo_c_is_told() {
    local named
    # shellcheck disable=SC2046
    named=$(ls $(sed -n 's/^ *{ from = "\([^"]*\)".*/\1/p' Cargo.toml) | xargs -n 1 basename | sort)
    [ "$named" = "$(find "$prefix/include" -type f -printf '%f\n' | sort)" ]
}
as_cargo_c() {
    local at=$scratch/cargo-c
    cargo cinstall --frozen --prefix="$at" --libdir="$at/lib" || return 1
    [ -f "$at/include/lsmkv/commands.hpp" ] && [ -f "$at/lib/liblsmkv.a" ] || return 1
    export PKG_CONFIG_PATH=$at/lib/pkgconfig
    # shellcheck disable=SC2046
    "$CC" bindings/c/quickstart.c -o "$scratch/in_c" $(flags --cflags --libs) || return 1
    rm -rf "$scratch/store" && LD_LIBRARY_PATH=$at/lib "$scratch/in_c" "$scratch/store"
}

check "make install" installs
check "the links of the shared library" links_are_relative
check "the program and its manual page" program_runs
if command -v readelf >/dev/null && command -v "${STRIP:-strip}" >/dev/null; then
    check "nothing but the functions is left of symbols" is_stripped
else
    skip "install::stripped" "there is no readelf or no strip"
fi
check "the headers named for cargo-c" as_cargo_c_is_told
check "the static library beside a second Rust library" beside_a_second_rust_library
if command -v pkg-config >/dev/null; then
    check "pkg-config in C" in_c
    check "pkg-config in C++" in_cpp
    check "pkg-config --static" static_in_c
else
    for name in c cpp static; do skip "install::pkg-config-$name" "there is no pkg-config"; done
fi
if command -v cmake >/dev/null; then
    check "find_package in CMake" with_cmake
else
    skip "install::cmake" "there is no cmake"
fi
if command -v cargo-cinstall >/dev/null; then
    check "cargo cinstall" as_cargo_c
else
    skip "install::cargo-c" "there is no cargo-c"
fi
check "make install with DESTDIR" staged
check "a relative PREFIX is refused" refuses_a_relative_prefix
check "make uninstall" leaves_nothing
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
