"""redis-py in process: `redis.Redis(connection_pool=lsmkv.ConnectionPool(path))`.

A connection is a session of the store, so pipelines, transactions and SELECT behave as with a
server. Commands are packed in the library's form instead of RESP, and replies have the shapes of
RESP2. Works with redis-py 4, 5, 6, 7 and 8.
"""

import inspect
from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Dict, Iterable, List, Optional, Union

import redis.connection
from redis import exceptions

if TYPE_CHECKING:
    from redis._parsers import BaseParser
    from redis.connection import AbstractConnection
else:
    try:
        from redis._parsers import BaseParser
    except ImportError:  # redis-py 4
        from redis.connection import BaseParser
    try:
        from redis.connection import AbstractConnection
    except ImportError:  # redis-py before 4.5.2
        from redis.connection import Connection as AbstractConnection

from . import _errors, _reply
from ._answers import score_text
from ._db import DB, PathT, open, options
from ._handle import Session
from ._values import pack

_PARAMETERS = inspect.signature(AbstractConnection.__init__).parameters


class _Replies(BaseParser):
    """Replaces a parser: holds the replies that were not read yet."""

    def __init__(self, socket_read_size: int = 0) -> None:
        self.waiting: Deque[Any] = deque()
        # The session of a subscriber: its messages are read like replies.
        self.subscriber: Optional[Session[bytes]] = None

    def on_connect(self, connection: Any) -> None:
        self.waiting.clear()

    def on_disconnect(self) -> None:
        self.waiting.clear()
        self.subscriber = None

    def can_read(self, timeout: Optional[float] = 0) -> bool:
        if not self.waiting and self.subscriber is not None:
            self._receive(timeout)
        return bool(self.waiting)

    def read_response(self, disable_decoding: bool = False, **_: Any) -> Any:
        if not self.waiting and self.subscriber is not None:
            self._receive(None)
        if not self.waiting:
            raise exceptions.ConnectionError("no reply is waiting: send a command first")
        return self.waiting.popleft()

    def _receive(self, timeout: Optional[float]) -> None:
        """Waits for a message."""
        session = self.subscriber
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
        """Reports that no data is pending."""

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
        if "protocol" not in _PARAMETERS:
            kwargs.pop("protocol", None)
        super().__init__(**kwargs)
        encoder: Any = self.encoder
        parser: Any = self._parser
        self._session_shapes = _reply.Shapes(
            encoder.decode if encoder.decode_responses else _reply.same,
            parser.parse_error,
            lambda score: encoder.decode(score_text(score)),
        )

    def repr_pieces(self) -> List[Any]:
        return [("store", self.store), ("db", self.db)]

    def _connect(self) -> Any:
        try:
            session = self.store._open_session()
        except _errors.Error as error:
            raise _translated(error) from error
        session._shapes = self._session_shapes
        return _Link(session)

    def _host_error(self) -> str:
        return "lsmkv"

    def _error_message(self, exception: BaseException) -> str:
        return "lsmkv: %s" % exception

    def on_connect(self) -> None:
        """Selects the database. There is no server to greet."""
        self._parser.on_connect(self)
        if self.db:
            self.send_command("SELECT", self.db, check_health=False)
            self.read_response()

    def on_connect_check_health(self, check_health: bool = True) -> None:
        """Selects the database, like `on_connect`."""
        self.on_connect()

    def pack_command(self, *args: Any) -> List[bytes]:
        """Packs one command in the library's form."""
        name = args[0].encode() if isinstance(args[0], str) else args[0]
        words = name.split() if b" " in name else [name]
        encoded = tuple(map(self.encoder.encode, args[1:]))
        return [b"".join(pack(words[0], (*words[1:], *encoded)))]

    def pack_commands(self, commands: Iterable[Any]) -> List[bytes]:
        """Packs several commands in the library's form."""
        return [block for command in commands for block in self.pack_command(*command)]

    def send_packed_command(
        self, command: Union[bytes, Iterable[bytes]], check_health: bool = True
    ) -> None:
        """Runs commands and queues their replies for reading."""
        connection: Any = self
        if not self._sock:
            connection.connect()
        link = connection._sock
        block = command if isinstance(command, bytes) else b"".join(command)
        parser: Any = self._parser
        try:
            parser.waiting.extend(link.session._run(block))
        except _errors.Error as error:
            raise _translated(error) from error

    def send_command(self, *args: Any, **kwargs: Any) -> None:
        """Runs a command and queues its reply for reading."""
        parser: Any = self._parser
        before = len(parser.waiting)
        self.send_packed_command(self.pack_command(*args))
        if str(args[0]).upper().endswith("SUBSCRIBE"):
            connection: Any = self
            parser.subscriber = connection._sock.session
            # Each name is confirmed by a message of its own.
            confirmations = [parser.waiting.pop() for _ in range(len(parser.waiting) - before)]
            for reply in reversed(confirmations):
                nested = isinstance(reply, list) and reply and isinstance(reply[0], list)
                parser.waiting.extend(reply if nested else [reply])


class ConnectionPool(redis.connection.ConnectionPool):
    """Opens a store for redis-py; `close` closes it.

    Takes the options of `lsmkv.open` and of a redis-py connection (decode_responses, db, ...).
    A store that is already open is passed as `store`, and stays open.
    """

    def __init__(
        self,
        path: PathT = ":memory:",
        store: Optional[DB[bytes]] = None,
        max_connections: Optional[int] = None,
        **kwargs: Any,
    ) -> None:
        names = options()
        given: Dict[str, Any] = {name: kwargs.pop(name) for name in list(kwargs) if name in names}
        self._opened = store is None
        self.store: DB[bytes] = open(path, **given) if store is None else store
        super().__init__(
            connection_class=Connection,
            max_connections=max_connections,
            store=self.store,
            **{"protocol": 2, **kwargs},
        )

    def close(self) -> None:
        """Closes the connections, and the store if the pool opened it."""
        self.disconnect()
        if self._opened:
            self.store.close()

    def __enter__(self) -> "ConnectionPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _translated(error: _errors.Error) -> exceptions.RedisError:
    """Returns the exception that redis-py would raise."""
    if isinstance(error, _errors.ReadOnlyError):
        return exceptions.ReadOnlyError(str(error))
    if isinstance(error, _errors.ResponseError):
        return exceptions.ResponseError(str(error))
    return exceptions.RedisError(str(error))
