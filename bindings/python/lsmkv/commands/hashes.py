"""Hashes: commands whose arguments redis-py shapes in its own way."""

from typing import Any, List, Mapping, Optional, Sequence, Union

from .._answers import as_is, number, ok
from .._errors import DataError
from .._executor import Executor
from .._values import EncodableT, KeysT, V, listed
from .strings import flattened


class Hashes(Executor[V]):
    """Commands on hashes that are not generated."""

    def hset(
        self,
        name: EncodableT,
        key: Optional[EncodableT] = None,
        value: Optional[EncodableT] = None,
        mapping: Optional[Mapping[Any, EncodableT]] = None,
        items: Optional[Sequence[EncodableT]] = None,
    ) -> int:
        """Sets one field, a mapping, or alternating fields and values. Returns how many are new."""
        pairs: List[EncodableT] = list(items) if items else []
        if key is not None:
            if value is None:
                raise DataError("'hset' with a key needs a value")
            pairs += [key, value]
        if mapping:
            pairs += flattened(mapping)
        if not pairs:
            raise DataError("'hset' with no key value pairs")
        return self._execute(number, b"HSET", name, *pairs)

    def hmset(self, name: EncodableT, mapping: Mapping[Any, EncodableT]) -> bool:
        """Sets fields."""
        if not mapping:
            raise DataError("'hmset' with 'mapping' of length 0")
        return self._execute(ok, b"HMSET", name, *flattened(mapping))

    def hmget(self, name: EncodableT, keys: KeysT, *args: EncodableT) -> List[Optional[V]]:
        """Returns the values of fields, None for missing ones."""
        return self._execute(as_is, b"HMGET", name, *listed(keys, args))

    def hgetdel(self, name: EncodableT, *keys: EncodableT) -> List[Optional[V]]:
        """Removes fields. Returns their values."""
        if not keys:
            raise DataError("'hgetdel' should have at least one key specified")
        return self._execute(as_is, b"HGETDEL", name, "FIELDS", len(keys), *keys)

    def hrandfield(
        self, key: EncodableT, count: Optional[int] = None, withvalues: bool = False
    ) -> Union[V, List[V], None]:
        """Returns random fields, each followed by its value if wanted."""
        args: List[EncodableT] = [] if count is None else [count]
        if withvalues:
            args.append("WITHVALUES")
        return self._execute(as_is, b"HRANDFIELD", key, *args)
