# SPDX-License-Identifier: MIT
"""The part of an epoch that a producer makes, for the ranks of one node.

Position p of an epoch's order belongs to the rank p mod world, so a part is the
positions of some ranks in a row.  The arithmetic is the library's,
tsock_part_samples() in include/tsock/order.h.
"""

from __future__ import annotations

from ctypes import byref, c_uint64
from typing import NamedTuple, Optional, Sequence

from . import _ffi, errors
from .ranks import Ranks

_lib = _ffi.lib


# An epoch, and the position in it from which it is dealt anew.
Start = tuple[int, int]


class Part(NamedTuple):
    """The part of a node: ranks first to last, of so many, newly numbered."""

    first: int
    last: int
    world: int

    @property
    def ranks(self) -> int:
        return self.last - self.first + 1

    @property
    def option(self) -> str:
        """As the producer's --shard takes it."""
        return "%d-%d/%d" % self

    def name_of(self, stream: str, start: Optional[Start]) -> str:
        """The name of this part's stream."""
        name = "%s.%dto%dof%d" % (stream, *self)
        return "%s.%dat%d" % (name, *start) if start else name


class PartOf(NamedTuple):
    """Which part of a job's epochs a stream is, as it says itself."""

    first: int
    ranks: int
    world: int
    whole: int  # samples of an epoch of all parts together
    start_epoch: int
    start: int  # position from which that epoch is dealt anew; 0: it isn't

    def _opts(self) -> _ffi.PartOpts:
        return _ffi.PartOpts(
            shard=self.first,
            shard_ranks=self.ranks,
            shards=self.world,
            whole_len=self.whole,
            start_epoch=self.start_epoch,
            start=self.start,
        )

    @property
    def part(self) -> Part:
        return Part(self.first, self.first + self.ranks - 1, self.world)

    def samples(self, epoch: int, position: int) -> Optional[int]:
        """How many samples of the part's epoch come before a position of the
        whole order; None if the part isn't cut there."""
        found = c_uint64()
        code = _lib.tsock_part_samples(
            byref(self._opts()), epoch, position, byref(found)
        )
        return None if code else found.value

    def padding(self, epoch: int, drop_last: bool) -> int:
        """What doesn't count of the part's end, where samples come once or
        short batches are dropped."""
        how = _lib.tsock_part_padding
        if drop_last:
            how = _lib.tsock_part_last_row
        found: int = how(byref(self._opts()), epoch)
        return found

    def usual_padding(self, drop_last: bool) -> int:
        """That of all epochs but the one that is dealt anew."""
        return self.padding(self.start_epoch + 1, drop_last)


def start_for(of: PartOf, epoch: int, position: int) -> Optional[Start]:
    """Where a stream of that part has to deal an epoch anew, so that a job goes
    on at that position of an epoch; None: nowhere.

    The stream that is read will do, if it can be read from there.
    """
    begins = (of.start_epoch, of.start) if of.start else (0, 0)
    if (epoch, position) >= begins and of.samples(epoch, position) is not None:
        return begins if of.start else None
    if of._replace(start=0).samples(epoch, position) is not None:
        return None
    return epoch, position


class NodeRanks(Ranks):
    """A rank's part of the epochs of a job that is on several nodes.

    Numbers of samples are those of all nodes together, and so is a position.
    """

    def __init__(
        self,
        stream: PartOf,
        local_rank: int,
        last_node: int,
        batch: int,
        drop_last: bool,
        once: bool,
        even: bool = False,
    ) -> None:
        super().__init__(
            stream.first + local_rank,
            stream.world,
            batch,
            drop_last,
            once,
            even,
        )
        self.of = self._stream = stream
        self._local, self._last = local_rank, last_node

    def total(self, length: int) -> int:
        return self._stream.whole

    def batches(self, length: int) -> int:
        return super().batches(self._stream.whole)

    def samples(self, length: int) -> int:
        return super().samples(self._stream.whole)

    def twice(self, left: int) -> int:
        return 0  # they are the part's last ones

    def ends_with_twice(self, left: int) -> bool:
        twice = -left % self.world
        if not twice:
            return True
        return self._last > 0 and (left < self.world or twice <= self._last)

    def here(self, epoch: int, position: int) -> int:
        found = self._stream.samples(epoch, position)
        if found is None:
            raise _ffi.failure(errors.EREFUSED)
        return found

    def part(self, order: Sequence[int], epoch: int = 0) -> Sequence[int]:
        stream = self._stream
        here = Ranks(
            self._local,
            stream.ranks,
            self.batch,
            self.drops,
            self.once,
            self.even,
            stream.padding(epoch, self.drops),
        )
        if epoch == stream.start_epoch and stream.start:
            order = order[self.here(epoch, stream.start) :]
        return here.part(order, epoch)
