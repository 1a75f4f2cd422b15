"""Stores that connection pools open by path. Pools of one process share the store of a path, and the
last one that is closed closes it."""

import os
import threading
from typing import Any, Dict, Tuple

from ._db import DB, PathT

_Key = Tuple[int, str]

_lock = threading.Lock()
# By process and path: the store, the options it was opened with, and how many use it. A forked child
# opens its own.
_shared: Dict[_Key, Tuple["DB[bytes]", Dict[str, Any], int]] = {}


def _key(path: PathT) -> _Key:
    return os.getpid(), os.path.realpath(os.fsdecode(path))


def borrow(path: PathT, options: Dict[str, Any]) -> "DB[bytes]":
    """Opens the store of a path, or returns the one that another pool of this process has open."""
    if os.fsdecode(path) == ":memory:":
        return DB[bytes](path, options=options)
    key = _key(path)
    with _lock:
        store, given, users = _shared.get(key, (None, {}, 0))
        if store is None or store.closed:
            store, given, users = DB[bytes](path, options=options), options, 0
        elif options and options != given:
            raise ValueError(
                "the store %s is open with other options: %r, not %r. Close the pools that use it, "
                "or give the same options" % (key[1], given, options)
            )
        _shared[key] = (store, given, users + 1)
    return store


def give_back(store: "DB[bytes]") -> None:
    """Closes a store that `borrow` returned, if nobody else uses it."""
    with _lock:
        for key, (known, given, users) in _shared.items():
            if known is store and users > 1:
                _shared[key] = (known, given, users - 1)
                return
            if known is store:
                del _shared[key]
                break
    store.close()
