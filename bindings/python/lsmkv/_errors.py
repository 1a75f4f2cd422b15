"""Exceptions: one base class, and a class for each status that a program may branch on.

Names that redis-py has too (ResponseError, WatchError, ReadOnlyError, DataError, TimeoutError)
mean the same here.
"""

import builtins
from typing import Dict, Type


class Error(Exception):
    """A failed call. `code` is the status of the C ABI, `os_errno` the system's number or 0."""

    code = 0
    os_errno = 0

    def __init__(self, message: str, code: int = 0, os_errno: int = 0) -> None:
        super().__init__(message)
        if code:
            self.code = code
        self.os_errno = os_errno


RedisError = Error


class DataError(Error, TypeError):
    """An argument of a type that cannot be stored, or arguments that contradict each other."""


class MisuseError(Error):
    """The caller broke a rule of the API, for example by using a closed store."""

    code = -1


class ResponseError(Error):
    """A command was refused, as a Redis server would refuse it."""


class InvalidError(ResponseError, ValueError):
    """An argument or option has a value that is not allowed."""

    code = -2


class WrongTypeError(ResponseError, TypeError):
    """The key holds a value of another type."""

    code = -3


class NotIntegerError(ResponseError, ValueError):
    """The value is not an integer, or out of range."""

    code = -4


class NotFloatError(ResponseError, ValueError):
    """The value is not a number."""

    code = -5


class OverflowError(ResponseError, builtins.OverflowError):
    """The result would be out of range."""

    code = -6


class SyntaxError(ResponseError):
    """The arguments do not follow the command's grammar."""

    code = -7


class OutOfRangeError(ResponseError, IndexError):
    """An index or offset is out of range."""

    code = -8


class TooLargeError(ResponseError, ValueError):
    """A key or value is longer than the store accepts."""

    code = -9


class NoSuchKeyError(ResponseError, LookupError):
    """The command needs a key that exists."""

    code = -10


class ExecAbortError(ResponseError):
    """EXEC did not run the transaction, since a queued command had been refused."""


class WatchError(Error):
    """Another commit changed a key that the transaction depends on; nothing was written."""

    code = -11


ConflictError = WatchError


class NoScriptError(ResponseError):
    """No script with this digest is known."""


class ReadOnlyError(ResponseError):
    """The handle accepts no writes: a snapshot, or a store opened with read_only."""

    code = -12


class DegradedError(Error):
    """Writes are off after a fault, until the store is opened again."""

    code = -13


class FullError(Error):
    """The disk is full; nothing was lost."""

    code = -14


class IOError(Error):
    """The operating system refused an operation; `os_errno` has its number."""

    code = -15


class CorruptError(Error):
    """Stored bytes are damaged; the message names file and offset."""

    code = -16


class BusyError(Error):
    """Another handle or process has the store open."""

    code = -17


class ClosedError(MisuseError):
    """The store behind the handle was closed, or the transaction has ended."""

    code = -18


class ForkedError(MisuseError):
    """A store that a parent process opened cannot be used in its forked child."""

    code = -19


class PanicError(Error):
    """A defect of the library was caught; the store accepts no more writes."""

    code = -20


class MemoryError(Error, builtins.MemoryError):
    """Memory could not be allocated."""

    code = -21


class TimeoutError(Error):
    """The time limit passed; nothing was written."""

    code = -22


class LockError(Error, ValueError):
    """A lock is not held, or was not free in time."""


class LockNotOwnedError(LockError):
    """A lock is held by somebody else, or by nobody any more."""


class UnsupportedError(MisuseError):
    """The operation does not exist on this kind of handle."""

    code = -23


class IncompatibleError(Error):
    """The directory holds a newer format, or is not a store at all."""

    code = -24


def _with_codes(base: Type[Error]) -> Dict[int, Type[Error]]:
    found = {base.code: base} if "code" in vars(base) and base.code else {}
    for kind in base.__subclasses__():
        found.update(_with_codes(kind))
    return found


_BY_STATUS = _with_codes(Error)

# The text of a command's error tells its class.
_BY_PREFIX = [
    ("WRONGTYPE ", WrongTypeError),
    ("EXECABORT ", ExecAbortError),
    ("READONLY ", ReadOnlyError),
    ("NOSCRIPT ", NoScriptError),
    ("ERR value is not an integer", NotIntegerError),
    ("ERR hash value is not an integer", NotIntegerError),
    ("ERR value is not a valid float", NotFloatError),
    ("ERR hash value is not a float", NotFloatError),
    ("ERR syntax error", SyntaxError),
    ("ERR no such key", NoSuchKeyError),
    ("ERR index out of range", OutOfRangeError),
    ("ERR offset is out of range", OutOfRangeError),
    ("ERR increment or decrement would overflow", OverflowError),
]


def from_status(code: int, os_errno: int, message: str) -> Error:
    """Returns the exception for a failed call."""
    return _BY_STATUS.get(code, Error)(without_prefix(message), code, os_errno)


def from_reply(text: str) -> ResponseError:
    """Returns the exception for an error that a command replied."""
    for prefix, kind in _BY_PREFIX:
        if text.startswith(prefix):
            return kind(without_prefix(text))
    return ResponseError(without_prefix(text))


def without_prefix(text: str) -> str:
    """Removes the general prefix, as redis-py does."""
    return text[4:] if text.startswith("ERR ") else text
