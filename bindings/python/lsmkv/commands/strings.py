"""Strings: commands whose arguments redis-py shapes in its own way."""

from typing import Any, List, Mapping, Optional, Union

from .._answers import as_is, flag, number, ok, set_result
from .._errors import DataError
from .._executor import Executor
from .._values import (
    AbsExpiryT,
    EncodableT,
    ExpiryT,
    KeysT,
    V,
    listed,
    millisecond_of,
    milliseconds,
    second_of,
    seconds,
)


def expiry(
    ex: Optional[ExpiryT],
    px: Optional[ExpiryT],
    exat: Optional[AbsExpiryT],
    pxat: Optional[AbsExpiryT],
    other: Optional[str],
) -> List[EncodableT]:
    """Returns the arguments for at most one form of expiry."""
    given: List[List[EncodableT]] = []
    if ex is not None:
        given.append(["EX", seconds(ex)])
    if px is not None:
        given.append(["PX", milliseconds(px)])
    if exat is not None:
        given.append(["EXAT", second_of(exat)])
    if pxat is not None:
        given.append(["PXAT", millisecond_of(pxat)])
    if other is not None:
        given.append([other])
    if len(given) > 1:
        raise DataError("ex, px, exat, pxat, keepttl and persist exclude each other")
    return given[0] if given else []


def flattened(mapping: Mapping[Any, EncodableT]) -> List[EncodableT]:
    """Returns alternating keys and values."""
    return [item for pair in mapping.items() for item in pair]


class Strings(Executor[V]):
    """Commands on strings that are not generated."""

    def get(self, name: EncodableT) -> Optional[V]:
        """Returns the value of a key, or None."""
        return self._execute(as_is, b"GET", name)

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
        """Sets the value of a key. Returns True, or None if nx or xx forbids it.

        ex, px: expire after seconds or milliseconds (numbers or timedelta). exat, pxat: expire at a
        Unix time or datetime. nx: only if the key does not exist. xx: only if it exists. keepttl:
        keep the expiry. get: return the old value.
        """
        if ex is px is exat is pxat is None and not (nx or xx or keepttl or get):
            return self._execute(set_result, b"SET", name, value)
        args = expiry(ex, px, exat, pxat, "KEEPTTL" if keepttl else None)
        for wanted, word in ((nx, "NX"), (xx, "XX"), (get, "GET")):
            if wanted:
                args.append(word)
        return self._execute(as_is if get else set_result, b"SET", name, value, *args)

    def incr(self, name: EncodableT, amount: int = 1) -> int:
        """Adds to the integer of a key."""
        return self._execute(number, b"INCRBY", name, amount)

    def decr(self, name: EncodableT, amount: int = 1) -> int:
        """Subtracts from the integer of a key."""
        return self._execute(number, b"DECRBY", name, amount)

    def getex(
        self,
        name: EncodableT,
        ex: Optional[ExpiryT] = None,
        px: Optional[ExpiryT] = None,
        exat: Optional[AbsExpiryT] = None,
        pxat: Optional[AbsExpiryT] = None,
        persist: bool = False,
    ) -> Optional[V]:
        """Returns the value of a key and changes its expiry."""
        args = expiry(ex, px, exat, pxat, "PERSIST" if persist else None)
        return self._execute(as_is, b"GETEX", name, *args)

    def mget(self, keys: KeysT, *args: EncodableT) -> List[Optional[V]]:
        """Returns the values of keys, None for missing ones."""
        return self._execute(as_is, b"MGET", *listed(keys, args))

    def mset(self, mapping: Mapping[Any, EncodableT]) -> bool:
        """Sets the values of keys, all at once."""
        return self._execute(ok, b"MSET", *flattened(mapping))

    def msetnx(self, mapping: Mapping[Any, EncodableT]) -> bool:
        """Sets the values of keys if none of them exists."""
        return self._execute(flag, b"MSETNX", *flattened(mapping))

    def psetex(self, name: EncodableT, time_ms: ExpiryT, value: EncodableT) -> bool:
        """Sets the value of a key and expires it after this many milliseconds."""
        return self._execute(ok, b"PSETEX", name, milliseconds(time_ms), value)

    def setex(self, name: EncodableT, time: ExpiryT, value: EncodableT) -> bool:
        """Sets the value of a key and expires it after this many seconds."""
        return self._execute(ok, b"SETEX", name, seconds(time), value)

    def lcs(
        self,
        key1: EncodableT,
        key2: EncodableT,
        len: Optional[bool] = False,
        idx: Optional[bool] = False,
        minmatchlen: Optional[int] = 0,
        withmatchlen: Optional[bool] = False,
    ) -> Any:
        """Returns the longest common subsequence of two values, its length, or its matches."""
        args: List[EncodableT] = []
        if len:
            args.append("LEN")
        if idx:
            args.append("IDX")
        if minmatchlen:
            args += ["MINMATCHLEN", minmatchlen]
        if withmatchlen:
            args.append("WITHMATCHLEN")
        return self._execute(as_is, b"LCS", key1, key2, *args)
