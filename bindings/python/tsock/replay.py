# SPDX-License-Identifier: MIT
"""A sample made again by torchvision, with the producer's draws."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional, Union

from . import replay_noise, replay_timm

_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|([-+.\d][-+.\w]*)|(.))", re.S)

# Operations of RandAugment and its kind, as draws number them.
_POLICY = (
    "Identity",
    "ShearX",
    "ShearY",
    "TranslateX",
    "TranslateY",
    "Rotate",
    "Brightness",
    "Color",
    "Contrast",
    "Sharpness",
    "Posterize",
    "Solarize",
    "AutoContrast",
    "Equalize",
    "Invert",
)


class Operation:
    """An operation of a recipe, read from the recipe's full text."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.args: dict[str, Any] = {}
        self.children: list[Operation] = []
        self.views: list[list[Operation]] = []  # of Views alone

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def own(self) -> int:
        """How many numbers it draws itself."""
        count = _DRAWS[self.name]
        return count if isinstance(count, int) else count(self)


class _Reader:
    """Reads what `tsock-producer --dry-run` prints as the transform."""

    def __init__(self, text: str) -> None:
        self._tokens = [m.groups() for m in _TOKEN.finditer(text.strip())]
        self._at = 0

    def _next(self) -> tuple[Any, ...]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _is(self, sign: str) -> bool:
        return (
            self._at < len(self._tokens) and self._tokens[self._at][2] == sign
        )

    def _value(self) -> Any:
        word, number, sign = self._next()
        if word:
            return {"None": None, "True": True, "False": False}.get(word, word)
        if number:
            try:
                value = float(number)
            except ValueError:
                return number  # the policy 3a
            return int(value) if value.is_integer() else value
        assert sign == "("
        values = []
        while not self._is(")"):
            if self._is(","):
                self._next()
            values.append(self._value())
        self._next()
        return tuple(values)

    def operation(self) -> Operation:
        op, times = Operation(self._next()[0] or ""), 1
        self._next()
        while not self._is(")"):
            if self._is(","):
                self._next()
            elif self._is("["):
                self._next()
                op.children = self.operations()
                op.views += times * [op.children]
                times = 1
                self._next()
            elif self._tokens[self._at][1]:
                # "8 * [...]"
                times = int(self._next()[1])
                self._next()
            else:
                name = self._next()[0] or ""
                self._next()
                op.args[name] = self._value()
        self._next()
        return op

    def operations(self) -> list[Operation]:
        found = []
        while self._at < len(self._tokens) and not self._is("]"):
            found.append(self.operation())
        return found


def operations(text: str) -> list[Operation]:
    """The operations of a recipe's full text."""
    return _Reader(text).operations()


# ---------------------------------------------------------------------------
# What each does, with torchvision's functions on a picture of Pillow's


def _module(name: str) -> Any:
    try:
        return importlib.import_module("torchvision.transforms" + name)
    except ImportError as e:
        raise ImportError("tsock.replay() needs torchvision") from e


def _functional() -> Any:
    return _module(".functional")


def _mode(name: str) -> Any:
    return _module("").InterpolationMode(name)


def _fill(value: Any) -> Any:
    if value is None:
        return 0
    return list(value) if isinstance(value, tuple) else value


def _resize(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    size = op["size"]
    if size is None:
        return _module(".v2.functional").resize(
            image, None, _mode(op["interpolation"]), op["max_size"]
        )
    return _functional().resize(
        image,
        list(size) if isinstance(size, tuple) else size,
        _mode(op["interpolation"]),
        op["max_size"],
    )


def _random_resize(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    return _functional().resize(
        image, [int(draws[0])], _mode(op["interpolation"])
    )


def _resized_crop(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    top, left, height, width = map(int, draws)
    return _functional().resized_crop(
        image,
        top,
        left,
        height,
        width,
        list(op["size"]),
        _mode(op["interpolation"]),
    )


def _center_crop(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    return _functional().center_crop(image, list(op["size"]))


def _crop_or_pad(image: Any, op: Operation, top: int, left: int) -> Any:
    height, width = op["size"]
    sides = [-left, -top, left + width - image.width, top + height - image.height]
    image = _functional().pad(
        image, [max(0, n) for n in sides], _fill(op["fill"]), op["padding_mode"]
    )
    return _functional().crop(image, max(0, top), max(0, left), height, width)


def _center_crop_or_pad(
    image: Any, op: Operation, draws: Sequence[float]
) -> Any:
    top, left = (
        round((edge - size) / 2) if edge > size else -((size - edge) // 2)
        for edge, size in zip((image.height, image.width), op["size"])
    )
    return _crop_or_pad(image, op, top, left)


def _random_crop_or_pad(
    image: Any, op: Operation, draws: Sequence[float]
) -> Any:
    return _crop_or_pad(image, op, *map(int, draws))


def _keep_ratio(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    size, mode = [int(n) for n in draws[:2]], _mode(_FILTERS[int(draws[2])])
    return _functional().resize(image, size, mode)


def _sides(padding: Any) -> list[int]:
    if isinstance(padding, tuple):
        return list(padding) * (4 // len(padding))
    return [padding or 0] * 4


def _pad(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    return _functional().pad(
        image, _sides(op["padding"]), _fill(op["fill"]), op["padding_mode"]
    )


def _random_crop(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    left, top, right, bottom = _sides(op["padding"])
    height, width = op["size"]
    if op["pad_if_needed"]:
        x = max(0, width - (image.width + left + right))
        y = max(0, height - (image.height + top + bottom))
        left, right, top, bottom = left + x, right + x, top + y, bottom + y
    image = _functional().pad(
        image, [left, top, right, bottom], _fill(op["fill"]), op["padding_mode"]
    )
    return _functional().crop(
        image, int(draws[0]), int(draws[1]), height, width
    )


def _rotation(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    center = op["center"]
    return _functional().rotate(
        image,
        draws[0],
        _mode(op["interpolation"]),
        op["expand"],
        None if center is None else list(center),
        _fill(op["fill"]),
    )


def _affine(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    center = op["center"]
    return _functional().affine(
        image,
        draws[0],
        [int(draws[1]), int(draws[2])],
        draws[3],
        [draws[4], draws[5]],
        _mode(op["interpolation"]),
        _fill(op["fill"]),
        None if center is None else list(center),
    )


def _perspective(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    right, bottom = image.width - 1, image.height - 1
    start = [[0, 0], [right, 0], [right, bottom], [0, bottom]]
    end = [[int(draws[k]), int(draws[k + 1])] for k in (1, 3, 5, 7)]
    return _functional().perspective(
        image, start, end, _mode(op["interpolation"]), _fill(op["fill"])
    )


def _blur(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    size = op["kernel_size"]
    return _functional().gaussian_blur(
        image, list(size) if isinstance(size, tuple) else [size], [draws[0]]
    )


def _pil_blur(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    blur = importlib.import_module("PIL.ImageFilter").GaussianBlur
    return image.filter(blur(draws[1]))


def _jitter(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    names = ("brightness", "contrast", "saturation", "hue")
    for part in map(int, draws[:4]):
        if op[names[part]] is not None:
            change = getattr(_functional(), "adjust_" + names[part])
            image = change(image, draws[4 + part])
    return image


def _erase(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    top, left, height, width = map(int, draws[1:5])
    value = op["value"]
    channels = len(image.getbands())
    if not height or not width:
        return image
    if isinstance(value, str):
        size = (height, width) if value == "random" else (1, 1)
        box = replay_noise.noise(int(draws[5]), op["noise"], *size, channels)
        pil = importlib.import_module("PIL.Image")
        made = pil.fromarray(box if channels == 3 else box[..., 0])
        image = image.copy()
        image.paste(made.resize((width, height), 0), (left, top))
        return image
    values = value if isinstance(value, tuple) else (value,) * channels
    colour = tuple(int(v) & 255 for v in values)
    image = image.copy()
    image.paste(
        colour if channels == 3 else colour[0],
        (left, top, left + width, top + height),
    )
    return image


def _policy(
    image: Any, op: Operation, name: str, magnitude: float
) -> Any:
    F, fill = _functional(), _fill(op["fill"])
    mode = _mode(op["interpolation"])

    def affine(shear: list[float], by: list[int], center: Any) -> Any:
        return F.affine(image, 0.0, by, 1.0, shear, mode, fill, center)

    degrees = math.degrees(math.atan(magnitude))
    by: dict[str, Callable[[], Any]] = {
        "Identity": lambda: image,
        "ShearX": lambda: affine([degrees, 0.0], [0, 0], [0, 0]),
        "ShearY": lambda: affine([0.0, degrees], [0, 0], [0, 0]),
        "TranslateX": lambda: affine([0.0, 0.0], [int(magnitude), 0], None),
        "TranslateY": lambda: affine([0.0, 0.0], [0, int(magnitude)], None),
        "Rotate": lambda: F.rotate(image, magnitude, mode, fill=fill),
        "Brightness": lambda: F.adjust_brightness(image, 1.0 + magnitude),
        "Color": lambda: F.adjust_saturation(image, 1.0 + magnitude),
        "Contrast": lambda: F.adjust_contrast(image, 1.0 + magnitude),
        "Sharpness": lambda: F.adjust_sharpness(image, 1.0 + magnitude),
        "Posterize": lambda: replay_timm.posterize(image, int(magnitude)),
        "Solarize": lambda: F.solarize(image, magnitude),
        "AutoContrast": lambda: F.autocontrast(image),
        "Equalize": lambda: F.equalize(image),
        "Invert": lambda: F.invert(image),
    }
    return by[name]()


def _rand_augment(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    for k in range(0, len(draws), 2):
        image = _policy(image, op, _POLICY[int(draws[k])], draws[k + 1])
    return image


def _auto_augment(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    transforms = _module("")
    policy = transforms.AutoAugmentPolicy(op["policy"])
    pairs = transforms.AutoAugment(policy).policies
    for k, step in enumerate(pairs[int(draws[0])]):
        done, magnitude = draws[1 + 2 * k : 3 + 2 * k]
        if done:
            image = _policy(image, op, step[0], magnitude)
    return image


# In the order in which draws number them: RandomResizedCropAndInterpolation's.
_FILTERS = ("bilinear", "nearest", "box", "hamming", "bicubic", "lanczos")

def _timm_crop(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    top, left, height, width = map(int, draws[:4])
    mode = _mode(_FILTERS[int(draws[4])])
    return _functional().resized_crop(
        image, top, left, height, width, list(op["size"]), mode
    )


def _pil_mix(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    np = importlib.import_module("numpy")
    weights, chains = replay_timm.chains_of(op["mixture_width"], 2, draws)
    mixed = np.float32(draws[0]) * np.asarray(image, dtype=np.float32)
    for weight, chain in zip(weights, chains):
        version = image
        for k in range(0, len(chain), 2):
            if chain[k] >= 0:
                version = _policy(
                    version, op, _POLICY[int(chain[k])], chain[k + 1]
                )
        mixed += weight * np.asarray(version, dtype=np.float32)
    pil = importlib.import_module("PIL.Image")
    return pil.fromarray(mixed.astype(np.uint8))


_Step = Callable[[Any, Operation, Sequence[float]], Any]


def _flip(name: str) -> _Step:
    return lambda image, op, draws: (
        getattr(_functional(), name)(image) if draws[0] else image
    )


def _if_drawn(step: _Step) -> _Step:
    """What is done only if the first number drawn isn't 0."""
    return lambda image, op, draws: (
        step(image, op, draws) if draws[0] else image
    )


def _colour(name: str, *args: str) -> _Step:
    """torchvision's function of that name, if it was drawn."""
    return _if_drawn(
        lambda image, op, draws: getattr(_functional(), name)(
            image, *[op[arg] for arg in args]
        )
    )


def _grayscale(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    return _functional().to_grayscale(image, op["num_output_channels"])


def _random_grayscale(
    image: Any, op: Operation, draws: Sequence[float]
) -> Any:
    return _functional().rgb_to_grayscale(image, len(image.getbands()))


_STEPS: dict[str, _Step] = {
    "Resize": _resize,
    "RandomResize": _random_resize,
    "RandomResizedCrop": _resized_crop,
    "RandomResizedCropAndInterpolation": _timm_crop,
    "TimmRandAugment": replay_timm.rand_augment,
    "TimmAutoAugment": replay_timm.auto_augment,
    "TimmAugMix": replay_timm.aug_mix,
    "PILAugMix": _pil_mix,
    "CenterCrop": _center_crop,
    "ResizeKeepRatio": _keep_ratio,
    "CenterCropOrPad": _center_crop_or_pad,
    "RandomCropOrPad": _random_crop_or_pad,
    "Pad": _pad,
    "RandomCrop": _random_crop,
    "RandomHorizontalFlip": _flip("hflip"),
    "RandomVerticalFlip": _flip("vflip"),
    "RandomRotation": _rotation,
    "RandomAffine": _affine,
    "RandomPerspective": _if_drawn(_perspective),
    "GaussianBlur": _blur,
    "PILGaussianBlur": _if_drawn(_pil_blur),
    "ColorJitter": _jitter,
    "Grayscale": _grayscale,
    "RandomGrayscale": _if_drawn(_random_grayscale),
    "RandomSolarize": _colour("solarize", "threshold"),
    "RandomPosterize": _colour("posterize", "bits"),
    "RandomInvert": _colour("invert"),
    "RandomAutocontrast": _colour("autocontrast"),
    "RandomEqualize": _colour("equalize"),
    "RandomAdjustSharpness": _colour("adjust_sharpness", "sharpness_factor"),
    "RandomErasing": _if_drawn(_erase),
    "RandAugment": _rand_augment,
    "TrivialAugmentWide": _rand_augment,
    "AutoAugment": _auto_augment,
}


def _deepest(depth: int) -> int:
    """How many operations of a chain of AugMix there are draws for."""
    return depth if depth > 0 else 3


# How many numbers each draws, without those of the operations in it.
_DRAWS: dict[str, Union[int, Callable[[Operation], int]]] = {
    "Resize": 0,
    "CenterCrop": 0,
    "CenterCropOrPad": 0,
    "RandomCropOrPad": 2,
    "ResizeKeepRatio": 3,
    "Pad": 0,
    "Grayscale": 0,
    "RandomResizedCrop": 4,
    "RandomResizedCropAndInterpolation": 5,
    "TimmRandAugment": lambda op: 3 * op["n"],
    "TimmAutoAugment": 7,
    "TimmAugMix": lambda op: 1 + op["w"] * (1 + 3 * _deepest(op["d"])),
    "PILAugMix": lambda op: (
        1 + op["mixture_width"] * (1 + 2 * _deepest(op["chain_depth"]))
    ),
    "RandomCrop": 2,
    "RandomAffine": 6,
    "RandomPerspective": 9,
    "PILGaussianBlur": 2,
    "ColorJitter": 8,
    "RandomErasing": lambda op: 5 + isinstance(op["value"], str),
    "RandAugment": lambda op: 2 * op["num_ops"],
    "TrivialAugmentWide": 2,
    "AutoAugment": 5,
    "RandomOrder": lambda op: len(op.children),
}
for _name in (*_STEPS, "RandomApply", "RandomChoice"):
    _DRAWS.setdefault(_name, 1)


def _count(op: Operation) -> int:
    return op.own() + sum(_count(child) for child in op.children)


def _chosen(op: Operation, draws: Sequence[float]) -> list[int]:
    if op.name == "RandomApply":
        return list(range(len(op.children))) if draws[0] else []
    return [int(k) for k in draws]


def _run(
    image: Any, op: Operation, draws: Sequence[float], how: dict[str, _Step]
) -> Any:
    own = draws[: op.own()]
    if not op.children:
        return how[op.name](image, op, own)
    at, starts = len(own), []
    for child in op.children:
        starts.append(at)
        at += _count(child)
    for k in _chosen(op, own):
        child = op.children[k]
        drawn = draws[starts[k] : starts[k] + _count(child)]
        image = _run(image, child, drawn, how)
    return image


def _steps(
    image: Any,
    steps: Sequence[Operation],
    draws: Sequence[float],
    how: dict[str, _Step],
) -> Any:
    at = 0
    for op in steps:
        count = _count(op)
        image = _run(image, op, draws[at : at + count], how)
        at += count
    return image


def _beside(
    image: Any, view: list[Operation], draws: list[float], mask: Any, boxes: Any
) -> Iterator[Any]:
    beside = importlib.import_module(".replay_beside", __package__)
    if mask is not None:
        beside.check(view)
        yield _steps(beside.mask_of(mask), view, draws, beside.STEPS)
    if boxes is not None:
        beside.check(view, "boxes")
        these = beside.boxes_of(boxes, image.size)
        yield from beside.kept_of(_steps(these, view, draws, beside.STEPS))


def replay(
    image: Any,
    draws: Sequence[float],
    transform: str,
    mask: Any = None,
    boxes: Any = None,
) -> Any:
    """What the producer made of an image, made by torchvision.

    image      the image of the sample's file, a PIL image of mode RGB
    draws      the sample's numbers of the stream's field "draws"
    transform  the recipe's full text, as `loader.transform` has it
    mask       with masks=, the mask of the file: Image.open(path), an array or
               a tensor
    boxes      with boxes=, those of the table's row, [n, 4]

    Returns a PIL image, whose bytes are those of the sample, but for what
    `tsock-producer --transform help` says of an operation; of a transform with
    Views a tuple of such images, the fields "image", "image2", ...; with a mask
    (image, mask), the latter a tv_tensors.Mask made by torchvision's v2; with
    boxes (image, boxes, kept): those that are left, and of each one that the row
    has whether it is, by v2's ClampBoundingBoxes and SanitizeBoundingBoxes.
    torchvision's pixels are those of the Pillow that is installed: the
    producer's are Pillow 13's, or with --pillow 12 those of an older one.
    """
    values = [float(v) for v in draws]
    steps = operations(transform)
    several = bool(steps) and steps[0].name == "Views"
    views = steps[0].views if several else [steps]
    counts = [sum(map(_count, view)) for view in views]
    if sum(counts) != len(values):
        raise ValueError(
            "replay: the transform draws %d numbers for a sample, and %d were "
            "given" % (sum(counts), len(values))
        )
    images = []
    for view, count in zip(views, counts):
        images.append(_steps(image, view, values[:count], _STEPS))
        if mask is not None or boxes is not None:
            return (images[0], *_beside(image, view, values, mask, boxes))
        values = values[count:]
    return tuple(images) if several else images[0]
