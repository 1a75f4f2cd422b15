"""Compares lsmkv.Cache with diskcache.Cache, and times redis-py's asyncio in process. Run by hand, with
redis and diskcache installed:

    make shared
    LSMKV_LIBRARY=target/shipped/liblsmkv.so PYTHONPATH=bindings/python python3 bench/python_cache.py

Each figure is the median of several rounds, in microseconds per call; rounds of both caches alternate.
"""

import asyncio
import statistics
import tempfile
import time

import diskcache
import redis.asyncio

import lsmkv
import lsmkv.asyncio

KEYS = 2000
ROUNDS = 9
VALUE = {"name": "Ada", "visits": 12, "text": "x" * 200}


def rounds(work):
    begun = time.perf_counter()
    for number in range(KEYS):
        work(number)
    return (time.perf_counter() - begun) / KEYS * 1e6


def caches(directory):
    both = {"diskcache": diskcache.Cache(directory + "/a"), "lsmkv": lsmkv.Cache(directory + "/b")}
    work = {
        "set": lambda cache: lambda number: cache.set("key-%d" % number, VALUE),
        "set, expire": lambda cache: lambda number: cache.set("key-%d" % number, VALUE, expire=600),
        "get": lambda cache: lambda number: cache.get("key-%d" % number),
        "get, missing": lambda cache: lambda number: cache.get("none-%d" % number),
        "incr": lambda cache: lambda number: cache.incr("count-%d" % (number % 100)),
    }
    print("%-14s %10s %10s %8s" % ("", *both, "ratio"))
    for name, make in work.items():
        found = {which: [] for which in both}
        for _ in range(ROUNDS):
            for which, cache in both.items():
                found[which].append(rounds(make(cache)))
        theirs, ours = (statistics.median(found[which]) for which in both)
        print("%-14s %10.1f %10.1f %7.1fx" % (name, theirs, ours, theirs / ours))
    for cache in both.values():
        cache.close()


async def loop(directory):
    async with lsmkv.asyncio.ConnectionPool(directory + "/c") as pool:
        client = redis.asyncio.Redis(connection_pool=pool)
        session = pool.store._open_session()
        block = b"".join(lsmkv._values.pack(b"SET", (b"k", b"v")))
        running = asyncio.get_running_loop()

        async def timed(work):
            found = []
            for _ in range(ROUNDS):
                begun = time.perf_counter()
                for _ in range(KEYS):
                    await work()
                found.append((time.perf_counter() - begun) / KEYS * 1e6)
            return statistics.median(found)

        async def inline():
            session._run(block)

        print("a SET in the loop's thread      %8.1f" % await timed(inline))
        hop = lambda: running.run_in_executor(None, session._run, block)
        print("a SET in a thread of its own    %8.1f" % await timed(hop))
        print("redis.asyncio, set              %8.1f" % await timed(lambda: client.set("k", "v")))
        print("redis.asyncio, get              %8.1f" % await timed(lambda: client.get("k")))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        caches(scratch)
        asyncio.run(loop(scratch))
