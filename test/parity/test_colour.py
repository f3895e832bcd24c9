# SPDX-License-Identifier: MIT
"""Colours that are changed, as by Pillow, torchvision and timm."""
import random

import pytest

from ops import ours, pictures, same  # noqa: F401

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from PIL import Image, ImageEnhance  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402
from torchvision.transforms.v2 import functional as F2  # noqa: E402

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


def test_long_rows_are_sharpened_as_by_torchvision(ours):
    """Longer than what vector code does at a time, by little and by much."""
    sizes = [(341, 3), (342, 3), (343, 4), (1024, 3), (1027, 5), (2500, 3)]
    for image in pictures(11, sizes):
        for factor in (0, .7, 3):
            same(ours("sharpness", image, factor),
                 F.adjust_sharpness(image, factor), f"{factor} of {image}")


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
    for hue in (.1, -.237):
        same(ours("hue", image, hue), F.adjust_hue(image, hue), hue)
    same(ours("to_gray", image), image.convert("L"))
    same(ours("saturation", image, 1.7), F.adjust_saturation(image, 1.7), image)


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


def boxes(rng, image):
    w, h = image.size
    yield 0, 0, w, h
    for _ in range(3):
        left, top = rng.randrange(w), rng.randrange(h)
        yield (left, top, rng.randrange(1, w - left + 1),
               rng.randrange(1, h - top + 1))


def erased(image, left, top, width, height, values):
    return F2.erase(image, top, left, height, width, values)


def test_boxes_are_erased_as_by_torchvision(ours):
    rng = random.Random(7)
    for image in pictures(7):
        channels = len(image.getbands())
        for box in boxes(rng, image):
            for value in ([0] * 3, [7.9, 255, -1], [300, -.5, 128.5]):
                v = torch.tensor(value[:channels])[:, None, None]
                same(ours("erase", image, *box, *value),
                     erased(image, *box, v), f"{box} {value} of {image}")


def versions(image):
    """As in opsdump.c."""
    return [F.invert(image), F.adjust_brightness(image, 1.3),
            F.posterize(image, 3)]


def weights_of(rng, n):
    """Dirichlet's, of float32."""
    return rng.dirichlet([1] * n).astype(np.float32)


def test_mixes_are_those_of_torchvision(ours):
    rng = np.random.default_rng(9)
    for image in pictures(9):
        x = torch.from_numpy(np.array(image))
        m = torch.from_numpy(weights_of(rng, 2))
        w = torch.from_numpy(weights_of(rng, 3)) * m[1]
        want = m[0] * x
        for wi, aug in zip(w, versions(image)):
            want.add_(wi * torch.from_numpy(np.array(aug)))
        same(ours("mix", image, 0, *w.tolist(), m[0].item()),
             want.to(torch.uint8).numpy(), image)


def test_mixes_are_those_of_timm(ours):
    rng = np.random.default_rng(10)
    for image in pictures(10):
        w = weights_of(rng, 3)
        m = np.float32(rng.beta(1, 1))
        mixed = np.zeros_like(image, dtype=np.float32)
        for wi, aug in zip(w, versions(image)):
            mixed += wi * np.asarray(aug, dtype=np.float32)
        np.clip(mixed, 0, 255., out=mixed)
        same(ours("mix", image, 0, *w, 0, m),
             Image.blend(image, Image.fromarray(mixed.astype(np.uint8)), m),
             image)
        blended = image
        for wi, aug in zip(w, versions(image)):
            blended = Image.blend(blended, aug, wi)
        same(ours("mix", image, 1, *w), blended, image)
