"""Sorted sets: members, scores and ranks."""

from typing import Any, List, Mapping, Optional, Tuple, Union

from .._answers import ScoreCastT, as_is, maybe_real, number, scored, texts
from .._errors import DataError
from .._executor import Executor
from .._values import EncodableT, KeysT, V, listed


class ZSets(Executor[V]):
    """Commands on the members of sorted sets that are not generated."""

    def zadd(
        self,
        name: EncodableT,
        mapping: Mapping[Any, EncodableT],
        nx: bool = False,
        xx: bool = False,
        ch: bool = False,
        incr: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> Union[int, float, None]:
        """Sets the scores of members. Returns how many are new, or with `ch` changed.

        nx: only new members. xx: only existing members. gt, lt: only to a greater or lesser score.
        incr: adds to the score of one member and returns it, None if a condition was not met.
        """
        if not mapping:
            raise DataError("ZADD requires at least one element/score pair")
        if nx and (xx or gt or lt) or gt and lt:
            raise DataError("ZADD allows either 'nx', 'xx', 'gt' or 'lt' as they exclude each other")
        if incr and len(mapping) != 1:
            raise DataError("ZADD option 'incr' only works when passing a single element/score pair")
        given = (("NX", nx), ("XX", xx), ("GT", gt), ("LT", lt), ("CH", ch), ("INCR", incr))
        args: List[EncodableT] = [word for word, wanted in given if wanted]
        for member, score in mapping.items():
            args += [score, member]
        return self._execute(maybe_real if incr else number, b"ZADD", name, *args)

    def zincrby(self, name: EncodableT, amount: float, value: EncodableT) -> float:
        """Adds to the score of a member."""
        return self._execute(as_is, b"ZINCRBY", name, amount, value)

    def zcount(self, name: EncodableT, min: EncodableT, max: EncodableT) -> int:
        """Returns how many members have scores within the bounds."""
        return self._execute(number, b"ZCOUNT", name, min, max)

    def zlexcount(self, name: EncodableT, min: EncodableT, max: EncodableT) -> int:
        """Returns how many members are within the bounds."""
        return self._execute(number, b"ZLEXCOUNT", name, min, max)

    def zmscore(self, key: EncodableT, members: KeysT) -> List[Optional[float]]:
        """Returns the scores of members, None for missing ones."""
        given = listed(members)
        if not given:
            raise DataError("ZMSCORE members must be a non-empty list")
        return self._execute(as_is, b"ZMSCORE", key, *given)

    def zrank(
        self,
        name: EncodableT,
        value: EncodableT,
        withscore: bool = False,
        score_cast_func: ScoreCastT = float,
    ) -> Any:
        """Returns how many members come before one; None if it is no member."""
        return self._ranked(b"ZRANK", name, value, withscore, score_cast_func)

    def zrevrank(
        self,
        name: EncodableT,
        value: EncodableT,
        withscore: bool = False,
        score_cast_func: ScoreCastT = float,
    ) -> Any:
        """Returns how many members come after one; None if it is no member."""
        return self._ranked(b"ZREVRANK", name, value, withscore, score_cast_func)

    def _ranked(
        self,
        command: bytes,
        name: EncodableT,
        value: EncodableT,
        withscore: bool,
        cast: ScoreCastT,
    ) -> Any:
        if not withscore:
            return self._execute(as_is, command, name, value)

        def shape(raw: Any) -> Any:
            return None if raw is None else [raw[0], cast(raw[1])]

        return self._execute(shape, command, name, value, "WITHSCORE")

    def zpopmax(
        self, name: EncodableT, count: Optional[int] = None
    ) -> List[Tuple[V, float]]:
        """Removes and returns the members with the greatest scores, with their scores."""
        args = [] if count is None else [count]
        return self._execute(scored(), b"ZPOPMAX", name, *args)

    def zpopmin(
        self, name: EncodableT, count: Optional[int] = None
    ) -> List[Tuple[V, float]]:
        """Removes and returns the members with the least scores, with their scores."""
        args = [] if count is None else [count]
        return self._execute(scored(), b"ZPOPMIN", name, *args)

    def zmpop(
        self,
        num_keys: int,
        keys: KeysT,
        min: Optional[bool] = False,
        max: Optional[bool] = False,
        count: Optional[int] = 1,
    ) -> Any:
        """Pops members from an end of the first existing key. Returns its name and the members."""
        if bool(min) == bool(max):
            raise DataError("Either min or max, but not both, must be set")
        args: List[EncodableT] = [num_keys, *listed(keys), "MIN" if min else "MAX"]
        if count != 1 and count is not None:
            args += ["COUNT", count]
        return self._execute(texts(self._text), b"ZMPOP", *args)

    def zrandmember(
        self, key: EncodableT, count: Optional[int] = None, withscores: bool = False
    ) -> Union[V, List[V], None]:
        """Returns random members, each followed by its score as text if wanted."""
        args: List[EncodableT] = [] if count is None else [count]
        if withscores:
            args.append("WITHSCORES")
        return self._execute(texts(self._text), b"ZRANDMEMBER", key, *args)

    def zremrangebylex(self, name: EncodableT, min: EncodableT, max: EncodableT) -> int:
        """Removes the members within the bounds."""
        return self._execute(number, b"ZREMRANGEBYLEX", name, min, max)

    def zremrangebyscore(self, name: EncodableT, min: EncodableT, max: EncodableT) -> int:
        """Removes the members with scores within the bounds."""
        return self._execute(number, b"ZREMRANGEBYSCORE", name, min, max)
