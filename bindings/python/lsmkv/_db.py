"""`DB`: an open store, and the objects made from it."""

import ctypes
import os
import time
from typing import (
    Any,
    Callable,
    Dict,
    List,
    Literal,
    NamedTuple,
    Optional,
    Type,
    TypeVar,
    Union,
    overload,
)

from ._batch import Batch
from ._errors import WatchError
from ._ffi import lib
from ._handle import Handle, decoded
from ._lock import Lock
from ._outputs import failure, give, take
from ._pipeline import Pipeline
from ._reply import same
from ._server import Server
from ._signatures import OK, TIMEOUT
from ._transaction import Snapshot, Transaction
from ._values import EncodableT, V, fits

PathT = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
T = TypeVar("T")


class OptionInfo(NamedTuple):
    """An option of `open`."""

    default: str
    doc: str


def version() -> str:
    """Returns the version of the loaded library."""
    text: bytes = lib.lsmkv_version()
    return text.decode()


def options() -> Dict[str, OptionInfo]:
    """Returns every option of `open` with its default and what it does."""
    found: Dict[str, OptionInfo] = {}
    texts = [ctypes.c_char_p() for _ in range(3)]
    while lib.lsmkv_options_info(len(found), *map(ctypes.byref, texts)) == OK:
        name, default, doc = [(text.value or b"").decode() for text in texts]
        found[name] = OptionInfo(default, doc)
    return found


@overload
def open(
    path: PathT = ":memory:", *, decode_responses: Literal[False] = False, **options: object
) -> "DB[bytes]": ...


@overload
def open(path: PathT = ":memory:", *, decode_responses: Literal[True], **options: object) -> "DB[str]": ...


def open(
    path: PathT = ":memory:", *, decode_responses: bool = False, **options: object
) -> "Union[DB[bytes], DB[str]]":
    """Opens the store in a directory, or an empty store in memory for ":memory:".

    Values are bytes, or str with `decode_responses`. `lsmkv.options()` lists the options of the
    store: lsmkv.open("cache", memory_budget="64MiB", sync="always").
    """
    if decode_responses:
        return DB[str](path, decoded, options)
    return DB[bytes](path, same, options)


class DB(Handle[V]):
    """An open store, or one of its databases. Usable from any number of threads."""

    def __init__(
        self, path: PathT, text: Callable[[bytes], Any] = same, options: Dict[str, object] = {}
    ) -> None:
        self._own(_made_with(options, lib.lsmkv_open, _path_bytes(path)), text)

    @classmethod
    def _selected(cls) -> Type[Handle[Any]]:
        return DB

    def select(self, index: int) -> "DB[V]":
        """Returns a handle on another database of the store, from 0."""
        selected = super().select(index)
        assert isinstance(selected, DB)
        return selected

    def with_sync(self, mode: str) -> "DB[V]":
        """Returns a handle whose writes are as durable as `mode` says."""
        return self._make(DB, lib.lsmkv_with_sync, mode.encode())

    def snapshot(self) -> Snapshot[V]:
        """Returns a read-only view of the store as it is now: `with db.snapshot() as s`."""
        return self._make(Snapshot, lib.lsmkv_snapshot)

    def batch(self, strict: bool = False) -> Batch[V]:
        """Returns a batch, whose writes run all or not at all: `with db.batch() as b`."""
        return Batch(self, strict)

    def begin(self) -> Transaction[V]:
        """Begins a transaction."""
        return self._make(Transaction, lib.lsmkv_begin)

    @overload
    def transaction(self) -> Transaction[V]: ...

    @overload
    def transaction(
        self,
        func: Callable[[Pipeline[V]], Any],
        *watches: EncodableT,
        shard_hint: object = None,
        value_from_callable: bool = False,
        watch_delay: Optional[float] = None,
    ) -> Any: ...

    def transaction(
        self,
        func: Optional[Callable[[Pipeline[V]], Any]] = None,
        *watches: EncodableT,
        shard_hint: object = None,
        value_from_callable: bool = False,
        watch_delay: Optional[float] = None,
    ) -> Any:
        """Without arguments begins a transaction: `with db.transaction() as t`.

        With a function it works like redis-py: it runs `func(pipe)` on a pipeline that watches the
        keys and executes it, and repeats that until no watched key changes meanwhile.
        """
        if func is None:
            return self.begin()
        while True:
            with self.pipeline(True) as pipe:
                try:
                    if watches:
                        pipe.watch(*watches)
                    value = func(pipe)
                    results = pipe.execute()
                    return value if value_from_callable else results
                except WatchError:
                    if watch_delay:
                        time.sleep(watch_delay)

    def transact(self, func: Callable[[Transaction[V]], T], retries: Optional[int] = None) -> T:
        """Runs `func` in a transaction, commits it, and returns the result of `func`.

        After a conflict it runs again on the new state, at most `retries` times.
        """
        while True:
            try:
                with self.begin() as transaction:
                    return func(transaction)
            except WatchError:
                if retries is not None:
                    retries -= 1
                    if retries < 0:
                        raise

    def lock(
        self,
        name: EncodableT,
        timeout: Optional[float] = None,
        sleep: float = 0.1,
        blocking: bool = True,
        blocking_timeout: Optional[float] = None,
        thread_local: bool = True,
        raise_on_release_error: bool = True,
    ) -> Lock:
        """Returns a lock that is a key of the store: `with db.lock("name", timeout=10):`.

        It is released by itself after `timeout` seconds. Who wants it looks every `sleep` seconds,
        at most `blocking_timeout` seconds long. With `thread_local`, only the thread that took it
        can release it.
        """
        return Lock(
            self, name, timeout, sleep, blocking, blocking_timeout, thread_local,
            raise_on_release_error,
        )

    def serve(self, address: str, **options: object) -> Server:
        """Serves the store to other processes: `with db.serve("unix:/run/app.sock") as server`.

        The address is unix:PATH, tcp:HOST:PORT or tls:HOST:PORT; port 0 takes a free one. The
        options are those of `lsmkv.options()` that begin with `server_`, with or without that beginning.
        """
        named = {
            name if name.startswith("server_") else "server_" + name: value
            for name, value in options.items()
        }
        place = _path_bytes(address)
        return Server(self, _made_with(named, lib.lsmkv_serve, self._handle, place))

    def wait(self, ticket: int, timeout_ms: int) -> bool:
        """Waits until the writes of a ticket are durable. Returns whether they are."""
        out = take()
        status = lib.lsmkv_wait(self._handle, ticket, timeout_ms, out.err_at)
        if status == TIMEOUT:
            give(out)
            return False
        return self._done(status, out)

    def set_keyspace_events(self, classes: str) -> None:
        """Turns on key events for all handles of the store: letters of "KEg$lshzxetdmnA", as in
        Redis's notify-keyspace-events. "" turns them off, as they are at first."""
        self._call(lib.lsmkv_set_keyspace_events, classes.encode())

    def set_message_limits(self, hard_bytes: int, soft_bytes: int, soft_seconds: int) -> None:
        """Sets how much may wait for a subscriber before it is cut off: more than `hard_bytes` at
        once, or more than `soft_bytes` for `soft_seconds`. 0 bytes are no limit."""
        limits = (hard_bytes, soft_bytes, soft_seconds)
        if not all(fits(limit) and limit >= 0 for limit in limits):
            raise ValueError("a limit is a whole number from 0: %r" % (limits,))
        self._call(lib.lsmkv_set_message_limits, *limits)

    def sync(self) -> None:
        """Makes every write that has returned durable, whatever the sync mode."""
        self._call(lib.lsmkv_sync)

    def flush(self) -> None:
        """Flushes the memtables to tables."""
        self._call(lib.lsmkv_flush)

    def compact(self) -> None:
        """Merges all tables and drops obsolete data."""
        self._call(lib.lsmkv_compact)

    def refresh(self) -> None:
        """Moves a store opened read_only beside a writer on to what the writer has committed by now.

        Snapshots and iterators keep their moment. On other stores there is nothing to do.
        """
        self._call(lib.lsmkv_refresh)

    def resume(self) -> None:
        """Retries writing at once after the disk was full."""
        self._call(lib.lsmkv_resume)

    def checkpoint(self, directory: PathT) -> None:
        """Copies the store, as it is now, to a directory that does not exist."""
        self._call(lib.lsmkv_checkpoint, _path_bytes(directory))

    def check(self) -> List[str]:
        """Checks the whole store. Returns the problems found, an empty list if it is sound."""
        out = take()
        status = lib.lsmkv_check(self._handle, out.pointer_at, out.err_at)
        found: List[Any] = self._reply(status, out)
        return [item if isinstance(item, str) else item.decode() for item in found]

    def stats(self) -> Dict[str, Union[int, float]]:
        """Returns statistics of the store by name."""
        out = take()
        status = lib.lsmkv_stats(self._handle, out.pointer_at, out.err_at)
        raw: List[Any] = self._reply(status, out)
        names = [name if isinstance(name, str) else name.decode() for name in raw[::2]]
        return dict(zip(names, raw[1::2]))


def _made_with(options: Dict[str, object], function: Any, *args: object) -> int:
    """Calls a function that makes something with options. Returns what it made."""
    out = take()
    given = lib.lsmkv_options_new()
    try:
        for name, value in options.items():
            words = (name.encode(), _option_text(value))
            status = lib.lsmkv_options_set(given, *words, out.err_at)
            if status < 0:
                raise failure(status, out)
        status = function(*args, given, out.pointer_at, out.err_at)
        if status < 0:
            raise failure(status, out)
    finally:
        lib.lsmkv_options_free(given)
    made = out.pointer.value or 0
    give(out)
    return made


def _path_bytes(path: PathT) -> bytes:
    data = os.fsencode(path)
    if b"\0" in data:
        raise ValueError("a path has no NUL byte: %r" % (path,))
    return data


def _option_text(value: object) -> bytes:
    if isinstance(value, bool):
        return b"on" if value else b"off"
    return str(value).encode()
