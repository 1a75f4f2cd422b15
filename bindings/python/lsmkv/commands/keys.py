"""The key space: commands whose arguments redis-py shapes in its own way."""

from typing import Any, List, Optional

from .._answers import as_is, flag, ok
from .._executor import Executor
from .._values import (
    AbsExpiryT,
    EncodableT,
    ExpiryT,
    V,
    millisecond_of,
    milliseconds,
    second_of,
    seconds,
)


def conditions(nx: bool, xx: bool, gt: bool, lt: bool) -> List[EncodableT]:
    """Returns the arguments for the condition of an expiry."""
    given = (("NX", nx), ("XX", xx), ("GT", gt), ("LT", lt))
    return [word for word, wanted in given if wanted]


class Keys(Executor[V]):
    """Commands on keys of any type that are not generated."""

    def copy(
        self,
        source: EncodableT,
        destination: EncodableT,
        destination_db: Optional[EncodableT] = None,
        replace: bool = False,
    ) -> bool:
        """Copies a key. The time grows with its members."""
        args: List[EncodableT] = [source, destination]
        if destination_db is not None:
            args += ["DB", destination_db]
        if replace:
            args.append("REPLACE")
        return self._execute(flag, b"COPY", *args)

    def expire(
        self,
        name: EncodableT,
        time: ExpiryT,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> bool:
        """Sets a key to expire in this many seconds."""
        return self._execute(flag, b"EXPIRE", name, seconds(time), *conditions(nx, xx, gt, lt))

    def expireat(
        self,
        name: EncodableT,
        when: AbsExpiryT,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> bool:
        """Sets a key to expire at a Unix time in seconds, or a datetime."""
        args = conditions(nx, xx, gt, lt)
        return self._execute(flag, b"EXPIREAT", name, second_of(when), *args)

    def pexpire(
        self,
        name: EncodableT,
        time: ExpiryT,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> bool:
        """Sets a key to expire in this many milliseconds."""
        args = conditions(nx, xx, gt, lt)
        return self._execute(flag, b"PEXPIRE", name, milliseconds(time), *args)

    def pexpireat(
        self,
        name: EncodableT,
        when: AbsExpiryT,
        nx: bool = False,
        xx: bool = False,
        gt: bool = False,
        lt: bool = False,
    ) -> bool:
        """Sets a key to expire at a Unix time in milliseconds, or a datetime."""
        args = conditions(nx, xx, gt, lt)
        return self._execute(flag, b"PEXPIREAT", name, millisecond_of(when), *args)

    def flushall(self, asynchronous: bool = False) -> bool:
        """Empties all databases in constant time."""
        return self._execute(ok, b"FLUSHALL", *(["ASYNC"] if asynchronous else []))

    def flushdb(self, asynchronous: bool = False) -> bool:
        """Empties the database in constant time."""
        return self._execute(ok, b"FLUSHDB", *(["ASYNC"] if asynchronous else []))

    def move(self, name: EncodableT, db: int) -> bool:
        """Moves a key to another database."""
        return self._execute(flag, b"MOVE", name, db)

    def memory_usage(self, key: EncodableT, samples: Optional[int] = None) -> Optional[int]:
        """Estimates the bytes that a key takes in the store, or returns None. Of a collection five
        members are looked at, or `samples`; 0 looks at all."""
        words: List[EncodableT] = [] if samples is None else ["SAMPLES", samples]
        return self._execute(as_is, b"MEMORY", "USAGE", key, *words)

    def object(self, infotype: str, key: EncodableT) -> Any:
        """Describes how Redis would hold a value: "ENCODING", "FREQ", "IDLETIME" or "REFCOUNT"."""
        return self._execute(as_is, b"OBJECT", infotype, key)

    def swapdb(self, first: int, second: int) -> bool:
        """Swaps two databases."""
        return self._execute(ok, b"SWAPDB", first, second)

    def type(self, name: EncodableT) -> V:
        """Returns the type of a key: string, hash, list, set, zset or none."""
        return self._execute(as_is, b"TYPE", name)
