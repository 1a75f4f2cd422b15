"""Sorted sets: ranges, and several sets combined."""

from typing import Any, List, Mapping, Optional, Union

from .._answers import ScoreCastT, as_is, number, scored, texts
from .._errors import DataError
from .._executor import Executor
from .._values import EncodableT, KeysT, V, listed

WeightedT = Union[KeysT, Mapping[Any, float]]


def limited(start: Optional[int], num: Optional[int]) -> List[EncodableT]:
    """Returns the arguments that limit a range."""
    if (start is None) != (num is None):
        raise DataError("``start`` and ``num`` must both be specified")
    return [] if start is None or num is None else ["LIMIT", start, num]


def ranged(
    byscore: bool, bylex: bool, desc: bool, offset: Optional[int], num: Optional[int]
) -> List[EncodableT]:
    """Returns the arguments that tell what the bounds of a range mean."""
    if byscore and bylex:
        raise DataError("``byscore`` and ``bylex`` can not be specified together.")
    if (offset is None) != (num is None):
        raise DataError("``offset`` and ``num`` must both be specified.")
    args: List[EncodableT] = ["BYSCORE"] if byscore else ["BYLEX"] if bylex else []
    if desc:
        args.append("REV")
    return args + limited(offset, num)


def combined(
    keys: WeightedT, aggregate: Optional[str], withscores: bool = False
) -> List[EncodableT]:
    """Returns the arguments for keys, perhaps with weights, and how scores are combined."""
    names = list(keys) if isinstance(keys, Mapping) else listed(keys)
    args: List[EncodableT] = [len(names), *names]
    if isinstance(keys, Mapping):
        args += ["WEIGHTS", *keys.values()]
    if aggregate:
        if aggregate.upper() not in ("SUM", "MIN", "MAX"):
            raise DataError("aggregate can be sum, min or max.")
        args += ["AGGREGATE", aggregate]
    return args + (["WITHSCORES"] if withscores else [])


class ZRanges(Executor[V]):
    """Ranges of sorted sets, and combinations of several.

    With scores, members and scores come as pairs; `zdiff` alternates them, as redis-py does.
    """

    def _range(
        self, command: bytes, args: List[EncodableT], withscores: bool, cast: ScoreCastT
    ) -> Any:
        if not withscores:
            return self._execute(as_is, command, *args)
        return self._execute(scored(cast), command, *args, "WITHSCORES")

    def zrange(
        self,
        name: EncodableT,
        start: EncodableT,
        end: EncodableT,
        desc: bool = False,
        withscores: bool = False,
        score_cast_func: ScoreCastT = float,
        byscore: bool = False,
        bylex: bool = False,
        offset: Optional[int] = None,
        num: Optional[int] = None,
    ) -> Any:
        """Returns the members of a range: by rank, by score (byscore) or by member (bylex)."""
        args = [name, start, end, *ranged(byscore, bylex, desc, offset, num)]
        return self._range(b"ZRANGE", args, withscores, score_cast_func)

    def zrevrange(
        self,
        name: EncodableT,
        start: int,
        end: int,
        withscores: bool = False,
        score_cast_func: ScoreCastT = float,
    ) -> Any:
        """Returns the members of a range in reverse order."""
        return self._range(b"ZREVRANGE", [name, start, end], withscores, score_cast_func)

    def zrangestore(
        self,
        dest: EncodableT,
        name: EncodableT,
        start: EncodableT,
        end: EncodableT,
        byscore: bool = False,
        bylex: bool = False,
        desc: bool = False,
        offset: Optional[int] = None,
        num: Optional[int] = None,
    ) -> int:
        """Stores a range. Returns its size."""
        args = ranged(byscore, bylex, desc, offset, num)
        return self._execute(number, b"ZRANGESTORE", dest, name, start, end, *args)

    def zrangebylex(
        self,
        name: EncodableT,
        min: EncodableT,
        max: EncodableT,
        start: Optional[int] = None,
        num: Optional[int] = None,
    ) -> List[V]:
        """Returns the members within the bounds."""
        return self._execute(as_is, b"ZRANGEBYLEX", name, min, max, *limited(start, num))

    def zrevrangebylex(
        self,
        name: EncodableT,
        max: EncodableT,
        min: EncodableT,
        start: Optional[int] = None,
        num: Optional[int] = None,
    ) -> List[V]:
        """Returns the members within the bounds in reverse order."""
        return self._execute(as_is, b"ZREVRANGEBYLEX", name, max, min, *limited(start, num))

    def zrangebyscore(
        self,
        name: EncodableT,
        min: EncodableT,
        max: EncodableT,
        start: Optional[int] = None,
        num: Optional[int] = None,
        withscores: bool = False,
        score_cast_func: ScoreCastT = float,
    ) -> Any:
        """Returns the members with scores within the bounds."""
        args = [name, min, max, *limited(start, num)]
        return self._range(b"ZRANGEBYSCORE", args, withscores, score_cast_func)

    def zrevrangebyscore(
        self,
        name: EncodableT,
        max: EncodableT,
        min: EncodableT,
        start: Optional[int] = None,
        num: Optional[int] = None,
        withscores: bool = False,
        score_cast_func: ScoreCastT = float,
    ) -> Any:
        """Returns the members with scores within the bounds in reverse order."""
        args = [name, max, min, *limited(start, num)]
        return self._range(b"ZREVRANGEBYSCORE", args, withscores, score_cast_func)

    def zdiff(self, keys: KeysT, withscores: bool = False) -> List[V]:
        """Returns the members of the first key that no other key has."""
        args = combined(keys, None, withscores)
        return self._execute(texts(self._text), b"ZDIFF", *args)

    def zdiffstore(self, dest: EncodableT, keys: KeysT) -> int:
        """Stores the difference of keys. Returns its size."""
        return self._execute(number, b"ZDIFFSTORE", dest, *combined(keys, None))

    def zinter(
        self, keys: WeightedT, aggregate: Optional[str] = None, withscores: bool = False
    ) -> Any:
        """Returns the members that all keys have. Keys may be a mapping to weights."""
        return self._range(b"ZINTER", combined(keys, aggregate), withscores, float)

    def zinterstore(
        self, dest: EncodableT, keys: WeightedT, aggregate: Optional[str] = None
    ) -> int:
        """Stores the intersection of keys. Returns its size."""
        return self._execute(number, b"ZINTERSTORE", dest, *combined(keys, aggregate))

    def zintercard(self, numkeys: int, keys: KeysT, limit: int = 0) -> int:
        """Returns how many members all keys have, up to a limit."""
        return self._execute(number, b"ZINTERCARD", numkeys, *listed(keys), "LIMIT", limit)

    def zunion(
        self,
        keys: WeightedT,
        aggregate: Optional[str] = None,
        withscores: bool = False,
        score_cast_func: ScoreCastT = float,
    ) -> Any:
        """Returns the members that any key has. Keys may be a mapping to weights."""
        return self._range(b"ZUNION", combined(keys, aggregate), withscores, score_cast_func)

    def zunionstore(
        self, dest: EncodableT, keys: WeightedT, aggregate: Optional[str] = None
    ) -> int:
        """Stores the union of keys. Returns its size."""
        return self._execute(number, b"ZUNIONSTORE", dest, *combined(keys, aggregate))
