# SPDX-License-Identifier: MIT
"""Images that are the values of an LMDB file, or in Caffe's Datum there.

Most values lie whole in the file: where LMDB has mapped one into memory says
where.  Each is compared with the file's bytes there; others are copied.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from typing import Any, Iterator, Optional

from .containers import messages, varint
from .rows import add_image
from .table import Table, map_file

_HEADS = (
    b"\xff\xd8\xff",
    b"\x89PNG",
    b"RIFF",
    b"GIF8",
    b"BM",
    b"II*\0",
    b"MM\0*",
    b"P6",
    b"P5",
)
# What some programs note of all samples beside them.
_NOTES = (b"__len__", b"__keys__", b"length", b"num-samples", b"num_samples")


class _Buffer(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def _address(value: Any) -> int:
    """Where the bytes of an object are in memory."""
    b = _Buffer()
    api = ctypes.pythonapi
    api.PyObject_GetBuffer(ctypes.py_object(value), ctypes.byref(b), 0)
    at = b.buf or 0
    api.PyBuffer_Release(ctypes.byref(b))
    return at


def _mappings(path: str) -> list[tuple[int, int, int]]:
    """Where this process has mapped the file: begin, end, and offset there."""
    inode, found = os.stat(path).st_ino, []
    with open("/proc/self/maps") as f:
        for line in f:
            where, _, offset, _, number, *_ = line.split()
            if int(number) == inode:
                begin, end = (int(word, 16) for word in where.split("-"))
                found.append((begin, end, int(offset, 16)))
    return found


class _Places:
    """Where values lie in the file."""

    def __init__(self, path: str) -> None:
        self._mappings = _mappings(path)
        self._data = map_file(path)

    def find(self, value: Any) -> Optional[int]:
        """The offset of a value's bytes; None: they aren't there."""
        at, size = _address(value), len(value)
        for begin, end, offset in self._mappings:
            if begin <= at and at + size <= end:
                place = at - begin + offset
                if self._data[place : place + size] == bytes(value):
                    return place
        return None


def _datum(raw: bytes) -> Optional[tuple[int, int, Optional[int]]]:
    """Where the image is in a Datum, up to where, and its label; None: it is
    no Datum of an encoded image."""
    image, label, encoded = None, None, False
    try:
        for number, kind, begin, end in messages(raw, 0, len(raw)):
            if (number, kind) == (4, 2):
                image = begin, end
            elif (number, kind) == (5, 0):
                label = varint(raw, begin)[0]
            elif (number, kind) == (7, 0):
                encoded = bool(varint(raw, begin)[0])
    except (ValueError, IndexError):
        return None
    if not image or not encoded or not raw[slice(*image)].startswith(_HEADS):
        return None
    return (*image, label)


def _image(key: bytes, value: Any, path: str) -> tuple[Any, dict[str, Any]]:
    """The image in a value, and what the sample has further."""
    more: dict[str, Any] = {}
    try:
        text = key.decode()
        if "\0" not in text:
            more["key"] = text
    except UnicodeDecodeError:
        pass
    raw = bytes(value)
    if raw.startswith(_HEADS):
        return value, more
    datum = _datum(raw)
    if datum is None:
        raise ValueError(
            "%s: the value of %.60r is no image file, nor Caffe's Datum of "
            "one: it begins with %r; values that a program has packed (by "
            "pickle, for example) are served from Python: "
            "tsock.serve(loader, 'NAME')" % (path, key, raw[:8])
        )
    begin, end, label = datum
    if label is not None:
        more["label"] = label
    return value[begin:end], more


def index_lmdb(table: Table, path: str) -> Iterator[float]:
    """The values of an LMDB file, in the order of their keys."""
    try:
        library = importlib.import_module("lmdb")
    except ImportError:
        raise ImportError(
            "LMDB files are read by lmdb: pip install lmdb"
        ) from None
    with library.open(
        path, readonly=True, lock=False, subdir=False, readahead=False
    ) as env, env.begin(buffers=True) as txn:
        places = _Places(path)
        entries = txn.stat()["entries"]
        for done, (key, value) in enumerate(txn.cursor()):
            if bytes(key) in _NOTES:
                continue
            image, more = _image(bytes(key), value, path)
            at = places.find(image)
            if at is None:
                add_image(table, bytes(image), more)
            else:
                table.add(path, at, len(image), **more)
            yield done / entries
