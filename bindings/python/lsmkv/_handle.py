"""`Handle`: runs commands on a store, one of its databases, a snapshot or a transaction."""

import ctypes
import weakref
from ctypes import c_int32, c_size_t, c_void_p
from itertools import chain
from typing import Any, Callable, Iterator, List, Optional, Type, TypeVar, Union

from . import _reply
from ._ffi import Buf, bare_get_into, lib
from ._iterate import Chunks, Item, items
from ._outputs import READ_BYTES, Outputs, failure, free, give, take
from ._pipeline import Pipeline
from ._pubsub import PubSub
from ._regular import Direct
from ._reply import same
from ._signatures import (
    ITER_NO_FILL,
    ITER_REVERSE,
    ITER_VALUES,
    NOT_FOUND,
    TIMEOUT,
    TOO_SMALL,
)
from ._values import AbsExpiryT, EncodableT, ExpiryT, V, encode, fits, pack
from .commands import Commands

H = TypeVar("H", bound="Handle[Any]")

_set = lib.lsmkv_set
_packed = lib.lsmkv_command_packed
_SIZES = [c_size_t.from_param(size) for size in range(256)]
_ROOM = c_size_t.from_param(READ_BYTES)
# What a command that would wait for an element gives instead of a reply.
WOULD_WAIT = object()
# The timeout of a wait without a limit.
FOR_EVER = 2**64 - 1


def decoded(data: bytes) -> str:
    """Decodes text to str."""
    return data.decode()


class Handle(Direct[V], Commands[V]):
    """Runs every command at once. As a context manager it closes itself."""

    # The handle that this one was made from stays open as long as this one lives.
    _parent: Optional["Handle[V]"] = None
    # Whether MULTI and EXEC group the commands of a pipeline here.
    _groups = True

    def _own(self, handle: int, text: Callable[[bytes], Any]) -> None:
        self._handle: Optional[int] = handle
        self._this: Any = c_void_p.from_param(handle)
        self._text = text
        self._plain = text is same
        self._shapes = _reply.Shapes(text)
        # Runs when the object is collected or the interpreter ends. In a forked child the library
        # itself refuses.
        self._finalizer = weakref.finalize(self, lib.lsmkv_close, handle, None)

    def _make(self, kind: Type[H], function: Any, *args: Any) -> H:
        """Returns a handle made from this one."""
        out = take()
        status = function(self._handle, *args, out.pointer_at, out.err_at)
        if status < 0:
            raise failure(status, out)
        made = kind.__new__(kind)
        made._own(out.pointer.value or 0, self._text)
        made._parent = self
        give(out)
        return made

    def _call(self, function: Any, *args: Any) -> None:
        out = take()
        self._done(function(self._handle, *args, out.err_at), out)

    def close(self) -> None:
        """Closes the handle. Closing it again does nothing."""
        if self._finalizer.detach() is not None:
            handle, self._handle, self._this = self._handle, None, None
            out = take()
            self._done(lib.lsmkv_close(handle, out.err_at), out)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return not self._finalizer.alive

    def __enter__(self: H) -> H:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        self.close()

    def _execute(self, answer: Callable[[Any], Any], name: bytes, *args: EncodableT) -> Any:
        raw = self._run(b"".join(pack(name, args)))[0]
        if isinstance(raw, Exception):
            raise raw
        return answer(raw)

    def _run(self, block: bytes) -> Any:
        """Runs packed commands. Returns the raw value of each reply."""
        out = take()
        status = _packed(self._handle, block, len(block), out.pointer_at, out.err_at)
        if status < 0:
            raise failure(status, out)
        reply: int = out.pointer.value or 0
        give(out)
        return _reply.decode(reply, self._shapes)

    def get(self, name: EncodableT) -> Optional[V]:
        """Returns the value of a key, or None."""
        # Inlined, since this is the most frequent call: see bench/python.py.
        key = name if type(name) is bytes else encode(name)
        try:
            out = free.pop()
        except IndexError:
            out = Outputs()
        try:
            size = _SIZES[len(key)]
        except IndexError:
            size = c_size_t.from_param(len(key))
        status = bare_get_into(
            self._this, key, size, out.room_p, _ROOM, out.size_p, out.err_p
        )
        if status == 0:
            data: Any = out.room[: out.size.value]
            give(out)
            return data if self._plain else self._text(data)  # type: ignore[no-any-return]
        if status == NOT_FOUND:
            give(out)
            return None
        if status == TOO_SMALL:
            status = lib.lsmkv_get(self._handle, key, len(key), out.buf_at, out.err_at)
        return self._maybe_bytes(status, out)

    def get_view(self, name: EncodableT) -> Optional[memoryview]:
        """Returns the value of a key without a copy, or None. It stays readable after `close`."""
        key, buf, out = encode(name), Buf(), take()
        status = lib.lsmkv_get(self._handle, key, len(key), ctypes.addressof(buf), out.err_at)
        self._done(status, out)
        if status == NOT_FOUND:
            return None
        array = (ctypes.c_char * buf.len).from_address(buf.data)
        # The view keeps the array alive, and the array's end releases the buffer. Not at exit, when
        # somebody may still read.
        weakref.finalize(array, lib.lsmkv_buf_release, ctypes.byref(buf)).atexit = False
        return memoryview(array).toreadonly().cast("B")

    def set(
        self,
        name: EncodableT,
        value: EncodableT,
        ex: Optional[ExpiryT] = None,
        px: Optional[ExpiryT] = None,
        nx: bool = False,
        xx: bool = False,
        keepttl: bool = False,
        get: bool = False,
        exat: Optional[AbsExpiryT] = None,
        pxat: Optional[AbsExpiryT] = None,
    ) -> Union[bool, V, None]:
        if ex is px is exat is pxat is None and not (nx or xx or keepttl or get):
            key, data, out = encode(name), encode(value), take()
            status = _set(self._handle, key, len(key), data, len(data), out.err_at)
            return self._done(status, out)
        return super().set(name, value, ex, px, nx, xx, keepttl, get, exat, pxat)

    set.__doc__ = Commands.set.__doc__

    def incr(self, name: EncodableT, amount: int = 1) -> int:
        """Adds to the integer of a key."""
        return self.incrby(name, amount)

    def decr(self, name: EncodableT, amount: int = 1) -> int:
        """Subtracts from the integer of a key."""
        return self.decrby(name, amount)

    def select(self, index: int) -> "Handle[V]":
        """Returns a handle with another database selected."""
        if not fits(index) or not 0 <= index < 1 << 32:
            raise ValueError("there is no database %r" % (index,))
        return self._make(type(self)._selected(), lib.lsmkv_select, index)

    @classmethod
    def _selected(cls) -> Type["Handle[Any]"]:
        return Handle

    def pubsub(self) -> PubSub[V]:
        """Returns an object that subscribes to channels and receives their messages."""
        return PubSub(self._open_session())

    def _open_session(self) -> "Session[V]":
        return self._make(Session, lib.lsmkv_session)

    def pipeline(self, transaction: bool = True, shard_hint: object = None) -> Pipeline[V]:
        """Returns a pipeline, whose `execute` runs its commands together, as in redis-py.

        With `transaction`, others never see a part of the writes. All commands cost one call.
        """
        return Pipeline(self, transaction and self._groups)

    def iter_keys(
        self,
        lo: Optional[EncodableT] = None,
        hi: Optional[EncodableT] = None,
        reverse: bool = False,
        fill_cache: bool = True,
    ) -> Iterator[V]:
        """Walks over the keys from `lo` to before `hi` in byte order, as they are now."""
        flags = (ITER_REVERSE if reverse else 0) | (0 if fill_cache else ITER_NO_FILL)
        return chain.from_iterable(chunk[::2] for chunk in Chunks(self, lo, hi, flags))

    def iter_items(
        self,
        lo: Optional[EncodableT] = None,
        hi: Optional[EncodableT] = None,
        reverse: bool = False,
        fill_cache: bool = True,
    ) -> Iterator[Item[V]]:
        """Walks over keys like `iter_keys`, each with its type and, for a string, its value."""
        flags = (ITER_REVERSE if reverse else 0) | (0 if fill_cache else ITER_NO_FILL)
        return chain.from_iterable(map(items, Chunks(self, lo, hi, flags | ITER_VALUES)))

    def __iter__(self) -> Iterator[V]:
        return self.iter_keys()

    def __setitem__(self, name: EncodableT, value: EncodableT) -> None:
        self.set(name, value)

    def __getitem__(self, name: EncodableT) -> V:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __delitem__(self, name: EncodableT) -> None:
        if not self.delete(name):
            raise KeyError(name)

    def __contains__(self, name: EncodableT) -> bool:
        return bool(self.exists(name))


class Session(Handle[V]):
    """A connection to the store: accepts MULTI, WATCH, SELECT and SUBSCRIBE. For one thread at a
    time."""

    def _try(self, block: bytes) -> Any:
        """Runs a packed command. Returns WOULD_WAIT if it would wait for an element: then `fileno`
        becomes readable when it is worth another try."""
        out = take()
        status = lib.lsmkv_command_nowait(
            self._handle, block, len(block), out.pointer_at, out.err_at
        )
        if status == TIMEOUT:
            give(out)
            return WOULD_WAIT
        if status < 0:
            raise failure(status, out)
        reply: int = out.pointer.value or 0
        give(out)
        return _reply.decode(reply, self._shapes)

    def wait(self, timeout: Optional[float] = None) -> Optional[List[Any]]:
        """Waits for a message of a channel, at most this many seconds; without a timeout for ever.
        Returns the message as Redis sends it, such as `[b"message", channel, data]`, or None."""
        limit = FOR_EVER if timeout is None else max(0, int(timeout * 1000))
        out = take()
        status = lib.lsmkv_session_wait(self._handle, limit, out.pointer_at, out.err_at)
        if status == TIMEOUT:
            give(out)
            return None
        if status < 0:
            raise failure(status, out)
        reply: int = out.pointer.value or 0
        give(out)
        message: List[Any] = _reply.decode(reply, self._shapes)
        return message

    def fileno(self) -> int:
        """Returns a descriptor that is readable while messages wait. It belongs to the session."""
        descriptor = c_int32()
        out = take()
        status = lib.lsmkv_session_fd(self._handle, ctypes.addressof(descriptor), out.err_at)
        self._done(status, out)
        return descriptor.value
