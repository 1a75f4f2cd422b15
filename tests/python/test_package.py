"""The package as users get it: installed into a clean environment, typed, its files current.

What needs the network or mypy is skipped without it.
"""

import glob
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import venv

import lsmkv
from lsmkv import _ffi

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "bindings", "python")
HERE = os.path.dirname(os.path.abspath(__file__))


def run(*command, **environment):
    """Runs a command without this environment's way to the package."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LSMKV_LIBRARY")}
    return subprocess.run(
        command,
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )


def where_the_library_is():
    """What `make shared` built is found by cargo, which has nothing to do then; any other library
    is bundled as it is."""
    library = _ffi.lib._name
    if library.endswith("/dist/liblsmkv.so") and shutil.which("cargo"):
        return {"CARGO_TARGET_DIR": os.path.dirname(os.path.dirname(library))}
    return {"LSMKV_BUNDLE": library}


def remove_what_a_build_leaves():
    for name in ("build", "lsmkv.egg-info"):
        shutil.rmtree(os.path.join(PACKAGE, name), ignore_errors=True)


class Package(unittest.TestCase):
    def scratch(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        return directory

    @unittest.skipIf(importlib.util.find_spec("ensurepip") is None, "there is no ensurepip")
    def test_pip_install_works_in_a_clean_environment(self):
        place = self.scratch()
        environment = os.path.join(place, "venv")
        venv.create(environment, with_pip=True)
        python = os.path.join(environment, "bin", "python")
        self.addCleanup(remove_what_a_build_leaves)
        pip = (python, "-m", "pip", "install", "--disable-pip-version-check")
        installed = run(*pip, PACKAGE, **where_the_library_is())
        if installed.returncode and "No matching distribution found for" in installed.stdout:
            self.skipTest("pip cannot fetch what builds the package")
        self.assertEqual(installed.returncode, 0, installed.stdout)
        story = (
            "import lsmkv, lsmkv._ffi, os\n"
            "with lsmkv.open('store', sync='always') as db: db.hset('h', 'f', 'v')\n"
            "with lsmkv.open('store') as db: print(db.hgetall('h'))\n"
            "print(os.path.basename(lsmkv._ffi.lib._name), lsmkv.version())\n"
        )
        ran = run(python, "-c", "import os; os.chdir(%r)\n%s" % (place, story))
        self.assertEqual(ran.stdout, "{b'f': b'v'}\nliblsmkv.so %s\n" % lsmkv.version())
        typed = glob.glob(os.path.join(environment, "lib", "*", "site-packages", "lsmkv", "py.typed"))
        self.assertEqual(len(typed), 1)

    def test_the_build_command_is_that_of_make(self):
        with open(os.path.join(ROOT, "Makefile")) as makefile, open(os.path.join(PACKAGE, "setup.py")) as setup:
            rules, script = makefile.read(), setup.read()
        self.assertIn("rustc --profile dist --lib --crate-type cdylib", rules)
        self.assertIn('"rustc", "--profile", "dist", "--lib", "--crate-type", "cdylib"', script)

    @unittest.skipIf(importlib.util.find_spec("mypy") is None, "mypy is not installed")
    @unittest.skipIf(importlib.util.find_spec("redis") is None, "redis-py is not installed")
    def test_mypy_finds_nothing_in_strict_mode(self):
        cache = "--cache-dir=" + self.scratch()
        checked = run(
            sys.executable, "-m", "mypy", "--strict", cache, os.path.join(PACKAGE, "lsmkv"),
            os.path.join(PACKAGE, "quickstart.py"), os.path.join(PACKAGE, "examples", "tour.py"), os.path.join(HERE, "typed_usage.py"), MYPYPATH=PACKAGE,
        )
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_a_missing_or_foreign_library_is_told(self):
        for library, message in (("/nowhere/x.so", "cannot load"), (_library_of_c(), "older than this binding")):
            ran = run(sys.executable, "-c", "import lsmkv", PYTHONPATH=PACKAGE, LSMKV_LIBRARY=library)
            self.assertIn("ImportError", ran.stdout)
            self.assertIn(message, ran.stdout)

    def test_the_examples_run(self):
        for example, last in (("quickstart.py", "opened again"), ("examples/tour.py", "after reopening")):
            ran = run(
                sys.executable,
                os.path.join(PACKAGE, example),
                os.path.join(self.scratch(), "store"),
                PYTHONPATH=PACKAGE,
                LSMKV_LIBRARY=_ffi.lib._name,
            )
            self.assertEqual(ran.returncode, 0, ran.stdout)
            self.assertIn(last, ran.stdout)


def _library_of_c():
    import ctypes.util

    return ctypes.util.find_library("c") or "libc.so.6"


if __name__ == "__main__":
    unittest.main()
