"""The bytes of a cache: keys, values, and what is stored beside a value.

A key is encoded so that the order of the bytes is that of the keys: numbers, then text, then bytes,
then whatever has to be pickled. A number has one encoding whether it is an int or a float, as they
are equal. A value begins with a byte for its kind.
"""

import pickle
import pickletools
from math import inf
from struct import Struct
from typing import Any, NamedTuple, Optional, Tuple

_NUMBER, _TEXT, _BYTES, _PICKLED = b"\x01", b"\x02", b"\x03", b"\x04"
_INTS = range(-(2**63), 2**63)
_bits = Struct(">d")
_word = Struct(">Q")
_float = Struct("<d")
# Expiry, row, flags, length of the tag. Then follow the tag and the value.
_HEAD = Struct("<dQBH")
_KEY_IS_FLOAT = 1


def _pickled(value: object) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def encode_key(key: Any) -> bytes:
    """Returns the bytes of a key."""
    kind = type(key)
    if kind is str:
        return _TEXT + key.encode()  # type: ignore[no-any-return]
    if kind is bytes:
        return _BYTES + key  # type: ignore[no-any-return]
    if kind is float or (kind is int and key in _INTS):
        return _NUMBER + _number(key)
    return _PICKLED + pickletools.optimize(_pickled(key))


def _number(key: Any) -> bytes:
    whole = 0
    if type(key) is int or key.is_integer() and int(key) in _INTS:
        whole = int(key)
    word = _word.unpack(_bits.pack(float(key) + 0.0))[0]
    # The bits of floats sort like numbers once negative ones are inverted.
    word = word ^ (2**64 - 1) if word >> 63 else word | 1 << 63
    return _word.pack(word) + _word.pack(whole + 2**63)


def decode_key(data: bytes, is_float: bool) -> Any:
    """Returns the key of some bytes."""
    kind, rest = data[:1], data[1:]
    if kind == _TEXT:
        return rest.decode()
    if kind == _BYTES:
        return rest
    if kind == _PICKLED:
        return pickle.loads(rest)
    whole = _word.unpack_from(rest, 8)[0] - 2**63
    if not is_float:
        return whole
    word = _word.unpack_from(rest)[0]
    word = word & ~(1 << 63) if word >> 63 else word ^ (2**64 - 1)
    return _bits.unpack(_word.pack(word))[0]


def encode_value(value: Any) -> bytes:
    """Returns the bytes of a value or tag."""
    kind = type(value)
    if kind is bytes:
        return b"b" + value  # type: ignore[no-any-return]
    if kind is str:
        return b"s" + value.encode()  # type: ignore[no-any-return]
    if kind is int:
        return b"i%d" % value
    if kind is float:
        return b"f" + _float.pack(value)
    return b"p" + _pickled(value)


def decode_value(data: bytes) -> Any:
    """Returns the value of some bytes."""
    kind, rest = data[:1], data[1:]
    if kind == b"b":
        return rest
    if kind == b"s":
        return rest.decode()
    if kind == b"i":
        return int(rest)
    if kind == b"f":
        return _float.unpack(rest)[0]
    return pickle.loads(rest)


def is_number(data: bytes) -> bool:
    """Whether the bytes of a value are those of an int or a float."""
    return data[:1] in (b"i", b"f")


class Item(NamedTuple):
    """What is stored under a key."""

    row: int
    # The Unix time at which it expires, or infinity.
    expires: float
    # The encoded tag, empty without one.
    tag: bytes
    value: bytes
    key_is_float: bool

    def pack(self) -> bytes:
        """Returns the bytes of the item."""
        flags = _KEY_IS_FLOAT if self.key_is_float else 0
        return _HEAD.pack(self.expires, self.row, flags, len(self.tag)) + self.tag + self.value

    def is_valid(self, now: float) -> bool:
        """Whether it has not expired."""
        return self.expires > now

    def result(self, value: Any, expire_time: bool, tag: bool) -> Any:
        """Returns the value, with the expiry and the tag if they are wanted."""
        if not expire_time and not tag:
            return value
        found: Tuple[Any, ...] = (value,)
        if expire_time:
            found += (None if self.expires == inf else self.expires,)
        if tag:
            found += (decode_value(self.tag) if self.tag else None,)
        return found


def unpack(data: Optional[bytes]) -> Optional[Item]:
    """Returns the item of some bytes; None for None."""
    if data is None:
        return None
    expires, row, flags, tag_len = _HEAD.unpack_from(data)
    body = _HEAD.size + tag_len
    tag, value = data[_HEAD.size : body], data[body:]
    return Item(row, expires, tag, value, bool(flags & _KEY_IS_FLOAT))
