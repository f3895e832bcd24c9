# SPDX-License-Identifier: MIT
"""Recipes' texts of timm's transforms, by their attributes."""

from __future__ import annotations

import math
import zlib
from typing import Any, Optional

from .recipe_values import call, not_native


def crop(transform: Any) -> str:
    """RandomResizedCropAndInterpolation, CenterCropOrPad and the like; where
    there are two filters they are "random"."""
    own = {}
    if isinstance(getattr(transform, "interpolation", ""), (list, tuple)):
        own["interpolation"] = "random"
    return call(type(transform).__name__, transform, **own)


# The values that its RandomErasing's modes are.
_MODES = {"": 0, "const": 0, "rand": "color", "pixel": "random"}


def _ratio(log: float) -> float:
    """The ratio that the logarithm is of, and not one a few bits away: a short
    number, or 1 divided by one."""
    value = math.exp(log)
    for ratio in (round(value, 9), 1 / (round(1 / value, 9) or 1)):
        if abs(ratio - value) < 1e-12:
            return ratio
    return value


def erasing(transform: Any) -> str:
    if transform.mode not in _MODES or transform.max_count != 1:
        raise not_native(
            "timm's RandomErasing with mode=%r and max_count=%d"
            % (transform.mode, transform.max_count)
        )
    return call(
        "RandomErasing",
        transform,
        p=transform.probability,
        scale=(transform.min_area, transform.max_area),
        ratio=[_ratio(v) for v in transform.log_aspect_ratio],
        value=_MODES[transform.mode],
    )


# What its RandAugment chooses among, in order; those marked by "+" are called
# so, or with Increasing behind for inc1.
_RAND_SPACE = (
    "AutoContrast Equalize Invert Rotate Posterize+ Solarize+ SolarizeAdd "
    "Color+ Contrast+ Brightness+ Sharpness+ ShearX ShearY TranslateXRel "
    "TranslateYRel"
)


def rand(transform: Any) -> str:
    ops = transform.ops
    names = " ".join(op.name for op in ops)
    inc = names == _RAND_SPACE.replace("+", "Increasing")
    if (
        transform.choice_weights is not None
        or not (inc or names == _RAND_SPACE.replace("+", ""))
        or any("translate_pct" in op.hparams for op in ops)
    ):
        raise not_native("timm's RandAugment with other operations or weights")
    first = ops[0]
    return call(
        "TimmRandAugment",
        transform,
        m=first.magnitude,
        n=transform.num_layers,
        p=first.prob,
        # inf is for uniform ones, which the text has large numbers for.
        mstd=min(first.magnitude_std, 101),
        mmax=first.magnitude_max or 10,
        inc=inc,
        **_pixels(first),
    )


def _pixels(op: Any) -> dict[str, Any]:
    resample = op.kwargs["resample"]
    if not isinstance(resample, (list, tuple)):
        resample = resample.name.lower()
    return {
        "interpolation": resample if isinstance(resample, str) else "random",
        "fill": op.kwargs["fillcolor"],
    }


def _std(op: Any) -> Optional[float]:
    # inf is for uniform ones.
    return None if math.isinf(op.magnitude_std) else op.magnitude_std


def _moves(op: Any) -> float:
    """How far it may move a picture: a part of its edge."""
    return float(op.hparams.get("translate_pct", 0.45))


# timm's policies, by a checksum of their operations' names, probabilities and
# magnitudes: what has another one is another policy.
_POLICIES = {
    0xC96201D4: "v0",
    0x0B1A9C57: "v0r",
    0x43F74761: "original",
    0xE6613F40: "originalr",
    0x4AFC345E: "3a",
}


def auto(transform: Any) -> str:
    ops = [op for pair in transform.policy for op in pair]
    said = " ".join(
        "%s %g %g" % (op.name, op.prob, op.magnitude) for op in ops
    )
    policy = _POLICIES.get(zlib.crc32(said.encode()))
    if (
        policy is None
        or any(op.magnitude_max or _moves(op) != 0.45 for op in ops)
    ):
        raise not_native("timm's AutoAugment with another policy")
    return call(
        "TimmAutoAugment",
        transform,
        policy=policy,
        mstd=_std(ops[0]),
        **_pixels(ops[0]),
    )


_MIX_SPACE = (
    "AutoContrast ColorIncreasing ContrastIncreasing BrightnessIncreasing "
    "SharpnessIncreasing Equalize Rotate PosterizeIncreasing "
    "SolarizeIncreasing ShearX ShearY TranslateXRel TranslateYRel"
)


def mix(transform: Any) -> str:
    ops = transform.ops
    if " ".join(op.name for op in ops) != _MIX_SPACE or any(
        op.magnitude_max or op.prob < 1 for op in ops
    ):
        raise not_native("timm's AugMix with other operations")
    first = ops[0]
    return call(
        "TimmAugMix",
        transform,
        m=first.magnitude,
        w=transform.width,
        d=transform.depth,
        a=transform.alpha,
        b=transform.blended,
        mstd=_std(first),
        translate_pct=_moves(first),
        **_pixels(first),
    )
