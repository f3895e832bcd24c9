# SPDX-License-Identifier: MIT
"""What a recipe does to a mask or to boxes, by torchvision's v2 on a
tv_tensors.Mask or tv_tensors.BoundingBoxes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from .replay import _STEPS, Operation, _mode, _sides

_Step = Callable[[Any, Operation, Sequence[float]], Any]

# They change colours, of which masks and boxes have none.
_COLOURS = (
    "GaussianBlur",
    "PILGaussianBlur",
    "ColorJitter",
    "Grayscale",
    "RandomGrayscale",
    "RandomSolarize",
    "RandomPosterize",
    "RandomInvert",
    "RandomAutocontrast",
    "RandomEqualize",
    "RandomAdjustSharpness",
    "RandomErasing",
)


def _functional() -> Any:
    try:
        return importlib.import_module("torchvision.transforms.v2.functional")
    except ImportError as e:
        raise ImportError("tsock.replay() needs torchvision") from e


def _size(mask: Any) -> tuple[int, int]:
    """Height and width, of the image that boxes are in."""
    height, width = getattr(mask, "canvas_size", mask.shape)
    return height, width


def _fill(op: Operation) -> Any:
    if op["mask_fill"] is not None:
        return op["mask_fill"]
    return 0 if isinstance(op["fill"], tuple) else int(op["fill"] or 0)


def _resize(mask: Any, op: Operation, draws: Sequence[float]) -> Any:
    size = op["size"]
    if size is not None:
        size = list(size) if isinstance(size, tuple) else [size]
    return _functional().resize(
        mask, size, _mode("nearest"), op["max_size"]
    )


def _random_resize(mask: Any, op: Operation, draws: Sequence[float]) -> Any:
    return _functional().resize(mask, [int(draws[0])], _mode("nearest"))


def _resized_crop(mask: Any, op: Operation, draws: Sequence[float]) -> Any:
    top, left, height, width = map(int, draws[:4])
    return _functional().resized_crop(
        mask, top, left, height, width, list(op["size"]), _mode("nearest")
    )


def _center_crop(mask: Any, op: Operation, draws: Sequence[float]) -> Any:
    height, width = op["size"]
    high, wide = _size(mask)
    x, y = max(0, width - wide), max(0, height - high)
    if hasattr(mask, "canvas_size") and (x or y):
        # The image's border; v2 moves boxes by another pixel where it is odd.
        sides = [x // 2, y // 2, (x + 1) // 2, (y + 1) // 2]
        mask = _functional().pad(mask, sides)
    return _functional().center_crop(mask, [height, width])


def _keep_ratio(mask: Any, op: Operation, draws: Sequence[float]) -> Any:
    size = [int(n) for n in draws[:2]]
    return _functional().resize(mask, size, _mode("nearest"))


def _crop_or_pad(mask: Any, op: Operation, top: int, left: int) -> Any:
    height, width = op["size"]
    high, wide = _size(mask)
    sides = [-left, -top, left + width - wide, top + height - high]
    mask = _padded(mask, op, [max(0, n) for n in sides])
    return _functional().crop(mask, max(0, top), max(0, left), height, width)


def _center_crop_or_pad(
    mask: Any, op: Operation, draws: Sequence[float]
) -> Any:
    top, left = (
        round((edge - size) / 2) if edge > size else -((size - edge) // 2)
        for edge, size in zip(_size(mask), op["size"])
    )
    return _crop_or_pad(mask, op, top, left)


def _random_crop_or_pad(
    mask: Any, op: Operation, draws: Sequence[float]
) -> Any:
    return _crop_or_pad(mask, op, *map(int, draws))


def _padded(mask: Any, op: Operation, sides: list[int]) -> Any:
    left, top, right, bottom = sides
    height, width = _size(mask)
    mode = op["padding_mode"]
    inside = max(left, right) < width and max(top, bottom) < height
    if inside or mode == "constant":
        return _functional().pad(mask, sides, _fill(op), mode)
    # torch refuses to mirror a mask more than once, which Pillow's way does.
    numpy, torch = map(importlib.import_module, ("numpy", "torch"))
    padded = numpy.pad(mask.numpy(), ((top, bottom), (left, right)), mode)
    return type(mask)(torch.from_numpy(padded))


def _pad(mask: Any, op: Operation, draws: Sequence[float]) -> Any:
    return _padded(mask, op, _sides(op["padding"]))


def _random_crop(mask: Any, op: Operation, draws: Sequence[float]) -> Any:
    left, top, right, bottom = _sides(op["padding"])
    height, width = op["size"]
    if op["pad_if_needed"]:
        high, wide = _size(mask)
        x = max(0, width - (wide + left + right))
        y = max(0, height - (high + top + bottom))
        left, right, top, bottom = left + x, right + x, top + y, bottom + y
    mask = _padded(mask, op, [left, top, right, bottom])
    return _functional().crop(mask, int(draws[0]), int(draws[1]), height, width)


def _center(op: Operation) -> Any:
    return None if op["center"] is None else list(op["center"])


def _rotation(mask: Any, op: Operation, draws: Sequence[float]) -> Any:
    return _functional().rotate(
        mask, draws[0], center=_center(op), fill=_fill(op)
    )


def _affine(mask: Any, op: Operation, draws: Sequence[float]) -> Any:
    return _functional().affine(
        mask,
        draws[0],
        [int(draws[1]), int(draws[2])],
        draws[3],
        [draws[4], draws[5]],
        fill=_fill(op),
        center=_center(op),
    )


def _perspective(mask: Any, op: Operation, draws: Sequence[float]) -> Any:
    height, width = _size(mask)
    if not draws[0] or min(height, width) == 1:
        return mask
    right, bottom = width - 1, height - 1
    start = [[0, 0], [right, 0], [right, bottom], [0, bottom]]
    end = [[int(draws[k]), int(draws[k + 1])] for k in (1, 3, 5, 7)]
    return _functional().perspective(mask, start, end, fill=_fill(op))


def _flip(name: str) -> _Step:
    return lambda mask, op, draws: (
        getattr(_functional(), name)(mask) if draws[0] else mask
    )


STEPS: dict[str, _Step] = {
    "Resize": _resize,
    "RandomResize": _random_resize,
    "RandomResizedCrop": _resized_crop,
    "RandomResizedCropAndInterpolation": _resized_crop,
    "CenterCrop": _center_crop,
    "ResizeKeepRatio": _keep_ratio,
    "CenterCropOrPad": _center_crop_or_pad,
    "RandomCropOrPad": _random_crop_or_pad,
    "Pad": _pad,
    "RandomCrop": _random_crop,
    "RandomRotation": _rotation,
    "RandomAffine": _affine,
    "RandomPerspective": _perspective,
    "RandomHorizontalFlip": _flip("horizontal_flip"),
    "RandomVerticalFlip": _flip("vertical_flip"),
}
for _name in _COLOURS:
    STEPS[_name] = lambda mask, op, draws: mask


def mask_of(given: Any) -> Any:
    """A PIL image, an array or a tensor, as a tv_tensors.Mask."""
    numpy, torch = map(importlib.import_module, ("numpy", "torch"))
    mask = importlib.import_module("torchvision.tv_tensors").Mask
    numbers = numpy.array(given)
    if numbers.ndim != 2:
        raise ValueError(
            "replay: a mask has one number for each pixel, and this one has "
            "the shape %r" % (numbers.shape,)
        )
    return mask(torch.from_numpy(numbers.astype(numpy.uint8)))


def boxes_of(given: Any, size: tuple[int, int]) -> Any:
    """Rows of left, top, right and bottom, of an image of this width and
    height."""
    torch = importlib.import_module("torch")
    tv_tensors = importlib.import_module("torchvision.tv_tensors")
    return tv_tensors.BoundingBoxes(
        torch.as_tensor(given, dtype=torch.float32).reshape(-1, 4),
        format="XYXY",
        canvas_size=(size[1], size[0]),
    )


def kept_of(boxes: Any) -> tuple[Any, Any]:
    """The boxes that the sample still has, and which these were."""
    clamped = _functional().clamp_bounding_boxes(boxes)
    left, kept = _functional().sanitize_bounding_boxes(clamped)
    return left, kept


def check(steps: Sequence[Operation], what: str = "masks") -> None:
    """A ValueError for what isn't done to masks, or to boxes."""
    for op in steps:
        expands = op.args.get("expand")
        if (op.name in _STEPS and op.name not in STEPS) or expands:
            raise ValueError("replay: %s can't be done to %s" % (op.name, what))
        check(op.children, what)
