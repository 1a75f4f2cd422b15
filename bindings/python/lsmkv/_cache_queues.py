"""The queues of a cache: values under keys that count up."""

import time
from math import inf
from typing import Any, Optional, Tuple

from ._cache_items import Item, decode_key, decode_value, encode_key, encode_value
from ._cache_rows import ITEM, CacheRows

# The keys of a queue begin in the middle of this range.
_QUEUE_END = 10**15 - 1
_QUEUE_START = 5 * 10**14


class CacheQueues(CacheRows):
    """Queues, and the item that was stored last."""

    def _queue(self, prefix: Optional[str]) -> Tuple[bytes, bytes]:
        """Returns the keys between which the elements of a queue are."""
        if prefix is None:
            return encode_key(0), encode_key(_QUEUE_END)
        return encode_key("%s-%015d" % (prefix, 0)), encode_key("%s-%015d" % (prefix, _QUEUE_END))

    def _at(self, prefix: Optional[str], side: str) -> Optional[bytes]:
        """Returns the key of the first or last element of a queue."""
        lo, hi = self._queue(prefix)
        if side not in ("front", "back"):
            raise ValueError('side is "front" or "back", not %r' % (side,))
        walk = self._reader().iter_keys(ITEM + lo + b"\0", ITEM + hi, side == "back")
        for key in walk:
            return key[1:]
        return None

    def push(
        self, value: Any, prefix: Optional[str] = None, side: str = "back",
        expire: Optional[float] = None, read: bool = False, tag: Any = None, retry: bool = False,
    ) -> Any:
        """Adds a value to a side of a queue. Returns its key: a number, or `prefix` and a number."""
        stored = encode_value(value.read() if read else value)
        with self._locked(retry):
            last = self._at(prefix, side)
            number, step = _QUEUE_START, 1 if side == "back" else -1
            if last is not None:
                known = decode_key(last, False)
                number = int(known if prefix is None else known.rsplit("-", 1)[1]) + step
            while True:
                key: Any = number if prefix is None else "%s-%015d" % (prefix, number)
                data = encode_key(key)
                # Beyond the range of a queue stand keys that are no elements.
                if self._find(data) is None:
                    break
                number += step
            with self._change() as pipe:
                self._insert(pipe, key, data, None, stored, expire, tag)
        return key

    def pull(
        self, prefix: Optional[str] = None, default: Any = (None, None), side: str = "front",
        expire_time: bool = False, tag: bool = False, retry: bool = False,
    ) -> Any:
        """Removes an element of a queue. Returns its key and value, or `default`."""
        return self._element(prefix, default, side, expire_time, tag, retry, True)

    def peek(
        self, prefix: Optional[str] = None, default: Any = (None, None), side: str = "front",
        expire_time: bool = False, tag: bool = False, retry: bool = False,
    ) -> Any:
        """Returns the key and value of an element of a queue, or `default`."""
        return self._element(prefix, default, side, expire_time, tag, retry, False)

    def _element(
        self, prefix: Optional[str], default: Any, side: str, expire_time: bool, tag: bool,
        retry: bool, takes: bool,
    ) -> Any:
        with self._locked(retry):
            while True:
                data = self._at(prefix, side)
                item = None if data is None else self._find(data)
                if data is None or item is None:
                    return Item(0, inf, b"", b"", False).result(default, expire_time, tag)
                valid = item.is_valid(time.time())
                if takes or not valid:
                    self._remove_all([data])
                if valid:
                    found = (decode_key(data, item.key_is_float), decode_value(item.value))
                    return item.result(found, expire_time, tag)

    def peekitem(
        self, last: bool = True, expire_time: bool = False, tag: bool = False, retry: bool = False
    ) -> Any:
        """Returns the key and value that were stored last, or first. Raises KeyError if there is
        none."""
        with self._locked(retry):
            while True:
                data = next(self._rows(last), None)
                item = None if data is None else self._find(data)
                if data is None or item is None:
                    raise KeyError("the cache is empty")
                if item.is_valid(time.time()):
                    found = (decode_key(data, item.key_is_float), decode_value(item.value))
                    return item.result(found, expire_time, tag)
                self._remove_all([data])
