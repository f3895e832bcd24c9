# SPDX-License-Identifier: MIT
"""What kind of data set a path is, and the files that it is made of."""

from __future__ import annotations

import glob
import json
import os
import re
from typing import Any, NamedTuple, Optional

from .. import addresses
from .containers import mds_shards
from .table import Path
from .tars import find_index
from .unpack import Say

KINDS = (
    "samples csv jsonl coco arrow parquet mds tfrecord lmdb webdataset"
).split()


_ENDINGS = {"parquet": ".parquet", "webdataset": ".tar"}


class Shard(NamedTuple):
    """A file that is indexed by itself."""

    path: str
    about: Any = None  # what an index of the files says of it


def stamp(path: str) -> list[Any]:
    """A file and what changes with it, as JSON has them."""
    status = os.stat(path)
    return [path, status.st_size, status.st_mtime_ns]


def _files(source: Path, ending: str) -> list[str]:
    """The files of a folder and below with this ending, in their order."""
    pattern = os.path.join(glob.escape(os.fspath(source)), "**", "*" + ending)
    return sorted(glob.glob(pattern, recursive=True))


def _arrow_files(source: Path) -> list[str]:
    """In the order that state.json gives, where `datasets` has written one."""
    state = os.path.join(source, "state.json")
    if os.path.exists(state):
        with open(state, encoding="utf-8") as f:
            named = json.load(f)["_data_files"]
        return [os.path.join(source, one["filename"]) for one in named]
    # What map() and shuffle() keep beside a data set isn't part of it.
    return [
        path
        for path in _files(source, ".arrow")
        if not os.path.basename(path).startswith(("cache-", "tmp"))
    ]


def _is_tfrecord(name: str) -> bool:
    return ".tfrecord" in name or "-of-0" in name


def list_files(source: Path, kind: str) -> list[str]:
    """The files of this kind at source: itself, or those of the folder."""
    if not os.path.isdir(source):
        return [os.fspath(source)]
    if kind == "lmdb":
        return [os.path.join(source, "data.mdb")]
    if kind == "arrow":
        return _arrow_files(source)
    if kind in _ENDINGS:
        return _files(source, _ENDINGS[kind])
    return sorted(
        os.path.join(source, n) for n in os.listdir(source) if _is_tfrecord(n)
    )


def list_shards(
    source: Path, kind: str, dst: str, say: Say = lambda _: None
) -> list[Shard]:
    """The shards of a data set of this kind, for the table dst; ValueError:
    there are none."""
    if kind == "mds":
        path = os.fspath(source)
        return [Shard(*s) for s in mds_shards(path, dst + ".shards", say)]
    shards = [Shard(path) for path in list_files(source, kind)]
    if not shards:
        raise ValueError("%s has no files of %s" % (source, kind))
    return shards


def _guess_file(name: str) -> Optional[str]:
    ending = os.path.splitext(name)[1].lower()
    return {
        ".csv": "csv",
        ".tsv": "csv",
        ".jsonl": "jsonl",
        ".ndjson": "jsonl",
        ".json": "coco",
        ".arrow": "arrow",
        ".parquet": "parquet",
        ".lmdb": "lmdb",
        ".mdb": "lmdb",
    }.get(ending, "tfrecord" if _is_tfrecord(name) else None)


def guess(source: str) -> str:
    """The kind of what lies there; ValueError: nothing says it."""
    if not os.path.exists(source):
        addresses.refuse("tsock.index:", source)
        raise FileNotFoundError("%s isn't there" % source)
    kind: Optional[str] = None
    if not os.path.isdir(source):
        kind = _guess_file(os.path.basename(source))
    elif os.path.exists(os.path.join(source, "index.json")):
        kind = "mds"
    elif os.path.exists(os.path.join(source, "data.mdb")):
        kind = "lmdb"
    else:
        for kind in ("arrow", "parquet", "tfrecord"):
            if list_files(source, kind):
                break
        else:
            tars = list_files(source, "webdataset")
            kind = "webdataset" if tars and find_index(tars[0]) else None
    if kind is None:
        raise ValueError(
            "what is %s? pass kind=, one of %s; folders of images and tar "
            "files need no table: give them to the producer as they are"
            % (source, ", ".join(KINDS[1:]))
        )
    return kind


# ---- the parts of a data set, by the names of their files ----

_SPLITS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "eval": "val",
    "test": "test",
    "testing": "test",
}


def split_of(path: str, below: str) -> Optional[str]:
    """train, val or test, as the file's name or its innermost folder that has
    such a word in its name says; None: none does."""
    parts = os.path.relpath(path, below).split(os.sep)
    for part in reversed(parts):
        for word in re.split("[^a-z]+", part.lower()):
            if word in _SPLITS:
                return _SPLITS[word]
    return None


def choose_split(
    files: list[str], source: str, split: Optional[str]
) -> tuple[list[str], str]:
    """The files of a split (train, unless val is asked for), and in words what
    was chosen; all of them if their names don't tell."""
    of: dict[Optional[str], list[str]] = {}
    for path in files:
        of.setdefault(split_of(path, source), []).append(path)
    names = [name for name in ("train", "val", "test") if name in of]
    chosen: Optional[str]
    if split == "val":
        chosen = next((n for n in ("val", "test") if n in of), None)
    else:
        chosen = "train" if "train" in of else None
        if split is None and chosen is None and len(names) < 2:
            return files, ""
    if chosen is None:
        raise ValueError(
            "%s: no file there has %s in its name, so that nothing says which "
            "of them split=%r is; write a table of the wanted ones with "
            "tsock.index(), and give it as root="
            % (
                source,
                "val, validation or test" if split == "val" else "train",
                split or "train",
            )
        )
    others = [name for name in names if name != chosen]
    said = "the split %s" % chosen
    if others:
        said += " alone (there is %s, too)" % " and ".join(others)
    return of[chosen], said
