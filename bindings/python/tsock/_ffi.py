# SPDX-License-Identifier: MIT
"""The C library, loaded once, with every function's types in one table.

tsock.h documents the functions declared here; tests/test_ffi.py compares the
two.  This file finds and checks the library, and passes its log lines to
Python's ``logging``.  It never decides what a call means: that is up to its
callers.
"""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char,
    c_char_p,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

from . import errors

VERSION_MAJOR, VERSION_MINOR = 0, 1
# Before 1.0 each minor version may break the ABI, and has a soname of its own.
SOVERSION = "%d.%d" % (VERSION_MAJOR, VERSION_MINOR)
MAX_DIMS = 4
STATS_ROWS = 32
STATS_WAITS = 8
WAITS_FOR = 256

DTYPES = {"uint8": 1, "float16": 4, "bfloat16": 5, "float32": 6}
LAYOUTS = {"hwc": 0, "chw": 1}
RAW, UNIT, MEAN_STD = 0, 1, 2
JOINS = {"epoch": 0, "segment": 1, "now": 2}
BETWEENS = {None: 0, "hold": 1, "leave": 2}
ORDERS = {"philox": 0, "torch": 1, "sequential": 2}
TRANSPORTS = {None: 0, "vmm": 1, "legacy": 2, "staged": 3}
FIELD_IMAGE = 1
FIELD_TEXT = 2
FIELD_RAGGED = 4
FIELD_RAGGED_LAST = 8
WRITABLE = 1
DROP_LAST = 2
GPU_STORED = 8
EVEN = 16
CONTINUE = 32
RAGGED_DIMS = 8


class Field(Structure):
    _fields_ = [
        ("name", c_char * 32),
        ("dtype", c_uint32),
        ("flags", c_uint32),
        ("ndim", c_uint32),
        ("reserved", c_uint32),
        ("shape", c_uint64 * MAX_DIMS),
    ]


class Sized(Structure):
    """A struct that may grow at its end: its first member is its size."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.size = ctypes.sizeof(self)


class Opts(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("batch_size", c_uint32),
        ("timeout_ms", c_uint32),
        ("device", c_int32),
        ("dtype", c_uint32),
        ("layout", c_uint32),
        ("normalize", c_uint32),
        ("mean", c_float * 3),
        ("std", c_float * 3),
        ("join", c_uint32),
        ("between", c_uint32),
        ("flags", c_uint32),
        ("transport", c_uint32),
        ("rank", c_uint32),
        ("world", c_uint32),
        ("job", c_uint8 * 16),
        ("rejoin_ms", c_uint32),
    ]


class Info(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("nfields", c_uint32),
        ("epoch_len", c_uint64),
        ("dataset_len", c_uint64),
        ("epochs", c_uint64),
        ("segments", c_uint32),
        ("max_batch", c_uint32),
        ("capacity", c_uint32),
        ("join_window", c_uint32),
        ("nclasses", c_uint32),
        ("sequential", c_uint32),
        ("producer_pid", c_uint32),
        ("shard", c_uint32),
        ("shards", c_uint32),
        ("resumable", c_uint32),
        ("shard_ranks", c_uint32),
        ("reserved", c_uint32),
        ("whole_len", c_uint64),
        ("start_epoch", c_uint64),
        ("start", c_uint64),
    ]


class StatsRow(Structure):
    _fields_ = [
        ("pid", c_uint32),
        ("batch_size", c_uint32),
        ("tail", c_uint64),
        ("samples", c_uint64),
        ("wait_ns", c_uint64),
        ("view", c_uint32),
        ("waiting", c_uint32),
        ("transport", c_uint32),
        ("reserved", c_uint32),
    ]


class Wait(Structure):
    _fields_ = [
        ("kind", c_uint32),
        ("pid", c_uint32),
        ("for_pid", c_uint32),
        ("waited_ms", c_uint32),
        ("held_batches", c_uint32),
        ("reserved", c_uint32),
        ("held_samples", c_uint64),
        ("who", c_char * 64),
        ("why", c_char * 192),
    ]


class Stats(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("pid", c_uint32),
        ("epoch_len", c_uint64),
        ("head", c_uint64),
        ("claimed", c_uint64),
        ("limit", c_uint64),
        ("capacity", c_uint64),
        ("produced", c_uint64),
        ("read_bytes", c_uint64),
        ("bad_samples", c_uint64),
        ("memory", c_uint64),
        ("views", c_uint32),
        ("consumers", c_uint32),
        ("nrows", c_uint32),
        ("detached", c_uint32),
        ("row", StatsRow * STATS_ROWS),
        ("nwaits", c_uint32),
        ("reserved", c_uint32),
        ("wait", Wait * STATS_WAITS),
        ("bad_files", c_uint64),
        ("shard", c_uint32),
        ("shard_ranks", c_uint32),
        ("shards", c_uint32),
        ("reserved2", c_uint32),
    ]


class ServeOpts(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("nfields", c_uint32),
        ("fields", POINTER(Field)),
        ("epoch_len", c_uint64),
        ("dataset_len", c_uint64),
        ("epochs", c_uint64),
        ("segment_bounds", POINTER(c_uint64)),
        ("segments", c_uint32),
        ("ring", c_uint32),
        ("join_window", c_uint32),
        ("max_batch", c_uint32),
        ("min_consumers", c_uint32),
        ("sequential", c_uint32),
        ("slow", c_uint32),
        ("slow_ms", c_uint32),
        ("memory", c_uint64),
        ("classes", POINTER(c_char_p)),
        ("nclasses", c_uint32),
        ("fanout", c_uint32),
        ("gpu_transport", c_uint32),
        ("resumable", c_uint32),
        ("gpu_memory", c_uint64),
        ("shard", c_uint32),
        ("shards", c_uint32),
        ("identity", c_char_p),
        ("first_epoch", c_uint64),
        ("min_wait_ms", c_uint32),
        ("commit_views", c_uint32),
        ("bad_files", c_uint64),
        ("table", c_void_p),
        ("table_arg", c_void_p),
        ("shard_ranks", c_uint32),
        ("least_batch", c_uint32),
        ("whole_len", c_uint64),
        ("start_epoch", c_uint64),
        ("start", c_uint64),
        ("ring_bytes", c_uint64),
    ]


class TableInfo(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("kind", c_uint32),
        ("count", c_uint64),
        ("bytes", c_uint64),
        ("data", c_void_p),
        ("start", c_void_p),
        ("field", Field),
        ("folder", c_void_p),
        ("folders", c_uint64),
    ]


class ServeTable(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("kind", c_uint32),
        ("count", c_uint64),
        ("bytes", c_uint64),
        ("text", c_uint32),
        ("fd", c_int32),
        ("length", c_uint64),
        ("data_at", c_uint64),
        ("start_at", c_uint64),
        ("data", c_void_p),
        ("start", POINTER(c_uint64)),
        ("field", Field),
        ("folders_at", c_uint64),
        ("folders", c_uint64),
    ]


class Geometry(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("reserved", c_uint32),
        ("capacity", c_uint64),
        ("join_window", c_uint64),
        ("max_batch", c_uint64),
        ("ring_bytes", c_uint64),
        ("f32_bytes", c_uint64),
        ("f16_bytes", c_uint64),
    ]


class OrderOpts(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("kind", c_uint32),
        ("seed", c_uint64),
        ("count", c_uint64),
        ("segments", c_uint32),
        ("shard", c_uint32),
        ("shards", c_uint32),
        ("repeat", c_uint32),
        ("limit", c_uint64),
        ("shard_ranks", c_uint32),
        ("reserved", c_uint32),
        ("start_epoch", c_uint64),
        ("start", c_uint64),
    ]


class PartOpts(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("shard", c_uint32),
        ("shard_ranks", c_uint32),
        ("shards", c_uint32),
        ("whole_len", c_uint64),
        ("start_epoch", c_uint64),
        ("start", c_uint64),
    ]


class RankOpts(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("rank", c_uint32),
        ("world", c_uint32),
        ("batch_size", c_uint32),
        ("flags", c_uint32),
        ("sequential", c_uint32),
        ("padding", c_uint64),
    ]


# release(arg); "any thread" takes the interpreter's lock for it.
RELEASE = CFUNCTYPE(None, c_void_p)


class GpuSamples(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("device", c_uint32),
        ("stream", c_void_p),
        ("data", POINTER(c_void_p)),
        ("release", RELEASE),
        ("arg", c_void_p),
    ]


class RaggedArray(Structure):
    _fields_ = [
        ("dtype", c_uint32),
        ("ndim", c_uint32),
        ("shape", c_uint64 * RAGGED_DIMS),
        ("bytes", c_uint64),
        ("data", c_void_p),
    ]


# By the C name, for the test that compares sizes.
STRUCTS = {
    "tsock_field": Field,
    "tsock_opts": Opts,
    "tsock_info": Info,
    "tsock_stats_row": StatsRow,
    "tsock_wait": Wait,
    "tsock_stats": Stats,
    "tsock_serve_opts": ServeOpts,
    "tsock_gpu_samples": GpuSamples,
    "tsock_geometry": Geometry,
    "tsock_order_opts": OrderOpts,
    "tsock_rank_opts": RankOpts,
    "tsock_part_opts": PartOpts,
    "tsock_ragged_array": RaggedArray,
    "tsock_table_info": TableInfo,
    "tsock_serve_table": ServeTable,
}

LOGGER = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
LISTER = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
TELLER = CFUNCTYPE(None, c_void_p, c_char_p)

# A tsock *, tsock_batch * or tsock_server *: opaque, so void * will do.
_t = _b = _s = c_void_p

# name: (result, arguments).  None is void.
TABLE = {
    "tsock_abi_version": (c_uint32, []),
    "tsock_version_string": (c_char_p, []),
    "tsock_errmsg": (c_char_p, []),
    "tsock_strerror": (c_char_p, [c_int]),
    "tsock_set_logger": (None, [LOGGER, c_void_p]),
    "tsock_dtype_size": (c_size_t, [c_uint32]),
    "tsock_open": (c_int, [c_char_p, POINTER(Opts), POINTER(_t)]),
    "tsock_set_rank": (c_int, [_t, c_uint32, c_uint32, c_void_p]),
    "tsock_get_info": (c_int, [_t, POINTER(Info)]),
    "tsock_get_field": (c_int, [_t, c_uint, POINTER(Field)]),
    "tsock_class_name": (c_char_p, [_t, c_uint32]),
    "tsock_identity": (c_char_p, [_t]),
    "tsock_begin_timed": (c_int, [_t, c_int]),
    "tsock_begin": (c_int, [_t]),
    "tsock_begin_from": (c_int, [_t, c_uint64, c_int]),
    "tsock_rewind": (None, [_t]),
    "tsock_skip": (c_int, [_t, c_uint64]),
    "tsock_position": (c_int, [_t, POINTER(c_uint64), POINTER(c_uint64)]),
    "tsock_lost": (c_int, [_t]),
    "tsock_waits_for": (c_int, [_t, c_int, c_void_p, c_size_t]),
    "tsock_missed": (c_uint64, [_t]),
    "tsock_warning": (c_char_p, [_t, c_int, POINTER(c_uint32)]),
    "tsock_resume": (c_int, [_t, c_uint64, c_uint64, c_int]),
    "tsock_next": (c_int, [_t, c_int, POINTER(_b)]),
    "tsock_batch_count": (c_uint64, [_b]),
    "tsock_batch_seq": (c_uint64, [_b]),
    "tsock_batch_epoch": (c_uint64, [_b]),
    "tsock_batch_data": (c_void_p, [_b, c_uint]),
    "tsock_batch_data_mut": (c_void_p, [_b, c_uint]),
    "tsock_batch_dlpack": (c_int, [_b, c_uint, c_int, POINTER(c_void_p)]),
    "tsock_batch_use": (c_int, [_b, c_void_p]),
    "tsock_batch_convert": (c_int, [_b, c_uint, c_void_p, c_void_p]),
    "tsock_transport": (c_int, [_t]),
    "tsock_batch_release": (None, [_b]),
    "tsock_epoch": (c_uint64, [_t]),
    "tsock_epoch_batches": (c_uint64, [_t]),
    "tsock_leave": (None, [_t]),
    "tsock_leave_timed": (c_int, [_t, c_int]),
    "tsock_close": (None, [_t]),
    "tsock_query": (c_int, [c_char_p, c_int, POINTER(Stats)]),
    "tsock_stop": (c_int, [c_char_p, c_int, c_int]),
    "tsock_stopped": (c_int, [c_char_p, c_int64]),
    "tsock_list": (c_int, [LISTER, c_void_p]),
    "tsock_devices": (c_int, [TELLER, c_void_p]),
    "tsock_order_len": (c_uint64, [POINTER(OrderOpts)]),
    "tsock_order": (
        c_int,
        [POINTER(OrderOpts), c_uint64, POINTER(c_uint64), c_uint64],
    ),
    "tsock_order_at": (
        c_int,
        [
            POINTER(OrderOpts),
            c_uint64,
            c_uint64,
            c_uint64,
            POINTER(c_uint64),
            c_uint64,
        ],
    ),
    "tsock_rank_next": (
        c_int,
        [POINTER(RankOpts), c_uint64, POINTER(c_uint64), POINTER(c_uint64)],
    ),
    "tsock_rank_batches": (c_uint64, [POINTER(RankOpts), c_uint64]),
    "tsock_part_len": (c_uint64, [POINTER(PartOpts)]),
    "tsock_part_padding": (c_uint64, [POINTER(PartOpts), c_uint64]),
    "tsock_part_last_row": (c_uint64, [POINTER(PartOpts), c_uint64]),
    "tsock_part_position": (
        c_int,
        [POINTER(PartOpts), c_uint64, c_uint64, POINTER(c_uint64)],
    ),
    "tsock_part_samples": (
        c_int,
        [POINTER(PartOpts), c_uint64, c_uint64, POINTER(c_uint64)],
    ),
    "tsock_ragged_bytes": (
        c_uint64,
        [c_char_p, POINTER(RaggedArray), c_uint32],
    ),
    "tsock_ragged_write": (
        c_int,
        [c_void_p, c_uint64, c_char_p, POINTER(RaggedArray), c_uint32],
    ),
    "tsock_ragged_read": (
        c_int,
        [c_void_p, c_uint64, c_char_p, POINTER(RaggedArray), c_uint32],
    ),
    "tsock_ragged_nest": (
        c_int,
        [
            c_void_p,
            c_uint64,
            POINTER(c_void_p),
            POINTER(c_uint32),
            POINTER(c_uint32),
        ],
    ),
    "tsock_table_open": (
        c_int,
        [c_char_p, c_char_p, c_uint32, c_int, POINTER(c_void_p)],
    ),
    "tsock_table_get_info": (c_int, [c_void_p, POINTER(TableInfo)]),
    "tsock_table_text": (c_char_p, [c_void_p, c_uint64, POINTER(c_size_t)]),
    "tsock_table_close": (None, [c_void_p]),
    "tsock_serve_geometry": (c_int, [POINTER(ServeOpts), POINTER(Geometry)]),
    "tsock_serve_open": (c_int, [c_char_p, POINTER(ServeOpts), POINTER(_s)]),
    "tsock_serve_claim": (c_int, [_s, c_uint, c_int, POINTER(c_uint64)]),
    "tsock_serve_slot": (c_void_p, [_s, c_uint, c_uint64]),
    "tsock_serve_commit": (None, [_s, c_uint64, c_uint]),
    "tsock_serve_commit_gpu": (
        c_int,
        [_s, c_uint64, c_uint, POINTER(GpuSamples)],
    ),
    "tsock_serve_fail": (None, [_s, c_char_p]),
    "tsock_serve_count": (None, [_s, c_uint64, c_uint64]),
    "tsock_serve_stopped": (c_int, [_s]),
    "tsock_serve_doing": (None, [_s, c_char_p]),
    "tsock_serve_bad_files": (None, [_s, c_uint64]),
    "tsock_serve_warn": (c_int, [_s, c_uint32, c_char_p]),
    "tsock_serve_stats": (c_int, [_s, POINTER(Stats)]),
    "tsock_serve_connected": (c_int, [_s]),
    "tsock_serve_end_after": (c_int64, [_s, c_uint64]),
    "tsock_serve_drained": (c_int, [_s]),
    "tsock_serve_stop": (None, [_s]),
    "tsock_serve_close": (None, [_s]),
}


def candidates() -> list[str]:
    """Where the library is looked for, in order."""
    own = os.environ.get("LIBTSOCK_PATH")
    if own:
        return [own]
    soname = "libtsock.so." + SOVERSION
    here = os.path.dirname(os.path.abspath(__file__))
    checkout = os.path.join(here, "..", "..", "..", "build", "lib", soname)
    return [
        os.path.join(here, "_lib", soname),
        os.path.normpath(checkout),
        soname,
    ]


def _load() -> tuple[str, ctypes.CDLL]:
    tried = []
    for path in candidates():
        # A name without a slash is the system's own search.
        if "/" in path and not os.path.exists(path):
            tried.append("%s: no such file" % path)
            continue
        try:
            return path, ctypes.CDLL(path)  # CDLL, not PyDLL: lets go the GIL
        except OSError as e:
            tried.append("%s: %s" % (path, e))
    raise ImportError(
        "can't load libtsock; build it with `make` in a checkout, install it, "
        "or set LIBTSOCK_PATH to it.  Tried:\n  " + "\n  ".join(tried)
    )


def _declare(path: str, lib: ctypes.CDLL) -> None:
    for name, (restype, argtypes) in TABLE.items():
        try:
            function = getattr(lib, name)
        except AttributeError:
            raise ImportError(
                "%s has no %s: it is another version than this package"
                % (path, name)
            ) from None
        function.restype = restype
        function.argtypes = argtypes
    version = lib.tsock_version_string().decode()
    if version.split(".")[:2] != SOVERSION.split("."):
        raise ImportError(
            "%s is libtsock %s, and this package is for version %s: "
            "install the two together" % (path, version, SOVERSION)
        )


path, lib = _load()
_declare(path, lib)

# ---- log lines -----------------------------------------------------------

_log = logging.getLogger("tsock")
_LEVELS = {
    0: logging.ERROR,
    1: logging.WARNING,
    2: logging.INFO,
    3: logging.DEBUG,
}
interrupted = False  # Ctrl-C came while a log line was written


def level_of(level: int, text: str) -> int:
    """Python's level of a line.

    A line that says what a script waits for has to be seen without any set-up,
    and logging's handler of last resort, which prints to stderr when nothing is
    configured, begins at WARNING.
    """
    if text.startswith("waiting for producer"):
        return logging.WARNING
    return _LEVELS.get(level, logging.INFO)


def _line(_arg: Any, level: int, line: bytes) -> None:
    global interrupted
    try:
        text = line.decode("utf-8", "replace")
        _log.log(level_of(level, text), "%s", text)
    except KeyboardInterrupt:
        interrupted = True  # ctypes would swallow it: raised after the call
    except Exception:  # noqa: BLE001 - C can't take it
        pass


_on_line = LOGGER(_line)


def check_interrupt() -> None:
    """Raise the Ctrl-C that came inside a log line."""
    global interrupted
    if interrupted:
        interrupted = False
        raise KeyboardInterrupt


lib.tsock_set_logger(_on_line, None)
# A thread of the library must not call into an interpreter that is going.
atexit.register(lib.tsock_set_logger, LOGGER(), None)


# ---- calls ---------------------------------------------------------------


def failure(code: int) -> errors.Error:
    """The exception for a code that a call on this thread just returned."""
    return errors.from_code(
        code, lib.tsock_errmsg().decode("utf-8", "replace")
    )
