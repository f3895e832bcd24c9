# SPDX-License-Identifier: MIT
"""DST.partial: the rows of the files that were indexed before an indexing was
broken off.

A line of JSON says what was asked for.  A record of each file that is done
follows, in order: a line of JSON and the arrays whose lengths it has.  The rows
of a file that has changed since, and all behind it, are indexed again.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from array import array
from typing import Any, BinaryIO, Iterator, Mapping, Sequence

from .column import Column
from .places import Places
from .sources import Shard, stamp
from .table import Table

_VERSION = 2


def _join(texts: Sequence[bytes]) -> bytes:
    return array("Q", map(len, texts)).tobytes() + b"".join(texts)


def _split(raw: bytes, count: int) -> list[bytes]:
    lengths = array("Q", raw[: 8 * count])
    texts, at = [], 8 * count
    for length in lengths:
        texts.append(raw[at : at + length])
        at += length
    return texts


def _pack_column(c: Column) -> tuple[dict[str, Any], list[bytes]]:
    about = {
        "name": c.name,
        "count": c.count,
        "shape": c.shape,
        "dtype": c.dtype,
        "ragged": c.is_ragged,
        "code": c.values.typecode,
        "text": c.texts is not None,
    }
    if c.texts is not None:
        return about, [_join(c.texts), b""]
    return about, [c.values.tobytes(), c.starts.tobytes()]


def _unpack_column(about: Mapping[str, Any], raw: list[bytes]) -> Column:
    c = Column(about["name"])
    c.count, c.shape = about["count"], about["shape"]
    c.dtype, c.is_ragged = about["dtype"], about["ragged"]
    if about["text"]:
        c.texts = _split(raw[0], c.count)
    else:
        c.values = array(about["code"], raw[0])
        c.starts = array("Q", raw[1])
    return c


def _pack(part: Table) -> tuple[dict[str, Any], list[bytes]]:
    blobs = [_join(part.keys or [])]
    for places in part.images.values():
        blobs += [
            a.tobytes() for a in (places.offset, places.length, places.file)
        ]
    columns = []
    for column in part.columns.values():
        about, raw = _pack_column(column)
        columns.append(about)
        blobs += raw
    return {
        "rows": part.rows,
        "files": list(part.files),
        "images": list(part.images),
        "keyed": part.keys is not None,
        "classes": part.classes,
        "left_out": part.left_out,
        "columns": columns,
    }, blobs


def _unpack(about: Mapping[str, Any], blobs: list[bytes], part: Table) -> None:
    part.rows = about["rows"]
    left = iter(blobs)
    part.files = {path: k for k, path in enumerate(about["files"])}
    keys = _split(next(left), part.rows)
    part.keys = keys if about["keyed"] else None
    part.classes, part.left_out = about["classes"], about["left_out"]
    for name in about["images"]:
        places = part.images[name] = Places()
        places.offset = array("Q", next(left))
        places.length = array("I", next(left))
        places.file = array("I", next(left))
    for column in about["columns"]:
        made = _unpack_column(column, [next(left), next(left)])
        part.columns[made.name] = made


def _open_locked(path: str) -> BinaryIO:
    """The file, which no other process writes; made if it isn't there."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        f = open(fd, "r+b")
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Or the process that had it has finished, and removed it.
            if os.path.samestat(os.fstat(f.fileno()), os.stat(path)):
                return f
        except BlockingIOError:
            f.close()
            raise BlockingIOError(
                "another process writes the table that %s belongs to: wait "
                "for its end, or choose another name" % path
            ) from None
        except FileNotFoundError:
            pass
        f.close()


class Journal:
    """asked: what decides the rows; a journal of anything else is begun anew."""

    def __init__(self, table: Table, asked: Mapping[str, Any]) -> None:
        self._path = table.dst + ".partial"
        self._file = _open_locked(self._path)
        self.files = 0  # that are done
        head = json.dumps({"version": _VERSION, **asked}).encode() + b"\n"
        if self._file.readline() != head:
            self._file.seek(0)
            self._file.truncate()
            self._file.write(head)
            self._file.flush()

    def _records(self) -> Iterator[tuple[dict[str, Any], list[bytes]]]:
        while True:
            try:
                about = json.loads(self._file.readline())
                raw = self._file.read(sum(about["blobs"]))
            except (ValueError, KeyError, TypeError):
                return  # the end, or a record that was cut short
            if zlib.crc32(raw) != about["crc"]:
                return
            blobs, at = [], 0
            for length in about["blobs"]:
                blobs.append(raw[at : at + length])
                at += length
            yield about, blobs

    def restore(self, table: Table, shards: Sequence[Shard]) -> int:
        """Add the rows of the first files as far as they are here, and have
        not changed; how many files that are."""
        end, data = self._file.tell(), 0
        for about, blobs in self._records():
            if self.files == len(shards):
                break
            if about["stamp"] != stamp(shards[self.files].path):
                break
            if not table.data.has(about["data"]):
                break
            part = table.part()
            _unpack(about["part"], blobs, part)
            table.absorb(part)
            self.files += 1
            end, data = self._file.tell(), about["data"]
        self._file.seek(end)
        self._file.truncate()
        table.data.go_on_from(data)
        return self.files

    def note(self, shard: Shard, part: Table) -> None:
        """The rows of the next file, which are all there."""
        about, blobs = _pack(part)
        raw = b"".join(blobs)
        record = {
            "stamp": stamp(shard.path),
            "data": part.data.sync(),
            "part": about,
            "blobs": [len(blob) for blob in blobs],
            "crc": zlib.crc32(raw),
        }
        self._file.write(json.dumps(record).encode() + b"\n" + raw)
        self._file.flush()
        self.files += 1

    def close(self, keep: bool) -> bool:
        """Remove it, unless it is to be kept and has rows; was it kept?"""
        keep = keep and self.files > 0
        if not keep:
            os.unlink(self._path)
        self._file.close()
        return keep
