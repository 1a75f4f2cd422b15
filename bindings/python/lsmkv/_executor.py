"""The base of every class with commands: how a command runs, and the type of its texts."""

from typing import Any, Callable, Generic, TypeVar

from ._values import EncodableT, V

T = TypeVar("T")


class Executor(Generic[V]):
    """Runs commands. A store runs them at once; a pipeline queues them."""

    _text: Callable[[bytes], Any]
    # Whether commands return before they run.
    _queues = False

    # The declared type of the calling method decides the result's type.
    def _execute(
        self, answer: Callable[[Any], Any], name: bytes, *args: EncodableT
    ) -> T:  # type: ignore[type-var]
        raise NotImplementedError

    def execute_command(self, name: str, *args: EncodableT) -> Any:
        """Runs any command by name. Returns its reply in the shape of RESP2, numbers as numbers."""
        words = name.split()
        return self._execute(lambda raw: raw, words[0].upper().encode(), *words[1:], *args)
