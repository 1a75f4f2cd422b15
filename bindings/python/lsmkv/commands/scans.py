"""Scans and sorting."""

from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from .._answers import ScoreCastT, as_is, cursor, cursor_with, dictionary, grouped, scored
from .._errors import DataError
from .._executor import Executor
from .._values import EncodableT, V


def chosen(match: Optional[EncodableT], count: Optional[int]) -> List[EncodableT]:
    """Returns the arguments that filter a scan."""
    args: List[EncodableT] = []
    if match is not None:
        args += ["MATCH", match]
    if count is not None:
        args += ["COUNT", count]
    return args


def sorting(
    start: Optional[int],
    num: Optional[int],
    by: Optional[EncodableT],
    get: Union[EncodableT, List[EncodableT], Tuple[EncodableT, ...], None],
    desc: bool,
    alpha: bool,
) -> List[EncodableT]:
    """Returns the arguments of a sort."""
    if (start is None) != (num is None):
        raise DataError("``start`` and ``num`` must both be specified")
    args: List[EncodableT] = []
    if by is not None:
        args += ["BY", by]
    if start is not None and num is not None:
        args += ["LIMIT", start, num]
    if get is not None:
        for pattern in get if isinstance(get, (list, tuple)) else [get]:
            args += ["GET", pattern]
    return args + (["DESC"] if desc else []) + (["ALPHA"] if alpha else [])


class Scans(Executor[V]):
    """Scans, a few elements per call. Each `_iter` method returns all elements."""

    def scan(
        self,
        cursor: int = 0,
        match: Optional[EncodableT] = None,
        count: Optional[int] = None,
        _type: Optional[str] = None,
    ) -> Tuple[int, List[V]]:
        """Returns some keys per call: the next cursor, 0 at the end, and the keys."""
        args = chosen(match, count)
        if _type is not None:
            args += ["TYPE", _type]
        return self._execute(_cursor, b"SCAN", cursor, *args)

    def hscan(
        self,
        name: EncodableT,
        cursor: int = 0,
        match: Optional[EncodableT] = None,
        count: Optional[int] = None,
    ) -> Tuple[int, Dict[V, V]]:
        """Returns some fields of a hash with their values per call."""
        return self._execute(_fields, b"HSCAN", name, cursor, *chosen(match, count))

    def sscan(
        self,
        name: EncodableT,
        cursor: int = 0,
        match: Optional[EncodableT] = None,
        count: Optional[int] = None,
    ) -> Tuple[int, List[V]]:
        """Returns some members of a set per call."""
        return self._execute(_cursor, b"SSCAN", name, cursor, *chosen(match, count))

    def zscan(
        self,
        name: EncodableT,
        cursor: int = 0,
        match: Optional[EncodableT] = None,
        count: Optional[int] = None,
        score_cast_func: ScoreCastT = float,
    ) -> Tuple[int, List[Tuple[V, Any]]]:
        """Returns some members of a sorted set with their scores per call."""
        # Scores are text here, as in Redis.
        shape = cursor_with(scored(lambda score: score_cast_func(float(score))))
        return self._execute(shape, b"ZSCAN", name, cursor, *chosen(match, count))

    def scan_iter(
        self,
        match: Optional[EncodableT] = None,
        count: Optional[int] = None,
        _type: Optional[str] = None,
    ) -> Iterator[V]:
        """Yields every key that exists from beginning to end of the scan."""
        at = -1
        while at != 0:
            at, found = self.scan(max(at, 0), match, count, _type)
            yield from found

    def hscan_iter(
        self, name: EncodableT, match: Optional[EncodableT] = None, count: Optional[int] = None
    ) -> Iterator[Tuple[V, V]]:
        """Yields every field with its value."""
        at = -1
        while at != 0:
            at, found = self.hscan(name, max(at, 0), match, count)
            yield from found.items()

    def sscan_iter(
        self, name: EncodableT, match: Optional[EncodableT] = None, count: Optional[int] = None
    ) -> Iterator[V]:
        """Yields every member of a set."""
        at = -1
        while at != 0:
            at, found = self.sscan(name, max(at, 0), match, count)
            yield from found

    def zscan_iter(
        self,
        name: EncodableT,
        match: Optional[EncodableT] = None,
        count: Optional[int] = None,
        score_cast_func: ScoreCastT = float,
    ) -> Iterator[Tuple[V, Any]]:
        """Yields every member of a sorted set with its score."""
        at = -1
        while at != 0:
            at, found = self.zscan(name, max(at, 0), match, count, score_cast_func)
            yield from found

    def sort(
        self,
        name: EncodableT,
        start: Optional[int] = None,
        num: Optional[int] = None,
        by: Optional[EncodableT] = None,
        get: Union[EncodableT, List[EncodableT], Tuple[EncodableT, ...], None] = None,
        desc: bool = False,
        alpha: bool = False,
        store: Optional[EncodableT] = None,
        groups: Optional[bool] = False,
    ) -> Any:
        """Returns the sorted elements of a list, set or sorted set; with `store`, their number."""
        args = sorting(start, num, by, get, desc, alpha)
        if store is not None:
            args += ["STORE", store]
        if not groups:
            return self._execute(as_is, b"SORT", name, *args)
        if not isinstance(get, (list, tuple)) or len(get) < 2:
            raise DataError(
                'when using "groups" the "get" argument must be specified '
                "and contain at least two keys"
            )
        return self._execute(grouped(len(get)), b"SORT", name, *args)

    def sort_ro(
        self,
        key: EncodableT,
        start: Optional[int] = None,
        num: Optional[int] = None,
        by: Optional[EncodableT] = None,
        get: Union[EncodableT, List[EncodableT], Tuple[EncodableT, ...], None] = None,
        desc: bool = False,
        alpha: bool = False,
    ) -> List[Optional[V]]:
        """Returns the sorted elements, like `sort`, but cannot store them."""
        args = sorting(start, num, by, get, desc, alpha)
        return self._execute(as_is, b"SORT_RO", key, *args)


_cursor = cursor
_fields = cursor_with(dictionary)
