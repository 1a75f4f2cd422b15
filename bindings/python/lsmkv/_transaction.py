"""`Snapshot` and `Transaction`: views of a store on which every command works."""

from typing import Any, Optional, Type

from ._ffi import lib
from ._handle import Handle
from ._outputs import failure, give, take
from ._values import V


class Snapshot(Handle[V]):
    """The store as it was at one moment. Any number of threads may use it."""

    _groups = False


class Transaction(Handle[V]):
    """A transaction. Reads see the store as it was at the beginning, plus its own writes. Others
    see nothing before the commit. One thread at a time may use it.

    As a context manager it commits at the end, or rolls back after an exception.
    """

    _groups = False
    _over = False

    def commit(self, timeout_ms: Optional[int] = None) -> None:
        """Makes the writes visible at once. Raises WatchError if a key it touched has changed.

        With a timeout it raises TimeoutError if other writers hold its keys for longer. It can then
        be committed again.
        """
        if timeout_ms is None:
            self._over = True
            self._call(lib.lsmkv_commit)
        else:
            self._call(lib.lsmkv_commit_timeout, timeout_ms)
            self._over = True

    def commit_async(self) -> int:
        """Commits without waiting for the device. Returns a ticket for `DB.wait`."""
        self._over = True
        return commit_async(self)

    def rollback(self) -> None:
        """Discards the writes."""
        self._over = True
        self._call(lib.lsmkv_rollback)

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        try:
            if kind is None and not self._over and not self.closed:
                self.commit()
        finally:
            self.close()


def commit_async(handle: Handle[Any]) -> int:
    """Commits a transaction or a batch. Returns its ticket."""
    out = take()
    status = lib.lsmkv_commit_async(handle._handle, out.number_at, out.err_at)
    if status < 0:
        raise failure(status, out)
    ticket: int = out.number.value & 0xFFFFFFFFFFFFFFFF
    give(out)
    return ticket
