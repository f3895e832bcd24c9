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
from typing import Any, Iterable, Iterator, Optional

from .rows import add_image
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


class _Columns:
    """Which columns of a schema are read, and as what."""

    def __init__(
        self,
        schema: Any,
        image: Optional[str],
        label: Optional[str],
        fields: Iterable[str],
        where: Path,
    ) -> None:
        pa = _pyarrow()
        there = [f.name for f in schema if _is_image(f.type, pa)]
        if image is None and len(there) != 1:
            raise ValueError(
                "%s has the columns %s: which is the image? pass image="
                % (where, ", ".join(schema.names))
            )
        self.image = there[0] if image is None else image
        if label is None:
            label = next(
                (n for n in ("label", "labels") if n in schema.names), None
            )
        self.label, self.fields = label, list(fields)
        for name in [self.image] + self.fields + ([label] if label else []):
            if name not in schema.names:
                raise ValueError(
                    "%s has no column %r; its columns are %s"
                    % (where, name, ", ".join(schema.names))
                )
        feature = _features(schema).get(label or "", {})
        self.classes = feature.get("names")

    def values(self, batch: Any) -> Iterator[dict[str, Any]]:
        """The fields of each row but the image."""
        named = {name: batch.column(name).to_pylist() for name in self.fields}
        if self.label:
            named["label"] = batch.column(self.label).to_pylist()
        for k in range(batch.num_rows):
            yield {name: of[k] for name, of in named.items()}


def _binary(column: Any, pa: Any) -> tuple[Any, Any]:
    """The bytes of a batch's images, and the paths of those without."""
    if pa.types.is_struct(column.type):
        return column.field("bytes"), column.field("path")
    return column, None


def _places(column: Any, base: int, size: int) -> Optional[list[int]]:
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


def _add_row(
    table: Table, image: Any, path: Any, folder: str, values: dict[str, Any]
) -> None:
    if image.is_valid:
        add_image(table, image.as_py(), values)
    elif path is not None and path.is_valid:
        add_image(table, os.path.join(folder, path.as_py()), values)
    else:
        raise ValueError("row %d has no image" % len(table))


def _open_arrow(mapped: Any, pa: Any) -> Any:
    """Batches of an IPC stream, or of an IPC file."""
    try:
        return pa.ipc.open_stream(mapped)
    except pa.ArrowInvalid:
        file = pa.ipc.open_file(mapped)
        return (file.get_batch(i) for i in range(file.num_record_batches))


def index_arrow(
    table: Table,
    paths: Iterable[Path],
    *,
    image: Optional[str] = None,
    label: Optional[str] = None,
    fields: Iterable[str] = (),
) -> Iterator[None]:
    """Arrow files (IPC streams, as `datasets` writes them, or IPC files)."""
    pa = _pyarrow()
    fields = list(fields)
    for path in paths:
        mapped = pa.memory_map(os.fspath(path))
        whole = mapped.read_buffer()
        for batch in _open_arrow(pa.BufferReader(whole), pa):
            c = _Columns(batch.schema, image, label, fields, path)
            table.name_classes(c.classes)
            pixels, names = _binary(batch.column(c.image), pa)
            at = _places(pixels, whole.address, whole.size)
            for k, values in enumerate(c.values(batch)):
                if at and pixels[k].is_valid:
                    table.add(path, at[k], at[k + 1] - at[k], **values)
                else:
                    name = names[k] if names is not None else None
                    _add_row(
                        table, pixels[k], name, os.path.dirname(path), values
                    )
                yield


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


def _find(data: Any, value: bytes, at: int, end: int) -> int:
    """Where a plain value is, whose length is before it; -1: nowhere."""
    found = data.find(len(value).to_bytes(4, "little") + value, at, end)
    return found + 4 if found >= 0 else -1


def index_parquet(
    table: Table,
    paths: Iterable[Path],
    *,
    image: Optional[str] = None,
    label: Optional[str] = None,
    fields: Iterable[str] = (),
) -> Iterator[None]:
    """Parquet files with a column of encoded images."""
    pa = _pyarrow()
    parquet = importlib.import_module("pyarrow.parquet")
    fields = list(fields)
    for path in paths:
        file = parquet.ParquetFile(path)
        c = _Columns(file.schema_arrow, image, label, fields, path)
        table.name_classes(c.classes)
        data = map_file(path)
        for group in range(file.num_row_groups):
            chunk = _chunk(file.metadata.row_group(group), c.image)
            for batch in file.read_row_group(group).to_batches():
                pixels, names = _binary(batch.column(c.image), pa)
                for k, values in enumerate(c.values(batch)):
                    value: bytes = (chunk and pixels[k].as_py()) or b""
                    at = _find(data, value, *chunk) if chunk and value else -1
                    if chunk and at >= 0:
                        chunk = at + len(value), chunk[1]
                        table.add(path, at, len(value), **values)
                    else:
                        name = names[k] if names is not None else None
                        _add_row(
                            table,
                            pixels[k],
                            name,
                            os.path.dirname(path),
                            values,
                        )
                    yield
