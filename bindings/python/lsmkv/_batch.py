"""`Batch`: stores write commands and runs them together, all or none."""

from typing import Any, Callable, Optional, Type

from ._ffi import lib
from ._handle import Handle
from ._outputs import failure, give, take
from ._queued import Queued
from ._signatures import STRICT
from ._transaction import commit_async
from ._values import EncodableT, V, pack


class _BatchHandle(Handle[V]):
    """The handle of a batch. Its commands have no results."""


class Batch(Queued[V]):
    """Stores write commands. Each returns the batch for chaining. One thread at a time may use it.

    As a context manager it commits at the end, unless an exception occurred.
    """

    def __init__(self, handle: Handle[V], strict: bool = False) -> None:
        self._on = handle._make(_BatchHandle, lib.lsmkv_batch, STRICT if strict else 0)
        self._text = handle._text
        self._over = False

    def _execute(self, answer: Callable[[Any], Any], name: bytes, *args: EncodableT) -> Any:
        block, out = b"".join(pack(name, args)), take()
        status = lib.lsmkv_command_packed(
            self._on._handle, block, len(block), out.pointer_at, out.err_at
        )
        if status < 0:
            raise failure(status, out)
        give(out)
        return self

    def priority(self, priority: int) -> "Batch[V]":
        """Sets the priority of the commands that follow: higher ones run first."""
        self._on._call(lib.lsmkv_batch_priority, priority)
        return self

    def clear(self) -> None:
        """Removes all commands. A committed batch can then be used again."""
        self._on._call(lib.lsmkv_batch_clear)
        self._over = False

    def commit(self, timeout_ms: Optional[int] = None) -> None:
        """Runs the commands: all of them, or none if one fails."""
        if timeout_ms is None:
            self._on._call(lib.lsmkv_commit)
        else:
            self._on._call(lib.lsmkv_commit_timeout, timeout_ms)
        self._over = True

    def commit_async(self) -> int:
        """Commits without waiting for the device. Returns a ticket for `DB.wait`."""
        ticket = commit_async(self._on)
        self._over = True
        return ticket

    def close(self) -> None:
        """Closes the batch and discards commands that were not committed."""
        self._on.close()

    def __enter__(self) -> "Batch[V]":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        try:
            if kind is None and not self._over and not self._on.closed:
                self.commit()
        finally:
            self.close()
