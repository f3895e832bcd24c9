# SPDX-License-Identifier: MIT
"""Transforms of torchvision and timm that run with the draws of a sample in
place of their own: their source of random numbers, or the function that draws
parameters, is replaced while they run.
"""
import contextlib
import math
import random
from unittest import mock

import numpy as np
import torch
from torchvision.transforms.v2 import functional as v2_functional
from torchvision.transforms.functional import _get_perspective_coeffs


def whole(draws):
    return [int(v) for v in draws]


# ---------------------------------------------------------------------------
# Parameters, as v1 and v2 of torchvision name them


def corners(draws):
    return [whole(draws[k:k + 2]) for k in (1, 3, 5, 7)]


def start(image):
    right, bottom = image.width - 1, image.height - 1
    return [[0, 0], [right, 0], [right, bottom], [0, bottom]]


OF_V1 = {
    "RandomResizedCrop": lambda t, image, d: tuple(whole(d)),
    "RandomCrop": lambda t, image, d: (*whole(d), *t.size),
    "RandomRotation": lambda t, image, d: d[0],
    "RandomAffine": lambda t, image, d: (
        d[0], tuple(whole(d[1:3])), d[3], (d[4], d[5])),
    "RandomPerspective": lambda t, image, d: (start(image), corners(d)),
    "GaussianBlur": lambda t, image, d: d[0],
    "ColorJitter": lambda t, image, d: (
        np.array(whole(d[:4])),
        *(None if getattr(t, name) is None else v for name, v in
          zip(("brightness", "contrast", "saturation", "hue"), d[4:]))),
}


def crop_of_v2(t, image, draws):
    """v2 has the padding among what is drawn."""
    height, width = t.size
    left, right, top, bottom = t.padding or [0] * 4
    if t.pad_if_needed:
        more = max(0, width - (image.width + left + right))
        left, right = left + more, right + more
        more = max(0, height - (image.height + top + bottom))
        top, bottom = top + more, bottom + more
    padding = [left, top, right, bottom]
    return dict(needs_crop=True, top=int(draws[0]), left=int(draws[1]),
                height=height, width=width, needs_pad=any(padding),
                padding=padding)


OF_V2 = {
    "RandomResizedCrop": lambda t, image, d: dict(
        zip(("top", "left", "height", "width"), whole(d))),
    "RandomCrop": crop_of_v2,
    "RandomRotation": lambda t, image, d: dict(angle=d[0]),
    "RandomAffine": lambda t, image, d: dict(
        angle=d[0], translate=tuple(whole(d[1:3])), scale=d[3],
        shear=(d[4], d[5])),
    "RandomPerspective": lambda t, image, d: dict(
        coefficients=_get_perspective_coeffs(start(image), corners(d))),
    "GaussianBlur": lambda t, image, d: dict(sigma=[d[0], d[0]]),
    "ColorJitter": lambda t, image, d: dict(
        fn_idx=np.array(whole(d[:4])), **{
            name + "_factor": None if getattr(t, name) is None else v
            for name, v in zip(("brightness", "contrast", "saturation", "hue"),
                               d[4:])}),
}
COUNTS = {"RandomResizedCrop": 4, "RandomCrop": 2, "RandomRotation": 1,
          "RandomAffine": 6, "RandomPerspective": 9, "GaussianBlur": 1,
          "ColorJitter": 8}


def is_v2(transform):
    return ".v2." in type(transform).__module__


def with_parameters(transform, image, draws):
    """It runs with these parameters."""
    name = type(transform).__name__
    if is_v2(transform):
        params = OF_V2[name](transform, image, draws)
        made = mock.patch.object(transform, "make_params", lambda _: params,
                                 create=True)
    else:
        params = OF_V1[name](transform, image, draws)
        made = mock.patch.object(transform, "get_params", lambda *_: params,
                                 create=True)
    with made:
        return transform(image)


# ---------------------------------------------------------------------------
# What a source of random numbers gives, one after the other


class Source:
    """torch.rand() and torch.randint(), which have to be asked in this order."""

    def __init__(self, *values):
        self.values = list(values)

    def ask(self, kind):
        wanted, value = self.values.pop(0)
        assert wanted == kind, (kind, wanted, value)
        return torch.tensor(value)

    def run(self, transform, image):
        with mock.patch.object(torch, "rand", lambda *_: self.ask("part")), \
                mock.patch.object(torch, "randint",
                                  lambda *_, **__: self.ask("whole")):
            made = transform(image)
        assert not self.values, self.values
        return made


def chance(done):
    """A number that is below each p, or above."""
    return "part", -1.0 if done else 2.0


def flipped(transform, image, draws):
    return Source(chance(draws[0])).run(transform, image)


# ---------------------------------------------------------------------------
# torchvision's policies


def spaces(transform, image):
    """By name the magnitudes, or None, and whether they have signs."""
    size = (image.height, image.width)
    bins = getattr(transform, "num_magnitude_bins", 10)
    if is_v2(transform):
        space = transform._AUGMENTATION_SPACE
        return {name: (function(bins, *size), signed)
                for name, (function, signed) in space.items()}
    wide = type(transform).__name__ == "TrivialAugmentWide"
    space = transform._augmentation_space(*[bins] if wide else [bins, size])
    return {name: (levels if levels.ndim else None, signed)
            for name, (levels, signed) in space.items()}


def is_negative(magnitude):
    return math.copysign(1, magnitude) < 0


def sign(transform, magnitude):
    if is_v2(transform):
        return "part", 0.0 if is_negative(magnitude) else 1.0
    return "whole", int(is_negative(magnitude))


def nearest(name, levels, magnitude, transform):
    """Which of the levels this magnitude is."""
    levels = levels.double()
    if name == "Solarize" and is_v2(transform):
        levels = levels * 255
    far = (levels - abs(magnitude)).abs()
    assert far.min() < 1e-4, (name, magnitude, levels)
    return int(far.argmin())


def with_v1s_threshold(transform, magnitudes):
    """v2's Solarize with v1's threshold, which is a millionth below its own."""
    def threshold(image, threshold):
        own = min(magnitudes, key=lambda m: abs(m - threshold))
        assert abs(own - threshold) < 1e-4
        return solarize(image, threshold=own)

    if not is_v2(transform):
        return contextlib.nullcontext()
    solarize = v2_functional.solarize
    return mock.patch.object(v2_functional, "solarize", threshold)


def of_a_space(transform, image, draws):
    """RandAugment, TrivialAugmentWide."""
    space, values = spaces(transform, image), []
    for k in range(0, len(draws), 2):
        number, magnitude = int(draws[k]), draws[k + 1]
        name = list(space)[number]
        levels, signed = space[name]
        values.append(("whole", number))
        if levels is not None and not hasattr(transform, "num_ops"):
            values.append(("whole", nearest(name, levels, magnitude,
                                            transform)))
        if signed:
            values.append(sign(transform, magnitude))
    with with_v1s_threshold(transform, draws[1::2]):
        return Source(*values).run(transform, image)


def of_pairs(transform, image, draws):
    """AutoAugment."""
    number, done, magnitudes = int(draws[0]), draws[1::2], draws[2::2]
    if not is_v2(transform):
        parts = torch.tensor([chance(d)[1] for d in done])
        signs = torch.tensor([int(not is_negative(m)) for m in magnitudes])
        with mock.patch.object(transform, "get_params",
                               lambda _: (number, parts, signs)):
            return transform(image)
    values, space = [("whole", number)], spaces(transform, image)
    for k, (name, _, _) in enumerate(transform._policies[number]):
        values.append(chance(done[k]))
        if done[k] and space[name][1]:
            values.append(sign(transform, magnitudes[k]))
    with with_v1s_threshold(transform, magnitudes):
        return Source(*values).run(transform, image)


# ---------------------------------------------------------------------------
# timm's


class Given:
    """In place of timm's AugmentOps: functions with arguments."""

    def __init__(self, made, fill, names):
        self.functions, self.fill, self.names = made.NAME_TO_OP, fill, names

    def __call__(self, draws):
        """The operations of a chain, which are done."""
        return [self.step(self.names[int(draws[k])], draws[k + 1],
                          {0: 2, 1: 0, 4: 3}[int(draws[k + 2])])
                for k in range(0, len(draws), 3) if draws[k] >= 0]

    def step(self, name, by, resample):
        if name in ("Posterize", "SolarizeAdd"):
            by = int(by)
        function = self.functions[name]
        by = [] if name in ("AutoContrast", "Equalize", "Invert") else [by]
        return lambda image: function(image, *by, fillcolor=self.fill,
                                      resample=resample)


TIMM = ("AutoContrast Equalize Invert Rotate Posterize Solarize SolarizeAdd "
        "Color Contrast Brightness Sharpness ShearX ShearY TranslateXRel "
        "TranslateYRel Desaturate GaussianBlur").split()


def visible(draws, first):
    """Pillow 13 refuses to posterize to 0 bits."""
    return all((draws[k], draws[k + 1]) != (4, 0)
               for k in range(first, len(draws), 3))


def timm_crop(transform, image, draws):
    box = tuple(whole(draws[:4]))
    names = "bilinear nearest box hamming bicubic lanczos".split()

    def choice(filters):
        return next(f for f in filters if f.value == names[int(draws[4])])

    with mock.patch.object(transform, "get_params", lambda *_: box), \
            mock.patch.object(random, "choice", choice):
        return transform(image)


def timm_rand(transform, image, draws):
    from timm.data import auto_augment

    given = Given(auto_augment, transform.ops[0].kwargs["fillcolor"], TIMM)
    steps = given(draws)
    # Posterized to 0 bits is black.
    for k in range(0, len(draws), 3):
        if (draws[k], draws[k + 1]) == (4, 0):
            steps[sum(draws[at] >= 0 for at in range(0, k, 3))] = (
                lambda image: image.point(lambda _: 0))
    with mock.patch.object(np.random, "choice", lambda *_, **__: steps):
        return transform(image)


def timm_erasing(transform, image, draws):
    done, top, left, height, width = draws[:5]
    area = image.shape[-1] * image.shape[-2]
    if not done:
        return image
    parts = [height * width / area, math.log(height / width)]
    places = whole([top, left])
    with mock.patch.object(random, "random", lambda: -1.0), \
            mock.patch.object(random, "uniform", lambda *_: parts.pop(0)), \
            mock.patch.object(random, "randint", lambda *_: places.pop(0)):
        made = transform(image.clone())
    assert not parts and not places
    return made


# ---------------------------------------------------------------------------
# Those of programs, and the whole


def erasing(transform, image, draws):
    box, value = whole(draws[1:5]), torch.zeros(1)[:, None, None]
    if not draws[0]:
        return image
    assert transform.value == 0 or transform.value == [0.0]
    if is_v2(transform):
        made = mock.patch.object(transform, "make_params", lambda _: dict(
            zip("ijhw", box), v=value))
    else:
        made = mock.patch.object(transform, "get_params",
                                 lambda *_, **__: (*box, value))
    with made:
        return Source(chance(True)).run(transform, image)


def of_python(transform, image, draws):
    """A class that asks random.random(), then perhaps random.uniform()."""
    with mock.patch.object(random, "random",
                           lambda: chance(draws[0])[1]), \
            mock.patch.object(random, "uniform", lambda *_: draws[1]):
        return transform(image)


# How many numbers each draws, and how it runs with them.
STEPS = {
    **{name: (count, with_parameters) for name, count in COUNTS.items()},
    "RandomHorizontalFlip": (1, flipped),
    "RandomGrayscale": (1, flipped),
    "TrivialAugmentWide": (2, of_a_space),
    "RandAugment": (lambda t: 2 * t.num_ops, of_a_space),
    "AutoAugment": (5, of_pairs),
    "RandomErasing": (5, erasing),
    "Blur": (2, of_python),
    "Solarization": (1, of_python),
    "timm RandomResizedCropAndInterpolation": (5, timm_crop),
    "timm RandAugment": (lambda t: 3 * t.num_layers, timm_rand),
    "timm RandomErasing": (
        lambda t: 5 + (t.mode in ("rand", "pixel")), timm_erasing),
}


def run(transform, image, draws):
    """What it makes of the image with these draws, and the draws behind."""
    name = type(transform).__name__
    if name == "Compose":
        for step in transform.transforms:
            image, draws = run(step, image, draws)
        return image, draws
    if name == "RandomApply":
        done, draws, made = draws[0], draws[1:], image
        for step in transform.transforms:
            made, draws = run(step, made, draws)
        # It chooses itself whether that is done.
        children = mock.patch.object(transform, "transforms", [lambda _: made])
        with children:
            return Source(chance(done)).run(transform, image), draws
    if type(transform).__module__.startswith("timm."):
        name = f"timm {name}"
    if name not in STEPS:
        return transform(image), draws
    count, step = STEPS[name]
    count = count if isinstance(count, int) else count(transform)
    return step(transform, image, draws[:count]), draws[count:]
