"""What every class with commands has: a way to run one, and what text comes back as."""

from typing import Any, Callable, Generic, TypeVar

from ._values import EncodableT, V

T = TypeVar("T")


class Executor(Generic[V]):
    """Runs commands. A store does it at once; a pipeline holds them back."""

    _text: Callable[[bytes], Any]

    # The result's type follows from what the method that returns it declares.
    def _execute(
        self, answer: Callable[[Any], Any], name: bytes, *args: EncodableT
    ) -> T:  # type: ignore[type-var]
        raise NotImplementedError

    def execute_command(self, name: str, *args: EncodableT) -> Any:
        """Any command by name; its reply as RESP2 shapes it, numbers as numbers."""
        words = name.split()
        return self._execute(lambda raw: raw, words[0].upper().encode(), *words[1:], *args)
