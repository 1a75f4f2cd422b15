"""The C ABI through ctypes: finds the library, checks its version, declares every function.

The library is looked for in $LSMKV_LIBRARY, then beside this file (where wheels carry it), then
where the system keeps libraries. `CDLL` releases the interpreter lock during a call.
"""

import ctypes
import ctypes.util
import os
from ctypes import POINTER, Structure, c_char, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p

ABI_VERSION = 0

OK = 0
NOT_FOUND = 1
DONE = 2
FORKED = -19


class Err(Structure):
    """lsmkv_err."""

    _fields_ = [("code", c_int32), ("os_errno", c_int32), ("msg", c_char * 248)]


class Buf(Structure):
    """lsmkv_buf."""

    _fields_ = [("data", c_void_p), ("len", c_size_t), ("owner", c_void_p)]


_KEY = [c_char_p, c_size_t]
_ERR = [POINTER(Err)]
_TEXT_OUT = POINTER(c_char_p)

# Function -> (result, arguments). A test compares the names with the header.
SIGNATURES = {
    "lsmkv_abi_version": (c_uint32, []),
    "lsmkv_version": (c_char_p, []),
    "lsmkv_options_new": (c_void_p, []),
    "lsmkv_options_free": (None, [c_void_p]),
    "lsmkv_options_set": (c_int32, [c_void_p, c_char_p, c_char_p] + _ERR),
    "lsmkv_options_info": (c_int32, [c_size_t, _TEXT_OUT, _TEXT_OUT, _TEXT_OUT]),
    "lsmkv_open": (c_int32, [c_char_p, c_void_p, POINTER(c_void_p)] + _ERR),
    "lsmkv_close": (c_int32, [c_void_p] + _ERR),
    "lsmkv_buf_release": (None, [POINTER(Buf)]),
    "lsmkv_set": (c_int32, [c_void_p] + _KEY + [c_char_p, c_size_t] + _ERR),
    "lsmkv_get": (c_int32, [c_void_p] + _KEY + [POINTER(Buf)] + _ERR),
    "lsmkv_get_into": (
        c_int32,
        [c_void_p] + _KEY + [c_void_p, c_size_t, POINTER(c_size_t)] + _ERR,
    ),
    "lsmkv_del": (c_int32, [c_void_p] + _KEY + [POINTER(c_int64)] + _ERR),
    "lsmkv_exists": (c_int32, [c_void_p] + _KEY + [POINTER(c_int64)] + _ERR),
    "lsmkv_sync": (c_int32, [c_void_p] + _ERR),
    "lsmkv_flush": (c_int32, [c_void_p] + _ERR),
    "lsmkv_compact": (c_int32, [c_void_p] + _ERR),
    "lsmkv_resume": (c_int32, [c_void_p] + _ERR),
}


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
            raise ImportError("%s is older than this binding: it has no %s" % (path, name)) from None
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
