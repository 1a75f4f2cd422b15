"""Scripts in Lua and functions: redis-py's names and arguments."""

import hashlib
from typing import Any, Generic, List, Optional, Sequence, Union

from .._answers import as_is, flag, ok
from .._errors import NoScriptError
from .._executor import Executor
from .._values import EncodableT, V, encode


class Script(Generic[V]):
    """A script that can be called: `DB.register_script` makes it."""

    def __init__(self, client: "Scripts[V]", script: Union[bytes, str]) -> None:
        self.registered_client = client
        self.script = script
        self.sha = hashlib.sha1(encode(script)).hexdigest()

    def __call__(
        self,
        keys: Optional[Sequence[EncodableT]] = None,
        args: Optional[Sequence[EncodableT]] = None,
        client: Optional["Scripts[V]"] = None,
    ) -> Any:
        """Runs the script on its store, or on another handle."""
        keys, args = keys or [], args or []
        client = self.registered_client if client is None else client
        # A pipeline or batch learns too late that the store does not know the digest.
        if not client._queues:
            try:
                return client.evalsha(self.sha, len(keys), *keys, *args)
            except NoScriptError:
                pass
        return client.eval(self.script, len(keys), *keys, *args)


class Scripts(Executor[V]):
    """Commands that run and keep scripts."""

    def eval(self, script: Union[bytes, str], numkeys: int, *keys_and_args: EncodableT) -> Any:
        """Runs a script. The first `numkeys` of the arguments are its keys."""
        return self._execute(as_is, b"EVAL", script, numkeys, *keys_and_args)

    def eval_ro(self, script: Union[bytes, str], numkeys: int, *keys_and_args: EncodableT) -> Any:
        """Runs a script that only reads."""
        return self._execute(as_is, b"EVAL_RO", script, numkeys, *keys_and_args)

    def evalsha(self, sha: Union[bytes, str], numkeys: int, *keys_and_args: EncodableT) -> Any:
        """Runs a script that `script_load` has loaded, by its digest."""
        return self._execute(as_is, b"EVALSHA", sha, numkeys, *keys_and_args)

    def evalsha_ro(self, sha: Union[bytes, str], numkeys: int, *keys_and_args: EncodableT) -> Any:
        """Runs a script that only reads, by its digest."""
        return self._execute(as_is, b"EVALSHA_RO", sha, numkeys, *keys_and_args)

    def register_script(self, script: Union[bytes, str]) -> Script[V]:
        """Returns the script as an object that can be called with keys and args."""
        return Script(self, script)

    def script_load(self, script: Union[bytes, str]) -> V:
        """Keeps a script until the store is closed. Returns its digest."""
        return self._execute(as_is, b"SCRIPT", "LOAD", script)

    def script_exists(self, *args: EncodableT) -> List[bool]:
        """Tells which of these digests are known."""
        return self._execute(_flags, b"SCRIPT", "EXISTS", *args)

    def script_flush(self, sync_type: Optional[str] = None) -> bool:
        """Forgets all scripts."""
        words = [] if sync_type is None else [sync_type]
        return self._execute(ok, b"SCRIPT", "FLUSH", *words)

    def script_kill(self) -> bool:
        """Ends the script that has run longest. Nothing that it wrote remains."""
        return self._execute(ok, b"SCRIPT", "KILL")

    def fcall(self, function: EncodableT, numkeys: int, *keys_and_args: EncodableT) -> Any:
        """Runs a function of a library."""
        return self._execute(as_is, b"FCALL", function, numkeys, *keys_and_args)

    def fcall_ro(self, function: EncodableT, numkeys: int, *keys_and_args: EncodableT) -> Any:
        """Runs a function of a library that only reads."""
        return self._execute(as_is, b"FCALL_RO", function, numkeys, *keys_and_args)

    def function_load(self, code: Union[bytes, str], replace: bool = False) -> V:
        """Stores a library. Returns its name."""
        words = ["REPLACE"] if replace else []
        return self._execute(as_is, b"FUNCTION", "LOAD", *words, code)

    def function_delete(self, library: EncodableT) -> bool:
        """Removes a library."""
        return self._execute(ok, b"FUNCTION", "DELETE", library)

    def function_flush(self, mode: str = "SYNC") -> bool:
        """Removes all libraries."""
        return self._execute(ok, b"FUNCTION", "FLUSH", mode)

    def function_list(self, library: EncodableT = "*", withcode: bool = False) -> List[Any]:
        """Returns the libraries whose names match a pattern."""
        words = ["WITHCODE"] if withcode else []
        return self._execute(as_is, b"FUNCTION", "LIST", "LIBRARYNAME", library, *words)

    def function_dump(self) -> bytes:
        """Returns all libraries as bytes that `function_restore` reads, Redis's too."""
        return self._execute(as_is, b"FUNCTION", "DUMP")

    def function_restore(self, payload: bytes, policy: str = "APPEND") -> bool:
        """Stores the libraries that `function_dump` returned."""
        return self._execute(ok, b"FUNCTION", "RESTORE", payload, policy)

    def function_stats(self) -> Any:
        """Returns the number of functions and the one that has run longest."""
        return self._execute(as_is, b"FUNCTION", "STATS")

    def function_kill(self) -> bool:
        """Ends the function that has run longest. Nothing that it wrote remains."""
        return self._execute(ok, b"FUNCTION", "KILL")


def _flags(raw: Any) -> List[bool]:
    return [flag(item) for item in raw]
