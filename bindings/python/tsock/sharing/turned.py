# SPDX-License-Identifier: MIT
"""Images that EXIF turns: `datasets` turns them as it reads them, and
tsock-producer, as torchvision, doesn't."""

from __future__ import annotations

import io
import logging
import os
import time
from typing import Any

from . import tables
from .datasets import known
from .plan import NotNative, Range, Source

_log = logging.getLogger("tsock")

_ORIENTATION = 0x0112
_HEAD = 1 << 16  # bytes of a file that are read at first
_WORDS = (b"exif", b"eXIf", b"Exif", b"EXIF", b"Orientation", b"adobe.xmp")
_TELL = 5.0  # seconds


def _may_turn(data: Any) -> bool:
    """Has a JPEG EXIF or XMP before its pixels?  Of other files: is there a
    word of them anywhere?"""
    if bytes(data[:2]) != b"\xff\xd8":
        raw = bytes(data)
        return raw[:2] in (b"II", b"MM") or any(w in raw for w in _WORDS)
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in (0xDA, 0xD9):
            return False
        if marker == 0xE1:
            return True
        if marker == 0xFF:
            at += 1
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return True


def _turns(file: Any) -> bool:
    with known("PIL.Image:open")(file) as image:
        return image.getexif().get(_ORIENTATION) in range(2, 9)


def _is_turned(where: Any, files: dict[str, int]) -> bool:
    """files: descriptors of those that have several images."""
    if isinstance(where, str):
        with open(where, "rb") as f:
            head = f.read(_HEAD)
            if head[:2] != b"\xff\xd8":
                head += f.read()
        return _may_turn(head) and _turns(where)
    if isinstance(where, Range):
        if where.path not in files:
            files[where.path] = os.open(where.path, os.O_RDONLY | os.O_CLOEXEC)
        fd = files[where.path]
        head = os.pread(fd, min(_HEAD, where.length), where.offset)
        if head[:2] == b"\xff\xd8" and not _may_turn(head):
            return False
        where = os.pread(fd, where.length, where.offset)
    return _may_turn(where) and _turns(io.BytesIO(where))


def _count(source: Source) -> int:
    assert source.samples
    files: dict[str, int] = {}
    tell, count = time.monotonic() + _TELL, 0
    try:
        for where, _ in source.samples():
            count += _is_turned(where, files)
            if tell and time.monotonic() > tell:
                _log.warning(
                    "reads the heads of the images of %s, once, to see whether "
                    "EXIF turns any",
                    source.what,
                )
                tell = 0
    finally:
        for fd in files.values():
            os.close(fd)
    return count


def refuse(source: Source) -> None:
    """NotNative if some are; what was found is kept in the folder of caches."""
    count = tables.noted(source, "turned", lambda: _count(source))
    if count:
        raise NotNative(
            "has %d images that EXIF turns" % count,
            "images that are stored as they are seen",
        )
