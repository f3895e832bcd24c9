# SPDX-License-Identifier: MIT
"""Hugging Face data sets: Arrow files as save_to_disk() and the cache keep
them, and Parquet files as the Hub has them.  By pyarrow.

An image that lies in a file as it is becomes a range of that file; one that is
compressed there goes into the table's own data file.
"""

from __future__ import annotations

import importlib
import json
import os
import struct
from typing import Any, Iterable, Iterator, Optional, Sequence, Union

from .column import Typed
from .places import Place
from .rows import add_images, choose_values
from .table import Path, Table, map_file


def _pyarrow() -> Any:
    try:
        pyarrow = importlib.import_module("pyarrow")
    except ImportError:
        raise ImportError(
            "Arrow and Parquet files are read by pyarrow: pip install pyarrow"
        ) from None
    return pyarrow


def _features(schema: Any) -> dict[str, Any]:
    """What `datasets` has noted of the columns."""
    text = (schema.metadata or {}).get(b"huggingface")
    info = json.loads(text).get("info", {}) if text else {}
    return info.get("features") or {}


def _is_image(kind: Any, pa: Any) -> bool:
    if pa.types.is_struct(kind):
        return {f.name for f in kind} >= {"bytes", "path"}
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _column_values(column: Any, pa: Any) -> list[Any]:
    """The values of a batch's column; integers keep their dtype."""
    kind, values = column.type, column.to_pylist()
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if lists or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    if not pa.types.is_integer(kind):
        return list(values)
    return [None if one is None else Typed(one, str(kind)) for one in values]


def _is_value(kind: Any, pa: Any, depth: int = 0) -> bool:
    """Numbers, text, or lists of numbers?"""
    t = pa.types
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return depth < 3 and _is_value(kind.value_type, pa, depth + 1)
    if t.is_string(kind) or t.is_large_string(kind):
        return not depth
    return bool(
        t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind)
    )


def choose_columns(path: str, kind: str) -> dict[str, Any]:
    """What index_arrow() and index_parquet() are to read of a file, as far as
    its schema says it: the image, the label, and all columns of values."""
    pa = _pyarrow()
    if kind == "parquet":
        schema = importlib.import_module("pyarrow.parquet").read_schema(path)
    else:
        whole = pa.memory_map(path).read_buffer()
        schema = next(iter(_open_arrow(pa.BufferReader(whole), pa))).schema
    images = [f.name for f in schema if _is_image(f.type, pa)]
    if len(images) > 1:
        features = _features(schema)
        told = [n for n in images if n in ("image", "img")] or [
            n for n in images if features.get(n, {}).get("_type") == "Image"
        ]
        images = told or images
    if len(images) > 1:
        raise ValueError(
            "%s has several columns of images: %s; choose one by "
            "tsock.index(..., image=), or several by images=, and give the "
            "table that it writes as root=" % (path, ", ".join(images))
        )
    values = [f.name for f in schema if _is_value(f.type, pa)]
    label = next((n for n in ("label", "labels") if n in values), None)
    return {
        "image": images[0] if images else False,
        "label": label,
        "fields": [name for name in values if name != label],
    }


class _Columns:
    """Which columns of a schema are read, and as what."""

    def __init__(
        self,
        schema: Any,
        image: Union[str, bool, None],
        others: Sequence[str],
        label: Optional[str],
        fields: Iterable[str],
        where: Path,
    ) -> None:
        pa = _pyarrow()
        there = [f.name for f in schema if _is_image(f.type, pa)]
        if image is None and len(there) != 1:
            raise ValueError(
                "%s has the columns %s: which is the image? pass image=, "
                "images= for several, or image=False if samples have none"
                % (where, ", ".join(schema.names))
            )
        self.images = [str(image or there[0]), *others]
        if label is None:
            label = next(
                (n for n in ("label", "labels") if n in schema.names), None
            )
        self.label, self.fields = label, list(fields)
        for name in self.images + self.fields + ([label] if label else []):
            if name not in schema.names:
                raise ValueError(
                    "%s has no column %r; its columns are %s"
                    % (where, name, ", ".join(schema.names))
                )
        feature = _features(schema).get(label or "", {})
        self.classes = feature.get("names")

    def values(self, batch: Any) -> Iterator[dict[str, Any]]:
        """The fields of each row but the images."""
        pa = _pyarrow()
        named = {
            name: _column_values(batch.column(name), pa)
            for name in self.fields
        }
        if self.label:
            named["label"] = _column_values(batch.column(self.label), pa)
        for k in range(batch.num_rows):
            yield {name: of[k] for name, of in named.items()}


def _binary(column: Any, pa: Any) -> tuple[Any, Any]:
    """The bytes of a batch's images, and the paths of those without."""
    if pa.types.is_struct(column.type):
        return column.field("bytes"), column.field("path")
    return column, None


def places(column: Any, base: int, size: int) -> Optional[list[int]]:
    """Offsets in the mapped file of a binary array's values, and the end of
    the last; None: they aren't in it."""
    _, offsets, data = column.buffers()
    if data is None or not base <= data.address <= base + size - data.size:
        return None
    wide = str(column.type).startswith("large")
    n, step = len(column) + 1, 8 if wide else 4
    raw = memoryview(offsets)[column.offset * step :][: n * step]
    starts = struct.unpack("<%d%s" % (n, "q" if wide else "i"), raw)
    return [data.address - base + at for at in starts]


class _Images:
    """A column of images, batch by batch."""

    def __init__(self, name: str, path: str) -> None:
        self.name, self.path = name, path
        self.pixels: Any = None
        self._names: Any = None

    def begin(self, batch: Any, pa: Any) -> None:
        self.pixels, self._names = _binary(batch.column(self.name), pa)

    def place(self, k: int) -> Optional[tuple[int, int]]:
        """Offset and length of row k's in the file; None: it isn't there."""
        raise NotImplementedError

    def find(self, k: int, row: int) -> Any:
        """Where row k's image lies, its bytes, or its path."""
        there = self.pixels[k].is_valid
        place = self.place(k) if there else None
        if place is not None:
            return Place(self.path, *place)
        if there:
            return self.pixels[k].as_py()
        if self._names is not None and self._names[k].is_valid:
            folder = os.path.dirname(self.path)
            return os.path.join(folder, self._names[k].as_py())
        raise ValueError("row %d has no image %r" % (row, self.name))


class _ArrowImages(_Images):
    def __init__(self, name: str, path: str, whole: Any) -> None:
        super().__init__(name, path)
        self._whole = whole
        self._at: Optional[list[int]] = None

    def begin(self, batch: Any, pa: Any) -> None:
        super().begin(batch, pa)
        self._at = places(self.pixels, self._whole.address, self._whole.size)

    def place(self, k: int) -> Optional[tuple[int, int]]:
        at = self._at
        return (at[k], at[k + 1] - at[k]) if at else None

    def done(self, k: int) -> float:
        """How much of the file is read."""
        return self._at[k] / self._whole.size if self._at else 0


def _open_arrow(mapped: Any, pa: Any) -> Any:
    """Batches of an IPC stream, or of an IPC file."""
    try:
        return pa.ipc.open_stream(mapped)
    except pa.ArrowInvalid:
        file = pa.ipc.open_file(mapped)
        return (file.get_batch(i) for i in range(file.num_record_batches))


def _add_values(
    table: Table,
    batches: Iterable[Any],
    path: Path,
    label: Optional[str],
    fields: Iterable[str],
    rows: int = 0,
) -> Iterator[float]:
    """Rows that have no image, of so many if that is known."""
    pa = _pyarrow()
    for batch in batches:
        chosen = choose_values(batch.schema.names, label, fields, path)
        if label:
            feature = _features(batch.schema).get(label, {})
            table.name_classes(feature.get("names"))
        named = {
            to: _column_values(batch.column(name), pa)
            for to, name in chosen.items()
        }
        for k in range(batch.num_rows):
            table.add_values(**{to: of[k] for to, of in named.items()})
            yield len(table) / rows if rows else 0


def _add_images(
    table: Table, images: Sequence[_Images], k: int, values: dict[str, Any]
) -> None:
    """Row k of a batch."""
    row = len(table)
    add_images(table, {im.name: im.find(k, row) for im in images}, values)


def index_arrow(
    table: Table,
    path: str,
    *,
    image: Union[str, bool, None] = None,
    others: Sequence[str] = (),
    label: Optional[str] = None,
    fields: Iterable[str] = (),
) -> Iterator[float]:
    """An Arrow file (an IPC stream, as `datasets` writes them, or IPC file)."""
    pa = _pyarrow()
    fields = list(fields)
    mapped = pa.memory_map(path)
    whole = mapped.read_buffer()
    batches = _open_arrow(pa.BufferReader(whole), pa)
    if image is False:
        yield from _add_values(table, batches, path, label, fields)
        return
    for batch in batches:
        c = _Columns(batch.schema, image, others, label, fields, path)
        table.name_classes(c.classes)
        images = [_ArrowImages(name, path, whole) for name in c.images]
        for column in images:
            column.begin(batch, pa)
        for k, values in enumerate(c.values(batch)):
            _add_images(table, images, k, values)
            yield images[0].done(k)


def _chunk(meta: Any, name: str) -> Optional[tuple[int, int]]:
    """Where a row group's column of images begins and ends, uncompressed."""
    for k in range(meta.num_columns):
        column = meta.column(k)
        if column.path_in_schema in (name, name + ".bytes"):
            if column.compression != "UNCOMPRESSED":
                return None
            begin = column.data_page_offset
            if column.has_dictionary_page:
                begin = min(begin, column.dictionary_page_offset)
            return begin, begin + column.total_compressed_size
    return None


class _ParquetImages(_Images):
    """Of a row group."""

    def __init__(self, name: str, path: str, data: Any, meta: Any) -> None:
        super().__init__(name, path)
        self._data, self._chunk = data, _chunk(meta, name)

    def place(self, k: int) -> Optional[tuple[int, int]]:
        """A plain value has its length before it, and they are in order."""
        if not self._chunk:
            return None
        begin, end = self._chunk
        value: bytes = self.pixels[k].as_py()
        plain = len(value).to_bytes(4, "little") + value
        at = self._data.find(plain, begin, end) if value else -1
        if at < 0:
            return None
        self._chunk = at + len(plain), end
        return at + 4, len(value)


def index_parquet(
    table: Table,
    path: str,
    *,
    image: Union[str, bool, None] = None,
    others: Sequence[str] = (),
    label: Optional[str] = None,
    fields: Iterable[str] = (),
) -> Iterator[float]:
    """A Parquet file, with a column of encoded images if it has any."""
    pa = _pyarrow()
    parquet = importlib.import_module("pyarrow.parquet")
    fields = list(fields)
    file = parquet.ParquetFile(path)
    rows = file.metadata.num_rows
    if image is False:
        batches = file.iter_batches()
        yield from _add_values(table, batches, path, label, fields, rows)
        return
    c = _Columns(file.schema_arrow, image, others, label, fields, path)
    table.name_classes(c.classes)
    data, done = map_file(path), 0
    for group in range(file.num_row_groups):
        meta = file.metadata.row_group(group)
        images = [_ParquetImages(n, path, data, meta) for n in c.images]
        for batch in file.read_row_group(group).to_batches():
            for column in images:
                column.begin(batch, pa)
            for k, values in enumerate(c.values(batch)):
                _add_images(table, images, k, values)
                done += 1
                yield done / rows
