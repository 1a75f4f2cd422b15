"""Strings as arrays of bits."""

from typing import Any, Generic, List, Optional, Tuple

from .._answers import as_is, number
from .._errors import DataError
from .._executor import Executor
from .._values import EncodableT, V


def ranged(start: Optional[int], end: Optional[int], mode: Optional[str]) -> List[EncodableT]:
    """Returns the arguments for a range of bytes or bits."""
    args: List[EncodableT] = [part for part in (start, end) if part is not None]
    if mode is not None:
        args.append(mode)
    return args


class BitFieldOperation(Generic[V]):
    """Queues reads and writes of small integers inside a value; `execute` runs them."""

    def __init__(
        self, client: "Bits[V]", key: EncodableT, default_overflow: Optional[str] = None
    ) -> None:
        self._client = client
        self._key = key
        self._default_overflow = default_overflow
        self.reset()

    def reset(self) -> None:
        """Removes the operations."""
        self.operations: List[Tuple[EncodableT, ...]] = []
        self._last_overflow = "WRAP"
        self.overflow(self._default_overflow or self._last_overflow)

    def overflow(self, overflow: str) -> "BitFieldOperation[V]":
        """Sets what the increments that follow do on overflow: WRAP, SAT or FAIL."""
        overflow = overflow.upper()
        if overflow != self._last_overflow:
            self._last_overflow = overflow
            self.operations.append(("OVERFLOW", overflow))
        return self

    def incrby(
        self, fmt: str, offset: EncodableT, increment: int, overflow: Optional[str] = None
    ) -> "BitFieldOperation[V]":
        """Adds to an integer."""
        if overflow is not None:
            self.overflow(overflow)
        self.operations.append(("INCRBY", fmt, offset, increment))
        return self

    def get(self, fmt: str, offset: EncodableT) -> "BitFieldOperation[V]":
        """Reads an integer."""
        self.operations.append(("GET", fmt, offset))
        return self

    def set(self, fmt: str, offset: EncodableT, value: int) -> "BitFieldOperation[V]":
        """Writes an integer."""
        self.operations.append(("SET", fmt, offset, value))
        return self

    @property
    def command(self) -> List[EncodableT]:
        """Returns the command with its arguments."""
        args = [word for operation in self.operations for word in operation]
        return ["BITFIELD", self._key, *args]

    def execute(self) -> Any:
        """Runs the operations. Returns the integers read or replaced, None for an overflow."""
        command = self.command
        self.reset()
        result: Any = self._client._execute(as_is, b"BITFIELD", *command[1:])
        return result


class Bits(Executor[V]):
    """Commands on the bits of strings."""

    def bitcount(
        self,
        key: EncodableT,
        start: Optional[int] = None,
        end: Optional[int] = None,
        mode: Optional[str] = None,
    ) -> int:
        """Returns the number of set bits, in a range of bytes or, with mode "BIT", of bits."""
        if (start is None) != (end is None):
            raise DataError("Both start and end must be specified")
        return self._execute(number, b"BITCOUNT", key, *ranged(start, end, mode))

    def bitfield(
        self, key: EncodableT, default_overflow: Optional[str] = None
    ) -> BitFieldOperation[V]:
        """Reads and writes small integers inside a value."""
        return BitFieldOperation(self, key, default_overflow)

    def bitfield_ro(
        self,
        key: EncodableT,
        encoding: str,
        offset: EncodableT,
        items: Optional[List[Tuple[str, EncodableT]]] = None,
    ) -> List[int]:
        """Reads small integers inside a value."""
        args: List[EncodableT] = ["GET", encoding, offset]
        for kind, place in items or []:
            args += ["GET", kind, place]
        return self._execute(as_is, b"BITFIELD_RO", key, *args)

    def bitop(self, operation: str, dest: EncodableT, *keys: EncodableT) -> int:
        """Combines values bit by bit: AND, OR, XOR, NOT. Returns the length of the result."""
        return self._execute(number, b"BITOP", operation, dest, *keys)

    def bitpos(
        self,
        key: EncodableT,
        bit: int,
        start: Optional[int] = None,
        end: Optional[int] = None,
        mode: Optional[str] = None,
    ) -> int:
        """Returns the offset of the first set, or clear, bit; -1 if there is none."""
        if bit not in (0, 1):
            raise DataError("bit must be 0 or 1")
        if start is None and end is not None:
            raise DataError("start argument is not set, when end is specified")
        return self._execute(number, b"BITPOS", key, bit, *ranged(start, end, mode))

    def getbit(self, name: EncodableT, offset: int) -> int:
        """Returns the bit at an offset."""
        return self._execute(number, b"GETBIT", name, offset)

    def setbit(self, name: EncodableT, offset: int, value: int) -> int:
        """Sets or clears the bit at an offset. Returns the old bit."""
        return self._execute(number, b"SETBIT", name, offset, int(bool(value)))
