"""Where the tests keep their data: in this process, or in the store that LSMKV_TEST_STORE names. With
LSMKV_TEST_SHARED that is a directory which another process holds."""

import functools
import os
import tempfile
import threading
import unittest

import lsmkv

PLACE = os.environ.get("LSMKV_TEST_STORE")
SHARED = "LSMKV_TEST_SHARED" in os.environ


def on_cluster():
    """Whether the place is a cluster."""
    return PLACE is not None and "-cluster://" in PLACE


def opened(path, **options):
    """Opens a store, as the place of the tests asks."""
    return lsmkv.open(path, **({"shared": True} if SHARED and path == PLACE else {}), **options)


def _is_unsupported(error):
    """Whether the place said that it does not offer something; a server says so in a reply."""
    text = str(error).lower()
    said = text.startswith("unknown command") or "in cluster mode" in text
    return said or isinstance(error, lsmkv.UnsupportedError)


def _unless_unsupported(test):
    """Skips a test at the first call that says that the place does not offer it."""

    @functools.wraps(test)
    def run(self):
        try:
            test(self)
        except (lsmkv.UnsupportedError, lsmkv.ResponseError) as error:
            if PLACE is None or not _is_unsupported(error):
                raise
            self.skipTest(str(error))

    return run


class PlaceTest(unittest.TestCase):
    """Tests with an empty store, `self.db`, at `self.path`."""

    def __init_subclass__(cls):
        for name, test in list(vars(cls).items()):
            if name.startswith("test_"):
                setattr(cls, name, _unless_unsupported(test))

    def setUp(self):
        if PLACE is None:
            scratch = tempfile.TemporaryDirectory()
            self.addCleanup(scratch.cleanup)
            self.path = os.path.join(scratch.name, "store")
        else:
            self.path = PLACE
        self.db = opened(self.path)
        self.addCleanup(self.db.close)
        if PLACE is not None:
            self.db.flushall()

    def later(self, function, *args):
        """Calls a function in another thread, soon, and at any rate before the store is closed."""
        timer = threading.Timer(0.02, function, args)
        timer.start()
        self.addCleanup(timer.join)
