# SPDX-License-Identifier: MIT
"""What frameworks look for: torch's attributes, samplers, epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator, Optional, Sequence

from . import errors

if TYPE_CHECKING:
    from .progress import Progress

# What is read from a loader that has no workers.
LIKE_TORCH = {
    "num_workers": 0,
    "collate_fn": None,
    "generator": None,
    "prefetch_factor": None,
    "persistent_workers": False,
    "pin_memory_device": "",
    "worker_init_fn": None,
    "multiprocessing_context": None,
    "in_order": True,
}

# What torch's loader doesn't let be set, and what only the constructor uses.
FIXED = frozenset(
    (
        "batch_size batch_sampler sampler drop_last dataset "
        "persistent_workers "
        "name classes fields dtype layout memory_format normalize join "
        "between framework device zero_copy as_dict subset "
        "even"
    ).split()
)


_MOST_LOOKS = 8  # beginnings of one epoch that are worth a warning


class Epochs:
    """The epochs of a job: its own numbers, and the stream's.

    A job counts the epochs that it has begun, from 0 or from what it told
    set_epoch() before the first, wherever the stream was when it came.
    """

    def __init__(self, name: str, sequential: bool) -> None:
        self._name = name
        self._sequential = sequential
        self.wanted: Optional[int] = None  # what set_epoch() said last
        self.number: Optional[int] = None  # of the epoch begun last
        self.stream: Optional[int] = None  # that epoch's number in the stream
        self.finished = -1  # the latest epoch of the stream that was finished
        self._another = False  # is the stream one whose numbers mean others?
        self._told = False  # has set_epoch() said which epoch that was?
        self._wanted_then: Optional[int] = None
        self._warned = False
        self._begun = 0  # how often that epoch was begun by an iterator alone
        self._told_again = False

    def set_epoch(self, epoch: int) -> None:
        self.wanted = int(epoch)

    def may_be_had_again(self) -> bool:
        """Is an epoch that was broken off begun again by iterating again?

        Yes, unless set_epoch() has asked for another one since.
        """
        return self._wanted_then is None or self._wanted_then == self.wanted

    def begin(self, stream_epoch: int, alone: bool) -> None:
        """The first batch of an epoch was taken, while no other iterator of
        the loader reads (alone)."""
        if self._another or self.stream != stream_epoch:
            self._begun = 0
        self._begun += alone
        if self.number is None:
            self.number = 0
        elif self.stream is not None and (
            self._another or stream_epoch > self.stream
        ):
            self.number += 1
        self.stream = stream_epoch
        self._another = False
        self._wanted_then = self.wanted
        if self.wanted is not None and not self._told:
            self._told = True
            self.number = self.wanted
        self._compare(stream_epoch)
        self._look_for_repeats(stream_epoch)

    def _compare(self, stream_epoch: int) -> None:
        # An order that is always the same is every epoch's.
        if self._warned or self._sequential:
            return
        if self.wanted is None or self.wanted == self.number:
            return
        self._warned = True
        errors.warn(
            "set_epoch(%d): stream %r is shared and isn't moved; this is "
            "epoch %s of this job, and epoch %d of the stream (said once)"
            % (self.wanted, self._name, self.number, stream_epoch),
        )

    def _look_for_repeats(self, stream_epoch: int) -> None:
        # A look or two are what beginning again is for.
        if self._told_again or self._sequential or self._begun < _MOST_LOOKS:
            return
        self._told_again = True
        errors.warn(
            "epoch %d of stream %r was begun %d times, each time with the "
            "same batches, since it was broken off: to go on to the next one, "
            "call set_epoch() before each, with another number; to go on in "
            "this one, keep its iterator (said once)"
            % (stream_epoch, self._name, self._begun),
        )

    def go_on_in_another(self) -> None:
        """The loader reads another stream from now on.

        Its numbers go on as a rule, and begin with 0 where its producer was
        killed; either way its first epoch is none that was begun before.
        """
        self._another = True
        self.finished = -1

    def restore(self, number: int) -> None:
        """The next epoch to begin has this number."""
        self.number = number
        self.stream = None
        self.finished = -1  # the stream may have gone back
        self._told = True


class Sampler:
    """Which samples of the data set the epoch visits, in its order.

    The order is the producer's.  Iterating gives the epoch that is being read;
    else the one that the next iterator will read, so far as that is known
    before the first batch.  For what a batch holds without any doubt, see the
    field "index".
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __len__(self) -> int:
        return self._progress.samples

    def indices(self, stream_epoch: Optional[int] = None) -> Sequence[int]:
        """The order of an epoch of the stream."""
        return self._progress.order(stream_epoch)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices())

    def set_epoch(self, epoch: int) -> None:
        self._progress.epochs.set_epoch(epoch)


class BatchSampler:
    """The same, in batches."""

    def __init__(
        self,
        sampler: Sampler,
        progress: Progress,
        batch_size: int,
        drop_last: bool,
    ) -> None:
        self._progress = progress
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __len__(self) -> int:
        return self._progress.batches

    def __iter__(self) -> Iterator[list[int]]:
        indices = self.sampler.indices()
        for i in range(len(self)):
            at = i * self.batch_size
            yield list(indices[at : at + self.batch_size])

    def set_epoch(self, epoch: int) -> None:
        self.sampler.set_epoch(epoch)
