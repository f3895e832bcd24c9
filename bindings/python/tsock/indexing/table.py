# SPDX-License-Identifier: MIT
"""The file of a table: collect rows, then write them."""

from __future__ import annotations

import mmap
import os
import struct
import sys
import zlib
from array import array
from typing import TYPE_CHECKING, Any, BinaryIO, Iterable, Mapping, Optional
from typing import Sequence, Union

from .column import DTYPES, Column, check_name
from .places import MAX_LENGTH, Place, Places

if TYPE_CHECKING:
    from .journal import Journal

MAX_IMAGES = 12  # of a sample
Path = Union[str, "os.PathLike[str]"]

MAGIC, VERSION, ENDIAN = b"tsocktbl", 1, 0x01020304
VALUES, RANGES, TEXT, RAGGED = 1, 2, 3, 4


class _Data:
    """The file beside a table of what is in no file; made when it is needed."""

    def __init__(self, path: str) -> None:
        self._part, self._path = path + ".part", path
        self._file: Optional[BinaryIO] = None

    def add(self, data: Any) -> int:
        """Append the bytes; where they begin."""
        if self._file is None:
            self._file = open(self._part, "wb")
        at = self._file.tell()
        self._file.write(data)
        return at

    def sync(self) -> int:
        """Have the bytes on the disk; how many there are."""
        if self._file is None:
            return 0
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def has(self, end: int) -> bool:
        """Are so many bytes there from an earlier run?"""
        there = os.path.exists(self._part)
        return not end or (there and os.path.getsize(self._part) >= end)

    def go_on_from(self, end: int) -> None:
        """Append behind the first bytes of an earlier run."""
        if end:
            self._file = open(self._part, "r+b")
            self._file.truncate(end)
            self._file.seek(end)

    def finish(self) -> None:
        """It is whole, and gets its name."""
        if self._file is not None:
            _close(self._file)
            os.replace(self._part, self._path)

    def drop(self, keep: bool) -> None:
        if self._file is not None:
            self._file.close()
            if not keep and os.path.exists(self._part):
                os.unlink(self._part)


class Table:
    """Rows that are collected, and written by write().

    add() takes a file with the range of a sample in it, add_bytes() the bytes
    of a sample that is in no file: they go into a file beside the table,
    DST.data.  A field that is a Place is another image of the sample.  Nothing
    is at dst before write() has returned.

    optional: columns that are left out, if they can't be in a table, for the
    reason that left_out has by their names.
    ragged: columns of lists that are ragged even if all are equally long.
    pad: the values that follow those of shorter rows of ragged columns.
    """

    def __init__(self, dst: Path, optional: Iterable[str] = ()) -> None:
        self.dst = os.path.abspath(dst)
        self.optional = frozenset(optional)
        self.ragged: frozenset[str] = frozenset()
        self.pad: Mapping[str, Union[int, float]] = {}
        self.left_out: dict[str, str] = {}
        self.files: dict[str, int] = {}
        self.images: dict[str, Places] = {}  # "image" is the first
        self.rows = 0
        self.columns: dict[str, Column] = {}
        self.keys: Optional[list[bytes]] = None
        self.classes: Optional[list[str]] = None
        self.data = _Data(self.dst + ".data")
        self.journal: Optional[Journal] = None

    def part(self) -> Table:
        """An empty table of rows that absorb() adds to this one."""
        made = Table(self.dst, self.optional)
        made.left_out = dict(self.left_out)
        made.data = self.data
        return made

    def absorb(self, part: Table) -> None:
        """Add the rows of a part behind those here."""
        if not len(part):
            return
        if self.rows and bool(self.images) != bool(part.images):
            raise ValueError("some rows have an image, and others have none")
        if len(self) + len(part) > MAX_LENGTH:
            raise ValueError("a table has at most %d rows" % MAX_LENGTH)
        for name, why in part.left_out.items():
            self._leave_out(name, why)
        self._absorb_columns(part)
        if self.rows and (self.keys is None or part.keys is None):
            self.keys = None
        else:
            self.keys = (self.keys or []) + (part.keys or []) or None
        numbers = [
            self.files.setdefault(path, len(self.files)) for path in part.files
        ]
        for name, places in part.images.items():
            self.images.setdefault(name, Places()).extend(places, numbers)
        self.name_classes(part.classes)
        self.rows += part.rows

    def _absorb_columns(self, part: Table) -> None:
        there = {
            n: c for n, c in part.columns.items() if n not in self.left_out
        }
        if self.rows and (
            there.keys() != self.columns.keys()
            or part.images.keys() != self.images.keys()
        ):
            self._refuse_fields([*part.images, *there])
        for name, column in there.items():
            if not self.rows:
                self.columns[name] = column
                continue
            try:
                self.columns[name].extend(column)
            except ValueError as e:
                if name not in self.optional:
                    raise
                self._leave_out(name, str(e))

    def _leave_out(self, name: str, why: str) -> None:
        self.left_out.setdefault(name, why)
        self.columns.pop(name, None)

    def _refuse_fields(self, fields: Iterable[str]) -> None:
        raise ValueError(
            "row %d has the fields %s, those before %s"
            % (
                len(self),
                sorted(set(fields) - {"image"}),
                sorted({*self.columns, *self.images} - {"image"}),
            )
        )

    def __len__(self) -> int:
        return self.rows

    def add(
        self,
        path: Path,
        offset: int = 0,
        length: int = 0,
        /,
        *,
        key: Optional[str] = None,
        **fields: Any,
    ) -> None:
        """A sample: length bytes of a file from offset on; 0: all of it."""
        places = {"image": Place(os.fspath(path), offset, length)}
        values: dict[str, Any] = {}
        for name, value in fields.items():
            (places if isinstance(value, Place) else values)[name] = value
        if self.rows and not self.images:
            raise ValueError(
                "row %d has an image, those before none" % len(self)
            )
        self._add_row(key, values, places)

    def add_values(self, *, key: Optional[str] = None, **fields: Any) -> None:
        """A sample without an image; tables have these alone or none."""
        if self.images:
            raise ValueError(
                "row %d has no image, those before have one" % len(self)
            )
        self._add_row(key, fields, {})

    def keep(self, image: Any) -> Place:
        """Where an image lies: a path, a part of a file, or bytes, which are
        kept beside the table."""
        if isinstance(image, tuple):
            path, offset, length = image
            if length < 1:
                raise ValueError(
                    "row %d: an image of %d bytes" % (len(self), length)
                )
            return Place(os.path.abspath(path), offset, length)
        if not isinstance(image, (bytes, bytearray, memoryview)):
            return Place(os.path.abspath(image))
        if not len(image):
            raise ValueError("row %d: an image of no bytes" % len(self))
        return Place(self.dst + ".data", self.data.add(image), len(image))

    def _add_row(
        self,
        key: Optional[str],
        fields: dict[str, Any],
        places: dict[str, Place],
    ) -> None:
        row = len(self)
        if row == MAX_LENGTH:
            raise ValueError("a table has at most %d rows" % MAX_LENGTH)
        if self.left_out:
            fields = {
                n: v for n, v in fields.items() if n not in self.left_out
            }
        if row and (
            fields.keys() != self.columns.keys()
            or places.keys() != self.images.keys()
        ):
            self._refuse_fields([*places, *fields])
        for place in places.values():
            place.check(row)
        for name, value in fields.items():
            try:
                if not row:
                    self.columns[name] = Column(name)
                self.columns[name].add(value)
            except ValueError as e:
                if name not in self.optional:
                    raise
                self._leave_out(name, str(e))
        self._add_places(places)
        if key is None or (row and self.keys is None):
            self.keys = None  # unless all have one
        else:
            keys = [] if self.keys is None else self.keys
            keys.append(key.encode("utf-8", "surrogateescape"))
            self.keys = keys
        self.rows = row + 1

    def _add_places(self, places: dict[str, Place]) -> None:
        if not self.images:
            for name in places:
                if name != "image":
                    check_name(name)
                self.images[name] = Places()
        if len(self.images) > MAX_IMAGES:
            raise ValueError(
                "%d images a sample: %d are the most"
                % (len(places), MAX_IMAGES)
            )
        for name, place in places.items():
            self.images[name].add(place, self.files)

    def add_bytes(self, data: Any, /, **fields: Any) -> None:
        """A sample that is an image file's bytes."""
        self.add(*self.keep(data), **fields)

    def fit(self, most_columns: int, most_bytes: int) -> None:
        """Leave out optional columns of longer rows, and those beyond that
        number, of which ragged ones count twice."""
        room = most_columns
        for name, column in list(self.columns.items()):
            if name == "label" or name not in self.optional:
                continue
            size = column.row_bytes()
            if size > most_bytes:
                self._leave_out(name, "its longest row has %d bytes" % size)
                continue
            room -= 1 + column.is_ragged
            if room < 0:
                self._leave_out(
                    name, "a stream has %d fields at most" % most_columns
                )

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

    def write(self, absolute: bool = False) -> None:
        """Write the table: under another name first, so that no reader sees
        half of one.  absolute: the files' paths aren't relative to it."""
        if not len(self):
            raise ValueError("there is no sample to index")
        self.data.finish()
        columns = self._encode(os.path.dirname(self.dst), absolute)
        f = open(self.dst + ".part", "wb")
        _write(f, len(self), columns)
        _close(f)
        os.replace(self.dst + ".part", self.dst)
        if self.journal:
            self.journal.close(keep=False)
            self.journal = None

    def drop(self) -> None:
        """Remove what was written so far, but for the rows of files that are
        done, with which another run goes on."""
        kept = self.journal is not None and self.journal.close(keep=True)
        self.journal = None
        self.data.drop(kept)
        if os.path.exists(self.dst + ".part"):
            os.unlink(self.dst + ".part")

    def _encode(self, folder: str, absolute: bool) -> list[tuple[Any, ...]]:
        """Name, kind, dtype, shape, count and bytes of each column."""
        files, stamps = [], array("q")
        for path in self.files:
            there = os.path.join(folder, path)
            st = os.stat(there)
            name = there if absolute else os.path.relpath(there, folder)
            files.append(os.fsencode(name))
            stamps.extend((st.st_size, st.st_mtime_ns))
        out: list[tuple[Any, ...]] = []
        if self.images:
            out += [
                (name, RANGES, 0, (), len(places), places.encode())
                for name, places in self.images.items()
            ]
            out += [
                ("files", TEXT, 0, (), len(files), _texts(files)),
                ("files.stamp", VALUES, 3, (2,), len(files), _little(stamps)),
            ]
        if self.keys is not None:
            out.append(("key", TEXT, 0, (), len(self), _texts(self.keys)))
        self._name_classes()
        if self.classes is not None:
            names = [name.encode() for name in self.classes]
            out.append(("classes", TEXT, 0, (), len(names), _texts(names)))
        return out + [
            _column(c, c.name in self.ragged, self.pad.get(c.name, 0))
            for c in self.columns.values()
        ]

    def check_pad(self) -> None:
        """Is there a column of lists for each pad, which has its dtype?"""
        for name, value in self.pad.items():
            c = self.columns.get(name)
            if c is None or c.texts is not None or not c.shape:
                raise ValueError(
                    "pad= has a value for %r, which is no column of lists"
                    % name
                )
            c.encode(value)

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


def _column(
    c: Column, ragged: bool, pad: Union[int, float]
) -> tuple[Any, ...]:
    if c.texts is not None:
        return (c.name, TEXT, 0, (), c.count, _texts(c.texts))
    name = c.called()
    dtype, data = DTYPES[name][1], _little(c.values)
    if name == "float16":
        data = struct.pack("<%de" % len(c.values), *c.values)
    if c.is_ragged or (ragged and c.shape):
        item = (c.shape or [0])[1:]
        data = _little(c.starts) + data
        return (c.name, RAGGED, dtype, item, c.count, data, c.encode(pad))
    return (c.name, VALUES, dtype, c.shape, c.count, data)


def _write(f: BinaryIO, rows: int, columns: Iterable[tuple[Any, ...]]) -> None:
    columns = list(columns)
    entries, at = b"", _aligned(64 + 128 * len(columns))
    for name, kind, dtype, shape, count, data, *pad in columns:
        entries += struct.pack(
            "<48s3I4IIQQQ8s16x",
            os.fsencode(name),
            kind,
            dtype,
            len(shape),
            *(list(shape) + [0] * (4 - len(shape))),
            zlib.crc32(data),
            count,
            at,
            len(data),
            b"".join(pad),
        )
        at = _aligned(at + len(data))
    end = at
    head = [MAGIC, VERSION, ENDIAN, rows, end, len(columns), 0]
    crc = zlib.crc32(entries, zlib.crc32(struct.pack("<8sIIQQII24x", *head)))
    head[-1] = crc
    f.write(struct.pack("<8sIIQQII24x", *head) + entries)
    for column in columns:
        data = column[5]
        f.write(bytes(_aligned(f.tell()) - f.tell()))
        f.write(data)
    f.write(bytes(end - f.tell()))


def _aligned(at: int) -> int:
    return (at + 63) // 64 * 64
