"""redis-py's own tests through the adapter, with pytest and pytest-asyncio installed:

    LSMKV_LIBRARY=... PYTHONPATH=bindings/python python3 tests/python/redis_py_suite.py SOURCES [FILE ...]

SOURCES is redis-py's source distribution, unpacked: scripts/setup.sh fetches it, and scripts/test.sh
runs this. Its tests of commands, pipelines,
encodings, locks and scripts (or the files named) run as against a Redis 7.0, with the redis-py of the sources. Each
client there gets a connection to one store in memory. What is left out is in
redis_py_exclusions.txt, with the reason.
"""

import os
import subprocess
import sys

FILES = ["test_commands.py"]
for _name in ("pipeline", "encoding", "lock", "scripting"):
    FILES += ["test_%s.py" % _name, "test_asyncio/test_%s.py" % _name]
# The version that is fetched, and how many of its tests pass: if fewer do, something that used to
# run does not any more.
VERSION = "8.1.0"
PASSES = 579
# The database that redis-py's tests use unless told otherwise.
URL = "redis://localhost:6379/9"


def main(sources, files):
    here = os.path.dirname(os.path.abspath(__file__))
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*map(os.path.abspath, given), here]),
        # Files named by hand are looked at one by one: nothing is known of their number.
        "LSMKV_LEAST_PASSES": "1" if files else str(PASSES),
        "LSMKV_ALL_FILES": "" if files else "1",
    }
    # Other forms of traceback parse redis-py's long files once for every failure: minutes.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "redis_py_plugin", "--tb=native"]
    command += ["-p", "no:cacheprovider", "-W", "ignore", "--disable-warnings"]
    command += ["--redis-url", URL, "--protocol", "2"]
    command += [os.path.join("tests", name) for name in files or FILES]
    return subprocess.run(command, cwd=sources, env=environment).returncode


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
