# SPDX-License-Identifier: MIT
"""Shards of MosaicML's Streaming that are compressed as a whole: unpacked once
into a folder beside the table."""

from __future__ import annotations

import bz2
import gzip
import importlib
import os
import shutil
from typing import Any, Callable, Sequence

Say = Callable[[str], None]

_LEFT_FREE = 1 << 20  # bytes of the disk, for the table


def _copy_zstd(source: Any, to: Any) -> None:
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise ImportError(
            "shards that are compressed by zstd are unpacked by zstandard: "
            "pip install zstandard"
        ) from None
    zstandard.ZstdDecompressor().copy_stream(source, to)


def _copy_gz(source: Any, to: Any) -> None:
    with gzip.GzipFile(fileobj=source) as unpacked:
        shutil.copyfileobj(unpacked, to)


def _copy_bz2(source: Any, to: Any) -> None:
    with bz2.BZ2File(source) as unpacked:
        shutil.copyfileobj(unpacked, to)


_WAYS = {"zstd": _copy_zstd, "gz": _copy_gz, "bz2": _copy_bz2}


def _unpack(source: str, size: int, way: str, to: str) -> None:
    try:
        with open(source, "rb") as packed, open(to + ".part", "wb") as raw:
            try:
                _WAYS[way](packed, raw)
            except ImportError:
                raise
            except Exception as e:
                if isinstance(e, OSError) and e.errno:
                    raise  # of the disk; libraries raise some of their own
                raise ValueError(
                    "%s can't be unpacked: %s" % (source, e)
                ) from None
            found = raw.tell()
        if found != size:
            raise ValueError(
                "%s unpacks to %d bytes, and index.json says %d"
                % (source, found, size)
            )
        # As old as its source, so that a newer one is unpacked again.
        stamp = os.stat(source).st_mtime_ns
        os.utime(to + ".part", ns=(stamp, stamp))
        os.replace(to + ".part", to)
    finally:
        if os.path.exists(to + ".part"):
            os.unlink(to + ".part")


def _is_there(source: str, size: int, to: str) -> bool:
    if not os.path.exists(to):
        return False
    status = os.stat(to)
    return (status.st_size, status.st_mtime_ns) == (
        size,
        os.stat(source).st_mtime_ns,
    )


def unpack(
    source: str, shards: Sequence[dict[str, Any]], folder: str, say: Say
) -> dict[str, str]:
    """Unpack these shards of a folder, by what index.json says of them, unless
    that was done before; by their raw files' names where they are."""
    paths, todo = {}, []
    for shard in shards:
        raw, packed = shard["raw_data"], shard["zip_data"]
        way = str(shard["compression"]).partition(":")[0]
        if way not in _WAYS:
            raise ValueError(
                "the shards of %s are compressed by %s, of which %s are "
                "unpacked here: unpack them first, as StreamingDataset does "
                "in its local folder with keep_zip=False"
                % (source, way, ", ".join(_WAYS))
            )
        at = os.path.join(source, packed["basename"])
        to = os.path.join(folder, raw["basename"])
        paths[raw["basename"]] = to
        if not _is_there(at, raw["bytes"], to):
            todo.append((at, raw["bytes"], way, to))
    if todo:
        os.makedirs(folder, exist_ok=True)
        need = sum(size for _, size, *_ in todo)
        free = shutil.disk_usage(folder).free
        if need + _LEFT_FREE > free:
            raise OSError(
                "%s needs %d bytes for unpacked shards, and its disk has %d: "
                "make room, or write the table elsewhere"
                % (folder, need, free)
            )
        say(
            "unpacking %d shards of %s into %s: %.1f GB"
            % (len(todo), source, folder, need / 1e9)
        )
    for one in todo:
        _unpack(*one)
    return paths
