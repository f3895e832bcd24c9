# SPDX-License-Identifier: MIT
"""Which streams run on this machine, and how they do; asked from outside."""

import os
from collections import namedtuple
from ctypes import byref

from . import _ffi, arguments

Stream = namedtuple("Stream", "name folder")


def streams():
    """The streams that answer to this user: a list of (name, folder)."""
    found = []

    @_ffi.LISTER
    def add(_arg, name, folder):
        found.append(Stream(os.fsdecode(name), os.fsdecode(folder)))

    def ask():
        code = _ffi.lib.tsock_list(add, None)
        return _ffi.failure(code) if code < 0 else None

    failure = _ffi.patiently(ask)
    if failure:
        raise failure
    return found


def _members(struct, skip):
    return {
        name: getattr(struct, name)
        for name, _ in struct._fields_
        if name not in skip
    }


def query(name, timeout=1.0):
    """Statistics of a stream: a dict named as tsock.h's struct tsock_stats.

    ``rows`` has a dict for each of its first readers.  Raises NoProducer when
    nobody answers within timeout seconds.
    """
    stats = _ffi.Stats()

    def ask():
        code = _ffi.lib.tsock_query(
            arguments.stream_name(name), int(timeout * 1000), byref(stats)
        )
        return _ffi.failure(code) if code else None

    failure = _ffi.patiently(ask)
    if failure:
        raise failure
    result = _members(stats, ("size", "reserved", "row", "nrows"))
    result["rows"] = [
        _members(stats.row[i], ())
        for i in range(min(stats.nrows, _ffi.STATS_ROWS))
    ]
    return result


def devices():
    """A line about each GPU that this process can use, or one that says why
    there is none."""
    lines = []

    @_ffi.TELLER
    def add(_arg, line):
        lines.append(line.decode("utf-8", "replace"))

    _ffi.patiently(lambda: _ffi.lib.tsock_devices(add, None))
    return lines
