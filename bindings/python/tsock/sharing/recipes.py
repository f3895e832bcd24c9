# SPDX-License-Identifier: MIT
"""A script's transform, step by step, and the recipe that has its meaning."""

from __future__ import annotations

from typing import Any

from .. import errors, recipe
from ..producer import describe as describe_stream
from ..producer import find_program
from . import tensors, trial
from .plan import NotNative, Part, Plan

# Operations that draw nothing.
_FIXED = (
    "Resize CenterCrop CenterCropOrPad Pad Grayscale ToTensor PILToTensor "
    "ToImage ToDtype ConvertImageDtype ToPureTensor Normalize"
).split()
# Those that change no pixels.
_ENDS = _FIXED[_FIXED.index("ToTensor") :]
_TENSORS = ("PILToTensor", "ToImage")  # of bytes
_DRAWS = "draws its random numbers from tsock's generator"


def _shown(step: Any) -> str:
    if isinstance(step, str):
        return step
    text = " ".join(str(step).split())
    if text.startswith("<") or len(text) > 76:
        text = getattr(step, "__qualname__", type(step).__qualname__)
    return text


def is_random(text: str) -> bool:
    return any(name not in _FIXED for name in recipe.operations(text))


def _look_at(step: Any) -> tuple[Part, str]:
    try:
        text = recipe.text_of([step])
    except (ValueError, TypeError) as e:
        why = str(e).partition("transform: ")[2] or str(e)
        if why.endswith("does nothing"):
            return Part("transform", _shown(step)), ""
        why, _, instead = why.partition("; ")
        if "," in why or not why.endswith("isn't native"):
            return Part("transform", _shown(step), why, instead), ""
        return (
            Part(
                "transform",
                _shown(step),
                "isn't an operation of tsock-producer",
                "one of those that tsock-producer --transform help lists",
            ),
            "",
        )
    differs = _DRAWS if is_random(text) else ""
    return Part("transform", _shown(step), differs=differs), text


def _ending(plan: Plan, text: str) -> None:
    """What dtype images have."""
    if recipe.ends_of(text).dtype is None:
        last = ([""] + recipe.operations(text))[-1]
        if last not in _TENSORS:
            raise NotNative(
                "doesn't end with a tensor",
                "ToTensor() as its last step, or ToImage() and ToDtype()",
            )
        plan.keywords.update(dtype="uint8")


def _with_a_size(plan: Plan, text: str) -> str:
    """The recipe, also of images that it leaves as they are."""
    if plan.data.size and not set(recipe.operations(text)) - set(_ENDS):
        return "CenterCrop((%d, %d)) %s" % (*plan.data.size[::-1], text)
    return text


def _accept(plan: Plan, text: str) -> None:
    """Would tsock-producer take the recipe?"""
    _ending(plan, text)
    text = _with_a_size(plan, text)
    try:
        more = {"masks": "/"} if plan.data.masks else {}
        describe_stream(
            find_program(),
            {"dataset": "imagefolder", "root": "/", "transform": text, **more},
        )
    except (ValueError, errors.Error) as e:
        why = str(e).partition("transform: ")[2] or str(e)
        raise NotNative("is refused: " + why) from e
    plan.options.update(transform=text)
    plan.random = is_random(text)


def _is_read(transform: Any) -> bool:
    """Does recipe.py know what it is, whether it is native or not?"""
    if isinstance(transform, (str, list, tuple)):
        return True
    module = type(transform).__module__ or ""
    return module.startswith(("torchvision.transforms", "timm.data"))


def _inside(plan: Plan, transform: Any) -> Any:
    """The transform that a function or an object of the script's own applies,
    as torchvision's references have them; or else the same again."""
    if transform is None or _is_read(transform):
        return transform
    one = trial.the_one_in(transform, trial.rows(plan.data), plan.data.image)
    if one is None:
        return transform
    what = "%s, which applies its %s" % (_shown(transform), type(one).__name__)
    plan.parts.append(Part("transform", what))
    return one


def look(plan: Plan, transform: Any) -> None:
    """Add a part for each step, and note the recipe."""
    transform = _inside(plan, transform)
    if transform is None:
        plan.parts.append(
            Part(
                "transform",
                "none",
                "so samples are images of Pillow",
                "a transform that ends with ToTensor()",
            )
        )
        return
    plan.steps = [(_shown(step), step) for step in recipe.steps(transform)]
    looked = [_look_at(step) for _, step in plan.steps]
    parts = [part for part, _ in looked]
    for i, other in enumerate(tensors.differ([text for _, text in looked])):
        if other and parts[i].native:
            parts[i] = parts[i]._replace(
                why="works on tensors, where torchvision's bytes aren't those "
                "that it makes of Pillow's images",
                instead="this step before the conversion to a tensor",
                differs="",
            )
    plan.parts += parts
    if all(part.native for part in parts):
        # Whole, since an operation may depend on those before it.
        plan.add(
            "recipe",
            "all steps together",
            lambda: _accept(plan, recipe.text_of(transform)),
        )
        if plan.parts[-1].native:
            del plan.parts[-1]
