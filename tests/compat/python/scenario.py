"""What the scenarios of this directory share: the store they use, workers, waiting.

A file `with_X.py` holds one function per scenario. tests/compat/run.py calls it as

    python with_X.py SCENARIO redis://127.0.0.1:PORT/0     on a server
    python with_X.py SCENARIO DIRECTORY                    in process, on the store in DIRECTORY

A scenario returns if it saw the effect that it names, and raises otherwise.
"""

import contextlib
import functools
import os
import subprocess
import sys
import tempfile
import time
import traceback


class Server:
    """A server that listens on an address."""

    in_process = False

    def __init__(self, url):
        self.url = url
        self.port = int(url.rsplit(":", 1)[1].split("/")[0])

    def pool(self, **options):
        import redis

        return redis.ConnectionPool.from_url(self.url, **options)

    def async_pool(self, **options):
        import redis.asyncio

        return redis.asyncio.ConnectionPool.from_url(self.url, **options)


class Store:
    """A store that this process opens at its first use. Other processes may share its directory before."""

    in_process = True
    # A valid address for programs that want one beside a pool. Nothing listens there.
    url = "redis://127.0.0.1:1/0"

    def __init__(self, directory):
        self.directory = directory

    @functools.cached_property
    def db(self):
        import lsmkv

        return lsmkv.open(self.directory)

    def pool(self, **options):
        import lsmkv

        return lsmkv.ConnectionPool(store=self.db, **options)

    def async_pool(self, **options):
        import lsmkv.asyncio

        return lsmkv.asyncio.ConnectionPool(store=self.db, **options)


def client(place, **options):
    """Returns a client of redis-py."""
    import redis

    return redis.Redis(connection_pool=place.pool(**options))


def async_client(place, **options):
    """Returns a client of redis-py's asyncio."""
    import redis.asyncio

    return redis.asyncio.Redis(connection_pool=place.async_pool(**options))


def equal(found, expected):
    if found != expected:
        raise AssertionError("%r, not %r" % (found, expected))


def wait_until(condition, seconds=15):
    """Waits until the condition holds; returns what it gave."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError("not so after %d seconds" % seconds)
        time.sleep(0.02)


@contextlib.contextmanager
def raises(kind):
    try:
        yield
    except kind:
        return
    raise AssertionError("no %s" % kind.__name__)


@contextlib.contextmanager
def worker(*command, **environment):
    """Runs a worker beside the scenario. Shows what it said if the scenario fails."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command,
            # Workers import their application from here.
            env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__)), **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process
            assert process.poll() is None, "the worker ended: status %s" % process.returncode
        except BaseException:
            log.seek(0)
            print("-- worker\n%s-- end of worker" % log.read(), flush=True)
            raise
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def program(name):
    """The path of a program that a package installed beside this Python."""
    return os.path.join(os.path.dirname(sys.executable), name)


def main(scenarios):
    name, where = sys.argv[1:]
    try:
        place = Server(where) if where.startswith("redis://") else Store(where)
        scenarios[name](place)
        status = 0
    except BaseException as error:
        traceback.print_exc()
        words = str(error).strip() or repr(error)
        print("FAILED %s: %s" % (type(error).__name__, words.splitlines()[0]), flush=True)
        status = 1
    # Threads of a worker that a failed scenario left behind do not hold the process.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
