"""The outputs of C functions, and how they become results.

Making ctypes objects costs more than the call, so sets of outputs are reused. A call takes a set
and gives it back. A set does not belong to a thread: a signal handler or a finalizer that runs
in the middle of a call takes another one.
"""

import ctypes
from ctypes import addressof, c_double, c_int64, c_size_t, c_void_p, string_at
from typing import Any, Callable, Dict, Generic, List, Optional, Set

from . import _errors, _reply
from ._ffi import Buf, Err, lib
from ._signatures import MISUSE, NOT_FOUND
from ._values import V

# A longer value is fetched again, into a buffer of its own.
READ_BYTES = 16 * 1024


class Outputs:
    """One output of each type, with its address."""

    __slots__ = (
        "err",
        "err_at",
        "number",
        "number_at",
        "real",
        "real_at",
        "size",
        "size_at",
        "pointer",
        "pointer_at",
        "buf",
        "buf_at",
        "room",
        "room_at",
        "room_p",
        "size_p",
        "err_p",
    )

    def __init__(self) -> None:
        self.err = Err()
        self.err_at = addressof(self.err)
        self.number = c_int64()
        self.number_at = addressof(self.number)
        self.real = c_double()
        self.real_at = addressof(self.real)
        self.size = c_size_t()
        self.size_at = addressof(self.size)
        self.pointer = c_void_p()
        self.pointer_at = addressof(self.pointer)
        self.buf = Buf()
        self.buf_at = addressof(self.buf)
        self.room = ctypes.create_string_buffer(READ_BYTES)
        self.room_at = addressof(self.room)
        # Ready-made arguments for `bare_get_into`.
        self.room_p = c_void_p.from_param(self.room_at)
        self.size_p = c_void_p.from_param(self.size_at)
        self.err_p = c_void_p.from_param(self.err_at)


free: List[Outputs] = []
give = free.append


def take() -> Outputs:
    """Takes outputs for one call. `give` returns them afterwards."""
    try:
        return free.pop()
    except IndexError:
        return Outputs()


def failure(status: int, out: Outputs) -> _errors.Error:
    """Returns the exception for a failed call, and gives its outputs back."""
    message = out.err.msg.decode("utf-8", "replace")
    os_errno = out.err.os_errno
    give(out)
    # The library sees a closed handle as NULL.
    if status == MISUSE and message.startswith("db is NULL"):
        return _errors.ClosedError("the handle was closed: open or make it again")
    return _errors.from_status(status, os_errno, message)


class Caller(Generic[V]):
    """Calls functions on a handle. Each method turns a status and its outputs into a result."""

    _handle: Optional[int]
    _text: Callable[[bytes], Any]
    _shapes: _reply.Shapes

    def _done(self, status: int, out: Outputs) -> bool:
        if status < 0:
            raise failure(status, out)
        give(out)
        return True

    def _number(self, status: int, out: Outputs) -> int:
        if status < 0:
            raise failure(status, out)
        value: int = out.number.value
        give(out)
        return value

    def _flag(self, status: int, out: Outputs) -> bool:
        return self._number(status, out) != 0

    def _real(self, status: int, out: Outputs) -> float:
        if status < 0:
            raise failure(status, out)
        value: float = out.real.value
        give(out)
        return value

    def _maybe_real(self, status: int, out: Outputs) -> Optional[float]:
        value = self._real(status, out)
        return None if status == NOT_FOUND else value

    def _maybe_bytes(self, status: int, out: Outputs) -> Optional[V]:
        if status < 0:
            raise failure(status, out)
        if status == NOT_FOUND:
            give(out)
            return None
        return self._bytes(status, out)

    def _bytes(self, status: int, out: Outputs) -> V:
        if status < 0:
            raise failure(status, out)
        data = string_at(out.buf.data, out.buf.len) if out.buf.len else b""
        lib.lsmkv_buf_release(out.buf_at)
        give(out)
        value: V = self._text(data)
        return value

    def _reply(self, status: int, out: Outputs) -> Any:
        if status < 0:
            raise failure(status, out)
        reply = out.pointer.value
        give(out)
        return None if reply is None else _reply.decode(reply, self._shapes)

    def _list(self, status: int, out: Outputs) -> List[V]:
        values: List[V] = self._reply(status, out)
        return values

    def _set(self, status: int, out: Outputs) -> Set[V]:
        return set(self._list(status, out))

    def _dictionary(self, status: int, out: Outputs) -> Dict[V, V]:
        raw = self._list(status, out)
        return dict(zip(raw[::2], raw[1::2]))
