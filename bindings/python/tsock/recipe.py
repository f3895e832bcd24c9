# SPDX-License-Identifier: MIT
"""The text of a recipe: made from torchvision's transforms, and what it says
about a job's tensors.

The text is made from an object's attributes and not from what print() shows,
which rounds numbers and leaves some out.  Neither torchvision nor timm is
imported here: whoever passes their objects has imported them already.
"""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple, Optional

_SERVE = "serve the loader from Python (tsock.serve), or leave it out"

# The arguments of tsock-producer's operations, which are attributes of the
# classes of that name of torchvision, of both its versions.
_CLASSES = {
    "Resize": "size interpolation max_size antialias",
    "RandomResize": "min_size max_size interpolation antialias",
    "RandomResizedCrop": "size scale ratio interpolation antialias",
    "RandomResizedCropAndInterpolation": "size scale ratio interpolation",
    "CenterCrop": "size",
    "RandomCrop": "size padding pad_if_needed fill padding_mode mask_fill",
    "Pad": "padding fill padding_mode mask_fill",
    "RandomHorizontalFlip": "p",
    "RandomVerticalFlip": "p",
    "RandomRotation": "degrees interpolation expand center fill",
    "RandomAffine": "degrees translate scale shear interpolation fill center",
    "RandomPerspective": "distortion_scale p interpolation fill",
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
    "ToTensor": "",
    "PILToTensor": "",
    "ToImage": "",
    "ToDtype": "dtype scale",
    "ConvertImageDtype": "dtype",
    "ToPureTensor": "",
    "Normalize": "mean std",
}

# What changes nothing of an image of three channels.
_NOTHING = ("Identity", "RGB")

# What holds operations that are done one after the other.
_LISTS = ("Compose", "Sequential", "ModuleList")


def _package(transform: Any) -> str:
    """Where its class is from: a package's name, or that of a program."""
    module = type(transform).__module__ or ""
    for package in ("torchvision.transforms", "torch.nn", "timm.data"):
        if module == package or module.startswith(package + "."):
            return package
    return module


def _called(transform: Any) -> str:
    """What a user calls it: its function's name, or its class's."""
    if hasattr(transform, "__qualname__"):
        return str(transform.__qualname__)
    name, package = type(transform).__qualname__, _package(transform)
    if package in ("torchvision.transforms", "builtins"):
        return name
    return "%s of %s" % (name, package)


def _not_native(what: str) -> ValueError:
    return ValueError("transform: %s isn't native; %s" % (what, _SERVE))


# ---------------------------------------------------------------------------
# Values


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


def _plain(value: Any) -> Any:
    """Python's own value of a tensor's, an array's or an enumeration's."""
    if hasattr(value, "tolist"):
        single = str(value.dtype).endswith("float32")
        return _single(value.tolist()) if single else value.tolist()
    # InterpolationMode, AutoAugmentPolicy
    return getattr(value, "value", value)


def _value(what: str, value: Any) -> str:
    """The value of an argument as it is written in a recipe."""
    value = _plain(value)
    if value is None or isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        values = [_value(what, one) for one in value]
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


def _dtype(value: Any) -> str:
    """"float32" of torch.float32."""
    return str(value).rpartition(".")[2]


def _interpolation(value: Any) -> Any:
    value = _plain(value)
    # Pillow has one nearest, which is what torch calls exact.
    return "nearest" if value == "nearest-exact" else value


def _padding(value: Any) -> Any:
    """As few numbers as say it, since v2 makes four of one."""
    value = _plain(value)
    while (
        isinstance(value, Sequence)
        and len(value) in (2, 4)
        and value[: len(value) // 2] == value[len(value) // 2 :]
    ):
        value = value[: len(value) // 2]
    return value


_VALUES: dict[str, Callable[[Any], Any]] = {
    "fill": lambda value: _of_image(value) or 0,
    "dtype": lambda value: _dtype(_of_image(value)),
    "interpolation": _interpolation,
    "padding": _padding,
}


def _call(name: str, transform: Any, **own: Any) -> str:
    """The operation with the transform's attributes, or own ones."""
    given = []
    for key in _CLASSES[name].split():
        if key in own:
            value = own[key]
        elif key == "mask_fill":
            value = _of_mask(transform.fill)
        else:
            value = getattr(transform, key)
        value = _VALUES.get(key, _plain)(value)
        given.append("%s=%s" % (key, _value("%s's %s" % (name, key), value)))
    return "%s(%s)" % (name, ", ".join(given))


# ---------------------------------------------------------------------------
# Operations


def _listed(transform: Any) -> Optional[list[Any]]:
    """The operations of a list of them; None: it is none."""
    if isinstance(transform, (list, tuple)):
        return list(transform)
    if type(transform).__name__ not in _LISTS:
        return None
    package = _package(transform)
    if package == "torchvision.transforms":
        return list(transform.transforms)
    return list(transform) if package == "torch.nn" else None


def _texts(transforms: Any) -> str:
    return " ".join(filter(None, map(_text, transforms)))


def _one(transform: Any) -> str:
    """An operation of RandomChoice or RandomOrder, which count them."""
    if _listed(transform) is None and not isinstance(transform, str):
        return _text(transform) or "RandomHorizontalFlip(p=0)"
    return "RandomApply([%s], p=1)" % _texts([transform])


def _container(transform: Any) -> str:
    """RandomApply, RandomChoice, RandomOrder."""
    name = type(transform).__name__
    if name == "RandomApply":
        return "RandomApply([%s], p=%s)" % (
            _texts(transform.transforms),
            _value("RandomApply's p", transform.p),
        )
    children = ", ".join(map(_one, transform.transforms))
    p = getattr(transform, "p", None)
    if p is None or len(set(_plain(p))) == 1:
        return "%s([%s])" % (name, children)
    # A list of one number stays one.
    weights = ", ".join(_value("RandomChoice's p", weight) for weight in p)
    return "%s([%s], p=(%s))" % (name, children, weights)


_MIRRORS = ("reflect", "symmetric")


def _random_crop(transform: Any) -> str:
    padding = transform.padding
    if padding is None:
        return _call("RandomCrop", transform)
    if ".v2." in type(transform).__module__:
        # v2 keeps it in another order than it was given.
        left, right, top, bottom = padding
        padding = [left, top, right, bottom]
    elif transform.pad_if_needed and transform.padding_mode in _MIRRORS:
        raise _not_native(
            "v1's RandomCrop with padding, pad_if_needed and padding_mode=%r, "
            "which mirrors twice (v2's does so once),"
            % transform.padding_mode
        )
    return _call("RandomCrop", transform, padding=padding)


def _erasing(transform: Any) -> str:
    if transform.value is None or isinstance(transform.value, str):
        raise _not_native("RandomErasing with value='random'")
    return _call("RandomErasing", transform)


def _weights(transform: Any) -> str:
    """What torchvision's weights.transforms() are for classification."""
    return " ".join(
        (
            _call("Resize", transform, size=transform.resize_size, max_size=None),
            _call("CenterCrop", transform, size=transform.crop_size),
            "ToTensor()",
            _call("Normalize", transform),
        )
    )


# ---------------------------------------------------------------------------
# timm's


def _timm_crop(transform: Any) -> str:
    """RandomResizedCropAndInterpolation, whose two filters are "random"."""
    several = isinstance(transform.interpolation, (list, tuple))
    return _call(
        "RandomResizedCropAndInterpolation",
        transform,
        interpolation="random" if several else transform.interpolation,
    )


def _timm_erasing(transform: Any) -> str:
    if transform.mode not in ("", "const") or transform.max_count != 1:
        raise _not_native(
            "timm's RandomErasing with mode=%r and max_count=%d"
            % (transform.mode, transform.max_count)
        )
    return _call(
        "RandomErasing",
        transform,
        p=transform.probability,
        scale=(transform.min_area, transform.max_area),
        ratio=[round(math.exp(v), 12) for v in transform.log_aspect_ratio],
        value=0,
    )


# What its RandAugment chooses among, in order; those marked by "+" are called
# so, or with Increasing behind for inc1.
_TIMM_SPACE = (
    "AutoContrast Equalize Invert Rotate Posterize+ Solarize+ SolarizeAdd "
    "Color+ Contrast+ Brightness+ Sharpness+ ShearX ShearY TranslateXRel "
    "TranslateYRel"
)


def _timm_rand(transform: Any) -> str:
    ops = transform.ops
    names = " ".join(op.name for op in ops)
    inc = names == _TIMM_SPACE.replace("+", "Increasing")
    if (
        transform.choice_weights is not None
        or not (inc or names == _TIMM_SPACE.replace("+", ""))
        or any("translate_pct" in op.hparams for op in ops)
    ):
        raise _not_native("timm's RandAugment with other operations or weights")
    first = ops[0]
    resample = first.kwargs["resample"]
    if not isinstance(resample, (list, tuple)):
        resample = resample.name.lower()
    return _call(
        "TimmRandAugment",
        transform,
        m=first.magnitude,
        n=transform.num_layers,
        p=first.prob,
        # inf is for uniform ones, which the text has large numbers for.
        mstd=min(first.magnitude_std, 101),
        mmax=first.magnitude_max or 10,
        inc=inc,
        interpolation=resample if isinstance(resample, str) else "random",
        fill=first.kwargs["fillcolor"],
    )


_SPECIAL: dict[str, dict[str, Callable[[Any], str]]] = {
    "torchvision.transforms": {
        "RandomApply": _container,
        "RandomChoice": _container,
        "RandomOrder": _container,
        "RandomCrop": _random_crop,
        "RandomErasing": _erasing,
        "ImageClassification": _weights,
    },
    "torch.nn": {},
    "timm.data": {
        "RandomResizedCropAndInterpolation": _timm_crop,
        "RandomErasing": _timm_erasing,
        "RandAugment": _timm_rand,
        "MaybeToTensor": lambda _: "ToTensor()",
        "ToTensor": lambda _: "PILToTensor()",
        "MaybePILToTensor": lambda _: "PILToTensor()",
        "ToNumpy": lambda _: "PILToTensor()",
    },
}


# Classes that programs of SimCLR, MoCo, BYOL and DINO have of their own, and
# the operations that are like them.
_LIKE = {
    "GaussianBlur": "PILGaussianBlur(0.5, (0.1, 2))",
    "Solarization": "RandomSolarize(128, 0.2)",
    "Solarize": "RandomSolarize(128, 0.2)",
}


def _refused(transform: Any) -> ValueError:
    like = _LIKE.get(type(transform).__name__)
    if not like:
        return _not_native(_called(transform))
    return ValueError(
        "transform: %s isn't native, but a text may stand in its place, such "
        "as %r" % (_called(transform), like)
    )


def _text(transform: Any) -> str:
    if isinstance(transform, str):
        return transform
    listed = _listed(transform)
    if listed is not None:
        return _texts(listed)
    package, name = _package(transform), type(transform).__name__
    if name in _NOTHING and package in _SPECIAL:
        return ""
    special = _SPECIAL.get(package, {}).get(name)
    if special:
        return special(transform)
    if package == "torchvision.transforms" and name in _CLASSES:
        return _call(name, transform)
    if not callable(transform):
        raise TypeError(
            "transform: %r is no transform; it is a recipe's text, or "
            "torchvision's Compose or a transform of it" % (transform,)
        )
    raise _refused(transform)


def text_of(transform: Any) -> str:
    """The text of the recipe that does what torchvision's transforms do.

    transform is one of them, of v1 or v2, or a Compose, nn.Sequential or list
    of them; those of timm that have the same meaning may be among them, and
    texts.  A str is such a text already.  ValueError for what tsock-producer doesn't have,
    and for functions of Python.
    """
    text = _text(transform)
    if not text:
        raise ValueError("transform: %r does nothing" % (transform,))
    return text


# ---------------------------------------------------------------------------
# Ends


class Ends(NamedTuple):
    """What a recipe says about the tensors that a job wants; None: nothing."""

    dtype: Optional[str] = None
    # (): from 0 to 1
    normalize: Optional[tuple[tuple[float, ...], ...]] = None


_END = re.compile(
    r"\b(ToTensor|ToDtype|ConvertImageDtype|Normalize)\b\s*(\()?", re.I
)
_ARGUMENT = re.compile(
    r"\s*[,;]*\s*(?:(\w+)\s*=\s*)?"
    r"(?:[(\[]([^)\]]*)[)\]]|['\"]?([-+\w./]+)['\"]?)"
)
_DTYPES = {"float": "float32", "half": "float16"}


def _arguments(text: str, at: int, names: Sequence[str]) -> dict[str, str]:
    """By name what stands in parentheses that begin before at."""
    found: dict[str, str] = {}
    free = iter(names)
    while True:
        match = _ARGUMENT.match(text, at)
        if not match:
            return found
        name, several, one = match.groups()
        found[(name or next(free, "")).lower()] = one or several or ""
        at = match.end()


def _three(text: str) -> tuple[float, ...]:
    numbers = []
    for word in re.split(r"[\s,;]+", text.strip(" ,;")):
        above, _, below = word.partition("/")
        numbers.append(float(above) / float(below or 1))
    return tuple(numbers * (3 // len(numbers)))


def _read(text: str) -> str:
    """The recipe itself, where text names its file."""
    if not text.startswith("@"):
        return text
    try:
        with open(os.path.expanduser(text[1:]), encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ""  # the program says so


def ends_of(text: Optional[str]) -> Ends:
    """What ToTensor, ToDtype, Normalize and the like say in a recipe's text.

    Errors in the text are left to tsock-producer, which explains them.
    """
    ends = Ends()
    for match in _END.finditer(_read(text or "")):
        name = match[1].lower()
        names = ("mean", "std") if name == "normalize" else ("dtype", "scale")
        given = _arguments(match.string, match.end(), names) if match[2] else {}
        if name == "normalize":
            try:
                both = (_three(given["mean"]), _three(given["std"]))
            except (KeyError, ValueError, ZeroDivisionError):
                continue
            ends = Ends(ends.dtype or "float32", both)
            continue
        dtype = _dtype(given.get("dtype", "float32")).lower()
        dtype = _DTYPES.get(dtype, dtype)
        if dtype.endswith(("float32", "float16")):
            ends = Ends(dtype, ends.normalize or ())
    return ends
