"""What the connections for redis-py and for its asyncio have in common."""

import inspect
import sys
from struct import Struct
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from redis import exceptions

from . import _errors, _reply
from ._answers import score_text
from ._db import DB, PathT, options
from ._stores import borrow
from ._values import pack

# Commands that wait for an element, and where their time limit stands.
WAITS = {
    b"BLPOP": -1,
    b"BRPOP": -1,
    b"BZPOPMIN": -1,
    b"BZPOPMAX": -1,
    b"BLMOVE": -1,
    b"BRPOPLPUSH": -1,
    b"BLMPOP": 1,
    b"BZMPOP": 1,
}
_number = Struct("<I").unpack_from


def name_of(block: bytes) -> bytes:
    """Returns the name of a packed command, in capitals."""
    return block[8 : 8 + _number(block, 4)[0]].upper()


def packed(encoder: Any, args: Tuple[Any, ...]) -> bytes:
    """Packs one command in the library's form."""
    name = args[0].encode() if isinstance(args[0], str) else args[0]
    words = name.split() if b" " in name else [name]
    encoded = tuple(map(encoder.encode, args[1:]))
    return b"".join(pack(words[0], (*words[1:], *encoded)))


def blocks_of(command: Union[bytes, str, Iterable[bytes]]) -> List[bytes]:
    """Returns packed commands as a list."""
    if isinstance(command, str):
        return [command.encode()]
    return [command] if isinstance(command, bytes) else list(command)


def subscribes(args: Tuple[Any, ...]) -> bool:
    """Whether a command begins or ends subscriptions."""
    name = args[0].decode() if isinstance(args[0], bytes) else str(args[0])
    return name.upper().endswith("SUBSCRIBE")


def confirmations(replies: List[Any]) -> List[Any]:
    """Returns the confirmations in the replies of SUBSCRIBE: each name has one of its own."""
    found: List[Any] = []
    for reply in replies:
        nested = isinstance(reply, list) and reply and isinstance(reply[0], list)
        found.extend(reply if nested else [reply])
    return found


def shapes(encoder: Any, parse_error: Any) -> _reply.Shapes:
    """Returns how replies become objects of redis-py."""
    return _reply.Shapes(
        encoder.decode if encoder.decode_responses else _reply.same,
        parse_error,
        lambda score: encoder.decode(score_text(score)),
    )


def base_classes(module: Any) -> Tuple[Any, Any]:
    """Returns the parser and the connection of redis-py, which lie elsewhere in its versions before
    5.0 and before 4.5.2."""
    parsers = sys.modules.get("redis._parsers", module)
    return parsers.BaseParser, getattr(module, "AbstractConnection", module.Connection)


def fitting(kind: Any, given: Dict[str, Any]) -> Dict[str, Any]:
    """Removes the protocol where a connection of this redis-py does not take it."""
    if "protocol" not in inspect.signature(kind.__init__).parameters:
        given.pop("protocol", None)
    return given


def opened(path: PathT, given: Dict[str, Any]) -> "DB[bytes]":
    """Opens a store with those of the arguments that are its options, and removes these."""
    names = options()
    taken: Dict[str, Any] = {name: given.pop(name) for name in list(given) if name in names}
    return borrow(path, taken)


class StorePool:
    """What the pools for redis-py and for its asyncio have in common: the store of the connections."""

    # The class of the connections.
    session_class: Any

    def __init__(
        self,
        path: PathT = ":memory:",
        store: "Optional[DB[bytes]]" = None,
        max_connections: Optional[int] = None,
        **kwargs: Any,
    ) -> None:
        self._opened = store is None
        self.store: "DB[bytes]" = opened(path, kwargs) if store is None else store
        pool: Any = super()
        pool.__init__(
            connection_class=self.session_class,
            max_connections=max_connections,
            store=self.store,
            **{"protocol": 2, **kwargs},
        )

    def _owes_store(self) -> bool:
        """Whether the pool opened its store and has not given it back, which the caller does now."""
        owes, self._opened = self._opened, False
        return owes


def translated(error: _errors.Error) -> exceptions.RedisError:
    """Returns the exception that redis-py would raise."""
    if isinstance(error, _errors.ReadOnlyError):
        return exceptions.ReadOnlyError(str(error))
    if isinstance(error, _errors.ResponseError):
        return exceptions.ResponseError(str(error))
    if isinstance(error, (_errors.ClosedError, _errors.MisuseError)):
        return exceptions.ConnectionError(str(error))
    return exceptions.RedisError(str(error))
