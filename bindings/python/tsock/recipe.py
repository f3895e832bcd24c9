# SPDX-License-Identifier: MIT
"""The text of a recipe: made from torchvision's transforms, and what it says
about a job's tensors.

The text is made from an object's attributes and not from what print() shows,
which rounds numbers and leaves some out.  Neither torchvision nor timm is
imported here: whoever passes their objects has imported them already.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

from . import recipe_timm
from .recipe_values import CLASSES, call, dtype_name, not_native, plain, written

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


# ---------------------------------------------------------------------------
# Operations


def _listed(transform: Any) -> Optional[list[Any]]:
    """The operations of a list; None if this isn't a list of operations."""
    if isinstance(transform, (list, tuple)):
        return list(transform)
    if type(transform).__name__ not in _LISTS:
        return None
    package = _package(transform)
    if package == "torchvision.transforms":
        return list(transform.transforms)
    return list(transform) if package == "torch.nn" else None


def _texts(transforms: Any) -> str:
    texts: list[str] = []
    for transform in transforms:
        text = _text(transform)
        if type(transform).__name__ == "RGB" and _is_grey(" ".join(texts)):
            text = "Grayscale(3)"
        texts.append(text)
    return " ".join(filter(None, texts))


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
            written("RandomApply's p", transform.p),
        )
    children = ", ".join(map(_one, transform.transforms))
    p = getattr(transform, "p", None)
    if p is None or len(set(plain(p))) == 1:
        return "%s([%s])" % (name, children)
    # A list of one number stays one.
    weights = ", ".join(written("RandomChoice's p", weight) for weight in p)
    return "%s([%s], p=(%s))" % (name, children, weights)


_MIRRORS = ("reflect", "symmetric")


def _random_crop(transform: Any) -> str:
    padding = transform.padding
    if padding is None:
        return call("RandomCrop", transform)
    if ".v2." in type(transform).__module__:
        # v2 keeps it in another order than it was given.
        left, right, top, bottom = padding
        padding = [left, top, right, bottom]
    elif transform.pad_if_needed and transform.padding_mode in _MIRRORS:
        raise not_native(
            "v1's RandomCrop with padding, pad_if_needed and padding_mode=%r, "
            "which mirrors twice (v2's does so once),"
            % transform.padding_mode
        )
    return call("RandomCrop", transform, padding=padding)


def _erasing(transform: Any) -> str:
    # v2 has None for value="random".
    value = "random" if transform.value is None else transform.value
    return call("RandomErasing", transform, value=value)


def _weights(transform: Any) -> str:
    """What torchvision's weights.transforms() are for classification."""
    return " ".join(
        (
            call("Resize", transform, size=transform.resize_size, max_size=None),
            call("CenterCrop", transform, size=transform.crop_size),
            "ToTensor()",
            call("Normalize", transform),
        )
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
        "RandomResizedCropAndInterpolation": recipe_timm.crop,
        "ResizeKeepRatio": recipe_timm.crop,
        "CenterCropOrPad": recipe_timm.crop,
        "RandomCropOrPad": recipe_timm.crop,
        "RandomErasing": recipe_timm.erasing,
        "RandAugment": recipe_timm.rand,
        "AutoAugment": recipe_timm.auto,
        "AugMixAugment": recipe_timm.mix,
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
    name = type(transform).__name__
    like = _LIKE.get(name)
    if name == "AugMix" and _package(transform) == "torchvision.transforms":
        # Its operations are those of tensors.
        like = call("PILAugMix", transform)
    if not like:
        return not_native(_called(transform))
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
    if package == "torchvision.transforms" and name in CLASSES:
        return call(name, transform)
    if not callable(transform):
        raise TypeError(
            "transform: %r is no transform; it is a recipe's text, or "
            "torchvision's Compose or a transform of it" % (transform,)
        )
    raise _refused(transform)


def steps(transform: Any) -> list[Any]:
    """The operations that are done one after the other, out of their lists."""
    listed = _listed(transform)
    if listed is None:
        return [transform]
    return [step for one in listed for step in steps(one)]


_OPERATION = re.compile(r"\b([A-Z]\w*)\(")


def operations(text: str) -> list[str]:
    """The names of the operations in a text that text_of() made, in order."""
    return _OPERATION.findall(text)


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


_GREY = re.compile(r"\bGrayscale\b\s*(\()?", re.I)


def _is_grey(text: str) -> bool:
    """Have samples one channel, by the last Grayscale()?"""
    channels = "3"
    for match in _GREY.finditer(text):
        names = ("num_output_channels",)
        given = _arguments(text, match.end(), names) if match[1] else {}
        channels = given.get(names[0], "1")
    return channels == "1"


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
    # ImageNet's mean and std are those of three channels.
    text = _read(text or "")
    ends = Ends(None, () if _is_grey(text) else None)
    for match in _END.finditer(text):
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
        dtype = dtype_name(given.get("dtype", "float32")).lower()
        dtype = _DTYPES.get(dtype, dtype)
        if dtype.endswith(("float32", "float16")):
            ends = Ends(dtype, ends.normalize or ())
    return ends
