"""Commands that are held back: the same methods, of which a pipeline makes something else.

For type checkers there is a stub, made by tools/queued_stub.py: there each method returns Any,
since what it returns depends on the state of the pipeline.
"""

from ._values import V
from .commands import Commands


class Queued(Commands[V]):
    """See the module's documentation."""
