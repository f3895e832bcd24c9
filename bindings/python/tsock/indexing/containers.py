# SPDX-License-Identifier: MIT
"""Samples in files of MosaicML's Streaming (MDS) and in TFRecord files."""

from __future__ import annotations

import json
import os
import struct
from typing import Any, Iterable, Iterator, Optional, Sequence

from .places import Place
from .table import Path, Table, map_file
from .unpack import Say, unpack

# ---- MDS ----

_MDS_IMAGES = ("jpeg", "jpegarray", "png", "bytes", "pil")
_MDS_NUMBERS = {
    "int": "q",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "float32": "f",
    "float64": "d",
}


def _mds_value(encoding: str, raw: bytes) -> Any:
    if encoding == "str":
        return raw.decode()
    return struct.unpack("<" + _MDS_NUMBERS[encoding], raw)[0]


def _mds_sample(
    shard: dict[str, Any], data: Any, at: int
) -> Iterator[tuple[str, str, int, int]]:
    """Name, encoding, offset and length of each column of a sample."""
    sizes = list(shard["column_sizes"])
    for k, size in enumerate(sizes):
        if size is None:
            (sizes[k],) = struct.unpack_from("<I", data, at)
            at += 4
    for name, encoding, size in zip(
        shard["column_names"], shard["column_encodings"], sizes
    ):
        yield name, encoding, at, size
        at += size


def mds_shards(
    source: str, unpacked: str, say: Say
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The file of each shard of a folder, and what index.json says of it.

    Shards that are compressed as a whole are unpacked into that folder."""
    with open(os.path.join(source, "index.json"), encoding="utf-8") as f:
        shards = json.load(f)["shards"]
    packed = []
    for shard in shards:
        if shard.get("format", "mds") != "mds":
            raise ValueError(
                "%s has shards of format %s, and MDS is what is indexed"
                % (source, shard["format"])
            )
        path = os.path.join(source, shard["raw_data"]["basename"])
        if not os.path.exists(path):
            zipped = (shard.get("zip_data") or {}).get("basename")
            if not zipped or not os.path.exists(os.path.join(source, zipped)):
                raise ValueError(
                    "%s isn't there, nor is it compressed: a part of the "
                    "shards alone was copied" % path
                )
            packed.append(shard)
    at = unpack(source, packed, unpacked, say)
    for shard in shards:
        name = shard["raw_data"]["basename"]
        yield at.get(name, os.path.join(source, name)), shard


def index_mds(
    table: Table,
    path: str,
    about: dict[str, Any],
    *,
    image: Optional[str] = None,
    others: Sequence[str] = (),
    label: Optional[str] = None,
    fields: Iterable[str] = (),
) -> Iterator[float]:
    """A shard that MDSWriter wrote."""
    wanted = set(fields)
    encodings = dict(zip(about["column_names"], about["column_encodings"]))
    pixels = image or next(
        (n for n, e in encodings.items() if e in _MDS_IMAGES), None
    )
    if pixels not in encodings:
        raise ValueError(
            "%s has the columns %s: which is the image? pass image="
            % (path, ", ".join(encodings))
        )
    for name in others:
        if name not in encodings:
            raise ValueError(
                "%s has no column %r; its columns are %s"
                % (path, name, ", ".join(encodings))
            )
    target = label or ("label" if "label" in encodings else None)
    if not target and "class" in encodings:
        target = "class"
    data = map_file(path)
    (n,) = struct.unpack_from("<I", data, 0)
    for k in range(n):
        (at,) = struct.unpack_from("<I", data, 4 + 4 * k)
        place = 0, 0
        values: dict[str, Any] = {}
        for name, encoding, where, size in _mds_sample(about, data, at):
            if name == pixels:
                place = where, size
            elif name in others:
                values[name] = Place(path, where, size)
            elif name == target or name in wanted:
                key = "label" if name == target else name
                values[key] = _mds_value(encoding, data[where : where + size])
        table.add(path, *place, **values)
        yield k / n


# ---- TFRecord ----

# The places of a BytesList's values, or a list's numbers.
Feature = list[Any]


def varint(data: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of protobuf is too long")


def messages(
    data: Any, at: int, end: int
) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type, begin and end of each field between two places."""
    while at < end:
        tag, at = varint(data, at)
        kind, begin = tag & 7, at
        if kind == 0:
            _, at = varint(data, at)
        elif kind == 2:
            length, begin = varint(data, at)
            at = begin + length
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError("wire type %d of protobuf" % kind)
        if at > end:
            raise ValueError("a field of protobuf ends behind its record")
        yield tag >> 3, kind, begin, at


def _values(data: Any, which: int, at: int, end: int) -> Feature:
    """A BytesList's places, a FloatList's or an Int64List's numbers."""
    out: list[Any] = []
    for number, kind, begin, stop in messages(data, at, end):
        if number != 1:
            continue
        if which == 1:
            out.append((begin, stop - begin))
        elif which == 2:
            count = (stop - begin) // 4
            out += struct.unpack_from("<%df" % count, data, begin)
        else:
            while begin < stop:
                value, begin = varint(data, begin)
                out.append(value - (value >> 63 << 64))
    return out


def _example(data: Any, at: int, end: int) -> dict[str, tuple[int, Feature]]:
    """The features of a tf.train.Example: which list each is, its values."""
    out = {}
    for number, _, begin, stop in messages(data, at, end):
        if number != 1:
            continue
        for inner, _, b, s in messages(data, begin, stop):
            if inner != 1:
                continue
            name, value = "", None
            for which, _, low, high in messages(data, b, s):
                if which == 1:
                    name = bytes(data[low:high]).decode()
                elif which == 2:
                    value = next(messages(data, low, high), None)
            if value:
                out[name] = value[0], _values(data, value[0], *value[2:])
    return out


def _records(data: Any, path: Path) -> Iterator[tuple[int, int]]:
    at, size = 0, len(data)
    while at < size:
        if size - at < 16:
            raise ValueError("%s ends within a record, at %d" % (path, at))
        (length,) = struct.unpack_from("<Q", data, at)
        if length > size - at - 16:
            raise ValueError("%s ends within a record, at %d" % (path, at))
        yield at + 12, at + 12 + length
        at += 16 + length


def _plain(which: int, values: Feature, data: Any) -> Any:
    if which == 1:
        texts = [
            bytes(data[at : at + length]).decode("utf-8", "surrogateescape")
            for at, length in values
        ]
        return texts[0] if len(texts) == 1 else " ".join(texts)
    return values[0] if len(values) == 1 else list(values)


def index_tfrecord(
    table: Table,
    path: str,
    *,
    image: Optional[str] = None,
    others: Sequence[str] = (),
    label: Optional[str] = None,
    fields: Iterable[str] = (),
) -> Iterator[float]:
    """A TFRecord file of tf.train.Example with an encoded image.

    Labels are as they are stored: ImageNet's begin with 1.
    """
    pixels = image or "image/encoded"
    wanted = list(fields)
    data = map_file(path)
    for at, end in _records(data, path):
        example = _example(data, at, end)
        for name in (pixels, *others):
            if name not in example or not example[name][1]:
                raise ValueError(
                    "%s: an example has the features %s, and no %s: pass "
                    "image=" % (path, ", ".join(sorted(example)), name)
                )
        target = label or next(
            (n for n in ("image/class/label", "label") if n in example),
            None,
        )
        values = {n: _plain(*example[n], data) for n in wanted}
        for name in others:
            values[name] = Place(path, *example[name][1][0])
        if target:
            values["label"] = _plain(*example[target], data)
        table.add(path, *example[pixels][1][0], **values)
        yield at / len(data)
