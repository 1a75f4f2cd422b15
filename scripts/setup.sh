#!/bin/sh
# Installs what the tests need and this machine lacks, where that can be done without asking
# (apt, as root). Otherwise names it: the tests that need it are then skipped and counted.
set -eu

missing=
need() { # program, package
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need gcc gcc
need g++ g++
need make make
need python3 python3
need valgrind valgrind
need redis-server redis-server
need readelf binutils
need pkg-config pkg-config

if [ -z "$missing" ]; then
    echo "setup: nothing is missing"
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "setup: installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null; }; then
        echo "setup: could not install$missing; tests that need them are skipped"
    fi
else
    echo "setup: please install$missing; tests that need them are skipped"
fi
