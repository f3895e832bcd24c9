# SPDX-License-Identifier: MIT
"""Pipelines of the webdataset package that give images and labels.

A pipeline is a list of stages.  Each of them has to be one that is known here,
with arguments that are known, at its usual place: names of tar files, samples,
decoded samples, pairs, batches.  Any other pipeline is the script's.
"""

from __future__ import annotations

import itertools
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence

from . import collates, recipes, shards
from .datasets import known
from .plan import UNKNOWN, NotNative, Plan, Source
from .stages import BY_NODE, USUAL, Pipe, is_one

_PIPELINE = "webdataset.pipeline:DataPipeline"
_KINDS = (
    _PIPELINE,
    "webdataset.compat:WebDataset",
    "webdataset.compat:WebLoader",
)
_RANKS = "webdataset.utils:pytorch_worker_info"
_AT_HAND = 32  # samples that are read to look at them
_CLASSES = 1000000  # that tsock-producer takes labels for


def is_pipeline(value: Any) -> bool:
    kind = known(_PIPELINE)
    return kind is not None and isinstance(value, kind)


def ranks_of(loader: Any) -> int:
    """How many processes divide what a pipeline reads; else 1."""
    data: Any = getattr(loader, "dataset", None)
    if not is_pipeline(data) or not any(
        is_one(stage, BY_NODE) for stage in data.pipeline
    ):
        return 1
    return int(known(_RANKS)()[1])


def taken_apart(loader: Any) -> tuple[Any, list[Any]]:
    """torch's loader in a WebLoader, and the stages behind it."""
    if is_pipeline(loader) and loader.pipeline:
        return loader.pipeline[0], list(loader.pipeline[1:])
    return loader, []


def _check_epoch(pipeline: Any) -> None:
    if not is_one(type(pipeline), *_KINDS):
        raise NotNative(
            "is a %s" % type(pipeline).__qualname__,
            "a WebDataset without with_length()",
        )
    if pipeline.repetitions != 1:
        raise NotNative(
            "has epochs of its own, by with_epoch() or repeat()",
            "epochs in which each sample comes once",
        )


# ---------------------------------------------------------------------------
# Samples


def _urls(stages: Sequence[Any]) -> list[str]:
    first: Any = stages[0] if stages else None
    if not is_one(type(first), "webdataset.shardlists:SimpleShardList"):
        raise NotNative(
            "chooses its tar files by %s" % type(first).__name__,
            "names of tar files, without resampled=True",
        )
    if first.seed is not None:
        raise NotNative("shuffles its tar files by a seed", "shardshuffle=")
    return list(first.urls)


class _Head:
    """The first samples, as the stages make them without any shuffle."""

    def __init__(self, urls: list[str], pipe: Pipe) -> None:
        self._pipe = pipe
        made: Iterator[Any] = iter([{"url": url} for url in urls])
        for stage in pipe.reads:
            made = iter(stage(made))
        self._raw = list(itertools.islice(made, _AT_HAND))

    def __len__(self) -> int:
        return len(self._raw)

    def _through(self, i: int, stages: Sequence[Any]) -> Any:
        made: Iterator[Any] = iter([dict(self._raw[i])])
        for stage in stages:
            made = iter(stage(made))
        return next(made)

    def has_classes(self) -> bool:
        """Are the labels numbers of classes?"""
        return all(
            0 <= int(raw.get("cls", b"0")) < _CLASSES for raw in self._raw
        )

    def image(self, i: int) -> Any:
        return self._through(i, self._pipe.makes)[0]

    def get(self, i: int) -> Any:
        mapped = [self._pipe.mapped] if self._pipe.mapped else []
        return self._through(i, self._pipe.makes + mapped)


def _source(plan: Plan, data: Any) -> Pipe:
    """Note the tar files, and what makes samples of them."""
    _check_epoch(data)
    urls = _urls(data.pipeline)
    pipe = Pipe("urls", len(urls))
    pipe.walk(data.pipeline[1:])
    if pipe.level not in ("pairs", "batches"):
        raise NotNative("gives whole samples", USUAL)
    root = shards.root_of(urls, not pipe.shuffled)
    shards.check_images(urls, pipe.images)
    try:
        head = _Head(urls, pipe)
        classes = head.has_classes()
    except Exception as e:  # noqa: BLE001 - of webdataset's code
        raise NotNative("can't be tried: %s" % e) from e
    if not len(head):
        raise NotNative("has no samples", "some")
    if not classes:
        raise NotNative("has labels that are no classes", "0 to 999999")
    plan.source = Source(
        what="webdataset's %s" % root.path,
        options={"dataset": "webdataset", "root": root.path},
        length=UNKNOWN,
        at_hand=len(head),
        transform=pipe.transform,
        get=head.get,
        image=head.image,
        name=root.name,
    )
    return pipe


# ---------------------------------------------------------------------------
# Order and batches


def _order(
    plan: Plan, pipe: Pipe, behind: Pipe, workers: int, seed: Optional[int]
) -> str:
    rank, world_size = known(_RANKS)()[:2]
    by_node = "split_by_node" in pipe.splits
    if "single_node_only" in pipe.splits and world_size > 1:
        raise NotNative(
            "is for one process, and there are %d" % world_size,
            "nodesplitter=wds.split_by_node",
        )
    if workers > 1 and "split_by_worker" not in pipe.splits:
        raise NotNative("gives all samples in each worker", "split_by_worker")
    several = workers > 1 or (by_node and world_size > 1)
    if pipe.splits_late and several:
        raise NotNative(
            "shuffles its tar files before it splits them",
            "shuffle() behind split_by_worker",
        )
    plan.keywords.update(rank=0, world_size=1)
    differs = []
    if by_node and world_size > 1:
        plan.keywords.update(rank=rank, world_size=world_size)
        differs.append("ranks have other samples than webdataset's ranks")
    if pipe.shuffled or behind.shuffled:
        plan.options.update(order="philox", seed=seed or 0)
        differs.append(
            "shuffles all samples, anew in each epoch, not those of a buffer"
        )
    else:
        plan.options.update(order="sequential")
        if workers > 1:
            differs.append("reads one tar file after the other, as one worker")
    return "; it ".join(differs)


class _Made(NamedTuple):
    """Batches as the script gets them, and how they are made of samples."""

    size: int
    partial: bool
    of: Callable[[list[Any]], Any]
    differs: str


def _of_workers(partial: bool, workers: int) -> str:
    if workers <= 1:
        return ""
    if partial:
        return "has one shorter batch in an epoch, not one of each worker"
    return "drops the samples of one short batch, not of one of each worker"


def _loaded(loader: Any, pipe: Pipe) -> Optional[_Made]:
    """What torch's loader gives; None: samples."""
    if loader.batch_size is None:
        if pipe.batches is None:
            return None
        inner, outer = pipe.batches, loader.collate_fn
        return _Made(
            inner.size,
            inner.partial,
            lambda samples: outer(inner.make(samples)),
            _of_workers(inner.partial, loader.num_workers),
        )
    if pipe.batches is not None:
        raise NotNative("makes batches of batches", "batch_size=None")
    partial = not loader.drop_last
    return _Made(
        loader.batch_size,
        partial,
        loader.collate_fn,
        _of_workers(partial, loader.num_workers),
    )


def _made(loader: Any, pipe: Pipe, stages: list[Any]) -> tuple[Pipe, _Made]:
    """The batches behind all stages, and what those do behind the loader."""
    made = _loaded(loader, pipe)
    behind = Pipe("made" if made else "rows")
    behind.walk(stages)
    if behind.level == "rows":
        raise NotNative("gives one sample after the other", "batched()")
    if not behind.batches:
        assert made
        return behind, made
    if made and not made.partial:
        raise NotNative(
            "drops samples before it makes the batches", "partial=True"
        )
    batches, of, unbatched = behind.batches, made and made.of, behind.unbatched

    def again(samples: list[Any]) -> Any:
        if of:
            rows = list(unbatched(iter([of(samples)])))
        else:
            rows = [loader.collate_fn(sample) for sample in samples]
        return batches.make(rows)

    return behind, _Made(batches.size, batches.partial, again, "")


def _described(loader: Any, pipe: Pipe, stages: list[Any]) -> str:
    sizes = [pipe.batches and pipe.batches.size, loader.batch_size]
    found = ["%d samples" % size for size in sizes if size]
    found += ["behind the loader: %d stages" % len(stages)] if stages else []
    return ", ".join(found) or "none"


def look(
    plan: Plan,
    whole: Any,
    loader: Any,
    stages: list[Any],
    seed: Optional[int],
) -> None:
    """Add the parts of torch's loader of a pipeline.

    whole       the script's loader: that one, or a WebLoader of it
    stages      behind torch's loader
    """
    data = loader.dataset
    found: list[Any] = []
    what = type(data).__name__
    if not plan.add(
        "data set", what, lambda: found.append(_source(plan, data))
    ):
        return
    pipe = found[0]
    plan.parts[-1] = plan.parts[-1]._replace(what=plan.data.what)
    recipes.look(plan, pipe.transform)

    def batches() -> str:
        if whole is not loader:
            _check_epoch(whole)
        found.append(_made(loader, pipe, stages))
        return str(found[1][1].differs)

    if not plan.add("batches", _described(loader, pipe, stages), batches):
        return
    behind, made = found[1]
    plan.add(
        "order",
        "shuffled" if pipe.shuffled or behind.shuffled else "as in the files",
        lambda: _order(plan, pipe, behind, loader.num_workers, seed),
    )
    if plan.native:
        plan.add(
            "collate_fn",
            collates.describe(loader.collate_fn),
            lambda: collates.look(plan, made.of),
        )
    plan.keywords.update(batch_size=made.size, drop_last=not made.partial)
