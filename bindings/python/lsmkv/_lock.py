"""`Lock`: a lock that is a key of the store, with redis-py's methods.

It excludes threads of the process, and whatever else uses the store. With a timeout it is released by
itself if its holder does not extend it.
"""

import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, Callable, Optional, Type, Union

from ._errors import LockError, LockNotOwnedError
from ._values import EncodableT

if TYPE_CHECKING:
    from ._db import DB

Seconds = Union[int, float]


class _Token:
    """The token of a holder that any thread may release for."""

    token: Optional[bytes] = None


class _ThreadToken(threading.local):
    """The token of the thread that holds the lock."""

    token: Optional[bytes] = None


class Lock:
    """A lock of a store: `with db.lock("name", timeout=10):`. `DB.lock` describes the arguments."""

    def __init__(
        self,
        db: "DB[Any]",
        name: EncodableT,
        timeout: Optional[Seconds] = None,
        sleep: Seconds = 0.1,
        blocking: bool = True,
        blocking_timeout: Optional[Seconds] = None,
        thread_local: bool = True,
        raise_on_release_error: bool = True,
    ) -> None:
        if timeout is not None and timeout <= 0:
            raise ValueError("the timeout of a lock is more than 0 seconds, not %r" % (timeout,))
        self.db = db
        self.name = name
        self.timeout = timeout
        self.sleep = sleep
        self.blocking = blocking
        self.blocking_timeout = blocking_timeout
        self.thread_local = thread_local
        self.raise_on_release_error = raise_on_release_error
        self.local: Union[_Token, _ThreadToken] = _ThreadToken() if thread_local else _Token()

    def acquire(
        self,
        sleep: Optional[Seconds] = None,
        blocking: Optional[bool] = None,
        blocking_timeout: Optional[Seconds] = None,
        token: Union[None, str, bytes] = None,
    ) -> bool:
        """Takes the lock. Waits for it, at most `blocking_timeout` seconds. Returns whether it was
        taken."""
        sleep = self.sleep if sleep is None else sleep
        blocking = self.blocking if blocking is None else blocking
        limit = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        end = None if limit is None else time.monotonic() + limit
        given = uuid.uuid4().hex if token is None else token
        mine = given.encode() if isinstance(given, str) else given
        while not self._take(mine):
            if not blocking or (end is not None and time.monotonic() + sleep > end):
                return False
            time.sleep(sleep)
        self.local.token = mine
        return True

    def _take(self, token: bytes) -> bool:
        return bool(self.db.set(self.name, token, nx=True, px=_ms(self.timeout)))

    def locked(self) -> bool:
        """Whether somebody holds the lock."""
        return bool(self.db.exists(self.name))

    def owned(self) -> bool:
        """Whether this object holds the lock."""
        return self._holds(self.db.get(self.name), self.local.token)

    def _holds(self, stored: Any, token: Optional[bytes]) -> bool:
        held = stored.encode() if isinstance(stored, str) else stored
        return token is not None and held == token

    def release(self) -> None:
        """Releases the lock. Raises LockError if it is not held, LockNotOwnedError if it is no
        longer this object's."""
        token, self.local.token = self.local.token, None
        if token is None:
            text = "cannot release the lock %r: it is not held" % (self.name,)
            return self._failed(LockError(text))
        if not self._if_owned(token, lambda db: db.delete(self.name)):
            text = "cannot release the lock %r: it is no longer held by this object" % (self.name,)
            self._failed(LockNotOwnedError(text))

    def _failed(self, error: LockError) -> None:
        if self.raise_on_release_error:
            raise error

    def extend(self, additional_time: Seconds, replace_ttl: bool = False) -> bool:
        """Adds seconds to the time after which the lock is released, or counts them from now."""

        def change(db: Any) -> Any:
            left = 0 if replace_ttl else max(0, db.pttl(self.name))
            return db.pexpire(self.name, left + int(additional_time * 1000))

        return self._prolong(change, "extend")

    def reacquire(self) -> bool:
        """Makes the time after which the lock is released begin again."""
        return self._prolong(lambda db: db.pexpire(self.name, _ms(self.timeout)), "reacquire")

    def _prolong(self, change: Callable[[Any], Any], what: str) -> bool:
        token = self.local.token
        if token is None:
            raise LockError("cannot %s the lock %r: it is not held" % (what, self.name))
        if self.timeout is None:
            raise LockError("cannot %s the lock %r: it has no timeout" % (what, self.name))
        if not self._if_owned(token, change):
            text = "cannot %s the lock %r: it is no longer held by this object" % (what, self.name)
            raise LockNotOwnedError(text)
        return True

    def _if_owned(self, token: bytes, change: Callable[[Any], Any]) -> bool:
        """Runs a change if the lock is held with this token, in one step. Returns whether it was."""

        def checked(transaction: Any) -> bool:
            if not self._holds(transaction.get(self.name), token):
                return False
            change(transaction)
            return True

        return self.db.transact(checked)

    def __enter__(self) -> "Lock":
        if not self.acquire():
            raise LockError("the lock %r was not free in time" % (self.name,))
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        self.release()


def _ms(timeout: Optional[Seconds]) -> Optional[int]:
    return None if timeout is None else max(1, int(timeout * 1000))
