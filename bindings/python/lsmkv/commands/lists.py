"""Lists: commands whose arguments redis-py shapes in its own way."""

from typing import Any, List, Optional, Union

from .._answers import as_is, number, ok
from .._executor import Executor
from .._values import EncodableT, V


class Lists(Executor[V]):
    """Commands on lists that are not generated."""

    def lindex(self, name: EncodableT, index: int) -> Optional[V]:
        """Returns the element at an index."""
        return self._execute(as_is, b"LINDEX", name, index)

    def linsert(
        self, name: EncodableT, where: str, refvalue: EncodableT, value: EncodableT
    ) -> int:
        """Inserts an element before or after another. Returns the length, -1 without that one."""
        return self._execute(number, b"LINSERT", name, where, refvalue, value)

    def lmove(
        self,
        first_list: EncodableT,
        second_list: EncodableT,
        src: str = "LEFT",
        dest: str = "RIGHT",
    ) -> Optional[V]:
        """Moves an element from an end of a list to an end of that or another list."""
        return self._execute(as_is, b"LMOVE", first_list, second_list, src, dest)

    def lmpop(
        self, num_keys: int, *args: EncodableT, direction: str, count: Optional[int] = 1
    ) -> Any:
        """Pops elements of the first existing list. Returns its name and the elements, or None."""
        words: List[EncodableT] = [num_keys, *args, direction]
        if count != 1 and count is not None:
            words += ["COUNT", count]
        return self._execute(as_is, b"LMPOP", *words)

    def lpop(self, name: EncodableT, count: Optional[int] = None) -> Union[V, List[V], None]:
        """Pops the first element, or a list of the first ones."""
        if count is None:
            return self._execute(as_is, b"LPOP", name)
        return self._execute(as_is, b"LPOP", name, count)

    def rpop(self, name: EncodableT, count: Optional[int] = None) -> Union[V, List[V], None]:
        """Pops the last element, or a list of the last ones."""
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
        """Returns the index of an element; with a count, the indexes of the first matches."""
        args: List[EncodableT] = []
        for word, given in (("RANK", rank), ("COUNT", count), ("MAXLEN", maxlen)):
            if given is not None:
                args += [word, given]
        return self._execute(as_is, b"LPOS", name, value, *args)

    def lset(self, name: EncodableT, index: int, value: EncodableT) -> bool:
        """Replaces an element."""
        return self._execute(ok, b"LSET", name, index, value)
