# SPDX-License-Identifier: MIT
"""Functions that make a batch of samples, and what tsock's batches are for them.

torch's and timm's are known.  Of another function the result is compared with
the batches that tsock makes: one that only stacks images and labels, as a list
or under keys of a dict, is taken for that if it gives the same and draws no
random numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence

from . import generators, trial
from .datasets import known
from .plan import MaskKind, NotNative, Plan

_DEFAULT = "torch.utils.data._utils.collate:default_collate"
_FAST = "timm.data.loader:fast_collate"
_PROBES = (1, 2, 3)  # samples of a batch


def describe(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def is_default(function: Any) -> bool:
    return function is known(_DEFAULT)


def _mask_kind(value: Any, masks: Any) -> Optional[MaskKind]:
    """What a batch's masks are; None: they are others."""
    n, (height, width) = len(masks), masks.shape[-2:]
    if (
        not isinstance(value, known("torch:Tensor"))
        or tuple(value.shape) not in ((n, height, width), (n, 1, height, width))
        or not bool((value.reshape(masks.shape) == masks).all())
    ):
        return None
    return MaskKind(str(value.dtype).rpartition(".")[2], value.ndim == 4)


class Batch(NamedTuple):
    """What a function makes of samples.

    as_dict     of tsock.DataLoader
    mask        what masks are, where samples have them in place of labels
    """

    as_dict: Any
    mask: Optional[MaskKind]


def _shape_of(batch: Any, images: Any, labels: Any, masks: bool) -> Any:
    """A Batch, or None where it is something else."""

    def label(value: Any) -> Any:
        if masks:
            return _mask_kind(value, labels)
        return trial.equal(value, labels) or None

    if not isinstance(batch, (dict, list, tuple)) or len(batch) != 2:
        return None
    items = batch.items() if isinstance(batch, dict) else enumerate(batch)
    keys: dict[str, Any] = {}
    kind = None
    for key, value in items:
        if "image" not in keys and trial.equal(value, images):
            keys["image"] = key
        elif label(value) is not None:
            kind = label(value) if masks else None
            keys["mask" if masks else "label"] = key
    if isinstance(batch, dict):
        return Batch(keys, kind) if len(keys) == 2 else None
    return Batch(False, kind) if list(keys.values()) == [0, 1] else None


def probe(
    function: Any,
    samples: Sequence[Any],
    pairs: Sequence[Any],
    masks: bool = False,
) -> Optional[Batch]:
    """What batches are as the function makes them; None: it does something
    else.  pairs are the samples' images and labels, or masks."""
    stack, tensor = known("torch:stack"), known("torch:tensor")
    found: list[Any] = []
    for n in _PROBES:
        images = stack([image for image, _ in pairs[:n]])
        if masks:
            labels = stack([mask for _, mask in pairs[:n]])
        else:
            labels = tensor([int(label) for _, label in pairs[:n]])
        before = generators.comparable(generators.states())
        batch = function(list(samples[:n]))
        if generators.comparable(generators.states()) != before:
            return None
        found.append(_shape_of(batch, images, labels, masks))
    return found[0] if all(one == found[0] for one in found) else None


def look(plan: Plan, function: Any) -> Optional[str]:
    """Note what batches are; NotNative where they are something else."""
    # Of those it makes a dict, or masks of the script's dtype.
    others = plan.data.keyed or plan.data.masks
    if is_default(function) and not others or function is known(_FAST):
        return None
    instead = "no collate_fn; or work on the batches that next() returns"
    if plan.data.reach < max(_PROBES):
        raise NotNative("is a function of the script's", instead)
    try:
        samples = [
            plan.data.get(plan.data.place(i)) for i in range(max(_PROBES))
        ]
        pairs = [plan.data.pair(sample) for sample in samples]
        made = probe(function, samples, pairs, plan.data.masks)
    except Exception as e:  # noqa: BLE001 - of the script's own code
        raise NotNative("can't be tried: %s" % e, instead) from e
    if made is None:
        raise NotNative(
            "makes something else than images and labels of the samples",
            instead,
        )
    plan.keywords.update(as_dict=made.as_dict)
    plan.mask = made.mask
    return None
