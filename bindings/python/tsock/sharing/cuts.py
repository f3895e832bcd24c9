# SPDX-License-Identifier: MIT
"""How a loader cuts the order of its sampler into batches, and for which rank.

torch's loader has a batch size and a sampler, or a batch sampler that has them;
accelerate's prepare() puts the rank's part round that one.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from .datasets import iterates_by

_BATCHES = "torch.utils.data.sampler:BatchSampler"
_SHARD = "accelerate.data_loader:BatchSamplerShard"


class Cut(NamedTuple):
    """A sampler, and batches of what it gives.

    size    of a batch; None: the batches are made by code of their own
    ranks   keywords of tsock.DataLoader, where this says which rank reads
    """

    sampler: Any
    size: Optional[int]
    drop_last: bool
    ranks: dict[str, Any]


def cut_of(loader: Any) -> Cut:
    """What a loader of torch has for that."""
    if loader.batch_size is not None:
        return Cut(
            loader.sampler, loader.batch_size, bool(loader.drop_last), {}
        )
    batches = loader.batch_sampler
    ranks: dict[str, Any] = {}
    share = 1  # of a batch that a rank gets
    if iterates_by(batches, _SHARD) and batches.even_batches:
        ranks = {
            "rank": batches.process_index,
            "world_size": batches.num_processes,
            "even": True,
        }
        share = batches.num_processes if batches.split_batches else 1
        batches = batches.batch_sampler
    if not iterates_by(batches, _BATCHES):
        return Cut(loader.batch_sampler or loader.sampler, None, False, {})
    return Cut(
        batches.sampler,
        batches.batch_size // share,
        bool(batches.drop_last),
        ranks,
    )
