"""Builds the shared library with cargo and bundles it, so that a wheel needs nothing else.

$LSMKV_BUNDLE names a library that was built already.
"""

import os
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = ["cargo", "rustc", "--profile", "dist", "--lib", "--crate-type", "cdylib"]


def library():
    """The path of the library, which is built unless it is given."""
    given = os.environ.get("LSMKV_BUNDLE")
    if given:
        return given
    if shutil.which("cargo") is None:
        raise SystemExit("lsmkv is built from source: install Rust (https://rustup.rs) first")
    subprocess.run(BUILD, cwd=ROOT, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    return os.path.join(ROOT, target, "dist", "liblsmkv.so")


class BuildWithLibrary(build_py):
    """Puts the library beside the modules."""

    def run(self):
        super().run()
        place = os.path.join(self.build_lib, "lsmkv")
        self.mkpath(place)
        shutil.copy(library(), os.path.join(place, "liblsmkv.so"))


class PlatformWheel(bdist_wheel):
    """For any Python 3, on this platform."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel})
