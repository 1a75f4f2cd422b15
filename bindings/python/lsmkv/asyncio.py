"""redis-py's asyncio in process: `redis.asyncio.Redis(connection_pool=lsmkv.asyncio.ConnectionPool(path))`.

A command runs in the loop's own thread, since most take microseconds: less than handing them to
another thread. Those that may take long run in a thread of the loop's executor: scripts, walks over
all keys, combinations of collections, large pipelines, and every command of a store that is opened
with sync="always", whose writes wait for the device. A command that waits for an element or a
message occupies no thread: the loop watches a descriptor of the session.

An element is popped in the loop's thread at the moment at which it is returned. A task that is
cancelled while it waits has taken nothing.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Iterable, List, Optional, Tuple, Union

import redis.asyncio
import redis.asyncio.connection
from redis import exceptions

from . import _errors
from ._connecting import (
    WAITS,
    StorePool,
    base_classes,
    blocks_of,
    confirmations,
    fitting,
    name_of,
    packed,
    shapes,
    subscribes,
    translated,
)
from ._db import DB, PathT
from ._handle import WOULD_WAIT, Session
from ._stores import give_back
from ._values import words

if TYPE_CHECKING:
    from redis._parsers import BaseParser
    from redis.asyncio.connection import AbstractConnection
else:
    BaseParser, AbstractConnection = base_classes(redis.asyncio.connection)

__all__ = ["Connection", "ConnectionPool", "Redis"]

# Commands that may take longer than a loop should stand still.
_LONG = frozenset(
    b"EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO FLUSHALL FLUSHDB INFO KEYS SDIFF SDIFFSTORE "
    b"SINTER SINTERCARD SINTERSTORE SORT SORT_RO SUNION SUNIONSTORE SWAPDB ZDIFF ZDIFFSTORE ZINTER "
    b"ZINTERCARD ZINTERSTORE ZRANGESTORE ZUNION ZUNIONSTORE COPY RENAME LCS BITOP DBSIZE".split()
)
# A pipeline of more commands or bytes is handed to a thread.
_MANY_COMMANDS = 64
_MANY_BYTES = 256 * 1024


class _Replies(BaseParser):
    """Replaces a parser: holds the replies that were not read yet, and waits for others."""

    def __init__(self, socket_read_size: int = 0) -> None:
        self.waiting: Deque[Any] = deque()
        # A command that waits for an element: it runs when its reply is read.
        self.deferred: Optional[bytes] = None
        self.session: Optional[Session[bytes]] = None
        # Whether messages are read like replies.
        self.subscribed = False
        # What the task that reads waits for.
        self._awaited: Optional["asyncio.Future[bool]"] = None

    def on_connect(self, connection: Any) -> None:
        self.waiting.clear()
        self.deferred = None
        self.session = connection._writer.session

    def on_disconnect(self) -> None:
        self.waiting.clear()
        self.deferred = None
        self.session = None
        self.subscribed = False
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_exception(exceptions.ConnectionError("the connection was closed"))

    async def can_read(self, timeout: Optional[float] = 0) -> bool:
        """Whether a reply that nobody has read is left."""
        return bool(self.waiting)

    can_read_destructive = can_read

    async def read_response(self, disable_decoding: bool = False, **_: Any) -> Any:
        """Returns the next reply or message."""
        if self.deferred is not None:
            return await self._element(self.deferred)
        if not self.waiting and self.subscribed:
            return await self._message()
        if not self.waiting:
            raise exceptions.ConnectionError("no reply is waiting: send a command first")
        return self.waiting.popleft()

    def _live(self) -> Session[bytes]:
        if self.session is None:
            raise exceptions.ConnectionError("the connection is closed")
        return self.session

    async def _element(self, block: bytes) -> Any:
        """Runs a command that waits for an element. Between its success and the return to the caller
        nothing is awaited, so that no cancellation can lose the element."""
        loop = asyncio.get_running_loop()
        limit = _limit(block)
        deadline = None if limit is None else loop.time() + limit
        while True:
            try:
                reply = self._live()._try(block)
            except _errors.Error as error:
                raise translated(error) from error
            if reply is not WOULD_WAIT:
                self.deferred = None
                return reply
            if not await self._readable(deadline):
                self.deferred = None
                return None

    async def _message(self) -> Any:
        while True:
            try:
                message = self._live().wait(0)
            except _errors.Error as error:
                raise exceptions.ConnectionError(str(error)) from error
            if message is not None:
                return message
            await self._readable(None)

    async def _readable(self, deadline: Optional[float]) -> bool:
        """Waits until the session has something. Returns False once the deadline has passed."""
        loop = asyncio.get_running_loop()
        if deadline is not None and loop.time() >= deadline:
            return False
        descriptor = self._live().fileno()
        awaited: "asyncio.Future[bool]" = loop.create_future()
        timer = None if deadline is None else loop.call_at(deadline, _settle, awaited, False)
        loop.add_reader(descriptor, _settle, awaited, True)
        self._awaited = awaited
        try:
            return await awaited
        finally:
            self._awaited = None
            loop.remove_reader(descriptor)
            if timer is not None:
                timer.cancel()


def _settle(awaited: "asyncio.Future[bool]", result: bool) -> None:
    if not awaited.done():
        awaited.set_result(result)


def _limit(block: bytes) -> Optional[float]:
    """Returns the time limit of a command that waits, in seconds. What is no number is left to the
    command, which refuses it."""
    try:
        seconds = float(words(block, 0)[WAITS[name_of(block)]])
    except (ValueError, IndexError):
        return None
    return seconds if seconds > 0 else None


class _Link:
    """Replaces the streams of a connection: a session of the store."""

    def __init__(self, session: Session[bytes], durable: bool) -> None:
        self.session = session
        # Whether a write waits for the device.
        self.durable = durable
        # Whether a thread uses the session. It closes it then.
        self.busy = False
        self.closing = False

    def close(self) -> None:
        self.closing = True
        if not self.busy:
            self.session.close()

    async def wait_closed(self) -> None:
        """Nothing is left to wait for."""

    def takes_long(self, blocks: List[bytes]) -> bool:
        """Whether commands are better run in another thread."""
        if self.durable or len(blocks) > _MANY_COMMANDS:
            return True
        if sum(map(len, blocks)) > _MANY_BYTES:
            return True
        names = map(name_of, blocks)
        return any(name in _LONG or name in WAITS for name in names)

    async def run(self, blocks: List[bytes]) -> List[Any]:
        """Runs packed commands. Returns the reply of each."""
        block = b"".join(blocks)
        if not self.takes_long(blocks):
            replies: List[Any] = self.session._run(block)
            return replies
        self.busy = True
        running = asyncio.get_running_loop().run_in_executor(None, self.session._run, block)
        running.add_done_callback(self._over)
        # A task that is cancelled leaves the thread to its command.
        return await asyncio.shield(running)

    def _over(self, running: "asyncio.Future[Any]") -> None:
        self.busy = False
        if not running.cancelled():
            running.exception()
        if self.closing:
            self.session.close()


class Connection(AbstractConnection):
    """A connection of redis-py's asyncio to a store in this process."""

    def __init__(self, store: DB[bytes], **kwargs: Any) -> None:
        self.store = store
        kwargs["parser_class"] = _Replies
        # No socket is waited for: a command that waits says for how long.
        kwargs.setdefault("socket_timeout", None)
        super().__init__(**fitting(AbstractConnection, kwargs))
        parser: Any = self._parser
        self._session_shapes = shapes(self.encoder, parser.parse_error)

    def repr_pieces(self) -> List[Any]:
        return [("store", self.store), ("db", self.db)]

    async def _connect(self) -> None:
        connection: Any = self
        try:
            session = self.store._open_session()
            mode = session.execute_command("CONFIG GET", "appendfsync")[1]
        except _errors.Error as error:
            raise translated(error) from error
        session._shapes = self._session_shapes
        connection._reader = connection._writer = _Link(session, mode in (b"always", "always"))

    def _host_error(self) -> str:
        return "lsmkv"

    def _error_message(self, exception: BaseException) -> str:
        return "lsmkv: %s" % exception

    async def on_connect(self) -> None:
        """Names the session and selects the database. There is no server to greet."""
        connection: Any = self
        connection._parser.on_connect(self)
        first: List[Tuple[Any, ...]] = []
        if self.client_name:
            first.append(("CLIENT", "SETNAME", self.client_name))
        if self.db:
            first.append(("SELECT", self.db))
        for command in first:
            await self.send_command(*command, check_health=False)
            await self.read_response()

    async def on_connect_check_health(self, check_health: bool = True) -> None:
        """Selects the database, like `on_connect`."""
        await self.on_connect()

    def pack_command(self, *args: Any) -> List[bytes]:
        """Packs one command in the library's form."""
        return [packed(self.encoder, args)]

    def pack_commands(self, commands: Iterable[Any]) -> List[bytes]:
        """Packs several commands in the library's form."""
        return [packed(self.encoder, tuple(command)) for command in commands]

    async def send_packed_command(
        self, command: Union[bytes, str, Iterable[bytes]], check_health: bool = True
    ) -> None:
        """Runs commands and queues their replies for reading. A command that waits for an element
        runs when its reply is read."""
        connection: Any = self
        if not self.is_connected:
            await connection.connect()
        blocks = blocks_of(command)
        parser = connection._parser
        if len(blocks) == 1 and name_of(blocks[0]) in WAITS:
            parser.deferred = blocks[0]
            return
        try:
            parser.waiting.extend(await connection._writer.run(blocks))
        except _errors.Error as error:
            raise translated(error) from error
        except BaseException:
            # The replies of a command that nobody waits for any more must reach nobody else.
            await self.disconnect(nowait=True)
            raise

    async def send_command(self, *args: Any, **kwargs: Any) -> None:
        """Runs a command and queues its reply for reading."""
        connection: Any = self
        await self.send_packed_command(self.pack_command(*args))
        if subscribes(args):
            parser = connection._parser
            parser.subscribed = True
            replies = confirmations(list(parser.waiting))
            parser.waiting.clear()
            parser.waiting.extend(replies)


class ConnectionPool(StorePool, redis.asyncio.connection.ConnectionPool):
    """Opens a store for redis-py's asyncio; `aclose` closes it.

    Takes the options of `lsmkv.open` and of a redis-py connection (decode_responses, db, ...).
    Pools with the same path share the store, and the last one that is closed closes it. A store that
    is already open is passed as `store`, and stays open.
    """

    session_class = Connection

    async def aclose(self) -> None:
        """Closes the connections, and the store if no other pool that opened it is left."""
        await self.disconnect()
        if self._owes_store():
            # It waits for what the store still has to write.
            await asyncio.get_running_loop().run_in_executor(None, give_back, self.store)

    async def __aenter__(self) -> "ConnectionPool":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Redis(redis.asyncio.Redis):
    """A client of redis-py's asyncio on a store in this process: `lsmkv.asyncio.Redis("store")`.

    Takes the arguments of `ConnectionPool`. `aclose` closes the store, unless another client of the
    same path is left.
    """

    def __init__(self, path: PathT = ":memory:", **kwargs: Any) -> None:
        self._own_pool = ConnectionPool(path, **kwargs)
        super().__init__(connection_pool=self._own_pool)

    async def aclose(self, close_connection_pool: Optional[bool] = None) -> None:
        """Closes the client, and the store if this is its last client."""
        await super().aclose(close_connection_pool)
        await self._own_pool.aclose()
