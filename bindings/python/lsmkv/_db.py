"""`DB`: an open store, with commands under redis-py's names."""

import ctypes
import os
import weakref
from typing import Dict, NamedTuple, Optional, Union

from . import _errors, _ffi
from ._ffi import Buf, Err, lib

Encodable = Union[bytes, bytearray, memoryview, str, int, float]


class OptionInfo(NamedTuple):
    """An option of `open`."""

    default: str
    doc: str


def version() -> str:
    """The version of the library that is loaded."""
    return lib.lsmkv_version().decode()


def options() -> Dict[str, OptionInfo]:
    """Every option of `open`, with its default and what it does."""
    found = {}
    name, default, doc = ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_char_p()
    while lib.lsmkv_options_info(len(found), name, default, doc) == _ffi.OK:
        found[name.value.decode()] = OptionInfo(default.value.decode(), doc.value.decode())
    return found


def open(path: Union[str, bytes, "os.PathLike"] = ":memory:", **options: object) -> "DB":
    """Opens the store in a directory, or an empty one in memory for ":memory:"."""
    return DB(path, **options)


class DB:
    """An open store. Usable from any number of threads; a context manager that closes it.

    Keys and values are bytes; text is encoded as UTF-8 and numbers as their text, as redis-py
    does. Answers are bytes.
    """

    def __init__(self, path: Union[str, bytes, "os.PathLike"], **options: object) -> None:
        err = Err()
        handle = ctypes.c_void_p()
        given = lib.lsmkv_options_new()
        try:
            for name, value in options.items():
                text = _option_text(value)
                _check(lib.lsmkv_options_set(given, name.encode(), text, err), err)
            _check(lib.lsmkv_open(_path_bytes(path), given, handle, err), err)
        finally:
            lib.lsmkv_options_free(given)
        self._handle = handle.value
        # Runs when the object is collected or the interpreter ends. In a forked child the
        # library itself refuses.
        self._finalizer = weakref.finalize(self, lib.lsmkv_close, handle.value, None)

    def close(self) -> None:
        """Flushes and releases the directory. Closing again does nothing."""
        if self._finalizer.detach() is not None:
            err = Err()
            _check(lib.lsmkv_close(self._handle, err), err)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return not self._finalizer.alive

    def __enter__(self) -> "DB":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set(self, name: Encodable, value: Encodable) -> bool:
        """Gives a key a value."""
        key, data, err = _encode(name), _encode(value), Err()
        _check(lib.lsmkv_set(self._handle, key, len(key), data, len(data), err), err)
        return True

    def get(self, name: Encodable) -> Optional[bytes]:
        """The value of a key, or None."""
        key, buf, err = _encode(name), Buf(), Err()
        if _check(lib.lsmkv_get(self._handle, key, len(key), buf, err), err) == _ffi.NOT_FOUND:
            return None
        try:
            return ctypes.string_at(buf.data, buf.len)
        finally:
            lib.lsmkv_buf_release(buf)

    def delete(self, *names: Encodable) -> int:
        """Removes keys; how many there were."""
        return sum(self._count(lib.lsmkv_del, name) for name in names)

    def exists(self, *names: Encodable) -> int:
        """How many of the keys exist."""
        return sum(self._count(lib.lsmkv_exists, name) for name in names)

    def sync(self) -> None:
        """Makes every write that has returned durable, whatever the sync mode."""
        self._upkeep(lib.lsmkv_sync)

    def flush(self) -> None:
        """Writes the buffers in memory to tables."""
        self._upkeep(lib.lsmkv_flush)

    def compact(self) -> None:
        """Merges all tables and drops what is dead."""
        self._upkeep(lib.lsmkv_compact)

    def resume(self) -> None:
        """Tries at once to write again after the disk was full."""
        self._upkeep(lib.lsmkv_resume)

    def __setitem__(self, name: Encodable, value: Encodable) -> None:
        self.set(name, value)

    def __getitem__(self, name: Encodable) -> bytes:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __delitem__(self, name: Encodable) -> None:
        if not self.delete(name):
            raise KeyError(name)

    def __contains__(self, name: Encodable) -> bool:
        return bool(self.exists(name))

    def _count(self, function, name: Encodable) -> int:
        key, number, err = _encode(name), ctypes.c_int64(), Err()
        _check(function(self._handle, key, len(key), number, err), err)
        return number.value

    def _upkeep(self, function) -> None:
        err = Err()
        _check(function(self._handle, err), err)


def _check(status: int, err: Err) -> int:
    if status < 0:
        raise _errors.from_status(status, err.os_errno, err.msg.decode("utf-8", "replace"))
    return status


def _encode(value: Encodable) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(
            "keys and values are bytes, str, int or float, not %s" % type(value).__name__
        )
    return repr(value).encode()


def _path_bytes(path: Union[str, bytes, "os.PathLike"]) -> bytes:
    data = os.fsencode(path)
    if b"\0" in data:
        raise ValueError("a path has no NUL byte: %r" % (path,))
    return data


def _option_text(value: object) -> bytes:
    if isinstance(value, bool):
        return b"on" if value else b"off"
    return str(value).encode()
