# SPDX-License-Identifier: MIT
"""All parts of a script's loader, and what they become."""

from __future__ import annotations

from typing import Any, Optional

from . import collates, cuts, datasets, generators, hugging, orders, recipes
from . import segmentation, webdataset
from .datasets import known
from .plan import NotNative, Part, Plan

datasets.register(hugging.DATASET, hugging.source)
for _path in (segmentation.VOC, segmentation.CITYSCAPES, segmentation.WRAPPED):
    datasets.register(_path, segmentation.source)
TORCH = "torch.utils.data.dataloader:DataLoader"
_OWN = ("__iter__", "_get_iterator")
# Loaders that iterate as torch's, but keep their workers.
_LIKE_TORCHS = ("timm.data.loader:MultiEpochsDataLoader",)
_INSTEAD = "torch.utils.data.DataLoader over a data set with a length"


def is_torchs(loader: Any) -> bool:
    """Is it torch's, or one that iterates as torch's does?"""
    kind = known(TORCH)
    if kind is None or not isinstance(loader, kind):
        return False
    if type(loader) in [known(path) for path in _LIKE_TORCHS]:
        return True
    own = type(loader)
    return all(getattr(own, name) is getattr(kind, name) for name in _OWN)


def _is_stream(data: Any) -> bool:
    kind = known("torch.utils.data.dataset:IterableDataset")
    return kind is not None and isinstance(data, kind)


def _read(plan: Plan, data: Any) -> None:
    if _is_stream(data):
        raise NotNative("gives its samples by iteration", _INSTEAD)
    plan.source = datasets.source_of(data)
    if not len(data):
        raise NotNative("has no samples", "a data set with some")
    if len(data) != len(plan.source):
        raise NotNative(
            "has a length of its own, %d of %d samples"
            % (len(data), len(plan.source)),
            "torch.utils.data.Subset",
        )


def _kind_of(value: Any) -> str:
    """Its class, with the module that has it."""
    kind = type(value)
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return "%s.%s" % (kind.__module__, kind.__qualname__)


def check(loader: Any, what: str) -> None:
    """Raise TypeError if it can't be a loader."""
    if isinstance(loader, (str, bytes)) or not hasattr(loader, "__iter__"):
        raise TypeError(
            "%s takes torch's DataLoader, or another iterable of batches, and "
            "not %s" % (what, _kind_of(loader))
        )


def is_pinned(loader: Any) -> bool:
    """Are batches in pinned memory?"""
    available = known("torch.cuda:is_available")
    return bool(getattr(loader, "pin_memory", False) and available())


def _batches(cut: cuts.Cut, single: bool) -> None:
    if single:
        raise NotNative("are single samples", "batch_size= and a sampler")
    if cut.size is None:
        raise NotNative(
            "makes batches by code of its own", "batch_size= and a sampler"
        )


def look(loader: Any, seed: Optional[int] = None) -> Plan:
    """Examine each part; nothing is started, and no random number is drawn."""
    plan = Plan()
    inner, stages = webdataset.taken_apart(loader)
    shards = webdataset.is_pipeline(getattr(inner, "dataset", None))
    if not is_torchs(inner if shards else loader):
        name = type(loader).__qualname__
        why = "is no torch.utils.data.DataLoader"
        plan.parts.append(Part("loader", name, why, _INSTEAD))
        return plan
    with generators.undisturbed():
        if shards:
            webdataset.look(plan, loader, inner, stages, seed)
            plan.keywords.update(pin_memory=is_pinned(inner))
        else:
            _look(plan, loader, seed)
    return plan


def _look(plan: Plan, loader: Any, seed: Optional[int]) -> None:
    data = loader.dataset
    plan.add("data set", datasets.describe(data), lambda: _read(plan, data))
    if plan.source is not None:
        recipes.look(plan, plan.source.transform)
    cut = cuts.cut_of(loader)
    if cut.ranks and seed is None:
        seed = 0  # each rank's generator has another one until it is iterated
    single = loader.batch_sampler is None
    size = "batch_size=None" if single else _size_of(cut)
    plan.add("batches", size, lambda: _batches(cut, single))
    if plan.source is not None and plan.parts[-1].native:
        plan.add(
            "sampler",
            orders.describe(cut.sampler),
            lambda: orders.look(plan, cut.sampler, seed),
        )
    if plan.native:
        function = loader.collate_fn
        plan.add(
            "collate_fn",
            collates.describe(function),
            lambda: collates.look(plan, function),
        )
    plan.keywords.update(
        cut.ranks,
        batch_size=cut.size,
        drop_last=cut.drop_last,
        pin_memory=is_pinned(loader),
    )


def _size_of(cut: cuts.Cut) -> str:
    if cut.size is None:
        return type(cut.sampler).__qualname__
    ranks = ""
    if cut.ranks:
        ranks = ", rank %(rank)d of %(world_size)d" % cut.ranks
    return "%d samples%s%s" % (
        cut.size,
        ", the last ones dropped" if cut.drop_last else "",
        ranks,
    )
