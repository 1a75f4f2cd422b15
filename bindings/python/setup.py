"""Builds the shared library with cargo and bundles it, so that a wheel needs nothing else.

$LSMKV_BUNDLE names a library that was built already. The bundled one is stripped, unless $DEBUG is
set: then it has line tables.
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
# As `make shared` does; the Makefile says why.
BUILD = ["cargo", "rustc", "--profile", "dist", "--lib", "--crate-type", "cdylib"]
OPTIMISE = ["--", "-C", "lto=fat"]
BITCODE = "-Cembed-bitcode=yes"


def build(target, environment):
    """Builds the library below `target` and returns its path."""
    flags = []
    if "RUSTFLAGS" in environment:
        environment["RUSTFLAGS"] += " " + BITCODE
    else:
        flags = ['--config=target."cfg(all())".rustflags=["%s"]' % BITCODE]
    environment["CARGO_TARGET_DIR"] = target
    subprocess.run(BUILD + flags + OPTIMISE, cwd=ROOT, check=True, env=environment)
    return os.path.join(target, "dist", "liblsmkv.so")


def library():
    """The path of the library, which is built unless it is given."""
    given = os.environ.get("LSMKV_BUNDLE")
    if given:
        return given
    if shutil.which("cargo") is None:
        raise SystemExit("lsmkv is built from source: install Rust (https://rustup.rs) first")
    target = os.path.join(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"))
    if not os.environ.get("DEBUG"):
        return build(target, dict(os.environ))
    with_lines = dict(os.environ, CARGO_PROFILE_DIST_DEBUG="line-tables-only")
    return build(os.path.join(target, "with-debug"), with_lines)


def strip(path):
    """Removes symbols, where there is a program that can."""
    program = shutil.which(os.environ.get("STRIP", "strip"))
    if program and not os.environ.get("DEBUG"):
        subprocess.run([program, "--strip-unneeded", path], check=True)


class BuildWithLibrary(build_py):
    """Puts the library beside the modules."""

    def run(self):
        super().run()
        place = os.path.join(self.build_lib, "lsmkv")
        self.mkpath(place)
        bundled = os.path.join(place, "liblsmkv.so")
        shutil.copy(library(), bundled)
        strip(bundled)


class PlatformWheel(bdist_wheel):
    """For any Python 3, on this platform."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel})
