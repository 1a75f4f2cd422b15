"""The rows of a cache: how items are found, changed and removed.

Items are strings of the store, by key. Beside them stand their order of arrival, and sorted sets of
those that expire and of those to be evicted first. One change of the cache is one commit. Writers
take a lock that all caches of a directory in this process share; reads take none.
"""

import contextlib
import os
import tempfile
import threading
import time
from math import inf
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from ._cache_items import Item, decode_key, decode_value, encode_value, unpack
from ._db import DB
from ._errors import TimeoutError
from ._handle import Handle
from ._pipeline import Pipeline
from ._stores import borrow, give_back

# The parts of the store: items, order of arrival, expiries, order of eviction, members of a tag,
# counts, settings.
ITEM, ROW, EXPIRES, EVICTS, TAG, COUNTS, SETTINGS = b"i", b"o", b"x", b"p", b"t", b"m", b"s"
MISSING = object()
# What an item takes beside its own bytes, roughly.
_OVERHEAD = 64

DEFAULT_SETTINGS: Dict[str, Any] = {
    "statistics": 0,
    "tag_index": 0,
    "eviction_policy": "least-recently-stored",
    "size_limit": 2**30,
    "cull_limit": 10,
}
POLICIES = ("none", "least-recently-stored", "least-recently-used", "least-frequently-used")


class _Writers:
    """The lock of a directory, and the transaction of the thread that holds it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.transaction: Optional[Handle[bytes]] = None
        self.owner = 0
        # The last number of a row, None until it is looked up.
        self.last_row: Optional[int] = None


_writers_lock = threading.Lock()
_writers: Dict[str, _Writers] = {}


class CacheRows:
    """Settings, locks and rows of a cache."""

    statistics: int
    tag_index: int
    eviction_policy: str
    size_limit: int
    cull_limit: int

    def __init__(
        self,
        directory: Union[None, str, "os.PathLike[str]"] = None,
        timeout: float = 60,
        **settings: Any,
    ) -> None:
        if directory is None:
            directory = tempfile.mkdtemp(prefix="lsmkv-cache-")
        path = os.path.expandvars(os.path.expanduser(os.fspath(directory)))
        for name in settings:
            if name not in DEFAULT_SETTINGS and not name.startswith(("sqlite_", "disk_")):
                raise TypeError(
                    "unknown setting %r of a cache: there are %s"
                    % (name, ", ".join(DEFAULT_SETTINGS))
                )
        self._directory, self._timeout = path, timeout
        self._db: Optional[DB[bytes]] = None
        with _writers_lock:
            self._writers = _writers.setdefault(os.path.realpath(path), _Writers())
        self._load(settings)

    def _store(self) -> "DB[bytes]":
        """The store. It is opened when it is first needed, and again after `close`."""
        if self._db is None:
            self._db = borrow(self._directory, {})
        return self._db

    def _load(self, given: Dict[str, Any]) -> None:
        kept = {
            name.decode(): decode_value(value)
            for name, value in self._store().hgetall(SETTINGS).items()
        }
        for name, default in DEFAULT_SETTINGS.items():
            setattr(self, name, kept.get(name, default))
            if name in given:
                self.reset(name, given[name])

    def reset(self, key: str, value: Any = MISSING, update: bool = True) -> Any:
        """Changes a setting, or reads it from the store again. Returns its value."""
        if key not in DEFAULT_SETTINGS:
            if key.startswith(("sqlite_", "disk_")):
                return None if value is MISSING else value
            raise KeyError(key)
        if value is MISSING:
            kept = self._store().hget(SETTINGS, key)
            value = DEFAULT_SETTINGS[key] if kept is None else decode_value(kept)
        elif key == "eviction_policy" and value not in POLICIES:
            raise ValueError("unknown policy %r: there are %s" % (value, ", ".join(POLICIES)))
        elif update:
            self._store().hset(SETTINGS, key, encode_value(value))
        setattr(self, key, value)
        return value

    @property
    def directory(self) -> str:
        """The directory of the store."""
        return self._directory

    @property
    def timeout(self) -> float:
        """How long a call waits for a transaction of another thread, in seconds."""
        return self._timeout

    def close(self) -> None:
        """Closes the store, unless another cache uses it. A later call opens it again."""
        store, self._db = self._db, None
        if store is not None:
            give_back(store)

    def __getstate__(self) -> Tuple[str, float]:
        return self._directory, self._timeout

    def __setstate__(self, state: Tuple[str, float]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def _reader(self) -> Handle[bytes]:
        """What this thread reads from: its transaction, or the store."""
        writers = self._writers
        if writers.owner == threading.get_ident() and writers.transaction is not None:
            return writers.transaction
        return self._store()

    def _find(self, key: bytes) -> Optional[Item]:
        return unpack(self._reader().get(ITEM + key))

    @contextlib.contextmanager
    def _locked(self, retry: bool = True) -> Iterator[None]:
        lock = self._writers.lock
        if not lock.acquire(timeout=-1 if retry else self._timeout):
            raise TimeoutError("another thread has held the cache for %s seconds" % self._timeout)
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def transact(self, retry: bool = False) -> Iterator[None]:
        """Makes the changes inside visible together, or undoes them after an exception. Other
        threads wait with their changes."""
        writers = self._writers
        with self._locked(retry):
            if writers.transaction is not None:
                yield
                return
            with self._store().begin() as transaction:
                writers.transaction, writers.owner = transaction, threading.get_ident()
                try:
                    yield
                finally:
                    writers.transaction, writers.owner = None, 0

    @contextlib.contextmanager
    def _change(self, retry: bool = True) -> Iterator[Pipeline[bytes]]:
        """Gives a pipeline that is committed at the end."""
        with self._locked(retry):
            with self._reader().pipeline() as pipe:
                yield pipe
                if len(pipe):
                    pipe.execute()

    def _put(self, pipe: Pipeline[bytes], key: bytes, old: Optional[Item], item: Item) -> None:
        """Stores an item in the place of another."""
        now = time.time()
        if old is None:
            pipe.set(ROW + item.row.to_bytes(8, "big"), key)
            pipe.hincrby(COUNTS, "count", 1)
        grown = len(item.value) + len(item.tag) - (len(old.value) + len(old.tag) if old else 0)
        pipe.set(ITEM + key, item.pack())
        pipe.hincrby(COUNTS, "volume", grown + (0 if old else len(key) + _OVERHEAD))
        if item.expires != inf:
            pipe.zadd(EXPIRES, {key: item.expires})
        elif old is not None and old.expires != inf:
            pipe.zrem(EXPIRES, key)
        old_tag = old.tag if old else b""
        if old_tag and old_tag != item.tag:
            pipe.srem(TAG + old_tag, key)
        if item.tag and item.tag != old_tag:
            pipe.sadd(TAG + item.tag, key)
        if self.eviction_policy != "none":
            pipe.zadd(EVICTS, {key: 0 if self.eviction_policy == "least-frequently-used" else now})

    def _remove(self, pipe: Pipeline[bytes], key: bytes, item: Item) -> None:
        pipe.delete(ITEM + key, ROW + item.row.to_bytes(8, "big"))
        pipe.hincrby(COUNTS, "count", -1)
        pipe.hincrby(COUNTS, "volume", -(len(item.value) + len(item.tag) + len(key) + _OVERHEAD))
        pipe.zrem(EVICTS, key)
        if item.expires != inf:
            pipe.zrem(EXPIRES, key)
        if item.tag:
            pipe.srem(TAG + item.tag, key)

    def _remove_all(self, keys: List[bytes], retry: bool = True) -> int:
        """Removes items. Returns how many there were."""
        count = 0
        with self._change(retry) as pipe:
            for key in keys:
                item = self._find(key)
                if item is not None:
                    self._remove(pipe, key, item)
                    count += 1
        return count

    def _next_row(self) -> int:
        writers = self._writers
        if writers.last_row is None:
            last = next(self._store().iter_keys(ROW, ROW + b"\xff" * 9, reverse=True), None)
            writers.last_row = int.from_bytes(last[1:], "big") if last else 0
        writers.last_row += 1
        return writers.last_row

    def _insert(
        self, pipe: Pipeline[bytes], key: Any, data: bytes, old: Optional[Item],
        value: bytes, expire: Optional[float], tag: Any,
    ) -> None:
        expires = inf if expire is None else time.time() + expire
        if old is not None:
            row, is_float = old.row, old.key_is_float
        else:
            row, is_float = self._next_row(), type(key) is float
        label = b"" if tag is None else encode_value(tag)
        self._put(pipe, data, old, Item(row, expires, label, value, is_float))
        if self.cull_limit:
            # With the same call: what has expired, and how large the cache is.
            pipe.zrangebyscore(EXPIRES, "-inf", "(%r" % time.time(), start=0, num=self.cull_limit)
            pipe.hget(COUNTS, "volume")
            expired, volume = pipe.execute()[-2:]
            self._cull(expired, int(volume or 0))

    def _cull(self, expired: List[bytes], volume: int) -> None:
        """Removes some expired items, and some by the policy if the cache is too large."""
        limit = self.cull_limit
        if expired:
            limit -= self._remove_all(expired)
            volume = self.volume()
        if limit > 0 and self.eviction_policy != "none" and volume >= self.size_limit:
            self._remove_all(self._reader().zrange(EVICTS, 0, limit - 1))

    def _expired(self, now: float) -> List[bytes]:
        found: List[bytes] = self._reader().zrangebyscore(EXPIRES, "-inf", "(%r" % now)
        return found

    def _used(self, data: bytes) -> None:
        """Notes that an item was read, if the policy wants to know."""
        if self.eviction_policy == "least-recently-used":
            with self._change() as pipe:
                pipe.zadd(EVICTS, {data: time.time()}, xx=True)
        elif self.eviction_policy == "least-frequently-used":
            with self._change() as pipe:
                pipe.zadd(EVICTS, {data: 1}, xx=True, incr=True)

    def _rows(self, reverse: bool = False) -> Iterator[bytes]:
        """Walks over the keys in the order in which they were stored first."""
        for _, _, key in self._reader().iter_items(ROW, ROW + b"\xff" * 9, reverse):
            if key is not None:
                yield key

    def _keys(self, datas: Iterator[bytes]) -> Iterator[Any]:
        for data in datas:
            # Only a number needs its item, which tells whether it is a float.
            item = self._find(data) if data[:1] == b"\x01" else None
            yield decode_key(data, item is not None and item.key_is_float)

    def _count(self, name: str) -> int:
        return int(self._reader().hget(COUNTS, name) or 0)

    def volume(self) -> int:
        """Returns the bytes of all items, roughly, before compression."""
        return self._count("volume")
