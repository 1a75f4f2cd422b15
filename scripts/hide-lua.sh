#!/bin/sh
# Renames the symbols of Lua in a static library, so that they meet no other Lua of the program that
# links it: hide-lua.sh liblsmkv.a
set -eu
archive=$1
names=$(mktemp)
trap 'rm -f "$names"' EXIT
nm --defined-only "$archive" 2>/dev/null |
    awk '$2 ~ /^[A-Z]$/ && $3 ~ /^lua/ { print $3, "lsmkv_internal_" $3 }' | sort -u >"$names"
if [ -s "$names" ]; then
    "${OBJCOPY:-objcopy}" --redefine-syms="$names" "$archive"
fi
