"""The C ABI through ctypes: finds the library, checks its version, declares every function.

The library is looked for in $LSMKV_LIBRARY, then beside this file (where wheels carry it), then
where the system keeps libraries. `CDLL` releases the interpreter lock during a call.
"""

import ctypes
import ctypes.util
import os
from ctypes import Structure, c_char, c_int32, c_size_t, c_void_p

from ._signatures import ABI_VERSION, SIGNATURES


class Err(Structure):
    """The struct lsmkv_err."""

    _fields_ = [("code", c_int32), ("os_errno", c_int32), ("msg", c_char * 248)]


class Buf(Structure):
    """The struct lsmkv_buf."""

    _fields_ = [("data", c_void_p), ("len", c_size_t), ("owner", c_void_p)]


class Slice(Structure):
    """The struct lsmkv_slice."""

    _fields_ = [("data", c_void_p), ("len", c_size_t)]


def _find() -> str:
    named = os.environ.get("LSMKV_LIBRARY")
    if named:
        return named
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), "liblsmkv.so")
    if os.path.exists(bundled):
        return bundled
    found = ctypes.util.find_library("lsmkv")
    if found:
        return found
    raise ImportError(
        "liblsmkv.so was not found: set LSMKV_LIBRARY to its path, or install it "
        "(`make install`) where the system looks for libraries"
    )


def _load() -> ctypes.CDLL:
    path = _find()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError("cannot load %s: %s" % (path, error)) from error
    for name, (result, arguments) in SIGNATURES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(
                "%s is older than this binding: it has no %s" % (path, name)
            ) from None
        function.restype = result
        function.argtypes = arguments
    found = library.lsmkv_abi_version()
    if found != ABI_VERSION:
        raise ImportError(
            "%s has ABI version %d, this binding needs %d: install matching versions"
            % (path, found, ABI_VERSION)
        )
    return library


lib = _load()

# lsmkv_get_into without declared argument types, for a caller that passes bytes and results of
# `from_param`: ctypes then has nothing to convert, and a read costs a third less.
bare_get_into = lib["lsmkv_get_into"]
bare_get_into.restype = c_int32
