# SPDX-License-Identifier: MIT
"""Hugging Face's data sets with a column of images, and what set_transform()
makes of them.

An image is where its bytes lie: in an Arrow file that is mapped into memory, in
a file of its own, or in memory alone.  So a data set that was shuffled, split
or selected from needs no copy.
"""

from __future__ import annotations

import copy
import operator
import os
from typing import Any, Iterator, NamedTuple, Optional

from ..indexing import arrow
from . import trial, turned
from .datasets import known
from .plan import NotNative, Range, Sample, Source

DATASET = "datasets.arrow_dataset:Dataset"
_LABELS = ("label", "labels")
_IMAGE = "datasets.features.image:Image"
_CLASSES = "datasets.features.features:ClassLabel"
_ONE_TRANSFORM = (
    "a function that applies one Compose of torchvision's to each image"
)


# ---------------------------------------------------------------------------
# Columns


def _image_column(data: Any) -> str:
    shown = data.format["columns"]
    found: list[str] = [
        name
        for name, feature in data.features.items()
        if isinstance(feature, known(_IMAGE)) and name in shown
    ]
    if len(found) != 1:
        raise NotNative(
            "has %s" % ("several columns of images" if found else "no images"),
            "one column of images",
        )
    feature = data.features[found[0]]
    if not feature.decode or feature.mode not in (None, "RGB"):
        raise NotNative(
            "doesn't decode its column %r as it is" % found[0],
            "datasets.Image() without arguments",
        )
    return found[0]


def _is_label(feature: Any) -> bool:
    if isinstance(feature, known(_CLASSES)):
        return True
    return str(getattr(feature, "dtype", "")).startswith(("int", "uint"))


def _label_column(data: Any) -> str:
    features = data.features
    named = [n for n in _LABELS if n in features and _is_label(features[n])]
    classes = [
        name
        for name, one in features.items()
        if isinstance(one, known(_CLASSES))
    ]
    found = named[:1] or classes
    if len(found) != 1:
        raise NotNative(
            "has %s" % ("several columns of labels" if found else "no labels"),
            "one column of whole numbers, called label",
        )
    return found[0]


# ---------------------------------------------------------------------------
# Where the images are


class _Mapped(NamedTuple):
    """A part of a file that is mapped into memory."""

    begin: int
    size: int
    path: str
    offset: int


def _mappings() -> list[_Mapped]:
    """Of files that are still what they were when they were mapped."""
    found = []
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as f:
        lines = [line.rstrip("\n").split(None, 5) for line in f]
    for line in lines:
        if len(line) < 6 or not line[5].endswith(".arrow"):
            continue
        begin, end = (int(part, 16) for part in line[0].split("-"))
        try:
            same = os.stat(line[5]).st_ino == int(line[4])
        except OSError:
            continue
        if same:
            found.append(_Mapped(begin, end - begin, line[5], int(line[2], 16)))
    return found


def _places(pixels: Any, mapped: list[_Mapped]) -> Optional[Iterator[Range]]:
    """The ranges of an Arrow file that an array's values are."""
    for one in mapped:
        at = arrow.places(pixels, one.begin, one.size)
        if at:
            return (
                Range(one.path, one.offset + a, b - a)
                for a, b in zip(at, at[1:])
            )
    return None


def _where(chunk: Any, mapped: list[_Mapped]) -> Iterator[Any]:
    """Of each image a range of a file, a path, or its bytes."""
    pixels, names = chunk.field("bytes"), chunk.field("path")
    there = pixels.is_valid().to_pylist()
    ranges = _places(pixels, mapped)
    paths = [] if all(there) else names.to_pylist()
    for k, inside in enumerate(there):
        place = next(ranges) if ranges else None
        if inside:
            yield place or memoryview(pixels[k].as_buffer())
            continue
        path = paths[k]
        if not path or "://" in path:
            raise NotNative(
                "has images that aren't on this machine", "files, or bytes"
            )
        yield os.path.abspath(path)


def _samples(data: Any, column: str, label: str) -> list[Sample]:
    """Of the whole table."""
    images = data.data.column(column)
    labels = data.data.column(label).to_pylist()
    if images.null_count or None in labels:
        raise NotNative("has rows without an image or a label", "none of them")
    mapped = _mappings()
    where = [one for chunk in images.chunks for one in _where(chunk, mapped)]
    return list(zip(where, labels))


# ---------------------------------------------------------------------------
# set_transform()


class _Styled(NamedTuple):
    """What a function given to set_transform() does: the transform, and the
    keys of its samples."""

    transform: Any
    image: str
    label: str


def _batches(n: int) -> list[list[int]]:
    rows = [i * n // trial.SAMPLES for i in range(min(n, trial.SAMPLES))]
    return [part for part in (rows[:1], rows[1:4], rows[4:]) if part]


def _same_images(made: Any, wanted: list[Any]) -> set[str]:
    """The keys of a batch that have these images."""
    return {
        key
        for key, values in made.items()
        if len(values) == len(wanted) and all(map(trial.equal, values, wanted))
    }


def _is(value: Any, label: int) -> bool:
    try:
        return operator.index(value) == label
    except (TypeError, ValueError):
        return False


def _same_labels(made: Any, wanted: list[int]) -> set[str]:
    return {
        key
        for key, values in made.items()
        if len(values) == len(wanted) and all(map(_is, values, wanted))
    }


def _styled(whole: Any, plain: Any, column: str, label: str) -> _Styled:
    """Try the function of set_transform() on some samples."""
    function = whole.format["format_kwargs"]["transform"]
    found = trial.transforms_in(function)
    what = getattr(function, "__qualname__", type(function).__qualname__)
    if len(found) != 1:
        raise NotNative(
            "has set_transform(%s), in which are %s transforms"
            % (what, len(found) or "no"),
            _ONE_TRANSFORM,
        )
    images: list[set[str]] = []
    labels: list[set[str]] = []

    def wanted(rows: list[int]) -> Any:
        raw = plain[rows]
        return [found[0](image.convert("RGB")) for image in raw[column]], raw[
            label
        ]

    def same(made: Any, raw: Any) -> bool:
        images.append(_same_images(made, raw[0]))
        labels.append(_same_labels(made, raw[1]))
        return bool(images[-1])

    agree = trial.agree(whole.__getitem__, wanted, _batches(len(plain)), same)
    image = set.intersection(*images) if agree and images else set()
    keys = set.intersection(*labels) if agree and labels else set()
    if len(image) != 1:
        raise NotNative(
            "has set_transform(%s), which does more than its transform" % what,
            _ONE_TRANSFORM,
        )
    if label not in keys and len(keys) != 1:
        raise NotNative(
            "has set_transform(%s), which changes the labels" % what,
            "labels as they are",
        )
    return _Styled(
        found[0], image.pop(), label if label in keys else keys.pop()
    )


# ---------------------------------------------------------------------------
# The whole


def _name(data: Any) -> str:
    files = data.cache_files
    name = getattr(data.info, "dataset_name", None)
    if not name and files:
        name = os.path.basename(os.path.dirname(files[0]["filename"]))
    return "-".join(str(x) for x in (name, data.split) if x) or "images"


def _unselected(data: Any) -> Any:
    whole = copy.copy(data)
    whole._indices = None
    return whole


def _unstyled(whole: Any) -> Any:
    plain = copy.copy(whole)
    plain._format_type, plain._format_kwargs = None, {}
    plain._format_columns, plain._output_all_columns = None, False
    return plain


def source(data: Any) -> Source:
    """Its table, of which the script may want a part."""
    kind = data.format["type"]
    if kind not in (None, "custom"):
        raise NotNative(
            "gives arrays of whole images, by with_format(%r)" % kind,
            "set_transform() with " + _ONE_TRANSFORM,
        )
    column, label = _image_column(data), _label_column(data)
    whole = _unselected(data)
    plain = _unstyled(whole)
    style = _Styled(None, column, label)
    if kind == "custom":
        style = _styled(whole, plain, column, label)
    samples = _samples(whole, column, label)
    chosen = data._indices and data._indices.column(0).to_pylist()
    made = Source(
        what="Hugging Face's data set %s: {:,} images".format(len(whole))
        % _name(data),
        options={},
        length=len(whole),
        transform=style.transform,
        get=whole.__getitem__,
        image=lambda i: plain[i][column].convert("RGB"),
        samples=lambda: samples,
        chosen=chosen,
        classes=getattr(data.features[label], "names", None),
        pair=lambda sample: (sample[style.image], sample[style.label]),
        table=True,
        keyed=True,
        name=_name(data),
    )
    turned.refuse(made)
    return made
