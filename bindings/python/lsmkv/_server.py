"""`Server`: a store served to other processes."""

import ctypes
import weakref
from typing import Any, Optional, Type

from ._ffi import Buf, lib
from ._outputs import failure, give, take


class Server:
    """A store behind the Redis protocol, until `stop`. As a context manager it stops itself.

    `DB.serve` makes it. Closing the store stops it too.
    """

    def __init__(self, store: object, server: int) -> None:
        # The store stays open as long as it is served.
        self._store = store
        self._server: Optional[int] = server
        # Runs when the object is collected or the interpreter ends. In a forked child the library
        # itself refuses.
        self._finalizer = weakref.finalize(self, lib.lsmkv_server_stop, server, None)

    @property
    def address(self) -> str:
        """Where it listens, as an address that `lsmkv.open` and `redis.from_url` take."""
        buf, out = Buf(), take()
        status = lib.lsmkv_server_address(self._server, ctypes.addressof(buf), out.err_at)
        if status < 0:
            raise failure(status, out)
        give(out)
        text = ctypes.string_at(buf.data, buf.len).decode()
        lib.lsmkv_buf_release(ctypes.byref(buf))
        return text

    @property
    def port(self) -> int:
        """The TCP port; 0 on a Unix socket."""
        port, out = ctypes.c_int32(), take()
        status = lib.lsmkv_server_port(self._server, ctypes.addressof(port), out.err_at)
        if status < 0:
            raise failure(status, out)
        give(out)
        return port.value

    def stop(self) -> None:
        """Disconnects the clients and stops the server. Stopping it again does nothing."""
        if self._finalizer.detach() is not None:
            server, self._server = self._server, None
            out = take()
            status = lib.lsmkv_server_stop(server, out.err_at)
            if status < 0:
                raise failure(status, out)
            give(out)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: Any) -> None:
        self.stop()
