"""Every command as a method with redis-py's name, arguments and result."""

from .._regular import Regular
from .._values import V
from .bits import BitFieldOperation, Bits
from .hashes import Hashes
from .keys import Keys
from .lists import Lists
from .messages import Messages
from .scans import Scans
from .scripts import Script, Scripts
from .sets import Sets
from .strings import Strings
from .waits import Waits
from .zranges import ZRanges
from .zsets import ZSets

__all__ = ["BitFieldOperation", "Commands", "Script"]


class Commands(
    Strings[V],
    Bits[V],
    Hashes[V],
    Lists[V],
    Sets[V],
    ZSets[V],
    ZRanges[V],
    Keys[V],
    Scans[V],
    Waits[V],
    Messages[V],
    Scripts[V],
    Regular[V],
):
    """All commands."""
