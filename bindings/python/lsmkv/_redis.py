"""redis-py in process: `redis.Redis(connection_pool=lsmkv.ConnectionPool(path))`.

A connection is a session of the store, so pipelines, transactions and SELECT behave as with a
server. Commands are packed in the library's form instead of RESP, and replies have the shapes of
RESP2. Works with redis-py 4, 5, 6, 7 and 8.
"""

from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Iterable, List, Optional, Union

import redis
import redis.connection
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
from ._handle import Session
from ._stores import give_back

if TYPE_CHECKING:
    from redis._parsers import BaseParser
    from redis.connection import AbstractConnection
else:
    BaseParser, AbstractConnection = base_classes(redis.connection)


class _Replies(BaseParser):
    """Replaces a parser: holds the replies that were not read yet."""

    def __init__(self, socket_read_size: int = 0) -> None:
        self.waiting: Deque[Any] = deque()
        # A command that waits for an element: it runs when its reply is read.
        self.deferred: Optional[bytes] = None
        self.session: Optional[Session[bytes]] = None
        # Whether messages are read like replies.
        self.subscribed = False

    def on_connect(self, connection: Any) -> None:
        self.waiting.clear()
        self.deferred = None
        self.session = connection._sock.session

    def on_disconnect(self) -> None:
        self.waiting.clear()
        self.deferred = None
        self.session = None
        self.subscribed = False

    def can_read(self, timeout: Optional[float] = 0) -> bool:
        if not self.waiting and self.subscribed:
            self._receive(timeout)
        return bool(self.waiting)

    def read_response(self, disable_decoding: bool = False, **_: Any) -> Any:
        if self.deferred is not None:
            block, self.deferred = self.deferred, None
            self.run(block)
        elif not self.waiting and self.subscribed:
            self._receive(None)
        if not self.waiting:
            raise exceptions.ConnectionError("no reply is waiting: send a command first")
        return self.waiting.popleft()

    def run(self, block: bytes) -> None:
        """Runs packed commands and queues their replies."""
        if self.session is None:
            raise exceptions.ConnectionError("the connection is closed")
        try:
            self.waiting.extend(self.session._run(block))
        except _errors.Error as error:
            raise translated(error) from error

    def _receive(self, timeout: Optional[float]) -> None:
        """Waits for a message."""
        session = self.session
        try:
            message = session.wait(timeout) if session is not None else None
        except _errors.Error as error:
            raise exceptions.ConnectionError(str(error)) from error
        if message is not None:
            self.waiting.append(message)


class _Link:
    """Replaces a socket: a session of the store."""

    def __init__(self, session: Session[bytes]) -> None:
        self.session = session

    def shutdown(self, how: int) -> None:
        """Ends a call that waits in another thread, as the end of a socket does."""
        self.session.close()

    def close(self) -> None:
        self.session.close()

    def fileno(self) -> int:
        """Returns a descriptor that is readable while messages wait."""
        return self.session.fileno()


class Connection(AbstractConnection):
    """A redis-py connection to a store in this process."""

    def __init__(self, store: DB[bytes], **kwargs: Any) -> None:
        self.store = store
        kwargs["parser_class"] = _Replies
        super().__init__(**fitting(AbstractConnection, kwargs))
        parser: Any = self._parser
        self._session_shapes = shapes(self.encoder, parser.parse_error)

    def repr_pieces(self) -> List[Any]:
        return [("store", self.store), ("db", self.db)]

    def _connect(self) -> Any:
        try:
            session = self.store._open_session()
        except _errors.Error as error:
            raise translated(error) from error
        session._shapes = self._session_shapes
        return _Link(session)

    def _host_error(self) -> str:
        return "lsmkv"

    def _error_message(self, exception: BaseException) -> str:
        return "lsmkv: %s" % exception

    def on_connect(self) -> None:
        """Names the session and selects the database. There is no server to greet."""
        self._parser.on_connect(self)
        if self.client_name:
            self.send_command("CLIENT", "SETNAME", self.client_name, check_health=False)
            self.read_response()
        if self.db:
            self.send_command("SELECT", self.db, check_health=False)
            self.read_response()

    def on_connect_check_health(self, check_health: bool = True) -> None:
        """Selects the database, like `on_connect`."""
        self.on_connect()

    def pack_command(self, *args: Any) -> List[bytes]:
        """Packs one command in the library's form."""
        return [packed(self.encoder, args)]

    def pack_commands(self, commands: Iterable[Any]) -> List[bytes]:
        """Packs several commands in the library's form."""
        return [block for command in commands for block in self.pack_command(*command)]

    def send_packed_command(
        self, command: Union[bytes, Iterable[bytes]], check_health: bool = True
    ) -> None:
        """Runs commands and queues their replies for reading. A command that waits for an element
        runs when its reply is read."""
        connection: Any = self
        if not self._sock:
            connection.connect()
        blocks = blocks_of(command)
        parser: Any = self._parser
        if len(blocks) == 1 and name_of(blocks[0]) in WAITS:
            parser.deferred = blocks[0]
        else:
            parser.run(b"".join(blocks))

    def send_command(self, *args: Any, **kwargs: Any) -> None:
        """Runs a command and queues its reply for reading."""
        parser: Any = self._parser
        before = len(parser.waiting)
        self.send_packed_command(self.pack_command(*args))
        if subscribes(args):
            parser.subscribed = True
            new = [parser.waiting.pop() for _ in range(len(parser.waiting) - before)]
            parser.waiting.extend(confirmations(new[::-1]))


class ConnectionPool(StorePool, redis.connection.ConnectionPool):
    """Opens a store for redis-py; `close` closes it.

    Takes the options of `lsmkv.open` and of a redis-py connection (decode_responses, db, ...).
    Pools with the same path share the store, and the last one that is closed closes it. A store that
    is already open is passed as `store`, and stays open.
    """

    session_class = Connection

    def close(self) -> None:
        """Closes the connections, and the store if no other pool that opened it is left."""
        self.disconnect()
        if self._owes_store():
            give_back(self.store)

    def __enter__(self) -> "ConnectionPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Redis(redis.Redis):
    """A redis-py client of a store in this process: `lsmkv.Redis("store")`.

    Takes the arguments of `ConnectionPool`. `close` closes the store, unless another client of the
    same path is left.
    """

    # None if the store could not be opened.
    _own_pool: Optional[ConnectionPool] = None

    def __init__(self, path: PathT = ":memory:", **kwargs: Any) -> None:
        self._own_pool = ConnectionPool(path, **kwargs)
        super().__init__(connection_pool=self._own_pool)

    def close(self) -> None:
        """Closes the client, and the store if this is its last client."""
        if self._own_pool is not None:
            super().close()
            self._own_pool.close()
