# SPDX-License-Identifier: MIT
"""WebDataset's tar files: by the index of Energon or of webshart, where there
is one that fits, else by a scan.

An index is believed if it isn't older than the tar file, or has its size, and
if the first and the last file that it names have their heads there.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
import tarfile
from typing import Any, Iterable, Iterator, NamedTuple, Optional, Sequence
from typing import Union
from urllib.parse import quote

from . import npy
from .places import Place
from .table import Table, map_file

_log = logging.getLogger("tsock")

_ENERGON = os.path.join(".nv-meta", "index.sqlite")
_IMAGES = "jpg jpeg png webp ppm pgm bmp tif tiff gif avif".split()
_LABELS = ("cls", "json")  # of which the first that is there is taken
_ARRAY = ".npy"
_BLOCK = 512  # bytes of a head in a tar file


class Member(NamedTuple):
    """A file in a tar file."""

    name: str
    offset: int  # of its content
    size: int


class _Unfit(Exception):
    """Why an index isn't used."""


# ---- where the files of a tar file are ----


def _scan(path: str) -> list[Member]:
    with tarfile.open(path, "r:") as tar:
        return [
            Member(m.name, m.offset_data, m.size) for m in tar if m.isreg()
        ]


def _by_webshart(path: str, index: str) -> list[Member]:
    with open(index, encoding="utf-8") as f:
        about = json.load(f)
    size = about.get("filesize")
    if size is None:
        _check_age(path, index)
    elif size != os.path.getsize(path):
        raise _Unfit("it is of a file of %s bytes" % size)
    members = [
        Member(name, one["offset"], one.get("length", one.get("size")))
        for name, one in about["files"].items()
    ]
    return sorted(members, key=lambda m: m.offset)


def _shard_names(folder: str) -> list[str]:
    """The tar files of an Energon data set, in the order of their numbers."""
    meta = os.path.join(folder, ".nv-meta")
    with contextlib.suppress(FileNotFoundError):
        with open(os.path.join(meta, ".info.json"), encoding="utf-8") as f:
            return list(json.load(f)["shard_counts"])
    names, inside = [], False
    with open(os.path.join(meta, ".info.yaml"), encoding="utf-8") as f:
        for line in f:
            if not line.startswith(" "):
                inside = line.startswith("shard_counts:")
            elif inside:
                name = line.rpartition(":")[0].strip()
                names.append(name.strip("'\""))
    return names


def _by_energon(path: str, index: str) -> list[Member]:
    _check_age(path, index)
    folder = os.path.dirname(os.path.dirname(index))
    name = os.path.relpath(path, folder)
    names = _shard_names(folder)
    if name not in names:
        raise _Unfit("it doesn't know the file")
    # It is in the mode WAL, which a folder that is read-only can't have.
    whole = not os.path.exists(index + "-wal")
    how = "immutable=1" if whole else "mode=ro"
    with contextlib.closing(
        sqlite3.connect("file:%s?%s" % (quote(index), how), uri=True)
    ) as db:
        rows = db.execute(
            "SELECT s.sample_key, p.part_name, p.content_byte_offset,"
            " p.content_byte_size FROM sample_parts p JOIN samples s"
            " ON s.tar_file_id = p.tar_file_id"
            " AND s.sample_index = p.sample_index"
            " WHERE p.tar_file_id = ? ORDER BY p.content_byte_offset",
            (names.index(name),),
        )
        return [
            Member("%s.%s" % (key, part), at, size)
            for key, part, at, size in rows
        ]


def _check_age(path: str, index: str) -> None:
    if os.stat(index).st_mtime_ns < os.stat(path).st_mtime_ns:
        raise _Unfit("it is older than the file")


def _check_head(data: Any, member: Member) -> None:
    """Is the head of that file where the index says?"""
    head = data[max(member.offset - _BLOCK, 0) : member.offset]
    try:
        found = tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.TarError:
        raise _Unfit("%s isn't where it says" % member.name) from None
    # A name that is long stands in front of the head; here is its beginning.
    same = member.name == found.name or (
        len(found.name) > 98 and member.name.startswith(found.name[:98])
    )
    if found.size != member.size or not same:
        raise _Unfit("%s isn't where it says" % member.name)


def find_index(path: str) -> Optional[str]:
    """The index of a tar file; None: there is none."""
    folder = os.path.dirname(os.path.abspath(path))
    for index in (
        os.path.splitext(path)[0] + ".json",
        os.path.join(folder, _ENERGON),
        os.path.join(os.path.dirname(folder), _ENERGON),
    ):
        if os.path.exists(index):
            return index
    return None


def find_members(path: str, data: Any) -> Sequence[Member]:
    """The files in a tar file, in their order."""
    index = find_index(path)
    if index:
        try:
            read = _by_energon if index.endswith("sqlite") else _by_webshart
            members = read(path, index)
            if not members:
                raise _Unfit("it has no file of it")
            for member in (members[0], members[-1]):
                _check_head(data, member)
            return members
        except (_Unfit, OSError, ValueError, LookupError) as e:
            why = str(e)
        except (TypeError, AttributeError, sqlite3.Error) as e:
            why = str(e)
        _log.warning(
            "%s doesn't fit %s: %s; the file is scanned instead",
            index,
            path,
            why,
        )
    return _scan(path)


# ---- samples ----


def samples(
    members: Iterable[Member],
) -> Iterator[tuple[str, dict[str, Member]]]:
    """The parts of each sample by their endings, in lower case."""
    key: Optional[str] = None
    parts: dict[str, Member] = {}
    for member in members:
        folder, base = os.path.split(member.name)
        stem, dot, ending = base.partition(".")
        if not stem or not dot:
            continue
        at = os.path.join(folder, stem)
        if at != key and parts:
            yield str(key), parts
            parts = {}
        key = at
        parts[ending.lower()] = member
    if parts:
        yield str(key), parts


def _text(data: Any, part: Member) -> str:
    raw = data[part.offset : part.offset + part.size]
    return bytes(raw).decode("utf-8", "surrogateescape")


def _value(data: Any, path: str, part: Member) -> Any:
    """The text of a part, or the array that it is."""
    if not part.name.lower().endswith(_ARRAY):
        return _text(data, part)
    try:
        return npy.read(data[part.offset : part.offset + part.size])
    except ValueError as e:
        raise ValueError("%s: %s %s" % (path, part.name, e)) from None


def _called(ending: str) -> str:
    """The field that a part becomes: emb of emb.npy, npy of npy."""
    if not ending.endswith(_ARRAY):
        return ending
    return ending[: -len(_ARRAY)].rpartition(".")[2]


def _image(
    parts: dict[str, Member], ending: Union[str, bool, None]
) -> Optional[Member]:
    """The first image, or that of this ending; None: there is none."""
    if not ending:
        asked = _IMAGES
    else:
        ending = str(ending).lstrip(".")
        asked = [ending] + ["%s.%s" % (ending, e) for e in _IMAGES]
    return next((parts[e] for e in asked if e in parts), None)


def _field(ending: str) -> str:
    """What an image of this ending is called: right, for .right.jpg."""
    stem, dot, format = ending.lstrip(".").rpartition(".")
    return stem if dot and format in _IMAGES else ending.lstrip(".")


def _label(
    data: Any, path: str, parts: dict[str, Member], asked: Optional[str]
) -> Any:
    """A number, where it looks like one, or text, or an array; None: there is
    none."""
    for ending in (asked,) if asked else _LABELS:
        if ending not in parts:
            continue
        value = _value(data, path, parts[ending])
        if not isinstance(value, str):
            return value
        text = value.strip()
        if ending == "json":
            about = json.loads(text)
            value = about.get("label") if isinstance(about, dict) else None
            if value is not None:
                return value
            continue
        try:
            return int(text)
        except ValueError:
            return text
    return None


def _fields(
    data: Any, path: str, key: str, parts: dict[str, Member], wanted: list[str]
) -> dict[str, Any]:
    values = {}
    for name in wanted:
        if name not in parts:
            raise ValueError("%s: %s has no .%s" % (path, key, name))
        values[_called(name)] = _value(data, path, parts[name])
    return values


def index_tar(
    table: Table,
    path: str,
    *,
    image: Union[str, bool, None] = None,
    others: Sequence[str] = (),
    label: Optional[str] = None,
    fields: Iterable[str] = (),
) -> Iterator[float]:
    """A tar file of WebDataset's; image, label and fields are endings, and
    those of several images may lack the format's: left for .left.jpg.  image
    False: samples have none."""
    wanted = [name.lstrip(".") for name in fields]
    label = label and label.lstrip(".")
    data = map_file(path)
    for key, parts in samples(find_members(path, data)):
        at = _image(parts, image)
        if at is None and image is not False:
            continue
        values = _fields(data, path, key, parts, wanted)
        for name in others:
            other = _image(parts, name)
            if other is None:
                raise ValueError("%s: %s has no image %r" % (path, key, name))
            values[_field(name)] = Place(path, other.offset, other.size)
        found = _label(data, path, parts, label)
        if found is not None:
            values["label"] = found
        try:
            if at is None or image is False:
                table.add_values(key=key, **values)
            else:
                table.add(path, at.offset, at.size, key=key, **values)
        except ValueError as e:
            raise ValueError("%s: %s: %s" % (path, key, e)) from None
        yield max(part.offset for part in parts.values()) / len(data)
