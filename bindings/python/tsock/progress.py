# SPDX-License-Identifier: MIT
"""Where a loader is in its stream: which epoch, how far, and what comes next.

Progress knows no loader, so that a loader's samplers can ask it and the loader
still ends when it is dropped.
"""

from __future__ import annotations

import os
import weakref
from ctypes import c_void_p
from typing import Any, Callable, Mapping, Optional, Sequence

from . import _ffi, errors, state, streams
from .agreement import Agreement
from .connection import Pool, Stream
from .epochs import Epochs
from .order import Order
from .parts import Start, start_for
from .ranks import Ranks

_lib = _ffi.lib


class Position:
    """How far an iterator has come in an epoch of the stream."""

    def __init__(
        self, epoch: int, first: int, part: Ranks, stream: Stream
    ) -> None:
        self.epoch = epoch
        self.first = first  # sample of the epoch that it began with
        self.batches = 0
        self._block = part.block  # samples that all ranks read in a batch each
        # How many all ranks have missed where the stream's have one.
        self._times = part.world if part.of and part.of.ranks == 1 else 1
        self._stream: Optional[Stream] = stream
        self._missed = stream.missed  # before it; then in it
        self.passed: Optional[int] = None  # of the stream's, with a subset
        self.finished = False
        self.alone = False  # did no other iterator of the loader read?

    def samples(self, length: int) -> int:
        """Samples that all ranks handed out, or missed, of so many."""
        handed_out = self.batches * self._block
        return min(self.first + handed_out + self._skipped(), length)

    def _skipped(self) -> int:
        """Samples that were missed while the reader was detached."""
        if self._stream is None:
            return self._missed
        return (self._stream.missed - self._missed) * self._times

    def left(self) -> None:
        """Its stream may be used for another epoch."""
        if self._stream is not None:
            self._missed, self._stream = self._skipped(), None


# How the loop over a stream ended that this process broke off last, by the
# producer's run: a loop over a fresh loader goes on from there.
broken_off: dict[Any, tuple[int, int, bool]] = {}


class Progress:
    """How far a loader is in its part of the epochs.

    whole: every epoch is one of the stream's, from its first sample on.
    """

    part: Ranks
    agreement: Optional[Agreement] = None  # of ranks on several nodes

    def __init__(self, pool: Pool, whole: bool) -> None:
        self._pool = pool
        self._about = pool.about
        self.whole = whole
        self.epochs = Epochs(self._about.name, self._about.sequential)
        self.resumed: Optional[str] = None
        self._position: Optional[Position] = None  # of the iterator begun last
        self._state: Optional[state.State] = None  # to go on from
        self._order: Optional[Order] = None
        self._trainer: Callable[[], Any] = lambda: None
        self._repeated: Optional[int] = None

    def go_on_after(self, before: Progress) -> None:
        """Count on where that one was, in the stream before this one.

        A state that was to be gone on from there is refused here.
        """
        self.epochs = before.epochs
        self.epochs.go_on_in_another()
        if before._state is not None and not before._state.finished:
            self.load_state_dict(before._state.as_dict())

    def repeat_for(self, trainer: Any) -> None:
        """Begin the same epoch again and again while Lightning's trainer runs.

        Where all epochs are alike any of them will do.
        """
        if not self._about.sequential and self._trainer() is not trainer:
            self._trainer = weakref.ref(trainer)
            self._repeated = None

    def _repeats(self) -> bool:
        trainer = self._trainer()
        return trainer is not None and trainer.state.status == "running"

    def take_over(self, before: Progress) -> None:
        """Do what that one was told to, which is another process's."""
        self.epochs.wanted = before.epochs.wanted
        if before._state is not None:
            self.load_state_dict(before._state.as_dict())

    def _is_fresh(self) -> bool:
        """Does it follow a loader of this process whose loop was broken off?

        Ranks begin where the first of them does.
        """
        return (
            self._about.run in broken_off
            and self.epochs.number is None
            and self.part.world == 1
            and not self._pool.others_read
        )

    def join(self, stream: Stream, timeout: float) -> None:
        """Make it a reader at the start of an epoch, or where a state says."""
        if self.agreement is None:
            self._join(stream, timeout)
            return
        to, begins = self._state, "at the start of an epoch"
        if to is not None and not to.finished and to.samples:
            begins = "at sample %d of epoch %s" % (to.samples, to.epoch)
        try:
            self.agreement.join(
                stream, lambda: self._join(stream, timeout), begins, timeout
            )
        except errors.CannotResume:
            self._state = None
            raise

    def _join(self, stream: Stream, timeout: float) -> None:
        if self._repeated is not None and self._repeats():
            number = self.epochs.wanted
            order = self._state_order()
            self._state = state.State(order, self._repeated, number)
        if self._state is None:
            again = not stream.begun or (
                self.epochs.may_be_had_again()
                and stream.epoch > self.epochs.finished
            )
            if self._is_fresh():
                self.epochs.go_on_from(broken_off[self._about.run])
            stream.begin(timeout, again)
            # A new handle is given the first epoch that is still held.
            while self._is_fresh() and stream.epoch <= self.epochs.finished:
                stream.begin(timeout)
            return
        if self._state.finished:
            self.resumed = state.resume_after(
                self._state, stream, self._about, timeout
            )
            return
        try:
            self.resumed = state.resume(
                self._state,
                self._samples_here(self._state),
                stream,
                self._about,
                self.part.world,
                timeout,
            )
        except errors.CannotResume:
            self._state = None
            raise

    def _samples_here(self, to: state.State) -> int:
        """How many samples the stream has before those of the state."""
        try:
            return self.part.here(to.epoch or 0, to.samples)
        except errors.Refused as e:
            raise errors.CannotResume(
                "the state ends at sample %d of epoch %s, and the parts of "
                "this job's %d ranks aren't cut there: give the loader root=, "
                "so that it starts producers that deal the rest of the epoch "
                "anew, or start them with --start %s:%d (%s)"
                % (
                    to.samples,
                    to.epoch,
                    self.part.world,
                    to.epoch,
                    to.samples,
                    e,
                )
            ) from None

    def start_for(self, now: Optional[Start]) -> Optional[Start]:
        """Where the stream has to deal an epoch anew for the next iterator, if
        it does so now in that place."""
        to, of = self._state, self.part.of
        if of is None or to is None or to.epoch is None:
            return now
        samples = 0 if to.finished else to.samples
        return start_for(of, to.epoch + to.finished, samples)

    @property
    def samples(self) -> int:
        """How many an epoch has, in the loader's part."""
        return self.part.samples(self._about.epoch_len)

    @property
    def batches(self) -> int:
        """How many an epoch has."""
        return self.part.batches(self._about.epoch_len)

    @property
    def began(self) -> bool:
        """Was a batch taken?"""
        return self._position is not None

    def begun(self, stream: Stream, batch: c_void_p) -> Position:
        """The first batch of an epoch was taken."""
        to, self._state = self._state, None
        if to is not None and to.finished:
            to = None  # what it says of samples is of the epoch before
        if to is not None:
            self.epochs.restore(to.number or 0)
            broken_off.pop(self._about.run, None)
        stream.begun = True
        alone = self._pool.readers == 1
        self.epochs.begin(stream.epoch, alone)
        if self._repeated is None and self._repeats():
            self._repeated = stream.epoch
        length, part = self._about.epoch_len, self.part
        first = _lib.tsock_batch_seq(batch) - stream.epoch * length
        if part.of:
            first = to.samples if to is not None else 0
        elif part.world > 1:
            # Where the job is, not this rank; ranks begin whole epochs.
            left = length - (to.samples if to is not None else 0)
            first -= part.next(left)[0]
        if part.gathers:
            first = to.samples if to is not None else 0
        position = Position(stream.epoch, first, part, stream)
        position.alone = alone
        if part.gathers:
            position.left()  # what it counts is what was handed out
            position.passed = to.passed if to is not None else 0
        self._position = position
        return position

    def nothing_left(self) -> None:
        """The epoch that a state went on in has no batch any more."""
        to, self._state = self._state, None
        if to is not None:
            self.epochs.restore((to.number or 0) + 1)

    def finished(self, position: Position) -> None:
        """The end of that epoch was heard."""
        position.finished = True
        self.epochs.finish(position.epoch)
        broken_off.pop(self._about.run, None)

    def broke_off(self, position: Position) -> None:
        """That epoch was left before its end.

        Not where others of this process read on: it would wait for them.
        """
        if position.alone and not self._pool.others_read:
            self.epochs.broke_off(position.epoch, position.batches)
            # Streams that this process serves itself, one after another, may
            # be the same run by all that is known of them.
            if self._about.pid != os.getpid():
                broken_off[self._about.run] = self.epochs.left_off()

    def is_over(self, position: Position) -> bool:
        """Were all batches of that epoch handed out?"""
        if position.finished or not self.whole:
            return position.finished
        if position.passed == self._about.epoch_len:
            return True
        total = self.part.total(self._about.epoch_len)
        return not self.part.next(total - position.samples(total))[1]

    def drops_rest(self, position: Optional[Position]) -> bool:
        """Do all ranks drop what is left of the epoch, although the stream of
        this node would have another batch?"""
        if not (self.part.of and self.part.drops):
            return False
        total = self.part.total(self._about.epoch_len)
        if position is not None:
            done = position.samples(total)
        else:
            to = self._state
            done = 0 if to is None or to.finished else to.samples
        return not self.part.next(total - done)[1]

    # ---- the order ----

    def _known_order(self) -> Order:
        if self._order is None:
            self._order = Order(self._about.name, self._about.identity)
        return self._order

    def order(self, epoch: Optional[int] = None) -> Sequence[int]:
        """What an epoch of the stream visits; None: the one that is read."""
        order = self._known_order()
        if epoch is None:
            epoch = self._coming()
        return self.part.part(order.indices(epoch), epoch)

    def places(self) -> Sequence[int]:
        """What the epoch that is read visits, in as little memory as may be."""
        order, epoch = self._known_order(), self._coming()
        return self.part.part(order.places(epoch), epoch)

    def _coming(self) -> int:
        """The stream's epoch that is read, or the one that comes next."""
        epochs, position = self.epochs, self._position
        if self._state is not None and self._state.epoch is not None:
            return self._state.epoch + self._state.finished
        if epochs.stream is None or position is None:
            return streams.next_epoch(self._about.name, self._about.window)
        if self._pool.readers:
            return epochs.stream
        again = (
            position.epoch > epochs.finished and epochs.may_be_had_again()
        )
        return epochs.stream if again else epochs.stream + 1

    # ---- states ----

    def skip(self, batches: int) -> int:
        """Have the next iterator begin its epoch after so many batches.

        Returns how many it has to read for that, where the place in the stream
        isn't known.
        """
        if not batches or not self.whole:
            return batches
        epoch, number = self._next()
        part, order = self.part, self._state_order()
        if part.gathers:
            self._state = state.State(order, epoch, number, passed=0)
            return batches
        total = part.total(self._about.epoch_len)
        samples = min(batches * part.block, total)
        self._state = state.State(order, epoch, number, samples)
        return 0

    def _next(self) -> tuple[int, int]:
        """The epoch that is begun next: the stream's, and the job's number."""
        epochs, to = self.epochs, self._state
        if to is not None and to.epoch is not None:
            return to.epoch + to.finished, (to.number or 0) + to.finished
        if epochs.stream is None and epochs.wanted is not None:
            # As a job's that has read the stream from its beginning.
            return epochs.wanted, epochs.wanted
        coming, number = self._coming(), epochs.number or 0
        if epochs.stream is not None and coming != epochs.stream:
            number += 1
        return coming, number

    def state_dict(self) -> dict[str, Any]:
        if self._state is not None:
            return self._state.as_dict()
        order = self._state_order()
        position = self._position
        if position is None:
            return state.State(order, None, self.epochs.number).as_dict()
        return state.State(
            order,
            position.epoch,
            self.epochs.number,
            position.samples(self.part.total(self._about.epoch_len)),
            self.is_over(position) or not self.whole,
            position.passed,
        ).as_dict()

    def _state_order(self) -> dict[str, str]:
        return dict(
            state.order_of(self._about, self.part.of), **self.part.said
        )

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        to = state.from_dict(
            state_dict, self._about.name, self._state_order()
        )
        if to is None:
            return
        self._state = self._position = self.resumed = None
        if to.finished and to.number is not None:
            self.epochs.restore(to.number + 1)
        if to.epoch is not None and (self.whole or not to.finished):
            self._state = to


class HasProgress:
    """What a loader says of its epochs, and of where it has come to."""

    _progress: Progress

    @property
    def epoch(self) -> Optional[int]:
        """The number of the epoch begun last; None before the first batch.

        A job counts its own epochs, from 0, or from what set_epoch() said
        before the first.
        """
        return self._progress.epochs.number

    @property
    def stream_epoch(self) -> Optional[int]:
        """The number that this epoch has in the stream."""
        return self._progress.epochs.stream

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch of this job comes next: else it is the next one.

        A shared stream is never moved by this; one warning says so when
        another epoch begins.
        """
        self._progress.epochs.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the loader has come to: after the batch that it gave last.

        A dict for load_state_dict(), of numbers and strings.  Where batches
        begin at segments or at the newest sample (join), a state says which
        epoch it was, and nothing of the samples.
        """
        return self._progress.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on, at the next iter(), after the samples of state_dict().

        The state may be another job's, with another batch size; {} changes
        nothing.  Where the stream holds the next sample it follows (``resumed``
        is "held" then).  If nobody else reads, the stream is moved there, ahead
        or back ("moved").  Beside others it is waited for ("awaited"), or,
        where the stream has gone past it, next() raises CannotResume, and
        iterating again begins a new epoch.  After a finished epoch comes the
        next one, or another that can be had at once.  A stream of
        tsock.serve() without identity= goes on in the epochs that it still
        holds from the start, and is never moved back.
        """
        self._progress.load_state_dict(state_dict)

    @property
    def resumed(self) -> Optional[str]:
        """How the loader went on from a state: "held", "awaited" or "moved",
        as far as it could see beforehand; None where it didn't."""
        return self._progress.resumed
