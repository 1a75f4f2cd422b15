"""`Pipeline`: queues commands and runs them in one call, as in redis-py."""

from typing import TYPE_CHECKING, Any, Callable, List, Optional, Type

from ._answers import as_is, ok
from ._errors import Error, ExecAbortError, MisuseError, WatchError
from ._queued import Queued
from ._values import LENGTHS, AbsExpiryT, EncodableT, ExpiryT, V, encode, pack, words

if TYPE_CHECKING:
    from ._handle import Handle, Session

_MULTI = b"".join(pack(b"MULTI", ()))
_EXEC = b"".join(pack(b"EXEC", ()))
_SET = pack(b"SET", (b"", b""))[0]


class Pipeline(Queued[V]):
    """Queues commands. Each returns the pipeline for chaining; `execute` runs them.

    After `watch`, commands run at once and return their results, until `multi`. `execute` then
    raises WatchError if others changed a watched key. One thread at a time may use it.
    """

    def __init__(self, handle: "Handle[V]", transaction: bool = True) -> None:
        self._on = handle
        self._text = handle._text
        self.transaction = transaction
        self.explicit_transaction = False
        self._session: Optional["Session[V]"] = None
        # The packed commands, and the function that turns each reply into a result.
        self._parts: List[bytes] = []
        self._answers: List[Callable[[Any], Any]] = []

    @property
    def watching(self) -> bool:
        """Whether the pipeline watches keys."""
        return self._session is not None

    def __enter__(self) -> "Pipeline[V]":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        self.reset()

    def __len__(self) -> int:
        return len(self._answers)

    def __bool__(self) -> bool:
        return True

    def reset(self) -> None:
        """Removes the commands and the watched keys."""
        self._parts = []
        self._answers = []
        self.explicit_transaction = False
        session, self._session = self._session, None
        if session is not None:
            session.close()

    close = reset

    def _execute(self, answer: Callable[[Any], Any], name: bytes, *args: EncodableT) -> Any:
        if self._session is not None and not self.explicit_transaction:
            return self._session._execute(answer, name, *args)
        self._parts += pack(name, args)
        self._answers.append(answer)
        return self

    def set(
        self,
        name: EncodableT,
        value: EncodableT,
        ex: Optional[ExpiryT] = None,
        px: Optional[ExpiryT] = None,
        nx: bool = False,
        xx: bool = False,
        keepttl: bool = False,
        get: bool = False,
        exat: Optional[AbsExpiryT] = None,
        pxat: Optional[AbsExpiryT] = None,
    ) -> Any:
        """Sets the value of a key."""
        if self._session is None and ex is px is exat is pxat is None:
            if not (nx or xx or keepttl or get):
                # `_execute` inlined, since pipelines mostly consist of SET.
                key = name if type(name) is bytes else encode(name)
                data = value if type(value) is bytes else encode(value)
                if len(key) < 4096 and len(data) < 4096:
                    self._parts += (_SET, LENGTHS[len(key)], key, LENGTHS[len(data)], data)
                    self._answers.append(bool)
                    return self
        return super().set(name, value, ex, px, nx, xx, keepttl, get, exat, pxat)

    def watch(self, *names: EncodableT) -> bool:
        """Watches keys: `execute` does nothing if one of them changes before it."""
        if self.explicit_transaction:
            raise MisuseError("Cannot issue a WATCH after a MULTI")
        if self._session is None:
            self._session = self._on._open_session()
        done: bool = self._session._execute(ok, b"WATCH", *names)
        return done

    def unwatch(self) -> bool:
        """Stops watching all keys."""
        session, self._session = self._session, None
        if session is not None:
            session.close()
        return True

    def multi(self) -> None:
        """Starts queueing commands again after `watch`."""
        if self.explicit_transaction:
            raise MisuseError("Cannot issue nested calls to MULTI")
        if self._answers:
            raise MisuseError("Commands without an initial WATCH have already been issued")
        self.explicit_transaction = True

    def discard(self) -> None:
        """Removes the commands and the watched keys."""
        self.reset()

    def immediate_execute_command(self, name: str, *args: EncodableT) -> Any:
        """Runs a command at once."""
        return (self._session or self._on)._execute(as_is, name.upper().encode(), *args)

    def execute(self, raise_on_error: bool = True) -> List[Any]:
        """Runs the commands. Returns the result of each.

        The first error is raised; without `raise_on_error` it is the result of its command.
        """
        answers, block = self._answers, b"".join(self._parts)
        try:
            if not answers and self._session is None:
                return []
            if self.transaction or self.explicit_transaction:
                replies = self._run_transaction(block)
            else:
                replies = (self._session or self._on)._run(block)
            return _results(answers, block, replies, raise_on_error)
        finally:
            self.reset()

    def _run_transaction(self, block: bytes) -> List[Any]:
        replies = (self._session or self._on)._run(_MULTI + block + _EXEC)
        done = replies[-1]
        if isinstance(done, ExecAbortError):
            for number, reply in enumerate(replies[1:-1]):
                if isinstance(reply, Exception):
                    raise _annotated(reply, number, block)
        if isinstance(done, Exception):
            raise done
        if done is None:
            raise WatchError("Watched variable changed.")
        results: List[Any] = done
        return results


def _results(
    answers: List[Callable[[Any], Any]], block: bytes, replies: List[Any], raise_on_error: bool
) -> List[Any]:
    results: List[Any] = []
    append = results.append
    for answer, raw in zip(answers, replies):
        if isinstance(raw, Error):
            _annotated(raw, len(results), block)
            if raise_on_error:
                raise raw
            append(raw)
        else:
            append(answer(raw))
    return results


def _annotated(error: Exception, number: int, block: bytes) -> Exception:
    """Returns the error with the command that caused it."""
    text = b" ".join(words(block, number)).decode("utf-8", "replace")
    shown = text if len(text) <= 100 else text[:97] + "..."
    error.args = (
        "Command # %d (%s) of pipeline caused error: %s" % (number + 1, shown, error.args[0]),
    )
    return error
