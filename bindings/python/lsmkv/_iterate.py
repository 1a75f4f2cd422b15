"""Walks over keys in byte order, fetched in chunks.

A walk sees the store as it was when the walk began. It raises every error, so a walk that ends
has seen everything.
"""

import weakref
from ctypes import addressof, cast, c_char_p, c_void_p
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Tuple

from . import _reply
from ._ffi import Slice, lib
from ._outputs import failure, give, take
from ._signatures import DONE, HASH, LIST, SET, STRING, ZSET
from ._values import EncodableT, V, encode

if TYPE_CHECKING:
    from ._handle import Handle

# A chunk ends with the key that reaches one of these.
_ITEMS = 1000
_BYTES = 1 << 20

_TYPES = {STRING: "string", HASH: "hash", LIST: "list", SET: "set", ZSET: "zset"}


Item = Tuple[V, str, Optional[V]]


def _bound(bound: Optional[EncodableT]) -> Tuple[Optional[int], object]:
    """Returns the address of a bound, and the object to keep alive during the call."""
    if bound is None:
        return None, None
    data = encode(bound)
    slice = Slice(cast(c_char_p(data), c_void_p), len(data))
    return addressof(slice), (slice, data)


class Chunks:
    """A walk in chunks: lists that alternate keys, types and perhaps values."""

    def __init__(
        self,
        handle: "Handle[Any]",
        lo: Optional[EncodableT],
        hi: Optional[EncodableT],
        flags: int,
    ) -> None:
        low_at, low = _bound(lo)
        high_at, high = _bound(hi)
        out = take()
        status = lib.lsmkv_iter_new(
            handle._handle, low_at, high_at, flags, out.pointer_at, out.err_at
        )
        del low, high
        if status < 0:
            raise failure(status, out)
        self._handle = handle
        self._iter = out.pointer.value
        give(out)
        self._finalizer = weakref.finalize(self, lib.lsmkv_iter_free, self._iter)

    def __iter__(self) -> Iterator[List[Any]]:
        return self

    def __next__(self) -> List[Any]:
        if not self._finalizer.alive:
            raise StopIteration
        out = take()
        status = lib.lsmkv_iter_next_chunk(
            self._iter, _ITEMS, _BYTES, out.pointer_at, out.err_at
        )
        if status < 0:
            raise failure(status, out)
        reply = out.pointer.value or 0
        give(out)
        if status == DONE:
            self._finalizer()
            raise StopIteration
        chunk: List[Any] = _reply.decode(reply, self._handle._shapes)
        return chunk


def items(chunk: List[Any]) -> Iterator[Item[Any]]:
    """Returns the keys of a chunk with their types and values."""
    types = [_TYPES.get(kind, str(kind)) for kind in chunk[1::3]]
    return zip(chunk[::3], types, chunk[2::3])
