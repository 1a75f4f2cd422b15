"""lsmkv: an embedded, persistent store of Redis data structures.

    import lsmkv

    with lsmkv.open("/path/to/store", sync="always") as db:
        db.set("key", "value")
        db.get("key")  # b"value"
"""

from ._db import DB, open, options, version
from ._errors import (
    BusyError,
    CorruptError,
    DegradedError,
    Error,
    FullError,
    InvalidError,
    MisuseError,
    ReadOnlyError,
    TooLargeError,
    WrongTypeError,
)

__all__ = [
    "BusyError",
    "CorruptError",
    "DB",
    "DegradedError",
    "Error",
    "FullError",
    "InvalidError",
    "MisuseError",
    "ReadOnlyError",
    "TooLargeError",
    "WrongTypeError",
    "open",
    "options",
    "version",
]
