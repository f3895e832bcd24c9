# SPDX-License-Identifier: MIT
"""Samples that a list, an iterable, a CSV or JSONL file, or COCO's annotations
name."""

from __future__ import annotations

import csv
import json
import os
from typing import Any, Iterable, Optional, Sequence, Union

from .places import Place
from .table import Path, Table

# Columns that name the image, in the order in which they are looked for.
_IMAGES = "image path file file_name filename image_path filepath id".split()
_LABELS = "label class class_name category target labels".split()


def index_samples(
    table: Table, samples: Iterable[Any], images: Sequence[str] = ()
) -> None:
    """(image, label) or (image, {field: value, ...}), whose image is a path,
    (path, offset, length) or bytes, or {field: value, ...} without one, or with
    those that images names."""
    for row, sample in enumerate(samples):
        if isinstance(sample, dict):
            _add_dict(table, sample, images, row)
            continue
        if not isinstance(sample, (tuple, list)) or len(sample) != 2:
            raise ValueError(
                "sample %d isn't a pair of a path (or its bytes) and a label "
                "(or a dict of fields), nor such a dict alone: %.80r"
                % (row, sample)
            )
        if images:
            raise ValueError(
                "sample %d is a pair, and with images= samples are dicts: "
                "%.80r" % (row, sample)
            )
        image, fields = sample
        if not isinstance(fields, dict):
            fields = {} if fields is None else {"label": fields}
        add_image(table, image, fields)


def _add_dict(
    table: Table, sample: dict[str, Any], images: Sequence[str], row: int
) -> None:
    for name in images:
        if sample.get(name) is None:
            raise ValueError(
                "sample %d has no image %r: it has %s"
                % (row, name, sorted(sample))
            )
    fields = {n: v for n, v in sample.items() if n not in images}
    if images:
        add_images(table, {name: sample[name] for name in images}, fields)
    else:
        table.add_values(**fields)


def add_images(
    table: Table, images: dict[str, Any], fields: dict[str, Any]
) -> None:
    """A sample of several images by their columns' names, each as in
    add_image(); the first one's field is image."""
    first, *others = images.items()
    for name, image in others:
        fields = {**fields, name: table.keep(image)}
    add_image(table, first[1], fields)


def add_image(table: Table, image: Any, fields: dict[str, Any]) -> None:
    """image: a path, (path, offset, length) of a part of a file, or an image
    file's bytes."""
    if not isinstance(image, (tuple, bytes, bytearray, memoryview)):
        fields = {"key": os.fspath(image), **fields}
    table.add(*table.keep(image), **fields)


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
        "which column of %s names the %s? It has %s: pass %s=, or "
        "%s=False if samples have none"
        % (where, what, ", ".join(names), what, what)
    )


def choose_values(
    names: Iterable[str],
    label: Optional[str],
    fields: Optional[Iterable[str]],
    where: Path,
) -> dict[str, str]:
    """The columns of samples without an image, by the fields they become."""
    names, fields = list(names), list(fields or ())
    if not fields:
        fields = [name for name in names if name != label]
    chosen = {name: _choose(names, name, [], name, where) for name in fields}
    if label:
        chosen["label"] = _choose(names, label, [], "label", where)
    return chosen


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
    image: Union[str, bool, None] = None,
    others: Sequence[str] = (),
    label: Optional[str] = None,
    fields: Optional[Iterable[str]] = None,
    root: Optional[Path] = None,
) -> None:
    """A CSV, TSV or JSONL file; others: the columns of further images.

    image=False: samples have none, and all fields if none are chosen.  Paths
    are relative to root, by default the file's own folder.
    """
    jsonl = os.fspath(source).endswith((".jsonl", ".ndjson"))
    rows = _read_jsonl(source) if jsonl else _read_csv(source)
    if not rows:
        raise ValueError("%s has no rows" % source)
    names = rows[0].keys()
    if image is False:
        chosen = choose_values(names, label, fields, source)
        for row in rows:
            table.add_values(**{to: row[name] for to, name in chosen.items()})
        return
    given = str(image) if image else None
    image = _choose(names, given, _IMAGES, "image", source)
    label = _choose(names, label, _LABELS, "", source)
    more = [_choose(names, name, [], name, source) for name in fields or ()]
    others = [_choose(names, name, [], name, source) for name in others]
    folder = os.path.abspath(root or os.path.dirname(os.path.abspath(source)))
    for k, row in enumerate(rows):
        values = {name: row[name] for name in more}
        if label:
            values["label"] = row[label]
        for name in others:
            if not row.get(name):
                raise ValueError(
                    "%s: row %d has no image %r" % (source, k, name)
                )
            values[name] = Place(os.path.join(folder, str(row[name])))
        path = os.path.join(folder, str(row[image]))
        table.add(path, key=str(row[image]), **values)


def _ids(coco: dict[str, Any]) -> dict[int, int]:
    """Numbers of categories, in the order of their ids."""
    ids = sorted(c["id"] for c in coco["categories"])
    return {one: k for k, one in enumerate(ids)}


def _edges(bbox: list[float]) -> list[float]:
    left, top, width, height = map(float, bbox)
    return [left, top, left + width, top + height]


def _boxes(
    annotations: list[dict[str, Any]], place: dict[int, int]
) -> dict[str, Any]:
    """Those of an image that are one object each, not a crowd."""
    single = [a for a in annotations if not a.get("iscrowd")]
    return {
        "boxes": [_edges(a["bbox"]) for a in single],
        "box_labels": [place[a["category_id"]] for a in single],
    }


def index_coco(
    table: Table,
    source: Path,
    *,
    root: Optional[Path] = None,
    boxes: bool = False,
) -> None:
    """COCO's instances: an image's categories as label, float32 [categories],
    1 for those that it has an annotation of; boxes: those of its objects."""
    with open(source, encoding="utf-8") as f:
        coco = json.load(f)
    place = _ids(coco)
    has: dict[int, list[dict[str, Any]]] = {}
    for a in coco.get("annotations", ()):
        has.setdefault(a["image_id"], []).append(a)
    if boxes:
        table.ragged |= {"boxes", "box_labels"}
    folder = os.path.abspath(root or os.path.dirname(os.path.abspath(source)))
    for im in coco["images"]:
        label = [0.0] * len(place)
        its = has.get(im["id"], [])
        for a in its:
            label[place[a["category_id"]]] = 1.0
        table.add(
            os.path.join(folder, im["file_name"]),
            key=im["file_name"],
            label=label,
            image_id=im["id"],
            **(_boxes(its, place) if boxes else {}),
        )
