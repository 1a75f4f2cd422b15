"""`PubSub`: the channels that a program listens to, with redis-py's names and messages."""

from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Dict, Generic, Iterator, Optional

from ._values import EncodableT, V

if TYPE_CHECKING:
    from ._handle import Session


class PubSub(Generic[V]):
    """Receives the messages of channels and patterns. For one thread at a time."""

    def __init__(self, session: "Session[V]") -> None:
        self._session = session
        self._confirmed: Deque[Any] = deque()

    def subscribe(self, *channels: EncodableT) -> None:
        """Receives the messages of these channels."""
        self._change("SUBSCRIBE", *channels)

    def psubscribe(self, *patterns: EncodableT) -> None:
        """Receives the messages of all channels that match these patterns."""
        self._change("PSUBSCRIBE", *patterns)

    def unsubscribe(self, *channels: EncodableT) -> None:
        """Ends subscriptions to these channels, or to all."""
        self._change("UNSUBSCRIBE", *channels)

    def punsubscribe(self, *patterns: EncodableT) -> None:
        """Ends subscriptions to these patterns, or to all."""
        self._change("PUNSUBSCRIBE", *patterns)

    def _change(self, name: str, *names: EncodableT) -> None:
        reply = self._session.execute_command(name, *names)
        several = bool(reply) and isinstance(reply[0], list)
        self._confirmed.extend(reply if several else [reply])

    def get_message(self, timeout: Optional[float] = 0) -> Optional[Dict[str, Any]]:
        """Returns the next message or confirmation. Waits at most this many seconds; None waits for
        ever. Returns None if there is none."""
        if self._confirmed:
            return _message(self._confirmed.popleft())
        raw = self._session.wait(timeout)
        return None if raw is None else _message(raw)

    def listen(self) -> Iterator[Dict[str, Any]]:
        """Yields messages and confirmations as they arrive, for ever."""
        while True:
            message = self.get_message(None)
            if message is not None:
                yield message

    def fileno(self) -> int:
        """Returns a descriptor that is readable while messages wait, for select or poll."""
        return self._session.fileno()

    def close(self) -> None:
        """Ends all subscriptions."""
        self._session.close()

    def __enter__(self) -> "PubSub[V]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _message(raw: Any) -> Dict[str, Any]:
    """Returns a message in redis-py's form."""
    kind = raw[0] if isinstance(raw[0], str) else raw[0].decode()
    pattern = raw[1] if kind == "pmessage" else None
    channel, data = raw[-2], raw[-1]
    return {"type": kind, "pattern": pattern, "channel": channel, "data": data}
