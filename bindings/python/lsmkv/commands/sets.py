"""Sets: commands whose arguments redis-py shapes in its own way."""

from typing import List, Optional, Set, Union

from .._answers import as_is, number, unordered
from .._executor import Executor
from .._values import EncodableT, KeysT, V, listed


class Sets(Executor[V]):
    """Commands on sets that are not generated."""

    def sdiff(self, keys: KeysT, *args: EncodableT) -> Set[V]:
        """Returns the members of the first set that no other set has."""
        return self._execute(unordered, b"SDIFF", *listed(keys, args))

    def sdiffstore(self, dest: EncodableT, keys: KeysT, *args: EncodableT) -> int:
        """Stores the difference of sets. Returns its size."""
        return self._execute(number, b"SDIFFSTORE", dest, *listed(keys, args))

    def sinter(self, keys: KeysT, *args: EncodableT) -> Set[V]:
        """Returns the members that all sets have."""
        return self._execute(unordered, b"SINTER", *listed(keys, args))

    def sintercard(self, numkeys: int, keys: KeysT, limit: int = 0) -> int:
        """Returns how many members all sets have, up to a limit."""
        return self._execute(number, b"SINTERCARD", numkeys, *listed(keys), "LIMIT", limit)

    def sinterstore(self, dest: EncodableT, keys: KeysT, *args: EncodableT) -> int:
        """Stores the intersection of sets. Returns its size."""
        return self._execute(number, b"SINTERSTORE", dest, *listed(keys, args))

    def sunion(self, keys: KeysT, *args: EncodableT) -> Set[V]:
        """Returns the members of any of the sets."""
        return self._execute(unordered, b"SUNION", *listed(keys, args))

    def sunionstore(self, dest: EncodableT, keys: KeysT, *args: EncodableT) -> int:
        """Stores the union of sets. Returns its size."""
        return self._execute(number, b"SUNIONSTORE", dest, *listed(keys, args))

    def smismember(self, name: EncodableT, values: KeysT, *args: EncodableT) -> List[int]:
        """Returns 1 for each value that is a member, 0 for the others."""
        return self._execute(as_is, b"SMISMEMBER", name, *listed(values, args))

    def spop(self, name: EncodableT, count: Optional[int] = None) -> Union[V, List[V], None]:
        """Removes and returns a random member, or a list of them."""
        if count is None:
            return self._execute(as_is, b"SPOP", name)
        return self._execute(as_is, b"SPOP", name, count)

    def srandmember(
        self, name: EncodableT, number: Optional[int] = None
    ) -> Union[V, List[V], None]:
        """Returns a random member, or a list of them; with a negative number some may repeat."""
        if number is None:
            return self._execute(as_is, b"SRANDMEMBER", name)
        return self._execute(as_is, b"SRANDMEMBER", name, number)
