# SPDX-License-Identifier: MIT
"""tsock.index(SOURCE, DST) and python -m tsock.index: a table of a data set's
samples, which the producer serves without copying or converting them."""

from __future__ import annotations

import argparse
import glob
import os
import sys
import time
from typing import Any, Iterable, Iterator, Optional, Union

from .indexing import arrow, containers, rows
from .indexing.table import Path, Table

KINDS = "samples csv jsonl coco arrow parquet mds tfrecord".split()
_AGAIN = 5.0  # seconds between two lines of progress


def _files(source: Path, *endings: str) -> list[str]:
    """The files of a folder and below with these endings, in their order."""
    found = []
    for ending in endings:
        pattern = os.path.join(
            glob.escape(os.fspath(source)), "**", "*" + ending
        )
        found += glob.glob(pattern, recursive=True)
    return sorted(found)


def _arrow_files(source: str) -> list[str]:
    """In the order that state.json gives, where `datasets` has written one."""
    import json

    state = os.path.join(source, "state.json")
    if not os.path.exists(state):
        return _files(source, ".arrow")
    with open(state, encoding="utf-8") as f:
        named = json.load(f)["_data_files"]
    return [os.path.join(source, one["filename"]) for one in named]


def _is_tfrecord(name: str) -> bool:
    return ".tfrecord" in name or "-of-0" in name


def _list(source: str, kind: str) -> list[str]:
    """The files of this kind at source: itself, or those of the folder."""
    if not os.path.isdir(source):
        return [source]
    if kind == "arrow":
        return _arrow_files(source)
    if kind == "parquet":
        return _files(source, ".parquet")
    return sorted(
        os.path.join(source, n) for n in os.listdir(source) if _is_tfrecord(n)
    )


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
    }.get(ending, "tfrecord" if _is_tfrecord(name) else None)


def _guess(source: str) -> str:
    if not os.path.exists(source):
        raise FileNotFoundError("%s isn't there" % source)
    kind: Optional[str] = None
    if not os.path.isdir(source):
        kind = _guess_file(os.path.basename(source))
    elif os.path.exists(os.path.join(source, "index.json")):
        kind = "mds"
    else:
        for kind in ("arrow", "parquet", "tfrecord"):
            if _list(source, kind):
                break
        else:
            kind = None
    if kind is None:
        raise ValueError(
            "what is %s? pass kind=, one of %s; folders of images and tar "
            "files need no table: give them to the producer as they are"
            % (source, ", ".join(KINDS[1:]))
        )
    return kind


def _read(
    table: Table, source: Any, kind: str, options: dict[str, Any]
) -> Optional[Iterator[None]]:
    """Fill the table, at once or a row at a time."""
    if kind == "samples":
        rows.index_samples(table, source)
    elif kind in ("csv", "jsonl"):
        rows.index_lines(table, source, **options)
    elif kind == "coco":
        return rows.index_coco(table, source, **options)
    elif kind == "mds":
        return containers.index_mds(table, source, **options)
    else:
        files = _list(source, kind)
        if not files:
            raise ValueError("%s has no files of %s" % (source, kind))
        read = {
            "arrow": arrow.index_arrow,
            "parquet": arrow.index_parquet,
            "tfrecord": containers.index_tfrecord,
        }[kind]
        return read(table, files, **options)
    return None


def _follow(table: Table, read: Optional[Iterator[None]], tell: bool) -> None:
    said = time.monotonic()
    for _ in read or ():
        now = time.monotonic()
        if tell and now - said > _AGAIN:
            said = now
            print("%d samples" % len(table), file=sys.stderr, flush=True)


def index(
    source: Union[Path, Iterable[Any]],
    dst: Path,
    *,
    kind: Optional[str] = None,
    image: Optional[str] = None,
    label: Optional[str] = None,
    fields: Iterable[str] = (),
    root: Optional[Path] = None,
    classes: Optional[Iterable[str]] = None,
    progress: bool = False,
) -> int:
    """Write the table dst of a data set, and return how many samples it has.

        tsock.index("train.csv", "train.table", label="breed")
        loader = tsock.DataLoader("dogs", root="train.table", batch_size=256)

    source      a CSV or TSV file with a header, a JSONL file, COCO's
                instances_*.json; an Arrow or Parquet file or a folder of them
                (Hugging Face's save_to_disk(), a snapshot of the Hub); a
                folder that MDSWriter wrote; TFRecord files of tf.train.Example; or an
                iterable of (path, label), (bytes, label) or (path or bytes,
                {field: value})
    kind        which of them: "csv", "jsonl", "coco", "arrow", "parquet",
                "mds", "tfrecord"; None: by its name
    image       the column of the images, or of their paths
    label       the column of the labels: text is a class, named so and
                numbered in the order of the names, as torchvision's ImageFolder does;
                integers (int64), floats (float32) and lists of a fixed length
                are delivered as they are
    fields      further columns, each a field of the samples
    root        the folder that paths in a CSV, JSONL or COCO file are relative
                to; None: the file's own
    classes     the classes' names in the order of their numbers
    progress    print every 5 s how many samples there are so far

    Nothing is copied: dst says where each image lies.  Images that are no
    whole bytes of a file (compressed Parquet, bytes that an iterable gives)
    are written to dst + ".data".  dst appears when it is complete.  Files that
    change later make the table stale, and the producer says so.

    ValueError and OSError name what can't be indexed, and why.
    """
    if kind is None:
        if isinstance(source, (str, os.PathLike)):
            kind = _guess(os.fspath(source))
        else:
            kind = "samples"
    if kind not in KINDS:
        raise ValueError("kind=%r is none of %s" % (kind, ", ".join(KINDS)))
    options = {"image": image, "label": label, "fields": fields, "root": root}
    taken = {
        "samples": (),
        "coco": ("root",),
        "csv": tuple(options),
        "jsonl": tuple(options),
    }.get(kind, ("image", "label", "fields"))
    for name, value in options.items():
        if value and name not in taken:
            raise ValueError("%s= means nothing for %s" % (name, kind))
    chosen = {name: options[name] for name in taken}
    table = Table(dst)
    try:
        table.name_classes(None if classes is None else list(classes))
        _follow(table, _read(table, source, kind, chosen), progress)
        table.write()
    finally:
        table.drop()
    return len(table)


def main(argv: Optional[list[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        "python -m tsock.index",
        description="Write a table of a data set's samples, which "
        "tsock-producer --root TABLE serves as they are.",
    )
    parser.add_argument("source")
    parser.add_argument("dst", metavar="table")
    parser.add_argument("--kind", choices=KINDS[1:])
    parser.add_argument("--image", help="the column of the images")
    parser.add_argument("--label", help="the column of the labels")
    parser.add_argument(
        "--fields",
        type=lambda s: s.split(","),
        default=(),
        help="further columns, separated by commas",
    )
    parser.add_argument("--root", help="the folder that paths are relative to")
    said = parser.parse_args(argv)
    try:
        n = index(
            said.source,
            said.dst,
            kind=said.kind,
            image=said.image,
            label=said.label,
            fields=said.fields,
            root=said.root,
            progress=True,
        )
    except (ValueError, OSError, ImportError) as e:
        print("tsock.index: %s" % e, file=sys.stderr)
        return 1
    print("%s: %d samples" % (said.dst, n))
    return 0


if __name__ == "__main__":
    sys.exit(main())
