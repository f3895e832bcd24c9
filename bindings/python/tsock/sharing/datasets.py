# SPDX-License-Identifier: MIT
"""Data sets of torchvision, torch and timm that tsock-producer reads itself.

A data set is known by the function that makes its samples, so a subclass counts
as its base as long as it doesn't replace that function.  No package is imported
here: whoever made the data set has done that.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence

from .plan import NotNative, Sample, Source


def known(path: str) -> Any:
    """What is called "package.module:Class.method", if it is imported."""
    module, _, names = path.partition(":")
    found: Any = sys.modules.get(module)
    for name in names.split("."):
        found = getattr(found, name, None)
    return found


def gets_by(data: Any, path: str) -> bool:
    """Are the samples of this data set made by that class's function?"""
    function = known(path + ".__getitem__")
    made = getattr(type(data), "__getitem__", None)
    several = getattr(type(data), "__getitems__", None)
    return (
        function is not None
        and made is function
        and several is known(path + ".__getitems__")
    )


def iterates_by(sampler: Any, path: str) -> bool:
    """Is it of that class, whose order it doesn't replace?"""
    kind = known(path)
    return kind is not None and (
        getattr(type(sampler), "__iter__", None) is kind.__iter__
    )


def _class(path: str) -> str:
    return path.rpartition(":")[2]


def describe(data: Any) -> str:
    """A data set in words."""
    try:
        length = ": {:,} samples".format(len(data))
    except TypeError:
        length = ""
    root = getattr(data, "root", None)
    of = " of %s" % root if isinstance(root, (str, os.PathLike)) else ""
    return "%s%s%s" % (type(data).__qualname__, of, length)


# ---------------------------------------------------------------------------
# Folders of images

FOLDER = "torchvision.datasets.folder:DatasetFolder"
_LOADERS = (
    "torchvision.datasets.folder:default_loader",
    "torchvision.datasets.folder:pil_loader",
)


def _with_targets(
    samples: Sequence[Sample], function: Optional[Callable[[Any], Any]]
) -> tuple[list[Sample], bool]:
    """The samples with what a target transform makes of their labels; is any
    label another one then?"""
    if function is None:
        return list(samples), False
    made: dict[Any, Any] = {}
    for _, label in samples:
        if label not in made:
            made[label] = function(label)
            if not hasattr(made[label], "__index__"):
                raise NotNative(
                    "has a target_transform that makes %r of label %r"
                    % (made[label], label),
                    "a target_transform that makes whole numbers",
                )
    return (
        [(path, int(made[label])) for path, label in samples],
        any(int(after) != before for before, after in made.items()),
    )


def _is_as_found(
    root: str, classes: Sequence[str], samples: Iterable[Sample]
) -> bool:
    """Are the samples in the folders of their classes, class by class and
    sorted, as ImageFolder finds them?"""
    prefix = [os.path.join(root, name) + os.sep for name in classes]
    before, folder, file = -1, "", ""  # of the sample before
    for path, label in samples:
        if not 0 <= label < len(prefix) or not path.startswith(prefix[label]):
            return False
        above, _, name = path.rpartition(os.sep)
        # Of a large data set most samples are in the folder of the one before.
        if above == folder and label == before:
            if name <= file:
                return False
        elif (label, above) <= (before, folder):
            return False
        before, folder, file = label, above, name
    return True


def _folder(data: Any) -> Source:
    if data.loader not in [known(path) for path in _LOADERS]:
        raise NotNative(
            "reads its files by %s"
            % getattr(data.loader, "__qualname__", data.loader),
            "torchvision's default_loader",
        )
    backend = known("torchvision:get_image_backend")
    if backend and backend() != "PIL":
        raise NotNative(
            "decodes with %s" % backend(), "torchvision's backend PIL"
        )
    root = os.fspath(data.root)
    # ImageNet's classes have several names each, beside their folders'.
    numbers = getattr(data, "wnid_to_idx", data.class_to_idx)
    classes = sorted(numbers, key=numbers.__getitem__)
    samples, relabelled = _with_targets(data.samples, data.target_transform)
    options: dict[str, Any] = {"dataset": "imagefolder", "root": root}
    whole = not relabelled and _is_as_found(root, classes, samples)
    return Source(
        what="%s of %s: {:,} images".format(len(samples))
        % (type(data).__qualname__, root),
        options=options,
        length=len(samples),
        transform=data.transform,
        get=data.__getitem__,
        image=lambda i: data.loader(data.samples[i][0]),
        samples=lambda: samples,
        classes=None if relabelled else classes,
        table=not whole,
    )


# ---------------------------------------------------------------------------
# CIFAR

CIFAR = "torchvision.datasets.cifar:CIFAR10"
CIFAR100 = "torchvision.datasets.cifar:CIFAR100"


def _cifar(data: Any) -> Source:
    hundred = isinstance(data, known(CIFAR100))
    kind = known(CIFAR100 if hundred else CIFAR)
    if data.target_transform is not None:
        raise NotNative("has a target_transform", "labels as they are")
    fresh = kind(data.root, train=data.train)
    if fresh.data.shape != data.data.shape or not (
        (fresh.data == data.data).all() and fresh.targets == data.targets
    ):
        raise NotNative(
            "has other images or labels than its files",
            "torch.utils.data.Subset in place of changes to data or targets",
        )
    image = known("PIL.Image:fromarray")
    folder = os.path.join(os.fspath(data.root), data.base_folder)
    return Source(
        what="%s of %s: {:,} images".format(len(data))
        % (type(data).__qualname__, data.root),
        options={
            "dataset": "cifar100" if hundred else "cifar10",
            "root": folder,
            "split": "train" if data.train else "val",
        },
        length=len(data),
        transform=data.transform,
        get=data.__getitem__,
        image=lambda i: image(data.data[i]),
        classes=list(data.classes),
        size=(32, 32),
    )


# ---------------------------------------------------------------------------
# timm

TIMM = "timm.data.dataset:ImageDataset"


def _timm(data: Any) -> Source:
    reader = data.reader
    if type(reader).__name__ != "ReaderImageFolder":
        raise NotNative(
            "reads by timm's %s" % type(reader).__name__,
            "a folder of images, or tsock.DataLoader(root=...)",
        )
    if data.load_bytes or data.input_img_mode != "RGB":
        raise NotNative("doesn't give RGB images", "input_img_mode='RGB'")
    if data.additional_features is not None:
        raise NotNative("gives additional features", "images and labels alone")
    samples, relabelled = _with_targets(
        [
            (os.path.join(reader.root, path), label)
            for path, label in reader.samples
        ],
        data.target_transform,
    )
    pillow = known("PIL.Image:open")
    classes = sorted(reader.class_to_idx, key=reader.class_to_idx.__getitem__)
    return Source(
        what="timm's ImageDataset of %s: {:,} images".format(len(samples))
        % reader.root,
        options={},
        length=len(samples),
        transform=data.transform,
        get=data.__getitem__,
        image=lambda i: pillow(samples[i][0]).convert("RGB"),
        samples=lambda: samples,
        classes=None if relabelled else classes,
        table=True,
    )


# ---------------------------------------------------------------------------
# Parts of data sets, and several as one

SUBSET = "torch.utils.data.dataset:Subset"
CONCAT = "torch.utils.data.dataset:ConcatDataset"


def _subset(data: Any) -> Source:
    inner = source_of(data.dataset)
    inner.chosen = [inner.place(int(i)) for i in data.indices]
    inner.what = "{:,} samples of ".format(len(inner)) + inner.what
    return inner


def part_of(whole: Source) -> Source:
    """The chosen samples as a data set of their own, in their order."""
    assert whole.samples and whole.chosen is not None
    chosen, get, image = whole.chosen, whole.get, whole.image
    samples = list(whole.samples())
    mine = [samples[i] for i in chosen]
    return dataclasses.replace(
        whole,
        options={},
        length=len(mine),
        get=lambda i: get(chosen[i]),
        image=lambda i: image(chosen[i]),
        samples=lambda: mine,
        chosen=None,
        table=True,
    )


def _same(values: Iterable[Any]) -> bool:
    values = list(values)
    return all(value is values[0] or value == values[0] for value in values)


def _concat(data: Any) -> Source:
    inner = [source_of(part) for part in data.datasets]
    inner = [part_of(s) if s.chosen is not None else s for s in inner]
    if any(s.samples is None or s.keyed for s in inner):
        raise NotNative(
            "joins data sets that aren't folders of images",
            "folders of images, or a stream for each",
        )
    if not _same(repr(s.transform) for s in inner):
        raise NotNative(
            "joins data sets with several transforms",
            "one transform for all of them",
        )
    classes = inner[0].classes if _same(s.classes for s in inner) else None
    samples = [sample for s in inner if s.samples for sample in s.samples()]
    ends = list(data.cumulative_sizes)

    def find(i: int) -> tuple[Source, int]:
        for k, end in enumerate(ends):
            if i < end:
                return inner[k], i - (ends[k - 1] if k else 0)
        raise IndexError(i)

    def image(i: int) -> Any:
        one, at = find(i)
        return one.image(at)

    return Source(
        what=" and ".join(s.what for s in inner),
        options={},
        length=len(samples),
        transform=inner[0].transform,
        get=data.__getitem__,
        image=image,
        samples=lambda: samples,
        classes=classes,
        table=True,
    )


# Who knows which data sets.
_KNOWN: list[tuple[str, Callable[[Any], Source]]] = [
    (FOLDER, _folder),
    (CIFAR, _cifar),
    (TIMM, _timm),
    (SUBSET, _subset),
    (CONCAT, _concat),
]


def register(path: str, look: Callable[[Any], Source]) -> None:
    """Data sets of a class that another file here knows."""
    _KNOWN.append((path, look))


def _names() -> Iterator[str]:
    for path, _ in _KNOWN:
        yield _class(path)


def source_of(data: Any) -> Source:
    """How tsock-producer reads a data set; NotNative where it can't."""
    for path, look in _KNOWN:
        if gets_by(data, path):
            return look(data)
    raise NotNative(
        "makes its samples by code of its own",
        "one of %s" % ", ".join(_names()),
    )
