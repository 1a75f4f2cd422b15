"""Commands that are queued: the methods of `Commands`, which a pipeline or batch runs later.

A generated stub declares for type checkers that each method returns Any, since its result depends
on the state of the pipeline.
"""

from ._values import V
from .commands import Commands


class Queued(Commands[V]):
    """The commands of a pipeline or batch."""

    _queues = True
