"""Lists: commands whose arguments redis-py shapes in its own way."""

from typing import Any, List, Optional, Union

from .._answers import as_is, number, ok
from .._executor import Executor
from .._values import EncodableT, V


class Lists(Executor[V]):
    """Commands on lists, beside the regular ones."""

    def lindex(self, name: EncodableT, index: int) -> Optional[V]:
        """The element at an index."""
        return self._execute(as_is, b"LINDEX", name, index)

    def linsert(
        self, name: EncodableT, where: str, refvalue: EncodableT, value: EncodableT
    ) -> int:
        """Inserts an element before or after another; the length, -1 without that one."""
        return self._execute(number, b"LINSERT", name, where, refvalue, value)

    def lmove(
        self,
        first_list: EncodableT,
        second_list: EncodableT,
        src: str = "LEFT",
        dest: str = "RIGHT",
    ) -> Optional[V]:
        """Moves an element from an end of a list to an end of the same or another."""
        return self._execute(as_is, b"LMOVE", first_list, second_list, src, dest)

    def lmpop(
        self, num_keys: int, *args: EncodableT, direction: str, count: Optional[int] = 1
    ) -> Any:
        """Takes elements of the first list that exists: its name and they, or None."""
        words: List[EncodableT] = [num_keys, *args, direction]
        if count != 1 and count is not None:
            words += ["COUNT", count]
        return self._execute(as_is, b"LMPOP", *words)

    def lpop(self, name: EncodableT, count: Optional[int] = None) -> Union[V, List[V], None]:
        """Takes the first element, or a list of the first ones."""
        if count is None:
            return self._execute(as_is, b"LPOP", name)
        return self._execute(as_is, b"LPOP", name, count)

    def rpop(self, name: EncodableT, count: Optional[int] = None) -> Union[V, List[V], None]:
        """Takes the last element, or a list of the last ones."""
        if count is None:
            return self._execute(as_is, b"RPOP", name)
        return self._execute(as_is, b"RPOP", name, count)

    def lpos(
        self,
        name: EncodableT,
        value: EncodableT,
        rank: Optional[int] = None,
        count: Optional[int] = None,
        maxlen: Optional[int] = None,
    ) -> Union[int, List[int], None]:
        """Where an element is; with a count, where the first ones are."""
        args: List[EncodableT] = []
        for word, given in (("RANK", rank), ("COUNT", count), ("MAXLEN", maxlen)):
            if given is not None:
                args += [word, given]
        return self._execute(as_is, b"LPOS", name, value, *args)

    def lset(self, name: EncodableT, index: int, value: EncodableT) -> bool:
        """Replaces an element."""
        return self._execute(ok, b"LSET", name, index, value)
