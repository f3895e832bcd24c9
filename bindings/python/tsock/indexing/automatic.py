# SPDX-License-Identifier: MIT
"""Tables of Hugging Face's folders that are written when a loader wants them.

Such a table is kept in the folder of caches, under a hash of the folder's path,
its kind and the split.  Beside it sources.json says which files it is of: it is
written last, so that a table without it, or with another one, counts for none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import time
from typing import Any, Mapping, Optional

from . import arrow, locking, sources, work
from .table import MAGIC, Table
from .telling import Telling

_log = logging.getLogger("tsock")

_KINDS = ("arrow", "parquet")
_FIELDS, _FIELD_BYTES = 8, 4096  # of all columns that are taken unasked
_LOOKED_INTO = 16  # folders, where the root has no files of its own
_STAMPED = 4096  # files of images that rows name, whose stamps are compared
_IMAGES = ".jpg .jpeg .png .ppm .bmp .pgm .tif .tiff .webp .gif".split()


def _kind_of_names(folder: str) -> tuple[Optional[str], list[str]]:
    """The kind of the files in a folder, None with images among them; and the
    folders there."""
    kind, below = None, []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name.lower()
            if name == "dataset_dict.json":
                return "arrow", []
            ending = os.path.splitext(name)[1]
            if ending in _IMAGES or ending == ".tar":
                return None, []
            if ending[1:] in _KINDS:
                kind = ending[1:]
            elif not name.startswith(".") and entry.is_dir():
                below.append(entry.path)
    return kind, sorted(below)


def recognise(root: str) -> Optional[str]:
    """arrow or parquet, if files of that kind are what lies there."""
    if not os.path.isdir(root):
        ending = os.path.splitext(root)[1].lower()[1:]
        return ending if ending in _KINDS and os.path.isfile(root) else None
    kind, below = _kind_of_names(root)
    for folder in below[:_LOOKED_INTO] if kind is None else ():
        kind = _kind_of_names(folder)[0]
        if kind is not None:
            break
    return kind


def _is_table(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as f:
        return f.read(len(MAGIC)) == MAGIC


def cache_folder(given: Optional[str]) -> str:
    """Where tsock-producer keeps scans, too."""
    if given:
        return given
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if xdg.startswith("/"):
        return os.path.join(xdg, "tsock")
    return os.path.expanduser("~/.cache/tsock")


def _name(root: str, split: Optional[str]) -> str:
    """What the stream is called: as the folder, or the Hub's data set."""
    name = os.path.basename(root.rstrip("/"))
    above, snapshots = os.path.split(os.path.dirname(root.rstrip("/")))
    hub = os.path.basename(above)
    if snapshots == "snapshots" and hub.startswith("datasets--"):
        name = hub.rpartition("--")[2]
    stem, ending = os.path.splitext(name)
    name = stem if ending[1:] in _KINDS else name
    return name + ("-val" if split == "val" else "")


class Kept:
    """The table of a folder, in the folder of caches."""

    def __init__(
        self, root: str, kind: str, split: Optional[str], cache: str
    ) -> None:
        self._root, self._kind = os.path.realpath(root), kind
        files = sources.list_files(self._root, kind)
        if not files:
            raise ValueError("%s has no files of %s" % (root, kind))
        below = self._root if os.path.isdir(self._root) else "/"
        self._files, self.said = sources.choose_split(files, below, split)
        key = "\0".join((self._root, kind, split or ""))
        self._folder = os.path.join(
            os.path.realpath(cache),
            "tables",
            hashlib.sha256(os.fsencode(key)).hexdigest()[:16],
        )
        self.path = os.path.join(self._folder, _name(self._root, split))
        self._list = os.path.join(self._folder, "sources.json")
        self.image: Any = None  # its column; False: there is none

    def _sources(self, more: list[str]) -> dict[str, Any]:
        """What a table would be of that was written now."""
        return {
            "version": 1,
            "of": [sources.stamp(path) for path in self._files],
            "more": [sources.stamp(path) for path in more],
            "table": sources.stamp(self.path),
            "image": self.image,
        }

    def state(self) -> str:
        """fresh, stale or missing."""
        try:
            with open(self._list, encoding="utf-8") as f:
                kept = json.load(f)
            more = [path for path, *_ in kept["more"]]
            self.image = kept["image"]
            return "fresh" if kept == self._sources(more) else "stale"
        except FileNotFoundError:
            return "stale" if os.path.exists(self._list) else "missing"
        except (ValueError, KeyError, TypeError):
            return "stale"

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """While no other process writes it."""
        lock = locking.lock_of(self._folder)
        return locking.held(lock, "indexes %s" % self._root)

    def write(self) -> None:
        """Index the files anew."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._list)
        chosen = arrow.choose_columns(self._files[0], self._kind)
        label, fields = chosen["label"], list(chosen["fields"])
        table = Table(self.path, fields + ["label"] * (label is not None))
        total = sum(os.path.getsize(path) for path in self._files)
        telling = Telling("tsock: indexing %s" % self._root, total)
        shards = [sources.Shard(path) for path in self._files]
        try:
            work.fill(table, self._kind, shards, chosen, telling)
            table.fit(_FIELDS, _FIELD_BYTES)
            table.write(absolute=True)
        finally:
            telling.end()
            table.drop()
        self.image = chosen["image"]
        own = set(self._files) | {self.path + ".data"}
        more = [path for path in table.files if path not in own][:_STAMPED]
        with open(self._list + ".part", "w", encoding="utf-8") as f:
            json.dump(self._sources(more), f)
        os.replace(self._list + ".part", self._list)
        self._tell(table, chosen, time.monotonic() - telling.began)

    def _tell(
        self, table: Table, chosen: Mapping[str, Any], seconds: float
    ) -> None:
        fields = [name for name in table.columns if name != "label"]
        line = "%s: indexed %d samples of %d %s file%s%s in %.1f s: %s%s%s" % (
            self._root,
            len(table),
            len(self._files),
            self._kind.capitalize(),
            "" if len(self._files) == 1 else "s",
            ", " + self.said if self.said else "",
            seconds,
            (
                "the image is %r" % chosen["image"]
                if chosen["image"]
                else "there is no image"
            ),
            (
                ", the label %r" % chosen["label"]
                if "label" in table.columns
                else ""
            ),
            ", further fields %s" % ", ".join(fields) if fields else "",
        )
        for name, why in table.left_out.items():
            line += "; %r is left out: %s" % (name, why)
        line += "; the table is %s" % self.path
        _log.info("%s", line)
        if seconds > 1 and sys.stderr is not None:
            print("tsock: " + line, file=sys.stderr, flush=True)


def _refresh(kept: Kept, root: str, anew: bool) -> None:
    """Write the table, unless it fits; anew: even then."""
    if kept.state() == "fresh" and not anew:
        return
    with kept.locked():
        state = kept.state()
        if state == "stale":
            _log.warning(
                "%s has changed since it was indexed: indexing it again", root
            )
        if state != "fresh" or anew:
            kept.write()


def keep(root: str, kind: Optional[str], split: Optional[str]) -> str:
    """The path of the table that loaders use of a folder of Arrow or Parquet
    files, which is written if there is none that fits."""
    if not os.path.exists(root):
        raise FileNotFoundError("%s isn't there" % root)
    kind = kind or recognise(root)
    if kind not in _KINDS:
        raise ValueError(
            "%s holds no Arrow and no Parquet files: name the table to write, "
            "too" % root
        )
    kept = Kept(root, kind, split, cache_folder(None))
    _refresh(kept, root, False)
    return kept.path


def with_table(checked: Mapping[str, str]) -> dict[str, str]:
    """The options of a producer, checked; with a table in place of a folder of
    Arrow or Parquet files, which is written if there is none that fits."""
    options = dict(checked)
    root, dataset = options.get("root", ""), options.get("dataset")
    if dataset not in (None, *_KINDS) or not os.path.exists(root):
        return options
    kind = None if _is_table(root) else dataset or recognise(root)
    if kind is None:
        return options
    split = options.pop("split", None)
    options.pop("dataset", None)
    if "no_cache" in options:
        raise ValueError(
            "root %r: its table can't be kept with no_cache=True; write one "
            "with tsock.index(), and give that as root=" % root
        )
    kept = Kept(root, kind, split, cache_folder(options.get("cache_dir")))
    _refresh(kept, root, "rescan" in options)
    options["root"] = kept.path
    if split == "val":
        _evaluate(options, kept)
    return options


def _evaluate(options: dict[str, str], kept: Kept) -> None:
    """What --split val means to a producer of a folder."""
    if "sampler" not in options:
        options.setdefault("order", "sequential")
    if kept.image and "transform" not in options:
        options.setdefault("preset", "eval")
