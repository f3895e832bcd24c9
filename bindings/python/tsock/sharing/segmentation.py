# SPDX-License-Identifier: MIT
"""torchvision's data sets of images with masks, whose transforms are of v2.

Masks lie in a folder of their own, and the script's list of images is a
selection from the other one.
"""

from __future__ import annotations

import os
from typing import Any, Callable, NamedTuple, Optional

from ..loader import DataLoader
from . import tables, trial
from .datasets import gets_by, known
from .plan import MaskKind, NotNative, Source

VOC = "torchvision.datasets.voc:VOCSegmentation"
CITYSCAPES = "torchvision.datasets.cityscapes:Cityscapes"
WRAPPED = "torchvision.tv_tensors._dataset_wrapper:VisionDatasetTVTensorWrapper"
_STANDARD = "torchvision.datasets.vision:StandardTransform"
_WRAP = "wrap_dataset_for_transforms_v2() around the data set, with v2.Compose"


class _Files(NamedTuple):
    """Where images and masks are: lists of paths, and the folders."""

    images: list[str]
    masks: list[str]
    root: str
    masks_root: str


def _voc(data: Any) -> _Files:
    folders = [os.path.dirname(paths[0]) for paths in (data.images, data.masks)]
    return _Files(data.images, data.masks, *folders)


def _cityscapes(data: Any) -> _Files:
    if data.target_type != ["semantic"] or data.mode != "gtFine":
        raise NotNative(
            "has other targets than masks of classes",
            "target_type='semantic' and mode='fine'",
        )
    masks = [targets[0] for targets in data.targets]
    return _Files(data.images, masks, data.images_dir, data.targets_dir)


_OF: dict[str, Callable[[Any], _Files]] = {VOC: _voc, CITYSCAPES: _cityscapes}


def _mask_of(name: str) -> str:
    """Where tsock-producer looks for the mask of an image, below DIR."""
    stem, city = os.path.splitext(name)[0], "_leftImg8bit"
    if stem.endswith(city):
        return stem[: -len(city)] + "_gtFine_labelIds.png"
    return stem + ".png"


def _selected(files: _Files) -> list[str]:
    names = [os.path.relpath(path, files.root) for path in files.images]
    for name, mask in zip(names, files.masks):
        if os.path.relpath(mask, files.masks_root) != _mask_of(name):
            raise NotNative(
                "has masks that aren't called as their images",
                "folders as tsock-producer --masks reads them",
            )
    return names


# ---------------------------------------------------------------------------
# Transforms of an image and its mask


class _Pairs:
    """Images and masks as they are before the transform."""

    def __init__(self, files: _Files) -> None:
        self._files, self._open = files, known("PIL.Image:open")

    def image(self, i: int) -> Any:
        return self._open(self._files.images[i]).convert("RGB")

    def mask(self, i: int) -> Any:
        return known("torchvision.tv_tensors:Mask")(
            self._open(self._files.masks[i])
        )


def _same(mine: Any, its: Any) -> bool:
    """The same image, and the mask's numbers in whatever dtype?"""
    kind = known("torch:Tensor")
    return (
        trial.equal(mine[0], its[0])
        and isinstance(mine[1], kind)
        and mine[1].numel() == its[1].numel()
        and bool((mine[1].flatten() == its[1].flatten()).all())
    )


def _transform(data: Any, inner: Any, pairs: _Pairs) -> Any:
    """The transform of v2 that images and masks get together."""
    function = data.transforms
    if function is None:
        raise NotNative("has no transforms", "transforms= of torchvision's v2")
    if isinstance(function, known(_STANDARD)):
        raise NotNative(
            "has transforms of images and of masks, each by itself",
            "transforms=, and " + _WRAP,
        )
    one = trial.is_transform(function)
    found = [function] if one else trial.transforms_in(function)
    v2 = [t for t in found if ".v2." in type(t).__module__]
    if len(found) != 1 or v2 != found:
        raise NotNative("has transforms that aren't one Compose of v2", _WRAP)
    if one and data is not inner:
        return function
    given = range(min(trial.SAMPLES, len(data)))
    if not trial.agree(
        data.__getitem__,
        lambda i: found[0](pairs.image(i), pairs.mask(i)),
        given,
        _same,
    ):
        raise NotNative(
            "has masks that aren't tv_tensors.Mask to its transforms, or "
            "transforms that do more",
            _WRAP,
        )
    return found[0]


def source(data: Any) -> Source:
    """Of the data set, or of one that is wrapped for v2."""
    wrapped = gets_by(data, WRAPPED)
    inner = data._dataset if wrapped else data
    take = [of for path, of in _OF.items() if gets_by(inner, path)]
    if not take:
        raise NotNative(
            "wraps a %s" % type(inner).__qualname__,
            "VOCSegmentation or Cityscapes",
        )
    if not len(inner):
        raise NotNative("has no samples", "some")
    files = take[0](inner)
    names, pairs = _selected(files), _Pairs(files)
    return Source(
        what="%s of %s: {:,} images with masks".format(len(names))
        % (type(inner).__qualname__, inner.root),
        options={
            "dataset": "images",
            "root": files.root,
            "masks": files.masks_root,
            "select": tables.selected(names),
        },
        length=len(names),
        transform=_transform(data, inner, pairs),
        get=data.__getitem__,
        image=pairs.image,
        masks=True,
        name="%s-%s" % (type(inner).__name__.lower(), _part(inner)),
    )


def _part(data: Any) -> str:
    return str(getattr(data, "image_set", getattr(data, "split", "")))


# ---------------------------------------------------------------------------
# Batches


class WithMasks(DataLoader[Any]):
    """A loader whose masks have the dtype and shape that the script's have."""

    def __init__(
        self, name: str, batch_size: Optional[int], kind: MaskKind, **more: Any
    ) -> None:
        self._kind = kind
        self._change = self._masked
        super().__init__(name, batch_size, **more)

    def _masked(self, made: list[Any]) -> list[Any]:
        if "mask" in self.fields:
            k, kind = self.fields.index("mask"), self._kind
            mask = made[k][:, None] if kind.channel else made[k]
            if hasattr(mask, "astype"):  # NumPy's
                made[k] = mask.astype(kind.dtype, copy=False)
            else:
                made[k] = mask.to(known("torch:" + kind.dtype))
        return made
