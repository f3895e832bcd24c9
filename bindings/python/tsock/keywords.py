# SPDX-License-Identifier: MIT
"""Keywords that a class doesn't have: what was meant, or what replaces them."""

from __future__ import annotations

import difflib
import functools
import inspect
import logging
from typing import Any, Callable, Iterable, Mapping, TypeVar, cast

# What people bring along from torch, and where it has gone.
ELSEWHERE = {
    "shuffle": "the producer's --order decides it",
    "batch_sampler": "the producer's --order decides it",
    "generator": "the producer's --seed decides it",
    "num_workers": "the producer's --threads decides it",
    "persistent_workers": "leave it out, since the producer's threads persist",
    "prefetch_factor": "the producer's --ring decides it",
    "worker_init_fn": "leave it out, since the producer decodes; its --seed "
    "decides what is random",
    "multiprocessing_context": "leave it out, since the producer decodes",
    "collate_fn": "batches are made in place; work on what next() returns",
    "in_order": "leave it out, since batches always come in stream order",
    "pin_memory_device": "leave it out: pin_memory=True is for the current device",
}

# What torch's loader takes for those if nothing is said, which is no wish.
TORCHS_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "shuffle": (None,),
    "sampler": (None,),
    "batch_sampler": (None,),
    "generator": (None,),
    "num_workers": (0,),
    "persistent_workers": (False,),
    "prefetch_factor": (None, 2),
    "worker_init_fn": (None,),
    "multiprocessing_context": (None,),
    "collate_fn": (None,),
    "in_order": (True,),
    "pin_memory_device": ("",),
}

SERVED = (
    "share a loader of your own by tsock.serve(torch.utils.data.DataLoader("
    "...), name)"
)


def _recipe(operation: str) -> str:
    return (
        "the recipe has it: transform='RandomResizedCrop(224) "
        "RandomHorizontalFlip() %s'; tsock-producer --transform help lists "
        "what there is" % operation
    )


# What people bring along for images, and what there is for it.
OF_IMAGES = {
    "transforms": "transform= takes a recipe, such as transform="
    "'RandomResizedCrop(224) RandomHorizontalFlip()', or torchvision's Compose",
    "target_transform": "work on the labels that next() returns, or " + SERVED,
    "mean": "normalize=(mean, std) takes both",
    "std": "normalize=(mean, std) takes both",
    "scale": "the recipe has it: transform='RandomResizedCrop(224, "
    "scale=(0.08, 1)) RandomHorizontalFlip()'",
    "ratio": "the recipe has it: transform='RandomResizedCrop(224, "
    "ratio=(3/4, 4/3)) RandomHorizontalFlip()'",
    "interpolation": "the recipe has it: transform='RandomResizedCrop(224, "
    "interpolation=bicubic) RandomHorizontalFlip()'",
    "grayscale": _recipe("Grayscale(3)"),
    "hflip": "the recipe has it: transform='RandomResizedCrop(224) "
    "RandomHorizontalFlip(0.5)'",
    "vflip": _recipe("RandomVerticalFlip(0.5)"),
    "auto_augment": _recipe("RandAugment(2, 9)"),
    "color_jitter": _recipe("ColorJitter(0.4, 0.4, 0.4)"),
    "mixup": "tsock.mix.MixUp works on a loader's batches",
    "cutmix": "tsock.mix.CutMix works on a loader's batches",
    "reprob": "tsock.mix.RandomErasing works on a loader's batches, and the "
    "recipe has it: transform='RandomResizedCrop(224) RandomErasing(0.25)'",
    "crop_pct": "size= is the side of an image, resize= that of preset='eval' "
    "before the crop",
    "image_size": "size= is the side of the images",
    "img_size": "size= is the side of the images",
    "input_size": "size= is the side of the images",
    "crop_size": "size= is the side of the images",
    "train": "split='train' or split='val' chooses the folder, preset='train' "
    "or preset='eval' what is done with its images",
    "path": "root= is the folder of the data set",
    "data_dir": "root= is the folder of the data set",
}
for _other, _word in (
    ("augment", "transforms"),
    ("augmentation", "transforms"),
    ("antialias", "interpolation"),
    ("gray", "grayscale"),
    ("workers", ""),
):
    OF_IMAGES[_other] = OF_IMAGES.get(_word, ELSEWHERE["num_workers"])

_log = logging.getLogger("tsock")

_Function = TypeVar("_Function", bound=Callable[..., Any])


def did_you_mean(word: object, words: Iterable[str]) -> str:
    """"; did you mean 'x'?" where one of the words is like it, else ""."""
    close = difflib.get_close_matches(str(word), list(words), 1, 0.6)
    return "; did you mean %r?" % close[0] if close else ""


def one_of(words: Iterable[object]) -> str:
    """'a', 'b' or 'c'."""
    *others, last = map(repr, words)
    return "%s or %s" % (", ".join(others), last) if others else last


def what_is_meant(
    key: str, known: Iterable[str], gone: Mapping[str, str]
) -> str:
    """What to say about an unknown keyword, which may be one of those gone."""
    if key in gone:
        return ": " + gone[key]
    words = [*known, *gone]
    # One that only goes on is nearer than any that is as long.
    meant = [word for word in words if word.startswith(key)]
    if len(meant) != 1:
        meant = difflib.get_close_matches(key, words, 1, 0.6)
    if meant and meant[0] in gone:
        return "; did you mean %r? (%s)" % (meant[0], gone[meant[0]])
    return did_you_mean(key, known)


def _is_default(key: str, value: Any) -> bool:
    """Is that what torch's loader does anyway?"""
    return any(
        type(value) is type(default) and value == default
        for default in TORCHS_DEFAULTS.get(key, ())
    )


def _without_torchs(who: str, keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords less those that ask for nothing that isn't so already."""
    workers = keywords.get("num_workers")
    if type(workers) is int and workers > 0:
        _log.info(
            "num_workers=%d: %s has no workers and needs none, since the "
            "producer's threads (--threads) read and decode for all jobs",
            workers,
            who,
        )
        keywords = {**keywords, "num_workers": 0}
    return {k: v for k, v in keywords.items() if not _is_default(k, v)}


def helpful(
    who: str, others: Mapping[str, Any] = {}, *, like_torchs: bool = False
) -> Callable[[_Function], _Function]:
    """Say what an unknown keyword of a function may mean.

    The known keywords are the function's parameters, and the others that its **
    takes, with their types.  like_torchs: the function stands in for torch's
    loader, and is given that loader's keywords.  Type checkers see the
    function's own signature; people are shown all keywords.
    """

    def wrap(function: _Function) -> _Function:
        own = inspect.signature(function)
        shown = [
            parameter
            for parameter in own.parameters.values()
            if parameter.kind != parameter.VAR_KEYWORD
        ] + [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=kind,
            )
            for name, kind in others.items()
        ]
        known = [p.name for p in shown if p.name != "self"]
        gone = {**ELSEWHERE, **OF_IMAGES} if like_torchs else ELSEWHERE

        @functools.wraps(function)
        def wrapper(*args: Any, **keywords: Any) -> Any:
            if like_torchs:
                keywords = _without_torchs(who, keywords)
            unknown = [
                "%r%s" % (key, what_is_meant(key, known, gone))
                for key in keywords
                if key not in known
            ]
            if unknown:
                raise TypeError(
                    "%s has no argument %s" % (who, "; nor ".join(unknown))
                )
            return function(*args, **keywords)

        setattr(wrapper, "__signature__", own.replace(parameters=shown))
        return cast(_Function, wrapper)

    return wrap
