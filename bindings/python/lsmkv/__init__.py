"""lsmkv: an embedded, persistent store of Redis data structures.

    import lsmkv

    with lsmkv.open("/path/to/store", sync="always") as db:
        db.set("key", "value", ex=60)
        db.hset("user:1", mapping={"name": "Ada", "visits": 1})
        db.get("key")  # b"value"

Commands have the names, arguments and results of redis-py. Existing code that has a
`redis.Redis` runs in process with `redis.Redis(connection_pool=lsmkv.ConnectionPool(path))`.
"""

from typing import TYPE_CHECKING, Any

from ._batch import Batch
from ._cache import Cache
from ._db import DB, OptionInfo, open, options, version
from ._errors import (
    BusyError,
    ClosedError,
    ConflictError,
    CorruptError,
    DataError,
    DegradedError,
    Error,
    ExecAbortError,
    ForkedError,
    FullError,
    IncompatibleError,
    InvalidError,
    IOError,
    LockError,
    LockNotOwnedError,
    MemoryError,
    MisuseError,
    NoScriptError,
    NoSuchKeyError,
    NotFloatError,
    NotIntegerError,
    OutOfRangeError,
    OverflowError,
    PanicError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    SyntaxError,
    TimeoutError,
    TooLargeError,
    UnsupportedError,
    WatchError,
    WrongTypeError,
)
from ._handle import Handle
from ._lock import Lock
from ._pipeline import Pipeline
from ._server import Server
from ._transaction import Snapshot, Transaction

if TYPE_CHECKING:
    from ._redis import Connection, ConnectionPool, Redis

__version__ = version()

__all__ = [
    "Batch",
    "BusyError",
    "Cache",
    "ClosedError",
    "ConflictError",
    "Connection",
    "ConnectionPool",
    "CorruptError",
    "DB",
    "DataError",
    "DegradedError",
    "Error",
    "ExecAbortError",
    "ForkedError",
    "FullError",
    "Handle",
    "IOError",
    "IncompatibleError",
    "InvalidError",
    "Lock",
    "LockError",
    "LockNotOwnedError",
    "MemoryError",
    "MisuseError",
    "NoScriptError",
    "NoSuchKeyError",
    "NotFloatError",
    "NotIntegerError",
    "OptionInfo",
    "OutOfRangeError",
    "OverflowError",
    "PanicError",
    "Pipeline",
    "ReadOnlyError",
    "Redis",
    "RedisError",
    "ResponseError",
    "Server",
    "Snapshot",
    "SyntaxError",
    "TimeoutError",
    "TooLargeError",
    "Transaction",
    "UnsupportedError",
    "WatchError",
    "WrongTypeError",
    "open",
    "options",
    "version",
]


def __getattr__(name: str) -> Any:
    # Only the adapter needs redis-py.
    if name in ("Connection", "ConnectionPool", "Redis"):
        from . import _redis

        return getattr(_redis, name)
    raise AttributeError("module 'lsmkv' has no attribute %r" % name)
