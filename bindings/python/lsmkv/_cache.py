"""`Cache`: a cache on disk with the methods of diskcache.Cache."""

import functools
import io
import time
from math import inf
from typing import Any, Callable, Iterator, List, Optional, Tuple

from ._cache_items import Item, decode_value, encode_key, encode_value, is_number
from ._cache_queues import CacheQueues
from ._cache_rows import COUNTS, EVICTS, EXPIRES, ITEM, MISSING, TAG


class Cache(CacheQueues):
    """A cache on disk: keys and values are any objects that can be pickled.

    Takes diskcache's settings `statistics`, `eviction_policy`, `size_limit`, `cull_limit` and
    `tag_index`. Those that begin with "sqlite_" or "disk_" have no meaning here and are ignored.
    """

    def __enter__(self) -> "Cache":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set(
        self, key: Any, value: Any, expire: Optional[float] = None, read: bool = False,
        tag: Any = None, retry: bool = False,
    ) -> bool:
        """Stores a value. It expires after this many seconds; `evict` finds it by its tag. With
        `read` the value is a file, whose contents are stored."""
        data, stored = encode_key(key), encode_value(value.read() if read else value)
        with self._change(retry) as pipe:
            self._insert(pipe, key, data, self._find(data), stored, expire, tag)
        return True

    def __setitem__(self, key: Any, value: Any) -> None:
        self.set(key, value, retry=True)

    def add(
        self, key: Any, value: Any, expire: Optional[float] = None, read: bool = False,
        tag: Any = None, retry: bool = False,
    ) -> bool:
        """Stores a value unless the key has one. Returns whether it was stored."""
        data, stored = encode_key(key), encode_value(value.read() if read else value)
        with self._locked(retry):
            old = self._find(data)
            if old is not None and old.is_valid(time.time()):
                return False
            with self._change() as pipe:
                self._insert(pipe, key, data, old, stored, expire, tag)
        return True

    def incr(
        self, key: Any, delta: int = 1, default: Optional[int] = 0, retry: bool = False
    ) -> Any:
        """Adds to a number. A missing one is `default`, or raises KeyError if that is None."""
        data = encode_key(key)
        with self._locked(retry):
            old = self._find(data)
            if old is None or not old.is_valid(time.time()):
                if default is None:
                    raise KeyError(key)
                value: Any = default + delta
                with self._change() as pipe:
                    self._insert(pipe, key, data, old, encode_value(value), None, None)
                return value
            if not is_number(old.value):
                raise TypeError("the value of %r is no number" % (key,))
            value = decode_value(old.value) + delta
            with self._change() as pipe:
                self._put(pipe, data, old, old._replace(value=encode_value(value)))
            return value

    def decr(
        self, key: Any, delta: int = 1, default: Optional[int] = 0, retry: bool = False
    ) -> Any:
        """Subtracts from a number."""
        return self.incr(key, -delta, default, retry)

    def get(
        self, key: Any, default: Any = None, read: bool = False, expire_time: bool = False,
        tag: bool = False, retry: bool = False,
    ) -> Any:
        """Returns the value of a key, or `default`; with `expire_time` and `tag` a tuple that has
        them too; with `read` a file with the value."""
        data = encode_key(key)
        item = self._find(data)
        found = item is not None and item.is_valid(time.time())
        if self.statistics:
            self._reader().hincrby(COUNTS, "hits" if found else "misses", 1)
        if item is None or not found:
            return Item(0, inf, b"", b"", False).result(default, expire_time, tag)
        self._used(data)
        value = decode_value(item.value)
        if read:
            value = io.BytesIO(value if isinstance(value, bytes) else str(value).encode())
        return item.result(value, expire_time, tag)

    def __getitem__(self, key: Any) -> Any:
        value = self.get(key, MISSING, retry=True)
        if value is MISSING:
            raise KeyError(key)
        return value

    def read(self, key: Any, retry: bool = False) -> Any:
        """Returns a file with the value of a key."""
        found = self.get(key, MISSING, read=True, retry=retry)
        if found is MISSING:
            raise KeyError(key)
        return found

    def __contains__(self, key: Any) -> bool:
        item = self._find(encode_key(key))
        return item is not None and item.is_valid(time.time())

    def pop(
        self, key: Any, default: Any = None, expire_time: bool = False, tag: bool = False,
        retry: bool = False,
    ) -> Any:
        """Removes a key and returns its value, or `default`."""
        data = encode_key(key)
        with self._locked(retry):
            item = self._find(data)
            if item is None or not item.is_valid(time.time()):
                return Item(0, inf, b"", b"", False).result(default, expire_time, tag)
            self._remove_all([data])
        return item.result(decode_value(item.value), expire_time, tag)

    def __delitem__(self, key: Any, retry: bool = True) -> None:
        if not self.delete(key, retry):
            raise KeyError(key)

    def delete(self, key: Any, retry: bool = False) -> bool:
        """Removes a key. Returns whether it was there and had not expired."""
        data = encode_key(key)
        with self._locked(retry):
            item = self._find(data)
            if item is None or not item.is_valid(time.time()):
                return False
            return self._remove_all([data]) == 1

    def touch(self, key: Any, expire: Optional[float] = None, retry: bool = False) -> bool:
        """Changes when a key expires. Returns whether it is there."""
        data, now = encode_key(key), time.time()
        with self._change(retry) as pipe:
            item = self._find(data)
            if item is None or not item.is_valid(now):
                return False
            expires = inf if expire is None else now + expire
            pipe.set(ITEM + data, item._replace(expires=expires).pack())
            if expire is None:
                pipe.zrem(EXPIRES, data)
            else:
                pipe.zadd(EXPIRES, {data: now + expire})
        return True

    def memoize(
        self, name: Optional[str] = None, typed: bool = False, expire: Optional[float] = None,
        tag: Any = None, ignore: Any = (),
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorates a function: its results are stored by its arguments. `ignore` names arguments,
        by position or name, that make no difference; with `typed` 1 and 1.0 do."""
        if callable(name):
            raise TypeError("memoize takes arguments: write @cache.memoize()")

        def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
            base = name or "%s.%s" % (function.__module__, function.__qualname__)

            def cache_key(*args: Any, **kwargs: Any) -> Tuple[Any, ...]:
                given = tuple(arg for at, arg in enumerate(args) if at not in ignore)
                named = tuple(sorted((k, v) for k, v in kwargs.items() if k not in ignore))
                kinds = tuple(map(type, given)) + tuple(type(v) for _, v in named) if typed else ()
                return (base, given, named, kinds)

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                key = cache_key(*args, **kwargs)
                result = self.get(key, MISSING, retry=True)
                if result is MISSING:
                    result = function(*args, **kwargs)
                    if expire is None or expire > 0:
                        self.set(key, result, expire, tag=tag, retry=True)
                return result

            wrapper.__cache_key__ = cache_key  # type: ignore[attr-defined]
            return wrapper

        return decorator

    def expire(self, now: Optional[float] = None, retry: bool = False) -> int:
        """Removes the expired items. Returns how many."""
        with self._locked(retry):
            return self._remove_all(self._expired(time.time() if now is None else now))

    def evict(self, tag: Any, retry: bool = False) -> int:
        """Removes the items with a tag. Returns how many."""
        with self._locked(retry):
            return self._remove_all(list(self._reader().smembers(TAG + encode_value(tag))))

    def cull(self, retry: bool = False) -> int:
        """Removes expired items, then by the policy until the cache is small enough."""
        with self._locked(retry):
            count = self.expire()
            if self.eviction_policy == "none":
                return 0
            while self.volume() > self.size_limit:
                removed = self._remove_all(self._reader().zrange(EVICTS, 0, 9))
                if not removed:
                    break
                count += removed
        return count

    def clear(self, retry: bool = False) -> int:
        """Removes all items. Returns how many."""
        count = 0
        with self._locked(retry):
            while True:
                rows = self._rows()
                some = [key for _, key in zip(range(1000), rows)]
                if not some:
                    return count
                count += self._remove_all(some)

    def iterkeys(self, reverse: bool = False) -> Iterator[Any]:
        """Walks over the keys in their order: numbers, text, bytes, others."""
        found = self._reader().iter_keys(ITEM, ITEM + b"\xff", reverse)
        return self._keys(key[1:] for key in found)

    def __iter__(self) -> Iterator[Any]:
        return self._keys(self._rows())

    def __reversed__(self) -> Iterator[Any]:
        return self._keys(self._rows(True))

    def __len__(self) -> int:
        return self._count("count")

    def stats(self, enable: bool = True, reset: bool = False) -> Tuple[int, int]:
        """Returns how often `get` found a key and how often not, and turns the count on or off."""
        found = self._count("hits"), self._count("misses")
        if reset:
            self._reader().hdel(COUNTS, "hits", "misses")
        self.reset("statistics", int(enable))
        return found

    def check(self, fix: bool = False, retry: bool = False) -> List[str]:
        """Checks the store. Returns the problems found, an empty list if it is sound."""
        return self._store().check()

    def create_tag_index(self) -> None:
        """Does nothing but note the setting: tags are always indexed."""
        self.reset("tag_index", 1)

    def drop_tag_index(self) -> None:
        """Does nothing but note the setting: tags are always indexed."""
        self.reset("tag_index", 0)
