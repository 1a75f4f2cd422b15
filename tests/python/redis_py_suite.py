"""redis-py's own tests through the adapter. Run by hand, with redis, pytest and pytest-asyncio
installed, and with network:

    LSMKV_LIBRARY=... PYTHONPATH=bindings/python python3 tests/python/redis_py_suite.py [FILE ...]

Fetches the sources of the redis-py that is installed and runs its tests of commands and pipelines
(or the files named) as against a Redis 7.0. Each client there gets a connection to one store in
memory. A test that needs a command which is none of the store's counts as skipped.
"""

import glob
import os
import subprocess
import sys
import tarfile
import tempfile

FILES = ["test_commands.py", "test_pipeline.py", "test_encoding.py"]
# The database that redis-py's tests use unless told otherwise.
URL = "redis://localhost:6379/9"


def main(files):
    import redis

    with tempfile.TemporaryDirectory() as scratch:
        wanted = "redis==%s" % redis.__version__
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*fetch, "-d", scratch, wanted], check=True)
        (archive,) = glob.glob(os.path.join(scratch, "*.tar.gz"))
        with tarfile.open(archive) as tar:
            tar.extractall(scratch)
        (sources,) = glob.glob(os.path.join(scratch, "redis-*", "tests"))
        here = os.path.dirname(os.path.abspath(__file__))
        paths = [os.path.abspath(os.environ.get("PYTHONPATH", ".")), here]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "redis_py_plugin", "--tb=line"]
        command += ["--redis-url", URL, "--protocol", "2", "-W", "ignore"]
        # A cluster, and a connection of its own to a server.
        command += ["-m", "not onlycluster", "-k", "not psync"]
        command += [os.path.join("tests", name) for name in files]
        return subprocess.run(command, cwd=os.path.dirname(sources), env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or FILES))
