# SPDX-License-Identifier: MIT
"""tsock.index(SOURCE, DST): a table of a data set's samples, which the producer
serves without copying or converting them; from a shell python -m tsock.index.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, Iterable, Mapping, Optional, Union

from ..indexing import packed, rows, sources, work
from ..indexing.sources import KINDS
from ..indexing.table import Path, Table
from ..indexing.telling import Telling

# Kinds of sources whose samples need no image.
_IMAGELESS = ("csv", "jsonl", "arrow", "parquet", "webdataset")

_log = logging.getLogger("tsock")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _fill(
    table: Table,
    source: Any,
    kind: str,
    options: dict[str, Any],
    split: Optional[str],
    tell: bool,
) -> None:
    if kind == "samples":
        rows.index_samples(table, source, **options)
    elif kind in ("csv", "jsonl"):
        rows.index_lines(table, source, **options)
    elif kind == "coco":
        rows.index_coco(table, source, **options)
    else:
        say = _say if tell else _log.info
        shards = sources.list_shards(source, kind, table.dst, say)
        if split:
            paths = [shard.path for shard in shards]
            chosen, _ = sources.choose_split(paths, source, split)
            shards = [sources.Shard(path) for path in chosen]
        total = sum(os.path.getsize(shard.path) for shard in shards)
        telling = Telling(os.path.basename(table.dst), total) if tell else None
        try:
            work.fill(table, kind, shards, options, telling)
        finally:
            if telling:
                telling.end()


_COLUMNS = ("image", "images", "label", "fields")
_TAKEN = {
    "samples": ("images",),
    "lmdb": (),
    "coco": ("root", "boxes"),
    "csv": (*_COLUMNS, "root"),
    "jsonl": (*_COLUMNS, "root"),
}


def _check_images(options: dict[str, Any]) -> None:
    """A ValueError, if a column is named for two things."""
    images = options["images"]
    if images and options["image"] is not None:
        raise ValueError("image= and images=: pass one of them")
    for k, name in enumerate(images):
        others = images[:k] + options["fields"] + [options["label"]]
        if name in others:
            raise ValueError("images=: the column %r is named twice" % name)


def _choose(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options that this kind takes; ValueError: it doesn't take one."""
    taken = _TAKEN.get(kind, _COLUMNS)
    if options["image"] is True:
        raise ValueError("image=True: it is a column's name, or False")
    if options["image"] is False and kind not in _IMAGELESS:
        raise ValueError("image=False means nothing for %s" % kind)
    for name, value in options.items():
        if value and name not in taken:
            raise ValueError("%s= means nothing for %s" % (name, kind))
    _check_images(options)
    chosen = {name: options[name] for name in taken}
    if kind != "samples" and "images" in chosen:
        images = chosen.pop("images")
        chosen["others"] = images[1:]
        if images:
            chosen["image"] = images[0]
    return chosen


def index(
    source: Union[Path, Iterable[Any]],
    dst: Path,
    *,
    kind: Optional[str] = None,
    image: Union[str, bool, None] = None,
    images: Iterable[str] = (),
    label: Optional[str] = None,
    fields: Iterable[str] = (),
    root: Optional[Path] = None,
    classes: Optional[Iterable[str]] = None,
    boxes: bool = False,
    ragged: Iterable[str] = (),
    pad: Optional[Mapping[str, Union[int, float]]] = None,
    pack_to: Optional[int] = None,
    split_rows: bool = False,
    split: Optional[str] = None,
    progress: bool = False,
) -> int:
    """Write the table dst of a data set, and return how many samples it has.

        tsock.index("train.csv", "train.table", label="breed")
        loader = tsock.DataLoader("dogs", root="train.table", batch_size=256)

    source      a CSV or TSV file with a header, a JSONL file, COCO's
                instances_*.json; an Arrow or Parquet file or a folder of them
                (Hugging Face's save_to_disk(), a snapshot of the Hub); a
                folder that MDSWriter wrote, whose shards are unpacked into dst +
                ".shards" if they are compressed; TFRecord files of
                tf.train.Example; an LMDB file whose values are images, or
                Caffe's Datum of them; WebDataset's tar files, by the index
                that Energon or webshart has of them, if it fits; or an
                iterable of (path, label), (bytes, label), ((path, offset,
                length), label) of a part of a file, the same with {field:
                value} as label, or {field: value} without an image, or with
                those that images names
    kind        which of them: "csv", "jsonl", "coco", "arrow", "parquet",
                "mds", "tfrecord", "lmdb", "webdataset"; None: by its name
    image       the column of the images, or of their paths; False: samples
                have none, in JSONL, CSV, Arrow, Parquet and tar files
    images      several images a sample, by their columns' names, all made by
                the same random draws: the first is the field image, each
                other one a field of its column's name.  Not of COCO and LMDB;
                of tar files endings: left for KEY.left.jpg
    label       the column of the labels: text is a class, named so and
                numbered in the order of the names, as torchvision's ImageFolder does;
                integers (int64), floats (float32) and lists are delivered as
                they are; lists of several lengths as ragged fields
    fields      further columns, each a field of the samples; arrays of NumPy
                and PyTorch, and integers of Arrow and Parquet, keep their
                dtype; of tar files image, label and fields are endings: "jpg",
                "cls", "emb.npy", whose array is the field emb
    root        the folder that paths in a CSV, JSONL or COCO file are relative
                to; None: the file's own
    classes     the classes' names in the order of their numbers
    boxes       COCO: the objects' boxes, float32 [n, 4] (left, top, right,
                bottom), as the ragged field boxes, and the numbers of their
                categories, in the order of the ids, as box_labels; crowds
                (iscrowd) have none
    ragged      columns of lists that are ragged fields although all lists are
                equally long
    pad         what follows the values of a batch's shorter samples, by the
                names of ragged columns: {"labels": -100}; else 0
    pack_to     lists become samples of this length: as many rows as there is
                room for, one behind the other in their order, pad behind them,
                and the field document (int32), which says of each value which
                of the sample's rows it is of, from 0 on; -1: of none
    split_rows  pack_to: a row goes on in the next sample, where it is another
                document, if there is no room for all of it
    split       "train" or "val": of several Arrow or Parquet files those that
                have such a word in their names; None: all
    progress    print how many samples there are so far, and the time left, on
                a terminal all the time, else every 5 s

    Nothing is copied: dst says where each image lies.  Images that are no
    whole bytes of a file (compressed Parquet, bytes that an iterable gives)
    are written to dst + ".data".  dst appears when it is complete.  Files that
    change later make the table stale, and the producer says so.  Of several
    files those that are done are kept in dst + ".partial" if the call is broken
    off; the next one with the same arguments goes on there.

    ValueError and OSError name what can't be indexed, and why.
    """
    if kind is None:
        if isinstance(source, (str, os.PathLike)):
            kind = sources.guess(os.fspath(source))
        else:
            kind = "samples"
    if kind not in KINDS:
        raise ValueError("kind=%r is none of %s" % (kind, ", ".join(KINDS)))
    if isinstance(images, str):
        raise ValueError("images=%r: it is a list of names" % images)
    chosen = _choose(
        kind,
        {
            "image": image,
            "images": list(images),
            "label": label,
            "fields": list(fields),
            "root": root,
            "boxes": boxes,
        },
    )
    if split_rows and pack_to is None:
        raise ValueError("split_rows=True means nothing without pack_to=")
    if split is not None and kind not in ("arrow", "parquet"):
        raise ValueError("split= means nothing for %s" % kind)
    if split not in (None, "train", "val"):
        raise ValueError("split=%r: it is 'train' or 'val'" % split)
    table = Table(dst)
    try:
        table.ragged = frozenset(ragged)
        table.pad = dict(pad or {})
        table.name_classes(None if classes is None else list(classes))
        _fill(table, source, kind, chosen, split, progress)
        table.check_pad()
        if pack_to is not None:
            packed.pack(table, pack_to, split_rows, table.pad)
        table.write()
    finally:
        table.drop()
    return len(table)
