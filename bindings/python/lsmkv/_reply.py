"""Turns replies of the library into Python objects.

A reply is an array of nodes in preorder and one block of bytes. Both are copied at once and walked
here, which costs less than a call per node. Aggregates become lists as in RESP2 (a map alternates
keys and values); `_answers` gives them the shape of each command.
"""

import ctypes
from struct import Struct
from typing import Any, Callable, List, NamedTuple, Tuple

from . import _errors
from ._ffi import lib
from ._signatures import (
    REPLY_ARRAY,
    REPLY_BOOL,
    REPLY_DOUBLE,
    REPLY_ERROR,
    REPLY_INT,
    REPLY_MAP,
    REPLY_NIL,
    REPLY_PUSH,
    REPLY_SET,
    REPLY_STATUS,
    REPLY_STR,
)


def same(data: bytes) -> bytes:
    """Returns text as bytes."""
    return data


class Shapes(NamedTuple):
    """The Python objects that the parts of a reply become."""

    text: Callable[[bytes], Any]
    error: Callable[[str], Exception] = _errors.from_reply
    real: Callable[[float], Any] = float


# Kind, number, offset and length, without flags.
_NODE = Struct("=i4xqQQ")
_AGGREGATES = frozenset((REPLY_ARRAY, REPLY_MAP, REPLY_SET, REPLY_PUSH))
_bits = Struct("=q").pack
_double = Struct("=d").unpack


class _View(ctypes.Structure):
    """The outputs of `lsmkv_reply_view`."""

    _fields_ = [
        ("nodes", ctypes.c_void_p),
        ("n", ctypes.c_size_t),
        ("arena", ctypes.c_void_p),
        ("arena_len", ctypes.c_size_t),
    ]


_views: List[Tuple[_View, List[int]]] = []


def _view() -> Tuple[_View, List[int]]:
    """Returns a view, reused from an earlier reply if possible, and the addresses of its fields."""
    try:
        return _views.pop()
    except IndexError:
        view = _View()
        at = ctypes.addressof(view)
        return view, [at + 8 * field for field in range(4)]


def decode(reply: int, shapes: Shapes) -> Any:
    """Returns the value of a reply and frees it. An error in it becomes an exception object."""
    kept = _view()
    view, fields = kept
    try:
        lib.lsmkv_reply_view(reply, *fields)
        nodes = ctypes.string_at(view.nodes, view.n * _NODE.size)
        arena = ctypes.string_at(view.arena, view.arena_len) if view.arena_len else b""
    finally:
        lib.lsmkv_reply_free(reply)
    _views.append(kept)
    return _value(0, nodes, arena, shapes)


def _value(index: int, nodes: bytes, arena: bytes, shapes: Shapes) -> Any:
    """Returns the value of the node at an index."""
    kind, num, off, length = _NODE.unpack_from(nodes, index * _NODE.size)
    if kind not in _AGGREGATES:
        return _scalar(kind, num, arena[off : off + length], shapes)
    if num == 0:
        return []
    if off - index - 1 == num:
        return _flat(nodes[(index + 1) * _NODE.size : off * _NODE.size], arena, shapes)
    values = []
    child = index + 1
    for _ in range(num):
        kind, _num, past, _length = _NODE.unpack_from(nodes, child * _NODE.size)
        values.append(_value(child, nodes, arena, shapes))
        child = past if kind in _AGGREGATES else child + 1
    return values


def _flat(nodes: bytes, arena: bytes, shapes: Shapes) -> List[Any]:
    """Returns the values of nodes without children (an aggregate among them is empty), column by
    column: most are all of one kind."""
    words = memoryview(nodes).cast("q")
    kinds = memoryview(nodes).cast("i")[::8].tolist()
    kind, count = kinds[0], len(kinds)
    uniform = kinds.count(kind) == count
    if uniform and kind == REPLY_INT:
        numbers: List[Any] = words[1::4].tolist()
        return numbers
    if not uniform or (kind != REPLY_STR and kind != REPLY_STATUS):
        return [
            _scalar(kind, num, arena[off : off + length], shapes)
            for kind, num, off, length in _NODE.iter_unpack(nodes)
        ]
    text = shapes.text
    if kind == REPLY_STATUS and arena == b"OK" * count:
        return [text(b"OK")] * count
    places = zip(words[2::4].tolist(), words[3::4].tolist())
    values = [arena[off : off + length] for off, length in places]
    return values if text is same else list(map(text, values))


def _scalar(kind: int, num: int, data: bytes, shapes: Shapes) -> Any:
    if kind == REPLY_STR or kind == REPLY_STATUS:
        return shapes.text(data)
    if kind == REPLY_INT or kind == REPLY_BOOL:
        return num
    if kind == REPLY_NIL:
        return None
    if kind == REPLY_DOUBLE:
        return shapes.real(_double(_bits(num))[0])
    if kind == REPLY_ERROR:
        return shapes.error(data.decode("utf-8", "replace"))
    if kind in _AGGREGATES:
        return []
    return shapes.text(data)
