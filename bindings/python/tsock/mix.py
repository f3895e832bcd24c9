# SPDX-License-Identifier: MIT
"""Augmentation of shared batches: each job changes its own copy of them.

    from tsock.mix import CutMix, MixUp, RandomErasing

    mix = MixUp(alpha=0.2, num_classes=1000, generator=mine)
    for batch in tsock.DataLoader("imagenet", 256, device="cuda:0"):
        images, labels = mix(batch)

Jobs that read one stream get the same bytes; with these classes each job
changes them in its own way, where its tensors are, on the host or a GPU.  They
do what the transforms of the same names in torchvision.transforms.v2 do, bit by
bit, with the same draws of random numbers, from torch's own generator or from a
given one. The draws are made on the CPU, so nothing ever waits for a GPU.

A batch is (images, labels) in two arguments, or a tuple, list or dict that has
the images first; in a dict labels are found by their name.  Everything else in
a batch is passed on.  Nothing is written into the batch, unless inplace=True.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, Callable, Optional, Sequence, Union

__all__ = ["CutMix", "MixUp", "RandomErasing"]

_ATTEMPTS = 10  # at a rectangle that fits


def _torch() -> Any:
    return importlib.import_module("torch")


# ---- a batch and its parts -----------------------------------------------


def _label_key(batch: dict[Any, Any]) -> Any:
    names = [key for key in batch if isinstance(key, str)]
    exact = [key for key in names if key.lower() in ("label", "labels")]
    found = exact or [key for key in names if "label" in key.lower()]
    if found:
        return found[0]
    raise ValueError(
        "the batch has no labels: its keys are %s"
        % ", ".join(repr(key) for key in batch)
    )


def _parts(batch: Any, labelled: bool) -> tuple[Any, Any]:
    """Where a batch has its images, and its labels: keys or places."""
    if isinstance(batch, dict):
        tensors = [key for key in batch if _is_tensor(batch[key])]
        if not tensors:
            raise TypeError("the batch has no tensors")
        return tensors[0], _label_key(batch) if labelled else None
    if not isinstance(batch, (tuple, list)) or len(batch) < 1 + labelled:
        raise TypeError(
            "it takes images and labels, or a batch of them, and was given "
            "a %s" % type(batch).__qualname__
        )
    return 0, 1 if labelled else None


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _torch().Tensor)


def _check(what: str, value: Any) -> None:
    if not _is_tensor(value):
        raise TypeError(
            "%s are a %s: they have to be a torch tensor"
            % (what, type(value).__qualname__)
        )


def _with(batch: Any, changed: dict[Any, Any]) -> Any:
    """A copy of the batch with other values at some keys or places."""
    if isinstance(batch, dict):
        return {key: changed.get(key, value) for key, value in batch.items()}
    made = [changed.get(i, value) for i, value in enumerate(batch)]
    if hasattr(batch, "_fields"):
        return type(batch)(*made)
    return tuple(made) if isinstance(batch, tuple) else made


class _Drawing:
    """Random numbers of a generator, or of torch's own."""

    def __init__(self, generator: Any) -> None:
        device = getattr(generator, "device", None)
        if device is not None and device.type != "cpu":
            raise ValueError(
                "generator is one of %s: draws are made on the CPU" % device
            )
        self.generator = generator

    def beta(self, alpha: float) -> float:
        """As torch.distributions.Beta(alpha, alpha) draws it."""
        torch = _torch()
        both = torch.tensor([[alpha, alpha]])
        drawn = torch._sample_dirichlet(both, generator=self.generator)
        return float(drawn[0, 0])

    def integer(self, end: int) -> int:
        drawn = _torch().randint(0, end, size=(1,), generator=self.generator)
        return int(drawn)

    def uniform(self, low: float, high: float) -> Any:
        empty = _torch().empty(1)
        return empty.uniform_(low, high, generator=self.generator)

    def chance(self) -> float:
        return float(_torch().rand(1, generator=self.generator))

    def normal(self, shape: Sequence[int]) -> Any:
        empty = _torch().empty(shape, dtype=_torch().float32)
        return empty.normal_(generator=self.generator)


# ---- two samples in one --------------------------------------------------


class _Mixing:
    """What MixUp and CutMix have in common."""

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        num_classes: Optional[int] = None,
        generator: Any = None,
        inplace: bool = False,
    ) -> None:
        if not alpha > 0:
            raise ValueError("alpha %r: it is greater than 0" % (alpha,))
        self.alpha = float(alpha)
        self.num_classes = num_classes
        self.generator = generator
        self.inplace = inplace
        self._draw = _Drawing(generator)

    def __call__(self, *inputs: Any) -> Any:
        """The batch, mixed; labels are [batch, num_classes] then."""
        batch = inputs if len(inputs) > 1 else inputs[0]
        at, labels_at = _parts(batch, True)
        images, labels = batch[at], batch[labels_at]
        _check("images", images)
        _check("labels", labels)
        self._check(images, labels)
        mixed, share = self._mix(images)
        return _with(batch, {at: mixed, labels_at: self._soft(labels, share)})

    def _mix(self, images: Any) -> tuple[Any, float]:
        """Images, and the share that each has of its own label."""
        raise NotImplementedError

    def _check(self, images: Any, labels: Any) -> None:
        if images.ndim != 4:
            raise ValueError(
                "images have the shape %s: it has to be [batch, channels, "
                "height, width]" % (tuple(images.shape),)
            )
        if labels.ndim not in (1, 2):
            raise ValueError(
                "labels have the shape %s: it has to be [batch] or [batch, "
                "classes]" % (tuple(labels.shape),)
            )
        if len(images) != len(labels):
            raise ValueError(
                "there are %d images and %d labels"
                % (len(images), len(labels))
            )
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError("labels are numbers of classes: give num_classes")
        if labels.ndim == 2 and self.num_classes not in (
            None,
            labels.shape[1],
        ):
            raise ValueError(
                "labels are of %d classes, and num_classes is %s"
                % (labels.shape[1], self.num_classes)
            )

    def _soft(self, labels: Any, share: float) -> Any:
        if labels.ndim == 1:
            one_hot = _torch().nn.functional.one_hot
            labels = one_hot(labels, num_classes=self.num_classes)
        if not labels.dtype.is_floating_point:
            labels = labels.float()
        return _blend(labels, share)

    def __repr__(self) -> str:
        return "%s(alpha=%g, num_classes=%s, inplace=%s)" % (
            type(self).__name__,
            self.alpha,
            self.num_classes,
            self.inplace,
        )


def _blend(tensor: Any, share: float) -> Any:
    """share of each row, and the rest of the row before it; the last one
    comes before the first."""
    return tensor.roll(1, 0).mul_(1.0 - share).add_(tensor.mul(share))


class MixUp(_Mixing):
    """Each image blended with another one of the batch, and their labels.

    alpha       of the Beta distribution that the share is drawn from
    num_classes where labels are numbers of classes
    generator   a torch.Generator of the CPU; None is torch's own
    inplace     write into the images that are given, for less memory
    """

    def _check(self, images: Any, labels: Any) -> None:
        super()._check(images, labels)
        if not images.dtype.is_floating_point:
            raise ValueError(
                "images are %s: MixUp needs a floating point dtype"
                % images.dtype
            )

    def _mix(self, images: Any) -> tuple[Any, float]:
        share = self._draw.beta(self.alpha)
        if not self.inplace:
            return _blend(images, share), share
        others = images.roll(1, 0).mul_(1.0 - share)
        return images.mul_(share).add_(others), share


class CutMix(_Mixing):
    """A rectangle of each image replaced by that of another image of the batch,
    and the same share of the labels.

    The arguments are MixUp's.
    """

    def _mix(self, images: Any) -> tuple[Any, float]:
        share = self._draw.beta(self.alpha)
        height, width = images.shape[-2:]
        x, y = self._draw.integer(width), self._draw.integer(height)
        half = 0.5 * math.sqrt(1.0 - share)
        dx, dy = int(half * width), int(half * height)
        x1, x2 = max(x - dx, 0), min(x + dx, width)
        y1, y2 = max(y - dy, 0), min(y + dy, height)
        # A copy, before anything is written.
        others = images[..., y1:y2, x1:x2].roll(1, 0)
        mixed = images if self.inplace else images.clone()
        mixed[..., y1:y2, x1:x2] = others
        return mixed, float(1.0 - (x2 - x1) * (y2 - y1) / (width * height))


# ---- a rectangle erased --------------------------------------------------


class RandomErasing:
    """A rectangle of an image filled with value.

    p           how probable it is
    scale       least and greatest part of the image's area
    ratio       least and greatest height, divided by the width
    value       a number, one for each channel, or "random": noise
    inplace     write into the images that are given
    each        each image of a batch has a draw of its own, in their order;
                False is torchvision's: one for all of them
    generator   a torch.Generator of the CPU; None is torch's own

    It takes images, or a batch that has them first.
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Union[float, str, Sequence[float]] = 0.0,
        inplace: bool = False,
        *,
        each: bool = False,
        generator: Any = None,
    ) -> None:
        if not 0.0 <= p <= 1.0:
            raise ValueError("p %r: it is a probability, 0 to 1" % (p,))
        if len(scale) != 2 or not 0 <= scale[0] <= scale[1] <= 1:
            raise ValueError("scale %r: it is two parts, 0 to 1" % (scale,))
        if len(ratio) != 2 or not 0 < ratio[0] <= ratio[1]:
            raise ValueError("ratio %r: it is two ratios" % (ratio,))
        if isinstance(value, str) and value != "random":
            raise ValueError("value %r: of words it takes 'random'" % value)
        self.p = p
        self.scale = scale
        self.ratio = ratio
        self.value: Optional[list[float]] = None  # noise
        if isinstance(value, (int, float)):
            self.value = [float(value)]
        elif not isinstance(value, str):
            self.value = [float(v) for v in value]
        self.inplace = inplace
        self.each = each
        self.generator = generator
        self._draw = _Drawing(generator)

    def __call__(self, *inputs: Any) -> Any:
        """The images, or the batch, with rectangles erased."""
        batch = inputs if len(inputs) > 1 else inputs[0]
        if _is_tensor(batch):
            return self._erase(batch)
        at, _ = _parts(batch, False)
        _check("images", batch[at])
        return _with(batch, {at: self._erase(batch[at])})

    def _erase(self, images: Any) -> Any:
        if images.ndim < 3 or (self.each and images.ndim < 4):
            raise ValueError(
                "images have the shape %s: it has to be [%schannels, height, "
                "width]" % (tuple(images.shape), "batch, " * self.each)
            )
        if self.value and len(self.value) not in (1, images.shape[-3]):
            raise ValueError(
                "value has %d numbers, and images have %d channels"
                % (len(self.value), images.shape[-3])
            )
        if not self.each:
            return self._one(images, self._own)
        images = self._own(images)
        for image in images:
            self._one(image, lambda image: image)
        return images

    def _own(self, images: Any) -> Any:
        """What may be written into."""
        return images if self.inplace else images.clone()

    def _one(self, images: Any, own: Callable[[Any], Any]) -> Any:
        if self._draw.chance() >= self.p:
            return images
        found = self._rectangle(*images.shape[-3:])
        if found is None:
            return images
        i, j, h, w, fill = found
        images = own(images)
        images[..., i : i + h, j : j + w] = fill
        return images

    def _rectangle(
        self, channels: int, height: int, width: int
    ) -> Optional[tuple[int, int, int, int, Any]]:
        torch, draw = _torch(), self._draw
        low, high = torch.log(torch.tensor(self.ratio)).tolist()
        for _ in range(_ATTEMPTS):
            area = height * width * draw.uniform(*self.scale).item()
            aspect = torch.exp(draw.uniform(low, high)).item()
            h = int(round(math.sqrt(area * aspect)))
            w = int(round(math.sqrt(area / aspect)))
            if not (h < height and w < width):
                continue
            if self.value is None:
                fill = draw.normal((channels, h, w))
            else:
                fill = torch.tensor(self.value)[:, None, None]
            i = draw.integer(height - h + 1)
            return i, draw.integer(width - w + 1), h, w, fill
        return None

    def __repr__(self) -> str:
        return "RandomErasing(p=%g, scale=%s, ratio=%s, value=%s, each=%s)" % (
            self.p,
            tuple(self.scale),
            tuple(self.ratio),
            "random" if self.value is None else self.value,
            self.each,
        )
