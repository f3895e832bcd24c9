# SPDX-License-Identifier: MIT
"""The ranks of a job that trains one model: this one's number, and its part.

Which samples are in the part is the library's arithmetic, tsock_rank_next() in
include/tsock/order.h.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
import weakref
from array import array
from ctypes import byref, c_uint64
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

from . import _ffi, errors

if TYPE_CHECKING:
    from .parts import PartOf

_lib = _ffi.lib


def current(rank: Optional[int], world: Optional[int]) -> tuple[int, int]:
    """(rank, world) of this process, (0, 1) where it is alone.

    The values of torch.distributed, if it was initialised, unless both are
    given.
    """
    if (rank is None) != (world is None):
        raise ValueError("rank and world_size belong together: give both")
    if rank is not None and world is not None:
        if not 0 <= rank < world:
            raise ValueError(
                "rank %r of world_size %r: there is no such rank"
                % (rank, world)
            )
        return rank, world
    distributed = group()
    if distributed is None:
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def group() -> Any:
    """torch.distributed, if it was initialised."""
    # Not imported for this: a program that uses it has done so.
    distributed: Any = sys.modules.get("torch.distributed")
    if (
        distributed is None
        or not distributed.is_available()
        or not distributed.is_initialized()
    ):
        return None
    return distributed


_WHOSE = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
)


def job_of(job: Optional[str], name: str, world: int, number: int) -> bytes:
    """What the ranks of a job have in common and other jobs haven't.

    job is the user's word for it; without one it is where the process group
    meets, or else the process that started the ranks.  number tells apart the
    connections that a process makes to one stream.
    """
    said = [os.environ.get(key, "") for key in _WHOSE]
    if job is not None:
        said = [job]
    elif not said[1]:
        said.append(str(os.getppid()))
    text = "\0".join(said + [name, str(world), str(number)])
    return hashlib.sha256(os.fsencode(text)).digest()[:16]


SLOW = 10.0  # seconds in which another thread would have gone on


class RankReader:
    """The reader of a rank, among those that this process has for its job.

    A rank that has come as far as it may waits for the ranks that have still
    to begin.  A rank whose loader is iterated by this thread can't begin while
    this thread waits for it.
    """

    _readers: weakref.WeakValueDictionary[tuple[bytes, int], RankReader] = (
        weakref.WeakValueDictionary()
    )

    def __init__(self, rank: int, world: int, job: bytes) -> None:
        self._rank, self._world, self._job = rank, world, job
        self._thread = os.getpid(), threading.get_ident()
        self._used = False
        self._since: Optional[float] = None
        self._waits = self._seen = 0.0
        RankReader._readers[job, rank] = self

    def use(self) -> None:
        """This thread iterates that rank's loader."""
        self._thread = os.getpid(), threading.get_ident()
        self._used = True
        self._since = None

    def check_wait(self, whom: Callable[[], str]) -> None:
        """Called while this rank, which reads, waits for samples.

        whom() is for whom, as the producer says.
        """
        now = time.monotonic()
        if now - self._seen > 2:  # another wait
            self._waits = now
        self._seen = now
        if now - self._waits < SLOW:
            return
        self._waits = now
        if "of its job" in whom():
            self.check_others()

    def check_others(self) -> None:
        """Called while this rank waits for the others."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        for other in range(self._world):
            reader = RankReader._readers.get((self._job, other))
            if reader is None or reader is self:
                continue
            if reader._thread != self._thread:
                continue
            # Other threads may be about to use it.
            if threading.active_count() > 1 and (
                not reader._used or now - self._since < SLOW
            ):
                continue
            raise errors.from_code(
                errors.EHELD,
                "rank %d of %d waits for rank %d to begin the epoch, too, and "
                "that is a loader of the same thread: give each rank a "
                "process or a thread of its own (rank=0, world_size=1 reads "
                "alone)"
                % (self._rank, self._world, other),
            )


class Ranks:
    """A rank's part of each epoch."""

    gathers = False  # are its batches others than the stream's?
    # What a state's position is in, where it isn't in the stream's samples.
    said: dict[str, str] = {}
    # The part that the stream is, where positions are in all of the epoch.
    of: Optional[PartOf] = None

    def __init__(
        self,
        rank: int,
        world: int,
        batch: int,
        drop_last: bool,
        once: bool,
        even: bool = False,
        padding: int = 0,
    ) -> None:
        self.drops, self.once = drop_last, once
        self.even = even  # was that asked for?
        self.rank, self.world, self.batch = rank, world, batch
        self.block = world * batch  # samples that all ranks read in a batch
        # The last samples of an epoch that other parts have, left out here.
        self.padding = padding if once or drop_last else 0
        self._opts = _ffi.RankOpts(
            rank=rank,
            world=world,
            batch_size=batch,
            flags=_ffi.DROP_LAST if drop_last else 0,
            sequential=once,
            padding=padding,
        )

    def next(self, left: int) -> tuple[int, int]:
        """(where the next batch begins, its samples); 0 samples: none.

        left is how many samples the job has still to read.
        """
        first, count = c_uint64(), c_uint64()
        code = _lib.tsock_rank_next(
            byref(self._opts), left, byref(first), byref(count)
        )
        if code:
            raise _ffi.failure(code)
        return first.value, count.value

    def twice(self, left: int) -> int:
        """How many of the next batch's first samples the rank before has, too.

        With even=True they are given out as its last ones, so that in the parts
        of all ranks, taken one after the other, each sample comes once before
        any comes again.
        """
        if not self.even or left >= self.block:
            return 0
        first, count = self.next(left)
        return min(max(self.rank * count - first, 0), count)

    def ends_with_twice(self, left: int) -> bool:
        """Do the samples that come twice in all ranks' last batches come last,
        where these are put together in the order of the ranks?"""
        return True

    def total(self, length: int) -> int:
        """The samples of all ranks in an epoch of this length."""
        return length

    def batches(self, length: int) -> int:
        """The rank's batches in an epoch of this length."""
        batches: int = _lib.tsock_rank_batches(byref(self._opts), length)
        return batches

    def samples(self, length: int) -> int:
        """The samples of the rank that has the most, in such an epoch.

        So the number of ranks times this is no less than the epoch's length, if
        no sample is dropped: scripts take a smaller product to mean that they
        have to read the rest of the data set themselves.
        """
        length = max(length - self.padding, 0)
        if self.world == 1:
            return length
        whole, rest = divmod(length, self.block)
        last = 0 if self.drops else -(-rest // self.world)
        return whole * self.batch + last

    def here(self, epoch: int, position: int) -> int:
        """How many samples the stream has before that position of an epoch."""
        return position

    def part(self, order: Sequence[int], epoch: int = 0) -> Sequence[int]:
        """The rank's part of the stream's order of an epoch."""
        if self.padding:
            order = order[: max(len(order) - self.padding, 0)]
        if self.world == 1:
            return order
        block = self.block
        end = len(order) - len(order) % block
        items = array("q")
        first, count = self.next(block + self.padding)
        for at in range(first, end, block):
            items.extend(order[at : at + count])
        left = len(order) - end
        first, count = self.next(left + self.padding)
        at, twice = end + first, self.twice(left)
        items.extend(order[at + twice : at + count])
        items.extend(order[at : at + twice])
        return items
