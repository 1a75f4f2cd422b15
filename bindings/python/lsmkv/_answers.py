"""What a command makes of the raw value of its reply: redis-py's shapes.

Raw values come from `_reply`: aggregates are lists, doubles are floats.
"""

from typing import Any, Callable, Dict, List, Optional, Set, Tuple

ScoreCastT = Callable[[float], Any]


def as_is(raw: Any) -> Any:
    """The value itself."""
    return raw


def number(raw: Any) -> int:
    """A count."""
    return int(raw)


def real(raw: Any) -> float:
    """A number, perhaps as text."""
    return float(raw)


def maybe_real(raw: Any) -> Optional[float]:
    """A number or nothing."""
    return None if raw is None else float(raw)


def flag(raw: Any) -> bool:
    """Yes or no."""
    return bool(raw)


def ok(raw: Any) -> bool:
    """Whether it was done."""
    return raw in (b"OK", "OK")


def set_result(raw: Any) -> Optional[bool]:
    """Of SET: done, or a condition was not met."""
    return True if raw is not None else None


def unordered(raw: List[Any]) -> Set[Any]:
    """A set."""
    return set(raw)


def dictionary(raw: List[Any]) -> Dict[Any, Any]:
    """Keys and values that come in turn."""
    return dict(zip(raw[::2], raw[1::2]))


def scored(cast: ScoreCastT = float) -> Callable[[List[Any]], List[Tuple[Any, Any]]]:
    """Members and scores that come in turn, as pairs."""
    if cast is float:
        return _pairs
    return lambda raw: [(member, cast(score)) for member, score in _pairs(raw)]


def _pairs(raw: List[Any]) -> List[Tuple[Any, Any]]:
    return list(zip(raw[::2], raw[1::2]))


def grouped(size: int) -> Callable[[List[Any]], List[Tuple[Any, ...]]]:
    """Groups of several, as tuples."""
    return lambda raw: list(zip(*[raw[start::size] for start in range(size)]))


def cursor(raw: List[Any]) -> Tuple[int, List[Any]]:
    """Of a scan: where it goes on, and what was found."""
    return int(raw[0]), raw[1]


def cursor_with(shape: Callable[[List[Any]], Any]) -> Callable[[List[Any]], Tuple[int, Any]]:
    """Of a scan whose elements have a shape of their own."""
    return lambda raw: (int(raw[0]), shape(raw[1]))


def score_text(score: float) -> bytes:
    """A score as RESP2 writes it, where redis-py leaves it as text."""
    return b"%.17g" % score


def texts(text: Callable[[bytes], Any]) -> Callable[[Any], Any]:
    """The value with every score in it as text."""

    def convert(raw: Any) -> Any:
        if isinstance(raw, float):
            return text(score_text(raw))
        return [convert(item) for item in raw] if isinstance(raw, list) else raw

    return convert
