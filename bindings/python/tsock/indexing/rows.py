# SPDX-License-Identifier: MIT
"""Samples that a list, an iterable, a CSV or JSONL file, or COCO's annotations
name."""

from __future__ import annotations

import csv
import json
import os
from typing import Any, Iterable, Iterator, Optional

from .table import Path, Table

# Columns that name the image, in the order in which they are looked for.
_IMAGES = "image path file file_name filename image_path filepath id".split()
_LABELS = "label class class_name category target labels".split()


def index_samples(table: Table, samples: Iterable[Any]) -> None:
    """(path or bytes, label) or (path or bytes, {field: value, ...})."""
    for row, sample in enumerate(samples):
        if not isinstance(sample, (tuple, list)) or len(sample) != 2:
            raise ValueError(
                "sample %d isn't a pair of a path (or its bytes) and a label "
                "(or a dict of fields): %.80r" % (row, sample)
            )
        image, fields = sample
        if not isinstance(fields, dict):
            fields = {} if fields is None else {"label": fields}
        add_image(table, image, fields)


def add_image(table: Table, image: Any, fields: dict[str, Any]) -> None:
    """image: a path, or an image file's bytes."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        table.add_bytes(image, **fields)
    else:
        path = os.path.abspath(image)
        table.add(path, key=os.fspath(image), **fields)


def _choose(
    names: Iterable[str],
    given: Optional[str],
    usual: list[str],
    what: str,
    where: Path,
) -> str:
    names = list(names)
    if given:
        if given not in names:
            raise ValueError(
                "%s has no column %r; its columns are %s"
                % (where, given, ", ".join(names))
            )
        return given
    for name in usual:
        for there in names:
            if there.lower() == name:
                return there
    if not what:
        return ""
    raise ValueError(
        "which column of %s names the %s? It has %s: pass %s="
        % (where, what, ", ".join(names), what)
    )


def _number(text: str) -> Any:
    """A CSV's cell: a number where it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _typed(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Columns whose every cell is a number are numbers, the others text."""
    for name in rows[0] if rows else ():
        values = [_number(row[name]) for row in rows]
        if not any(isinstance(value, str) for value in values):
            for row, value in zip(rows, values):
                row[name] = value
    return rows


def _read_csv(source: Path) -> list[dict[str, Any]]:
    with open(source, newline="", encoding="utf-8-sig") as f:
        tab = os.fspath(source).endswith(".tsv")
        reader = csv.DictReader(f, delimiter="\t" if tab else ",")
        rows = []
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(
                    "%s, line %d: it has another number of columns than the "
                    "header" % (source, reader.line_num)
                )
            rows.append(row)
    return _typed(rows)


def _read_jsonl(source: Path) -> list[dict[str, Any]]:
    rows = []
    with open(source, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as e:
                raise ValueError(
                    "%s, line %d: no JSON: %s" % (source, number, e)
                ) from None
            if not isinstance(row, dict):
                raise ValueError(
                    "%s, line %d: it is no object" % (source, number)
                )
            rows.append(row)
    return rows


def index_lines(
    table: Table,
    source: Path,
    *,
    image: Optional[str] = None,
    label: Optional[str] = None,
    fields: Optional[Iterable[str]] = None,
    root: Optional[Path] = None,
) -> None:
    """A CSV, TSV or JSONL file.

    Paths are relative to root, by default the file's own folder.
    """
    jsonl = os.fspath(source).endswith((".jsonl", ".ndjson"))
    rows = _read_jsonl(source) if jsonl else _read_csv(source)
    if not rows:
        raise ValueError("%s has no rows" % source)
    names = rows[0].keys()
    image = _choose(names, image, _IMAGES, "image", source)
    label = _choose(names, label, _LABELS, "", source)
    more = [_choose(names, name, [], name, source) for name in fields or ()]
    folder = os.path.abspath(root or os.path.dirname(os.path.abspath(source)))
    for row in rows:
        values = {name: row[name] for name in more}
        if label:
            values["label"] = row[label]
        path = os.path.join(folder, str(row[image]))
        table.add(path, key=str(row[image]), **values)


def _ids(coco: dict[str, Any]) -> dict[int, int]:
    """Numbers of categories, in the order of their ids."""
    ids = sorted(c["id"] for c in coco["categories"])
    return {one: k for k, one in enumerate(ids)}


def index_coco(
    table: Table, source: Path, *, root: Optional[Path] = None
) -> Iterator[None]:
    """COCO's instances: an image's categories as label, float32 [categories],
    1 for those that it has an annotation of."""
    with open(source, encoding="utf-8") as f:
        coco = json.load(f)
    place = _ids(coco)
    has: dict[int, set[int]] = {}
    for a in coco.get("annotations", ()):
        has.setdefault(a["image_id"], set()).add(place[a["category_id"]])
    folder = os.path.abspath(root or os.path.dirname(os.path.abspath(source)))
    for im in coco["images"]:
        label = [0.0] * len(place)
        for k in has.get(im["id"], ()):
            label[k] = 1.0
        path = os.path.join(folder, im["file_name"])
        table.add(path, key=im["file_name"], label=label, image_id=im["id"])
        yield
