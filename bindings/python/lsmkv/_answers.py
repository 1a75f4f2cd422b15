"""Turns the raw value of a reply into the shape that redis-py gives it.

Raw values come from `_reply`: aggregates are lists, doubles are floats.
"""

from typing import Any, Callable, Dict, List, Optional, Set, Tuple

ScoreCastT = Callable[[float], Any]


def as_is(raw: Any) -> Any:
    """Returns the value itself."""
    return raw


def number(raw: Any) -> int:
    """Returns a count."""
    return int(raw)


def real(raw: Any) -> float:
    """Returns a number, which may be text."""
    return float(raw)


def maybe_real(raw: Any) -> Optional[float]:
    """Returns a number or None."""
    return None if raw is None else float(raw)


def flag(raw: Any) -> bool:
    """Returns a boolean."""
    return bool(raw)


def ok(raw: Any) -> bool:
    """Returns whether the reply is OK."""
    return raw in (b"OK", "OK")


def set_result(raw: Any) -> Optional[bool]:
    """Returns True if SET wrote, None if a condition was not met."""
    return True if raw is not None else None


def unordered(raw: List[Any]) -> Set[Any]:
    """Returns a set."""
    return set(raw)


def dictionary(raw: List[Any]) -> Dict[Any, Any]:
    """Returns a dict of keys and values that alternate."""
    return dict(zip(raw[::2], raw[1::2]))


def scored(cast: ScoreCastT = float) -> Callable[[List[Any]], List[Tuple[Any, Any]]]:
    """Returns pairs of members and scores that alternate."""
    if cast is float:
        return _pairs
    return lambda raw: [(member, cast(score)) for member, score in _pairs(raw)]


def _pairs(raw: List[Any]) -> List[Tuple[Any, Any]]:
    return list(zip(raw[::2], raw[1::2]))


def grouped(size: int) -> Callable[[List[Any]], List[Tuple[Any, ...]]]:
    """Returns the elements in tuples of `size`."""
    return lambda raw: list(zip(*[raw[start::size] for start in range(size)]))


def cursor(raw: List[Any]) -> Tuple[int, List[Any]]:
    """Returns the next cursor of a scan and its elements."""
    return int(raw[0]), raw[1]


def cursor_with(shape: Callable[[List[Any]], Any]) -> Callable[[List[Any]], Tuple[int, Any]]:
    """Returns the next cursor of a scan and its elements in a shape of their own."""
    return lambda raw: (int(raw[0]), shape(raw[1]))


def score_text(score: float) -> bytes:
    """Returns a score as RESP2 writes it, where redis-py leaves it as text."""
    return b"%.17g" % score


def texts(text: Callable[[bytes], Any]) -> Callable[[Any], Any]:
    """Returns the value with every score in it as text."""

    def convert(raw: Any) -> Any:
        if isinstance(raw, float):
            return text(score_text(raw))
        return [convert(item) for item in raw] if isinstance(raw, list) else raw

    return convert
