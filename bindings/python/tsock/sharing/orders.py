# SPDX-License-Identifier: MIT
"""Samplers of torch and timm, and the orders of tsock-producer that they are."""

from __future__ import annotations

from typing import Any, Optional

from .datasets import iterates_by, known, part_of
from .plan import NotNative, Plan

_OTHER = "shuffles by tsock's generator, in another order than torch's"


def is_sequential(sampler: Any) -> bool:
    return iterates_by(sampler, "torch.utils.data.sampler:SequentialSampler")


def is_plain_shuffle(sampler: Any) -> bool:
    """Is it shuffle=True?"""
    return (
        iterates_by(sampler, "torch.utils.data.sampler:RandomSampler")
        and not sampler.replacement
        and len(sampler) == len(sampler.data_source)
    )


def is_random(sampler: Any) -> bool:
    """Does it draw a seed, or use a generator, when it is iterated?"""
    return iterates_by(sampler, "torch.utils.data.sampler:RandomSampler")


def is_all_ranks(sampler: Any) -> bool:
    """Have the ranks together all samples, each another part?"""
    return iterates_by(
        sampler, "torch.utils.data.distributed:DistributedSampler"
    )


def _is_untouched(generator: Any) -> bool:
    """Has nobody drawn from it since it was seeded?"""
    fresh = known("torch:Generator")(device=generator.device)
    fresh.manual_seed(generator.initial_seed())
    return bool((fresh.get_state() == generator.get_state()).all())


def _check_length(plan: Plan, data: Any) -> None:
    """Does the sampler number the samples of the loader's own data set?"""
    if len(data) != len(plan.data):
        raise NotNative(
            "numbers %d samples, and the data set has %d"
            % (len(data), len(plan.data)),
            "a sampler of the same data set",
        )


def _random(plan: Plan, sampler: Any, seed: Optional[int]) -> str:
    if sampler.replacement or len(sampler) != len(plan.data):
        raise NotNative(
            "draws with replacement, or another number of samples than there "
            "are",
            "RandomSampler(data) without more",
        )
    generator = sampler.generator
    if generator is not None and seed is None:
        seed = generator.initial_seed() & 0x7FFFFFFFFFFFFFFF
        if plan.data.chosen is None and _is_untouched(generator):
            plan.options.update(order="torch", seed=seed)
            return ""
    plan.options.update(order="philox", seed=seed or 0)
    return _OTHER


def _seedable(plan: Plan, sampler: Any, seed: Optional[int]) -> str:
    """accelerate's, which seeds its generator anew in each epoch."""
    differs = _random(plan, sampler, 0 if seed is None else seed)
    return differs + ", a new one in each epoch even without set_epoch()"


def _weighted(plan: Plan, sampler: Any, seed: Optional[int]) -> str:
    if not sampler.replacement or sampler.num_samples != len(sampler.weights):
        raise NotNative(
            "draws without replacement, or another number of samples than "
            "there are",
            "WeightedRandomSampler(weights, len(weights))",
        )
    if len(sampler.weights) != len(plan.data):
        raise NotNative(
            "has %d weights for %d samples"
            % (len(sampler.weights), len(plan.data)),
            "a weight for each sample",
        )
    if plan.data.samples is None:
        raise NotNative("has weights", "weights of a folder of images")
    if plan.data.chosen is not None:
        plan.source = part_of(plan.data)
    plan.data.weights = [float(weight) for weight in sampler.weights]
    plan.data.table = True
    plan.options.update(order="philox", seed=seed or 0, sampler="weighted")
    return _OTHER


def _dealt(sampler: Any, package: str) -> str:
    """How the parts of ranks differ."""
    if sampler.num_replicas == 1:
        return ""
    return "gives ranks other samples of the order than %s does" % package


def _distributed(plan: Plan, sampler: Any, seed: Optional[int]) -> str:
    _check_length(plan, sampler.dataset)
    plan.keywords.update(rank=sampler.rank, world_size=sampler.num_replicas)
    if not sampler.shuffle:
        plan.options.update(order="sequential")
        plan.keywords.update(even=not sampler.drop_last)
        return _dealt(sampler, "torch")
    seed = sampler.seed if seed is None else seed
    plan.options.update(order="philox", seed=seed)
    return _OTHER + ", a new one in each epoch even without set_epoch()"


def _ordered(plan: Plan, sampler: Any, _: Optional[int]) -> str:
    _check_length(plan, sampler.dataset)
    plan.options.update(order="sequential")
    plan.keywords.update(
        rank=sampler.rank, world_size=sampler.num_replicas, even=True
    )
    return _dealt(sampler, "timm")


def _chosen(plan: Plan, sampler: Any, seed: Optional[int]) -> str:
    plan.data.chosen = [plan.data.place(int(i)) for i in sampler.indices]
    plan.options.update(order="philox", seed=seed or 0)
    return _OTHER


def _sequential(plan: Plan, sampler: Any, _: Optional[int]) -> str:
    _check_length(plan, sampler)
    plan.options.update(order="sequential")
    return ""


_SAMPLERS = (
    ("torch.utils.data.sampler:SequentialSampler", _sequential),
    ("torch.utils.data.sampler:RandomSampler", _random),
    ("accelerate.data_loader:SeedableRandomSampler", _seedable),
    ("torch.utils.data.sampler:SubsetRandomSampler", _chosen),
    ("torch.utils.data.sampler:WeightedRandomSampler", _weighted),
    ("torch.utils.data.distributed:DistributedSampler", _distributed),
    ("timm.data.distributed_sampler:OrderedDistributedSampler", _ordered),
)


def describe(sampler: Any) -> str:
    name = type(sampler).__name__
    ranks = getattr(sampler, "num_replicas", None)
    if isinstance(ranks, int):
        return "%s, rank %d of %d" % (name, sampler.rank, ranks)
    return name


def _narrow(plan: Plan) -> None:
    """Choose between a stream of all samples, which jobs with other parts can
    share, and one of those alone that the script wants."""
    data, chosen = plan.data, plan.data.chosen
    if chosen is None:
        return
    twice = len(set(chosen)) < len(chosen)
    moved = plan.options["order"] == "sequential" and chosen != sorted(chosen)
    if data.samples and (twice or moved or 2 * len(chosen) < data.length):
        plan.source = part_of(data)
    elif twice or moved:
        raise NotNative(
            "reads a part of a data set whose samples come twice, or in an order "
            "of its own",
            "ascending indices, each of them once",
        )
    else:
        plan.keywords.update(subset=chosen)


def look(plan: Plan, sampler: Any, seed: Optional[int]) -> str:
    """Note the options of that order; how it differs from the script's."""
    # One process reads all, whatever torch.distributed says, unless the
    # sampler says otherwise.
    plan.keywords.update(rank=0, world_size=1)
    for path, take in _SAMPLERS:
        if iterates_by(sampler, path):
            differs = take(plan, sampler, seed)
            _narrow(plan)
            return differs
    raise NotNative(
        "chooses samples by code of its own",
        "one of %s"
        % ", ".join(path.rpartition(":")[2] for path, _ in _SAMPLERS),
    )
