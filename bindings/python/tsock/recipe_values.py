# SPDX-License-Identifier: MIT
"""Operations of a recipe's text, written with the attributes of objects."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Callable

_SERVE = "serve the loader from Python (tsock.serve), or leave it out"

# The arguments of tsock-producer's operations, which are attributes of the
# classes of that name of torchvision, of both its versions.
CLASSES = {
    "Resize": "size interpolation max_size antialias",
    "RandomResize": "min_size max_size interpolation antialias",
    "RandomResizedCrop": "size scale ratio interpolation antialias",
    "RandomResizedCropAndInterpolation": "size scale ratio interpolation",
    "CenterCrop": "size",
    "ResizeKeepRatio": "size longest interpolation random_scale_prob "
    "random_scale_range random_scale_area random_aspect_prob "
    "random_aspect_range",
    "CenterCropOrPad": "size fill padding_mode mask_fill",
    "RandomCropOrPad": "size fill padding_mode mask_fill",
    "RandomCrop": "size padding pad_if_needed fill padding_mode mask_fill",
    "Pad": "padding fill padding_mode mask_fill",
    "RandomHorizontalFlip": "p",
    "RandomVerticalFlip": "p",
    "RandomRotation": "degrees interpolation expand center fill mask_fill",
    "RandomAffine": "degrees translate scale shear interpolation fill center "
    "mask_fill",
    "RandomPerspective": "distortion_scale p interpolation fill mask_fill",
    "GaussianBlur": "kernel_size sigma",
    "ColorJitter": "brightness contrast saturation hue",
    "Grayscale": "num_output_channels",
    "RandomGrayscale": "p",
    "RandomSolarize": "threshold p",
    "RandomPosterize": "bits p",
    "RandomInvert": "p",
    "RandomAutocontrast": "p",
    "RandomEqualize": "p",
    "RandomAdjustSharpness": "sharpness_factor p",
    "RandomErasing": "p scale ratio value",
    "RandAugment": "num_ops magnitude num_magnitude_bins interpolation fill",
    "TrivialAugmentWide": "num_magnitude_bins interpolation fill",
    "AutoAugment": "policy interpolation fill",
    "TimmRandAugment": "m n p mstd mmax inc interpolation fill",
    "TimmAutoAugment": "policy mstd interpolation fill",
    "TimmAugMix": "m w d a b mstd translate_pct interpolation fill",
    "PILAugMix": "severity mixture_width chain_depth alpha all_ops "
    "interpolation fill",
    "ToTensor": "",
    "PILToTensor": "",
    "ToImage": "",
    "ToDtype": "dtype scale",
    "ConvertImageDtype": "dtype",
    "ToPureTensor": "",
    "Normalize": "mean std",
}


def not_native(what: str) -> ValueError:
    return ValueError("transform: %s isn't native; %s" % (what, _SERVE))


def _digits(value: float) -> str:
    """The fewest that are this number."""
    return str(int(value)) if value == int(value) else repr(value)


def _single(value: Any) -> Any:
    """Doubles with the fewest digits that are these floats of 32 bits."""
    if isinstance(value, list):
        return [_single(one) for one in value]
    for n in range(1, 9):
        short = float("%.*g" % (n, value))
        if struct.pack("f", short) == struct.pack("f", value):
            return short
    return value


def plain(value: Any) -> Any:
    """Python's own value of a tensor's, an array's or an enumeration's."""
    if hasattr(value, "tolist"):
        single = str(value.dtype).endswith("float32")
        return _single(value.tolist()) if single else value.tolist()
    # InterpolationMode, AutoAugmentPolicy
    return getattr(value, "value", value)


def written(what: str, value: Any) -> str:
    """The value of an argument as it is written in a recipe."""
    value = plain(value)
    if value is None or isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        values = [written(what, one) for one in value]
        return values[0] if len(values) == 1 else "(%s)" % ", ".join(values)
    try:
        return _digits(float(value))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            "transform: %s is %r, which can't be written in a recipe"
            % (what, value)
        ) from None


def _of_image(value: Any) -> Any:
    """v2 may have a value for each type of input: that for images."""
    if not isinstance(value, Mapping):
        return value
    by_name = {getattr(key, "__name__", key): it for key, it in value.items()}
    for name in ("Image", "Tensor", "others"):
        if name in by_name:
            return by_name[name]
    return None


def _of_mask(fill: Any) -> Any:
    """v2's fill for masks; None: the same as for images."""
    if not isinstance(fill, Mapping):
        return None
    for key, value in fill.items():
        if getattr(key, "__name__", key) == "Mask":
            return value or 0
    return fill.get("others") or 0


def dtype_name(value: Any) -> str:
    """"float32" of torch.float32."""
    return str(value).rpartition(".")[2]


def _interpolation(value: Any) -> Any:
    value = plain(value)
    # Pillow has one nearest, which is what torch calls exact.
    return "nearest" if value == "nearest-exact" else value


def _padding(value: Any) -> Any:
    """As few numbers as say it, since v2 makes four of one."""
    value = plain(value)
    while (
        isinstance(value, Sequence)
        and len(value) in (2, 4)
        and value[: len(value) // 2] == value[len(value) // 2 :]
    ):
        value = value[: len(value) // 2]
    return value


_VALUES: dict[str, Callable[[Any], Any]] = {
    "fill": lambda value: _of_image(value) or 0,
    "dtype": lambda value: dtype_name(_of_image(value)),
    "interpolation": _interpolation,
    "padding": _padding,
}


def call(name: str, transform: Any, **own: Any) -> str:
    """The operation with the transform's attributes, or own ones."""
    given = []
    for key in CLASSES[name].split():
        if key in own:
            value = own[key]
        elif key == "mask_fill":
            value = _of_mask(transform.fill)
        else:
            value = getattr(transform, key)
        value = _VALUES.get(key, plain)(value)
        given.append("%s=%s" % (key, written("%s's %s" % (name, key), value)))
    return "%s(%s)" % (name, ", ".join(given))
