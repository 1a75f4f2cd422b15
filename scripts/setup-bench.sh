#!/bin/sh
# Installs what the benchmark's peers need: RocksDB's shared library, and a C compiler for LMDB. The
# build fetches fjall and LMDB from crates.io. As root, with apt, the script installs what is missing;
# otherwise it names it. Without RocksDB the bench still builds and shows an empty column.
set -eu

missing=""
command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
command -v pkg-config >/dev/null 2>&1 || missing="$missing pkg-config"
if ! pkg-config --exists rocksdb 2>/dev/null && [ ! -e /usr/include/rocksdb/c.h ]; then
    missing="$missing librocksdb-dev"
fi

if [ -z "$missing" ]; then
    echo "setup-bench: nothing is missing"
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "setup-bench: missing:$missing" >&2
    echo "setup-bench: install them, for example: sudo apt-get install$missing" >&2
    exit 1
fi
apt-get update -qq
# shellcheck disable=SC2086 # a list of package names
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
echo "setup-bench: installed$missing"
