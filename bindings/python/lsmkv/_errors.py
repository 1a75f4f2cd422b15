"""Failures as exceptions: one base class, and a class for each status a program may branch on."""


class Error(Exception):
    """A failed call. `code` is the status of the C ABI, `os_errno` the system's number or 0."""

    def __init__(self, message: str, code: int = 0, os_errno: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.os_errno = os_errno


class MisuseError(Error):
    """A rule of the API was broken, such as using a closed store."""


class InvalidError(Error, ValueError):
    """An argument or option has a value that is not allowed."""


class WrongTypeError(Error, TypeError):
    """The key holds a value of another type."""


class TooLargeError(Error, ValueError):
    """A key or value is longer than the store accepts."""


class ReadOnlyError(Error):
    """The handle accepts no writes."""


class DegradedError(Error):
    """Writes are off since a fault, until the store is opened again."""


class FullError(Error):
    """The disk is full; nothing was lost."""


class CorruptError(Error):
    """Stored bytes are damaged; the message names file and offset."""


class BusyError(Error):
    """Another handle or process has the store open."""


_CLASSES = {
    -1: MisuseError,
    -2: InvalidError,
    -3: WrongTypeError,
    -9: TooLargeError,
    -12: ReadOnlyError,
    -13: DegradedError,
    -14: FullError,
    -16: CorruptError,
    -17: BusyError,
}


def from_status(code: int, os_errno: int, message: str) -> Error:
    """The exception for a failed call."""
    return _CLASSES.get(code, Error)(message, code, os_errno)
