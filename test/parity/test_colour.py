# SPDX-License-Identifier: MIT
"""Colours that are changed, as by Pillow, torchvision and timm."""
import random

import pytest

from ops import ours, pictures, same  # noqa: F401

np = pytest.importorskip("numpy")

from PIL import Image, ImageEnhance  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402

# Copies, halves, parts that float32 rounds, and factors that clip.
FACTORS = [0, 1, .5, .1, 1 / 3, .999999, 1.000001, 1.9, 10, 1e9]


def factors(rng):
    return FACTORS + [rng.uniform(0, 2) for _ in range(4)]


@pytest.mark.parametrize("name, theirs", [
    ("brightness", F.adjust_brightness), ("contrast", F.adjust_contrast),
    ("saturation", F.adjust_saturation), ("sharpness", F.adjust_sharpness)])
def test_blends_are_those_of_torchvision(ours, name, theirs):
    rng = random.Random(1)
    for image in pictures(1):
        for factor in factors(rng):
            same(ours(name, image, factor), theirs(image, factor),
                 f"{name} {factor} of {image}")


def test_negative_factors_are_those_of_pillow(ours):
    for image in pictures(2):
        for factor in (-.5, -1e9):
            for name, theirs in (("brightness", ImageEnhance.Brightness),
                                 ("contrast", ImageEnhance.Contrast),
                                 ("saturation", ImageEnhance.Color),
                                 ("sharpness", ImageEnhance.Sharpness)):
                same(ours(name, image, factor), theirs(image).enhance(factor),
                     f"{name} {factor} of {image}")


def test_hues_are_those_of_torchvision(ours):
    rng = random.Random(3)
    for image in pictures(3):
        for hue in [-.5, 0, .5, 1 / 255, -1 / 255, .1] + [
                rng.uniform(-.5, .5) for _ in range(4)]:
            same(ours("hue", image, hue), F.adjust_hue(image, hue),
                 f"{hue} of {image}")


def all_colours():
    """Each of the 2^24 once."""
    n = np.arange(1 << 24, dtype=np.uint32).reshape(4096, 4096)
    return Image.fromarray(np.stack([n >> 16, n >> 8 & 255, n & 255],
                                    2).astype(np.uint8))


def test_all_colours_are_those_of_torchvision(ours):
    image = all_colours()
    for hue in (0, .1, -.237):
        same(ours("hue", image, hue), F.adjust_hue(image, hue), hue)
    same(ours("to_gray", image), image.convert("L"))
    for factor in (.3, 1.7):
        same(ours("saturation", image, factor),
             F.adjust_saturation(image, factor), factor)


def test_greys_are_those_of_torchvision(ours):
    for image in pictures(4):
        same(ours("to_gray", image), F.to_grayscale(image), image)
        if image.mode == "RGB":
            same(ours("grayscale", image), F.to_grayscale(image, 3), image)
        else:
            same(ours("grayscale", image), image, image)
            same(ours("to_rgb", image), F.to_grayscale(image, 3), image)


def test_tables_are_those_of_torchvision(ours):
    rng = random.Random(5)
    for image in pictures(5):
        same(ours("invert", image), F.invert(image), image)
        for threshold in [0, 1, 128, 254.5, 255, 256, rng.uniform(0, 255)]:
            same(ours("solarize", image, threshold),
                 F.solarize(image, threshold), f"{threshold} of {image}")
        for bits in range(1, 9):
            same(ours("posterize", image, bits), F.posterize(image, bits),
                 f"{bits} of {image}")
        # timm's SolarizeAdd, in its words.
        for add in (0, 33, 110, 128):
            lut = [min(255, i + add) if i < 128 else i for i in range(256)]
            same(ours("solarize_add", image, add),
                 image.point(lut * len(image.getbands())), f"{add} of {image}")


def few_values(rng):
    """Pictures with small, flat or one-sided histograms."""
    for low, high in ((0, 0), (255, 255), (9, 9), (7, 8), (0, 254), (1, 255),
                      (100, 140), (0, 1)):
        for size in ((1, 1), (17, 13), (224, 224)):
            a = rng.integers(low, high + 1, (size[1], size[0], 3))
            a[:, :, 1] = low
            yield Image.fromarray(a.astype(np.uint8))
            yield Image.fromarray(a[:, :, 0].astype(np.uint8))


def test_histograms_are_stretched_as_by_torchvision(ours):
    for image in [*pictures(6), *few_values(np.random.default_rng(6))]:
        same(ours("autocontrast", image), F.autocontrast(image), image)
        same(ours("equalize", image), F.equalize(image), image)
