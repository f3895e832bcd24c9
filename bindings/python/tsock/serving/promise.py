# SPDX-License-Identifier: MIT
"""What identity= of tsock.serve() promises, and says to consumers.

A stream without a promise is another one each time.  With it the next server
of the same identity takes the stream up where its consumers are (Resumable in
include/tsock/serve.h).  Consumers compare what both servers say.
"""

from __future__ import annotations

import ctypes
import hashlib
import uuid
from typing import Any, Optional, Sequence

from .. import identity
from .arrays import Memory
from .feed import listeners

# torch's and torchdata's: each epoch's order is drawn from a generator.
_DRAWN = ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")


def text(promise: Any) -> Optional[str]:
    """identity= of serve(), checked."""
    if promise is None:
        return None
    if not isinstance(promise, str) or not promise or "\0" in promise:
        raise ValueError(
            "identity %r: it is a text, by which you promise that the loader "
            "gives the same samples whenever it is served" % (promise,)
        )
    return promise


def check(promise: str, loader: Any, is_once: bool) -> None:
    """Refuse a loader that can't keep the promise."""
    if is_once:
        raise ValueError(
            "identity=%r: this %s can be iterated only once, and the next "
            "server has to begin an epoch where its jobs are: serve a "
            "function that makes it" % (promise, type(loader).__qualname__)
        )
    kind = type(getattr(loader, "sampler", None)).__name__
    if kind in _DRAWN and not listeners(loader):
        raise ValueError(
            "identity=%r: the loader's %s draws another order in each epoch, "
            "which the next server can't draw again: give the loader a "
            "sampler whose order is a function of set_epoch(), such as "
            "DistributedSampler(dataset, num_replicas=1, rank=0)"
            % (promise, kind)
        )


def digest(leaves: Sequence[Memory]) -> str:
    """A checksum of a batch's bytes."""
    made = hashlib.blake2b(digest_size=8)
    for leaf in leaves:
        room = ctypes.create_string_buffer(max(1, leaf.bytes))
        leaf.copy_all(ctypes.addressof(room))
        made.update(memoryview(room)[: leaf.bytes])
    return made.hexdigest()


def lines(
    promise: Optional[str], loader: Any, is_once: bool, first: Sequence[Memory]
) -> str:
    """Which loader the stream's samples come from, in lines of its identity.

    first: the leaves of the loader's first batch, which is the same each time
    if the promise holds.
    """
    if promise is None:
        # The samples of a loader are nobody else's, not even its own again.
        return identity.line("run", uuid.uuid4().hex)
    check(promise, loader, is_once)
    said = identity.line("identity", promise)
    sampler = getattr(loader, "sampler", None)
    ranks = getattr(sampler, "num_replicas", None)
    if isinstance(ranks, int) and ranks > 1:
        rank = getattr(sampler, "rank", None)
        said += identity.line("shard", "%s/%s" % (rank, ranks))
    return said + identity.line(identity.FIRST_BATCH, digest(first))
