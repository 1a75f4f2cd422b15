"""Commands that wait until a key holds an element. In a pipeline or transaction they do not wait."""

from typing import Any, List, Optional, Tuple, Union

from .._answers import as_is
from .._executor import Executor
from .._values import EncodableT, V

Names = Union[EncodableT, List[EncodableT], Tuple[EncodableT, ...]]
Seconds = Optional[Union[int, float]]


def _names(keys: Names) -> List[EncodableT]:
    return list(keys) if isinstance(keys, (list, tuple)) else [keys]


def _pair(reply: Optional[List[Any]]) -> Optional[Tuple[Any, ...]]:
    return None if reply is None else tuple(reply)


class Waits(Executor[V]):
    """Commands that wait for an element. A timeout of 0 or None waits for ever."""

    def blpop(self, keys: Names, timeout: Seconds = 0) -> Optional[Tuple[V, V]]:
        """Pops the first element of the first list that has one: its name and the element."""
        return self._execute(_pair, b"BLPOP", *_names(keys), timeout or 0)

    def brpop(self, keys: Names, timeout: Seconds = 0) -> Optional[Tuple[V, V]]:
        """Pops the last element of the first list that has one: its name and the element."""
        return self._execute(_pair, b"BRPOP", *_names(keys), timeout or 0)

    def brpoplpush(self, src: EncodableT, dst: EncodableT, timeout: Seconds = 0) -> Optional[V]:
        """Moves the last element of a list to the front of another."""
        return self._execute(as_is, b"BRPOPLPUSH", src, dst, timeout or 0)

    def blmove(
        self,
        first_list: EncodableT,
        second_list: EncodableT,
        timeout: Union[int, float],
        src: str = "LEFT",
        dest: str = "RIGHT",
    ) -> Optional[V]:
        """Moves an element from an end of a list to an end of another."""
        return self._execute(as_is, b"BLMOVE", first_list, second_list, src, dest, timeout)

    def blmpop(
        self,
        timeout: Union[int, float],
        numkeys: int,
        *args: EncodableT,
        direction: str,
        count: Optional[int] = 1,
    ) -> Any:
        """Pops elements of the first list that has some: its name and the elements."""
        words: List[EncodableT] = [timeout, numkeys, *args, direction, "COUNT", count or 1]
        return self._execute(as_is, b"BLMPOP", *words)

    def bzpopmax(self, keys: Names, timeout: Seconds = 0) -> Optional[Tuple[V, V, float]]:
        """Pops the member with the greatest score: the key, the member, its score."""
        return self._execute(_pair, b"BZPOPMAX", *_names(keys), timeout or 0)

    def bzpopmin(self, keys: Names, timeout: Seconds = 0) -> Optional[Tuple[V, V, float]]:
        """Pops the member with the least score: the key, the member, its score."""
        return self._execute(_pair, b"BZPOPMIN", *_names(keys), timeout or 0)

    def bzmpop(
        self,
        timeout: Union[int, float],
        numkeys: int,
        keys: List[EncodableT],
        min: bool = False,
        max: bool = False,
        count: Optional[int] = 1,
    ) -> Any:
        """Pops members of the first sorted set that has some: the key and the members."""
        if min == max:
            raise ValueError("choose min or max")
        end = "MIN" if min else "MAX"
        return self._execute(as_is, b"BZMPOP", timeout, numkeys, *keys, end, "COUNT", count or 1)
