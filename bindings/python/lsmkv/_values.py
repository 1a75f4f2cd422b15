"""The arguments of commands: their types, their bytes, and how commands are packed.

As in redis-py, text is encoded as UTF-8 and a number is its text. Objects that can change while
the interpreter lock is released (bytearray, memoryview) are copied first.
"""

from datetime import datetime, timedelta
from struct import Struct
from typing import Any, Dict, Iterable, List, Tuple, TypeVar, Union

from ._errors import DataError

EncodableT = Union[bytes, bytearray, memoryview, str, int, float]
KeysT = Union[EncodableT, Iterable[EncodableT]]
ExpiryT = Union[int, timedelta]
AbsExpiryT = Union[int, datetime]

# The type of returned values: bytes, or str with decode_responses.
V = TypeVar("V", bound=Union[bytes, str])


def encode(value: EncodableT) -> bytes:
    """Returns the bytes of a key, value or number."""
    kind = type(value)
    if kind is bytes:
        return value  # type: ignore[return-value]
    if kind is str:
        return value.encode()  # type: ignore[union-attr]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(
            "Invalid input of type: %r. Convert to a bytes, string, int or float first."
            % type(value).__name__
        )
    return repr(value).encode()


def fits(value: Any) -> bool:
    """Checks that a number has 64 bits: ctypes would silently truncate a larger one."""
    return type(value) is int and -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF


_u32 = Struct("<I").pack
_of_u32 = Struct("<I").unpack_from
LENGTHS = [_u32(length) for length in range(4096)]
_heads: Dict[Tuple[bytes, int], bytes] = {}


def pack(name: bytes, args: Tuple[EncodableT, ...]) -> List[bytes]:
    """Packs one command for `lsmkv_command_packed`, in parts to be joined."""
    key = (name, len(args))
    try:
        parts = [_heads[key]]
    except KeyError:
        head = _u32(len(args) + 1) + _u32(len(name)) + name
        if len(args) < 8:
            _heads[key] = head
        parts = [head]
    for value in args:
        data = value if type(value) is bytes else encode(value)
        length = len(data)
        parts.append(LENGTHS[length] if length < 4096 else _u32(length))
        parts.append(data)
    return parts


def words(block: bytes, number: int) -> List[bytes]:
    """Returns the words of a command in a block of packed ones."""
    at = 0
    for _ in range(number + 1):
        found, count = [], _of_u32(block, at)[0]
        at += 4
        for _ in range(count):
            length = _of_u32(block, at)[0]
            found.append(block[at + 4 : at + 4 + length])
            at += 4 + length
    return found


def listed(keys: KeysT, args: Tuple[EncodableT, ...] = ()) -> List[EncodableT]:
    """Flattens redis-py's `keys, *args`: one key or several, and more of them."""
    if isinstance(keys, (bytes, bytearray, memoryview, str, int, float)):
        return [keys, *args]
    return [*keys, *args]


def seconds(time: ExpiryT) -> int:
    """Returns a duration in seconds."""
    return int(time.total_seconds()) if isinstance(time, timedelta) else time


def milliseconds(time: ExpiryT) -> int:
    """Returns a duration in milliseconds."""
    return int(time.total_seconds() * 1000) if isinstance(time, timedelta) else time


def second_of(when: AbsExpiryT) -> int:
    """Returns a Unix time in seconds."""
    return int(when.timestamp()) if isinstance(when, datetime) else when


def millisecond_of(when: AbsExpiryT) -> int:
    """Returns a Unix time in milliseconds."""
    return int(when.timestamp() * 1000) if isinstance(when, datetime) else when
