"""Messages: what PUBSUB tells about channels."""

from typing import List, Tuple

from .._answers import as_is, number
from .._executor import Executor
from .._values import EncodableT, V


def _pairs(reply: List[object]) -> List[Tuple[object, object]]:
    return list(zip(reply[::2], reply[1::2]))


class Messages(Executor[V]):
    """Commands on channels that are not generated."""

    def pubsub_channels(self, pattern: EncodableT = "*") -> List[V]:
        """Returns the channels that have subscribers and match the pattern."""
        return self._execute(as_is, b"PUBSUB", b"CHANNELS", pattern)

    def pubsub_numpat(self) -> int:
        """Returns the number of patterns that have subscribers."""
        return self._execute(number, b"PUBSUB", b"NUMPAT")

    def pubsub_numsub(self, *args: EncodableT) -> List[Tuple[V, int]]:
        """Returns channels with their numbers of subscribers."""
        return self._execute(_pairs, b"PUBSUB", b"NUMSUB", *args)

    def pubsub_shardchannels(self, pattern: EncodableT = "*") -> List[V]:
        """Returns the shard channels that have subscribers and match the pattern."""
        return self._execute(as_is, b"PUBSUB", b"SHARDCHANNELS", pattern)

    def pubsub_shardnumsub(self, *args: EncodableT) -> List[Tuple[V, int]]:
        """Returns shard channels with their numbers of subscribers."""
        return self._execute(_pairs, b"PUBSUB", b"SHARDNUMSUB", *args)
