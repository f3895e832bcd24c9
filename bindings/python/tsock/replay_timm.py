# SPDX-License-Identifier: MIT
"""Policies of timm, and mixes, with the producer's draws on pictures of Pillow."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .replay import Operation

# Operations of timm's policies, and their filters by Pillow's numbers.
_SPACE = (
    "AutoContrast",
    "Equalize",
    "Invert",
    "Rotate",
    "Posterize",
    "Solarize",
    "SolarizeAdd",
    "Color",
    "Contrast",
    "Brightness",
    "Sharpness",
    "ShearX",
    "ShearY",
    "TranslateX",
    "TranslateY",
    "Desaturate",
    "GaussianBlurRand",
)
# Pillow's numbers of bilinear, nearest and bicubic.
_FILTERS = {0: 2, 1: 0, 4: 3}


def posterize(image: Any, bits: int) -> Any:
    """Also to 0 bits, which Pillow 13 refuses."""
    return image.point(
        [i & (0xFF00 >> bits) & 255 for i in range(256)]
        * len(image.getbands())
    )


def _one(
    image: Any, name: str, by: float, resample: int, fill: tuple[int, ...]
) -> Any:
    ops = importlib.import_module("PIL.ImageOps")
    if name in ("AutoContrast", "Equalize", "Invert"):
        return getattr(ops, name.lower())(image)
    if name == "Solarize":
        return ops.solarize(image, by)
    if name == "SolarizeAdd":
        table = [min(255, i + int(by)) if i < 128 else i for i in range(256)]
        return image.point(table * len(image.getbands()))
    if name == "Posterize":
        return posterize(image, int(by))
    if name in ("Color", "Contrast", "Brightness", "Sharpness"):
        enhance = importlib.import_module("PIL.ImageEnhance")
        return getattr(enhance, name)(image).enhance(by)
    if name == "Desaturate":
        return _one(image, "Color", 1.0 - by, resample, fill)
    if name == "GaussianBlurRand":
        blur = importlib.import_module("PIL.ImageFilter").GaussianBlur
        return image.filter(blur(by))
    if name == "Rotate":
        return image.rotate(by, resample=resample, fillcolor=fill)
    maps = {
        "ShearX": (1, by, 0, 0, 1, 0),
        "ShearY": (1, 0, 0, by, 1, 0),
        "TranslateX": (1, 0, by * image.width, 0, 1, 0),
        "TranslateY": (1, 0, 0, 0, 1, by * image.height),
    }
    affine = importlib.import_module("PIL.Image").AFFINE
    return image.transform(
        image.size, affine, maps[name], resample=resample, fillcolor=fill
    )


def rand_augment(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    fill = op["fill"]
    if not isinstance(fill, tuple):
        fill = (fill,) * len(image.getbands())
    for k in range(0, len(draws), 3):
        if draws[k] >= 0:
            image = _one(
                image,
                _SPACE[int(draws[k])],
                draws[k + 1],
                _FILTERS[int(draws[k + 2])],
                fill,
            )
    return image


def auto_augment(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    return rand_augment(image, op, draws[1:])


def chains_of(
    width: int, each: int, draws: Sequence[float]
) -> tuple[Any, list[Sequence[float]]]:
    """The weights of chains, of float32, and the draws of each."""
    weights = draws[1 : 1 + width]
    rest = draws[1 + width :]
    count = len(rest) // width
    assert count % each == 0
    chains = [rest[k * count : (k + 1) * count] for k in range(width)]
    return importlib.import_module("numpy").float32(weights), chains


def _blended_in(np: Any, weights: Any) -> Any:
    """timm's _calc_blended_weights()."""
    left, alphas = np.float32(1), []
    for weight in weights[::-1]:
        alpha = weight / left if left > 0 else np.float32(0)
        left *= 1 - alpha
        alphas.append(alpha)
    return alphas[::-1]


def aug_mix(image: Any, op: Operation, draws: Sequence[float]) -> Any:
    np = importlib.import_module("numpy")
    pil = importlib.import_module("PIL.Image")
    m = np.float32(draws[0])
    weights, chains = chains_of(op["w"], 3, draws)
    versions = [rand_augment(image, op, chain) for chain in chains]
    if op["b"]:
        mixed = image
        for alpha, version in zip(_blended_in(np, weights * m), versions):
            mixed = pil.blend(mixed, version, alpha)
        return mixed
    total = np.zeros_like(image, dtype=np.float32)
    for weight, version in zip(weights, versions):
        total += weight * np.asarray(version, dtype=np.float32)
    np.clip(total, 0, 255, out=total)
    return pil.blend(image, pil.fromarray(total.astype(np.uint8)), m)
