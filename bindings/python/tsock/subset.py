# SPDX-License-Identifier: MIT
"""subset=: full batches of the samples of a stream that one job wants.

The stream is read as by a loader without subset=, in batches of the same size,
so that this job holds up others no more than such a loader would: each batch is
given back as soon as the wanted samples have been copied, before the next is
asked for.  The stream's field "index" says which samples a batch has; where a
file is bad, it names the replacement.  Each wanted sample is taken when it
first comes; for those that never come (they can't be decoded) the epoch's first
ones are given again at its end, as DistributedSampler pads.
"""

from __future__ import annotations

import collections
import ctypes
import hashlib
import logging
import operator
from array import array
from typing import Any, Iterable, Optional, Sequence

from . import _ffi, errors
from .about import About
from .buffers import Buffer, BufferMaker, Pages, index_of
from .iterator import Iterator
from .ranks import Ranks
from .source import Source

_lib = _ffi.lib
_log = logging.getLogger("tsock")

RESERVE = 16  # samples that are kept to be given again


def _number(item: Any) -> int:
    if isinstance(item, bool):
        raise ValueError(
            "subset is a mask, or has a bool: it takes the indices of "
            "samples, such as mask.nonzero()[0] in numpy"
        )
    return operator.index(item)


def _numbers(subset: Any) -> array[int]:
    items = subset.tolist() if hasattr(subset, "tolist") else subset
    try:
        # One by one: what isn't a number may be an image, to be decoded.
        return array("q", map(_number, items))
    except (TypeError, OverflowError):
        named = ""
        if hasattr(subset, "indices"):  # torch.utils.data.Subset
            named = "; it has samples, whose indices are its attribute indices"
        raise ValueError(
            "subset %.60r: it is a list, array, range or tensor of indices "
            "of the data set%s" % (subset, named)
        ) from None


class Subset:
    """The indices that a loader wants."""

    def __init__(self, subset: Iterable[int]) -> None:
        self.indices = _numbers(subset)
        if not self.indices:
            raise ValueError("subset has no samples")
        least, self.last = min(self.indices), max(self.indices)
        if least < 0:
            raise ValueError(
                "subset has the index %d: those of a data set begin with 0"
                % least
            )
        if len(set(self.indices)) < len(self.indices):
            twice = collections.Counter(self.indices).most_common(1)[0][0]
            raise ValueError(
                "subset has the index %d twice: each sample is read once in "
                "an epoch" % twice
            )
        self.wanted = bytearray()  # by index: 1 is wanted

    def set_opts(self, opts: _ffi.Opts) -> None:
        """Ask for batches that are only looked at and copied from."""
        if opts.device >= 0:
            raise ValueError(
                "subset with a device: its batches are gathered in host "
                "memory; leave device out, and move each batch: "
                "images.to('cuda', non_blocking=True), with pin_memory=True"
            )
        opts.flags &= ~(_ffi.DROP_LAST | _ffi.WRITABLE)

    @staticmethod
    def check_world(world: int) -> None:
        if world > 1:
            raise ValueError(
                "subset with world_size %d: ranks don't share a subset; give "
                "each a part of its own and let it read alone: "
                "subset=indices[rank::world_size], rank=0, world_size=1"
                % world
            )

    def check(self, about: About) -> None:
        """Refuse what this stream can't have."""
        shard, shards = about.shard
        if shards:
            raise ValueError(
                "subset of %r, a stream of shard %d/%d: it has other samples "
                "in each epoch, so how many are wanted can't be told; read a "
                "stream of all of the data set"
                % (about.name, shard, shards)
            )
        sampler = about.identity.get("sampler")
        if sampler:
            raise ValueError(
                "subset of %r, a stream with sampler=%r: how many of its "
                "samples are wanted is different in each epoch, or they come "
                "more than once; read a stream without sampler="
                % (about.name, sampler)
            )
        # A served loader may give any indices.
        served = "structure" in about.identity
        if self.last >= about.dataset_len and not served:
            raise ValueError(
                "subset has the index %d, and the data set of stream %r has "
                "%d samples" % (self.last, about.name, about.dataset_len)
            )
        index_of(about)
        self.wanted = bytearray(self.last + 1)
        for i in self.indices:
            self.wanted[i] = 1

    def filtered(self, order: Sequence[int]) -> array[int]:
        """What it has of the order of an epoch."""
        wanted, last = self.wanted, self.last
        return array("I", (i for i in order if i <= last and wanted[i]))


class Part(Ranks):
    """The subset as a part of each epoch, alone."""

    gathers = True

    def __init__(
        self, subset: Subset, batch: int, drop_last: bool, once: bool
    ) -> None:
        super().__init__(0, 1, batch, drop_last, once)
        self._subset = subset
        self._size = size = len(subset.indices)
        if drop_last and batch > size:
            raise ValueError(
                "batch_size %d is more than the %d samples of subset: with "
                "drop_last no batch would be left" % (batch, size)
            )
        # What the epoch gives out, full batches only with drop_last.
        self.goal = size - size % batch if drop_last else size
        self._warned = False
        self.pages = Pages()
        numbers = array("q", sorted(subset.indices)).tobytes()
        self.said = {
            "subset": "%d samples, %s"
            % (size, hashlib.sha256(numbers).hexdigest()[:16])
        }

    def samples(self, length: int) -> int:
        return self._size

    def total(self, length: int) -> int:
        return self._size

    def batches(self, length: int) -> int:
        return -(-self.goal // self.batch)

    def part(self, order: Sequence[int], epoch: int = 0) -> Sequence[int]:
        return self._subset.filtered(order)

    def warn(self, name: str, epoch: Optional[int]) -> None:
        """Say once that some samples never came."""
        if not self._warned:
            self._warned = True
            _log.warning(
                "stream %r had not all samples of subset in epoch %s, since "
                "some files can't be decoded, or others had to wait for this "
                "loader: the first ones of the epoch stand in for them (said "
                "once)",
                name,
                epoch,
            )

    def left(self) -> bytearray:
        """By index: 1 for the samples that an epoch gives out."""
        return bytearray(self._subset.wanted)


class Gather:
    """Gathers an epoch's batches of those of the stream.

    add() may be called again for the same batch of the stream, when Ctrl-C
    came before its end.
    """

    def __init__(
        self,
        maker: BufferMaker,
        part: Part,
        given: int,
        first: int,
        start: int,
    ) -> None:
        self._maker = maker
        self._part = part
        self._left = part.left()
        self._given = given  # samples in batches that are full
        self.next = first  # sequence number of what comes next
        self._start = start  # what comes before was given out by another one
        self._mask = bytearray()
        self._masked = -1  # the first sample that it is about
        self._buffer: Optional[Buffer] = None  # being filled
        self._full: list[tuple[Buffer, int]] = []  # and where each ends
        self._reserve: list[Any] = []
        self.again = 0  # samples that were given once more

    @property
    def is_ready(self) -> bool:
        return bool(self._full)

    @property
    def is_over(self) -> bool:
        """Are all samples in batches that are full?"""
        return self._given >= self._part.goal

    def give(self) -> tuple[list[Any], int]:
        """A batch that is ready, and the sequence number after its last."""
        buffer, end = self._full.pop(0)
        return buffer.tensors, end

    def add(self, batch: Any) -> None:
        """Copy what is wanted of a batch of the stream."""
        seq: int = _lib.tsock_batch_seq(batch)
        count: int = _lib.tsock_batch_count(batch)
        if seq < self.next:
            return
        mask = self._mask_of(batch, seq, count)
        sources = [
            _lib.tsock_batch_data(batch, i) for i in self._maker.places
        ]
        buffer, full, given = self._buffer, list(self._full), self._given
        filled = buffer.filled if buffer else 0
        k = mask.find(1)
        while k >= 0 and given < self._part.goal:
            if buffer is None:
                buffer, filled = self._new_buffer(given), 0
            k, filled = self._copy(sources, mask, k, buffer, filled)
            if filled == buffer.count:
                full.append((buffer, seq + k))
                given += filled
                self._keep(buffer, filled)
                buffer = None
            k = mask.find(1, k)
        if buffer:
            buffer.filled = filled
        self._buffer, self._full = buffer, full
        self._given, self.next = given, seq + count

    def _new_buffer(self, given: int) -> Buffer:
        part = self._part
        return Buffer(self._maker, min(part.batch, part.goal - given))

    def _mask_of(self, batch: Any, seq: int, count: int) -> bytearray:
        """Which samples of the batch are wanted and come first."""
        if self._masked != seq:
            self._mask, self._masked = bytearray(count), seq
        mask, left, n = self._mask, self._left, len(self._left)
        place, kind = self._maker.index
        address = _lib.tsock_batch_data(batch, place)
        for k, i in enumerate((kind * count).from_address(address)[:]):
            if i < n and left[i]:
                mask[k] = seq + k >= self._start
                left[i] = 0
        return mask

    def _copy(
        self,
        sources: Sequence[int],
        mask: bytearray,
        k: int,
        buffer: Buffer,
        filled: int,
    ) -> tuple[int, int]:
        """Copy wanted samples from k on, those side by side at once.

        (The sample after the last one that was looked at, filled.)
        """
        fields = list(zip(sources, buffer.addresses, self._maker.sizes))
        memmove = ctypes.memmove
        while True:
            end = mask.find(0, k)
            if end < 0:
                end = len(mask)
            n = min(end - k, buffer.count - filled)
            for source, to, size in fields:
                memmove(to + filled * size, source + k * size, n * size)
            filled += n
            if filled == buffer.count:
                return k + n, filled
            k = mask.find(1, end)
            if k < 0:
                return len(mask), filled

    # ---- the end of the stream's epoch ----

    def _keep(self, buffer: Buffer, filled: int) -> None:
        """Keep the first samples, to be given again if some never come."""
        if not self._reserve and filled:
            self._reserve = self._maker.copies(
                buffer.first(min(filled, RESERVE))
            )

    def finish(self) -> bool:
        """Make a short batch of what is there, if that is wanted."""
        buffer, self._buffer = self._buffer, None
        if buffer is None or not buffer.filled or self._part.drops:
            return False
        buffer.tensors = buffer.first(buffer.filled)
        self._given += buffer.filled
        self._full = [(buffer, self.next)]
        return True

    def pad(self) -> bool:
        """Make the next batch that was promised; False: there is nothing."""
        buffer = self._buffer or self._new_buffer(self._given)
        self._keep(buffer, buffer.filled)
        if not self._reserve:
            return False
        for at in range(buffer.filled, buffer.count):
            k = self.again % len(self._reserve[0])
            for to, kept in zip(buffer.tensors, self._reserve):
                to[at] = kept[k]
            self.again += 1
        self._buffer = None
        self._given += buffer.count
        self._full = [(buffer, self.next)]
        return True


class Gatherer(Iterator):
    """One epoch of a loader with subset=."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._gather: Optional[Gather] = None
        self._start = 0  # sequence number of the epoch's first sample

    def _next(self) -> Any:
        gather = self._gather
        if gather is None or not gather.is_ready:
            gather = self._fill()
        position = self._position
        assert position is not None
        made, end = gather.give()
        if self._ending:
            self._ending.look()
        position.batches += 1
        position.passed = end - self._start
        return self._source.batches.arrange(made)

    def _fill(self) -> Gather:
        """Read on until a batch is ready."""
        try:
            while True:
                if not self._out.value:
                    self._take()
                gather = self._gather or self._begin_gather()
                gather.add(self._out)
                batch, self._out.value = self._out.value, None
                _lib.tsock_batch_release(batch)
                if gather.is_over and self._stream:
                    # Others needn't wait until this job is asked again.
                    self._stream.ask(_lib.tsock_skip, self._length)
                    self._stream.ask(_lib.tsock_next, 0, self._ref)
                if gather.is_ready:
                    return gather
        except StopIteration:
            if self._failure or self._gather is None:
                raise
            if self._gather.is_over or not self._finish(self._gather):
                raise
        return self._gather

    @property
    def _length(self) -> int:
        return self._source.about.epoch_len

    def _begin_gather(self) -> Gather:
        position = self._position or self._begun()
        self._start = first = _lib.tsock_batch_seq(self._out)
        part = self._source.progress.part
        assert isinstance(part, Part)
        self._gather = Gather(
            BufferMaker(self._source, part.pages),
            part,
            position.first,
            first,
            first + (position.passed or 0),
        )
        return self._gather

    def _finish(self, gather: Gather) -> bool:
        """The stream's epoch is over: is there one more batch?"""
        if gather.next - self._start < self._length:
            return gather.finish()  # it was joined in its middle
        if gather.pad():
            part = self._source.progress.part
            assert isinstance(part, Part)
            part.warn(
                self._source.about.name,
                self._source.progress.epochs.stream,
            )
            return True
        position = self._position
        if position and not position.first:
            self._failure = errors.Error(
                "none of the samples of subset was in epoch %d of stream %r: "
                "can they be decoded?" % (position.epoch, self._source.about.name)
            )
            raise self._failure
        return False
