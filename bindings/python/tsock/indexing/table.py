# SPDX-License-Identifier: MIT
"""The file of a table: collect rows, then write them."""

from __future__ import annotations

import mmap
import os
import struct
import sys
import zlib
from array import array
from typing import Any, BinaryIO, Iterable, Optional, Sequence, Union

MAGIC, VERSION, ENDIAN = b"tsocktbl", 1, 0x01020304
VALUES, RANGES, TEXT = 1, 2, 3
# Their numbers in tsock/common.h, and the letters of arrays.
DTYPES = {"q": 3, "f": 6}
RESERVED = "image files files.stamp classes key index box weight draws".split()
MAX_NAME = 31  # bytes of a field's name
MAX_LENGTH = 0xFFFFFFFF

Path = Union[str, "os.PathLike[str]"]


def _letter(value: Any) -> str:
    """Of an array that holds such numbers: bool and int, else float."""
    return "f" if isinstance(value, float) else "q"


def _numbers(value: Any) -> Optional[list[Any]]:
    """The numbers of a sequence or an array; None: it is neither."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return list(value)
    return None


def _flatten(value: Any, shape: list[int], depth: int = 0) -> list[Any]:
    numbers = _numbers(value)
    if numbers is None:
        return [value]
    if depth == len(shape):
        shape.append(len(numbers))
    if shape[depth] != len(numbers):
        raise ValueError("is of several shapes")
    flat = []
    for one in numbers:
        flat += _flatten(one, shape, depth + 1)
    return flat


class Column:
    """The values of a field: numbers of one shape, or text."""

    def __init__(self, name: str) -> None:
        if not name or len(os.fsencode(name)) > MAX_NAME:
            raise ValueError(
                "a column can't be called %r: a name has 1 to %d bytes"
                % (name, MAX_NAME)
            )
        if name in RESERVED:
            raise ValueError(
                "a column can't be called %r: streams have a field, or tables "
                "a column, of that name" % name
            )
        self.name = name
        self.count = 0
        self.texts: Optional[list[bytes]] = None
        self.shape: Optional[list[int]] = None
        self.values: array[Any] = array("q")

    def _wrong(self, what: str) -> ValueError:
        return ValueError(
            "column %r, row %d: the value %s" % (self.name, self.count, what)
        )

    def add(self, value: Any) -> None:
        if hasattr(value, "item") and not getattr(value, "shape", ()):
            value = value.item()
        if isinstance(value, str):
            self._add_text(value)
        else:
            self._add_numbers(value)
        self.count += 1

    def _add_text(self, value: str) -> None:
        if self.texts is None:
            if self.count:
                raise self._wrong("is a text, those before are numbers")
            self.texts = []
        if "\0" in value:
            raise self._wrong("has a zero in it")
        self.texts.append(value.encode("utf-8", "surrogateescape"))

    def _add_numbers(self, value: Any) -> None:
        if self.texts is not None:
            raise self._wrong("is no text, as those before are")
        shape: list[int] = []
        try:
            flat = _flatten(value, shape)
        except ValueError as e:
            raise self._wrong(str(e)) from None
        if not all(isinstance(one, (bool, int, float)) for one in flat):
            raise self._wrong(
                "is neither a number nor text nor an array of numbers: %.60r"
                % (value,)
            )
        if self.shape is None:
            self.shape = shape
            if len(shape) > 4 or 0 in shape:
                raise self._wrong("has the shape %s" % (shape,))
        if shape != self.shape:
            raise self._wrong(
                "has the shape %s, those before %s" % (shape, self.shape)
            )
        if self.values.typecode == "q" and any(
            isinstance(one, float) for one in flat
        ):
            self.values = array("f", self.values)
        try:
            self.values.extend(flat)
        except OverflowError:
            raise self._wrong("doesn't fit 64 bits") from None


class Table:
    """Rows that are collected, and written by write().

    add() takes a file with the range of a sample in it, add_bytes() the bytes
    of a sample that is in no file: they go into a file beside the table,
    DST.data.  Nothing is at dst before write() has returned.
    """

    def __init__(self, dst: Path) -> None:
        self.dst = os.path.abspath(dst)
        self.files: dict[str, int] = {}
        self.offset, self.length = array("Q"), array("I")
        self.file = array("I")
        self.columns: dict[str, Column] = {}
        self.keys: Optional[list[bytes]] = None
        self.classes: Optional[list[str]] = None
        self._data: Optional[BinaryIO] = None

    def __len__(self) -> int:
        return len(self.file)

    def add(
        self,
        path: Path,
        offset: int = 0,
        length: int = 0,
        *,
        key: Optional[str] = None,
        **fields: Any,
    ) -> None:
        """A sample: length bytes of a file from offset on; 0: all of it."""
        row = len(self)
        if row == MAX_LENGTH:
            raise ValueError("a table has at most %d rows" % MAX_LENGTH)
        if not 0 <= length <= MAX_LENGTH or (offset and not length):
            raise ValueError(
                "row %d: %d bytes at %d of %s; a sample has 1 byte to 4 GiB"
                % (row, length, offset, path)
            )
        if row and fields.keys() != self.columns.keys():
            raise ValueError(
                "row %d has the fields %s, those before %s"
                % (row, sorted(fields), sorted(self.columns))
            )
        for name, value in fields.items():
            if not row:
                self.columns[name] = Column(name)
            self.columns[name].add(value)
        if key is None or (row and self.keys is None):
            self.keys = None  # unless all have one
        else:
            keys = [] if self.keys is None else self.keys
            keys.append(key.encode("utf-8", "surrogateescape"))
            self.keys = keys
        place = self.files.setdefault(os.fspath(path), len(self.files))
        self.file.append(place)
        self.offset.append(offset)
        self.length.append(length)

    def add_bytes(self, data: Any, **fields: Any) -> None:
        """A sample that is an image file's bytes."""
        if not len(data):
            raise ValueError("row %d: an image of no bytes" % len(self))
        if self._data is None:
            self._data = open(self.dst + ".data.part", "wb")
        at = self._data.tell()
        self._data.write(data)
        self.add(self.dst + ".data", at, self._data.tell() - at, **fields)

    def name_classes(self, names: Optional[Sequence[str]]) -> None:
        """The classes that labels are numbers of, or names."""
        if names is None:
            return
        if self.classes is not None and self.classes != list(names):
            raise ValueError(
                "the files have different classes: %.100r and %.100r"
                % (self.classes, list(names))
            )
        self.classes = list(names)

    def write(self) -> None:
        """Write the table: under another name first, so that no reader sees
        half of one."""
        if not len(self):
            raise ValueError("there is no sample to index")
        if self._data is not None:
            _close(self._data)
            os.replace(self.dst + ".data.part", self.dst + ".data")
        columns = self._encode(os.path.dirname(self.dst))
        f = open(self.dst + ".part", "wb")
        _write(f, len(self), columns)
        _close(f)
        os.replace(self.dst + ".part", self.dst)

    def drop(self) -> None:
        """Remove what was written so far."""
        if self._data is not None:
            self._data.close()
        for name in (".data.part", ".part"):
            if os.path.exists(self.dst + name):
                os.unlink(self.dst + name)

    def _encode(self, folder: str) -> list[tuple[Any, ...]]:
        """Name, kind, dtype, shape, count and bytes of each column."""
        ranges = bytearray()
        for row in zip(self.offset, self.length, self.file):
            ranges += struct.pack("<QII", *row)
        files, stamps = [], array("q")
        for path in self.files:
            there = os.path.join(folder, path)
            st = os.stat(there)
            files.append(os.fsencode(os.path.relpath(there, folder)))
            stamps.extend((st.st_size, st.st_mtime_ns))
        out = [
            ("image", RANGES, 0, (), len(self), bytes(ranges)),
            ("files", TEXT, 0, (), len(files), _texts(files)),
            ("files.stamp", VALUES, 3, (2,), len(files), _little(stamps)),
        ]
        if self.keys is not None:
            out.append(("key", TEXT, 0, (), len(self), _texts(self.keys)))
        self._name_classes()
        if self.classes is not None:
            names = [name.encode() for name in self.classes]
            out.append(("classes", TEXT, 0, (), len(names), _texts(names)))
        return out + [_column(c) for c in self.columns.values()]

    def _name_classes(self) -> None:
        """Labels of text are classes, numbered in the order of their names."""
        label = self.columns.get("label")
        if label is None or label.texts is None:
            if label is None or label.shape or label.values.typecode != "q":
                self.classes = None
            return
        given = self.classes
        texts = [
            text.decode("utf-8", "surrogateescape") for text in label.texts
        ]
        names = sorted(set(texts)) if given is None else list(given)
        place = {name: i for i, name in enumerate(names)}
        for row, text in enumerate(texts):
            if text not in place:
                raise ValueError(
                    "row %d has the label %r, which is none of the classes"
                    % (row, text)
                )
        label.values = array("q", [place[text] for text in texts])
        label.texts, label.shape = None, []
        self.classes = names


def map_file(path: Path) -> mmap.mmap:
    """The bytes of a file that samples are found in."""
    if not os.path.getsize(path):
        raise ValueError("%s is empty" % path)
    with open(path, "rb") as f:
        return mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)


def _close(f: BinaryIO) -> None:
    f.flush()
    os.fsync(f.fileno())
    f.close()


def _little(values: "array[Any]") -> bytes:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()


def _texts(texts: Sequence[bytes]) -> bytes:
    """Where each begins and the last one ends, then the texts, each with a
    zero behind it."""
    at = array("Q", [0])
    for text in texts:
        at.append(at[-1] + len(text) + 1)
    return _little(at) + b"".join(text + b"\0" for text in texts)


def _column(c: Column) -> tuple[Any, ...]:
    if c.texts is not None:
        return (c.name, TEXT, 0, (), c.count, _texts(c.texts))
    dtype = DTYPES[c.values.typecode]
    return (c.name, VALUES, dtype, c.shape, c.count, _little(c.values))


def _write(f: BinaryIO, rows: int, columns: Iterable[tuple[Any, ...]]) -> None:
    columns = list(columns)
    entries, at = b"", _aligned(64 + 128 * len(columns))
    for name, kind, dtype, shape, count, data in columns:
        entries += struct.pack(
            "<48s3I4IIQQQ24x",
            os.fsencode(name),
            kind,
            dtype,
            len(shape),
            *(list(shape) + [0] * (4 - len(shape))),
            zlib.crc32(data),
            count,
            at,
            len(data),
        )
        at = _aligned(at + len(data))
    end = at
    head = [MAGIC, VERSION, ENDIAN, rows, end, len(columns), 0]
    crc = zlib.crc32(entries, zlib.crc32(struct.pack("<8sIIQQII24x", *head)))
    head[-1] = crc
    f.write(struct.pack("<8sIIQQII24x", *head) + entries)
    for *_, data in columns:
        f.write(bytes(_aligned(f.tell()) - f.tell()))
        f.write(data)
    f.write(bytes(end - f.tell()))


def _aligned(at: int) -> int:
    return (at + 63) // 64 * 64
