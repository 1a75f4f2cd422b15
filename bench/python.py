"""Measures the cost of the Python binding. Run by hand:

    make shared
    LSMKV_LIBRARY=target/shipped/liblsmkv.so PYTHONPATH=bindings/python python3 bench/python.py

Times are processor times, the minimum of several runs. The engine's own time is that of the C function
alone: a bare call with everything prepared, minus a call that returns at once.
"""

import gc
import time
from ctypes import CFUNCTYPE, c_char_p, c_size_t, c_uint32, c_void_p, cast

import lsmkv
from lsmkv._ffi import lib
from lsmkv._outputs import READ_BYTES, take
from lsmkv._values import pack

RUNS = 25
CALLS = 4000
ITEMS = 1000
VALUE = b"v" * 100


def least(work, count):
    """Microseconds of one of `count` things that `work` does."""
    best = float("inf")
    for _ in range(RUNS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best / count * 1e6


def calls(function, *args):
    """The time of one call."""
    numbers = range(CALLS)

    def work():
        for _ in numbers:
            function(*args)

    return least(work, CALLS)


def empty():
    """A function of 5 arguments, as most have them, that does nothing: one without any, to which
    more than it looks at does no harm."""
    kind = CFUNCTYPE(c_uint32, c_void_p, c_char_p, c_size_t, c_void_p, c_void_p)
    return kind(cast(lib.lsmkv_abi_version, c_void_p).value)


def row(name, microseconds, note=""):
    print("%-44s %8.3f us  %s" % (name, microseconds, note))


def judge(cost, limit):
    return "limit %.3f: %s" % (limit, "kept" if cost <= limit else "EXCEEDED")


def main():
    gc.disable()
    out = take()
    db = lsmkv.open(":memory:")
    key = b"key:000123"
    db.set(key, VALUE)
    empty5 = calls(empty(), db._handle, key, len(key), out.size_at, out.err_at)
    row("empty call of 5 arguments", empty5)

    inputs = (key, len(key), out.room_at, READ_BYTES, out.size_at)
    nothing = calls(lib.lsmkv_get_into, None, *inputs, None)
    bare = calls(lib.lsmkv_get_into, db._handle, *inputs, out.err_at)
    engine = max(bare - nothing, 0)
    get = calls(db.get, key)
    row("get in the engine", engine)
    row("get", get, judge(get, 2 * empty5 + engine))
    row("get of a str", calls(db.get, "key:000123"))
    row("set", calls(db.set, key, VALUE))
    row("incr", calls(db.incr, b"n"))
    db.hset("h", "f", VALUE)
    row("hget", calls(db.hget, b"h", b"f"))
    db.rpush("l", *range(100))
    row("lrange of 100", calls(db.lrange, b"l", 0, -1))

    keys = [b"key:%06d" % number for number in range(ITEMS)]
    block = b"".join(part for k in keys for part in pack(b"SET", (k, VALUE)))

    def engine_alone():
        lib.lsmkv_command_packed(db._handle, block, len(block), out.pointer_at, out.err_at)
        lib.lsmkv_reply_free(out.pointer.value)

    def pipelined():
        pipe = db.pipeline(transaction=False)
        for k in keys:
            pipe.set(k, VALUE)
        pipe.execute()

    alone = least(engine_alone, ITEMS)
    item = least(pipelined, ITEMS)
    row("pipeline of 1000 sets, an item", item)
    row("  of it in the engine", alone)
    row("  of it in the binding", item - alone, judge(item - alone, empty5))
    db.close()


main()
