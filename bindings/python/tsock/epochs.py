# SPDX-License-Identifier: MIT
"""The epochs of a job, and those of the stream that it reads."""

from __future__ import annotations

import logging
from typing import Optional

from . import errors

_log = logging.getLogger("tsock")


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
        self._said = self._announced = False  # set_epoch(), for the next loop
        self._loops = 0  # in a row that were broken off, and were no looks
        self._told_on = False  # was it said that the next epoch follows?

    def set_epoch(self, epoch: int) -> None:
        self.wanted = int(epoch)
        self._said = True

    def may_be_had_again(self) -> bool:
        """Is an epoch that was broken off begun again by iterating again?

        Yes, unless set_epoch() has asked for another one since.
        """
        return self._wanted_then is None or self._wanted_then == self.wanted

    def begin(self, stream_epoch: int, alone: bool) -> None:
        """The first batch of an epoch was taken, while no other iterator of
        the loader reads (alone)."""
        if alone:
            self._announced, self._said = self._said, False
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

    def broke_off(self, stream_epoch: int, batches: int) -> None:
        """A loop has left that epoch after so many batches.

        A loop that takes one batch only looks, and so does the first loop that
        takes more.  The next loop that takes more would train on samples that
        the first has seen: then the epoch counts as finished, unless
        set_epoch() names the epoch before each loop, as frameworks do.
        """
        if batches < 2 or self._sequential:
            return
        self._loops = 0 if self._announced else self._loops + 1
        if self._loops < 2 or stream_epoch <= self.finished:
            return
        self.finished = stream_epoch
        if self._told_on:
            return
        self._told_on = True
        _log.warning(
            "stream %r: a loop was broken off a second time after more than "
            "one batch, in epoch %d: from now on the next loop begins the next "
            "epoch, not the same one again; to go on in an epoch keep its "
            "iterator, to choose call set_epoch() before each loop (said once)",
            self._name,
            stream_epoch,
        )

    def left_off(self) -> tuple[int, int, bool]:
        """For the next loader of this process: go_on_from()."""
        return self._loops, self.finished, self._told_on

    def go_on_from(self, left: tuple[int, int, bool]) -> None:
        """Count on from a loader that reads no more, before the first loop."""
        self._loops, self.finished, self._told_on = left

    def finish(self, stream_epoch: int) -> None:
        """The end of that epoch was heard."""
        self.finished = max(self.finished, stream_epoch)
        self._loops = 0

    def go_on_in_another(self) -> None:
        """The loader reads another stream from now on.

        The epoch numbers usually go on, and begin with 0 where the producer was
        killed; in both cases the stream's first epoch hasn't been begun before.
        """
        self._another = True
        self.finished = -1
        self._loops = 0

    def restore(self, number: int) -> None:
        """The next epoch to begin has this number."""
        self.number = number
        self.stream = None
        self.finished = -1  # the stream may have gone back
        self._loops = 0
        self._told = True
