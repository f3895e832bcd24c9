# SPDX-License-Identifier: MIT
"""What frameworks look for: torch's attributes, and epochs."""

from __future__ import annotations

import logging
import weakref
from typing import TYPE_CHECKING, Any, Callable, Optional, cast

from . import arguments, callers, errors, gpu
from .sampler import BatchSampler, collate

if TYPE_CHECKING:
    from .loader import DataLoader

# What is read from a loader that has no workers.
LIKE_TORCH = {
    "num_workers": 0,
    "collate_fn": collate,
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


class LikeTorch:
    """A loader's attributes as those of torch's loader, for frameworks."""

    timeout: float
    _timeout: float  # what was set
    _tensors: Any
    device: Any

    # accelerate's prepare_data_loader() leaves such a loader as it is, and its
    # save_state() saves where that is.
    _is_accelerate_prepared = True
    use_stateful_dataloader = True

    def _look_like_torchs(self) -> None:
        self._batch_sampler: Callable[[], Optional[BatchSampler]] = _no_sampler
        for key, value in LIKE_TORCH.items():
            setattr(self, key, value)

    def __setattr__(self, key: str, value: Any) -> None:
        if key in FIXED and "_made" in self.__dict__:
            raise ValueError(
                "%s can't be set after tsock.DataLoader is initialized; make "
                "another loader" % key
            )
        if key == "timeout":
            key, value = "_timeout", arguments.seconds("timeout", value, 0)
        if key == "pin_memory":
            value = bool(value) and gpu.may_pin(self._tensors, self.device)
        super().__setattr__(key, value)

    if not TYPE_CHECKING:

        @property
        def timeout(self) -> float:
            # accelerate hands it on to a loader of torch's, which takes one
            # for workers alone, and has this loader read, with its own.
            return 0.0 if callers.is_accelerate() else self._timeout

    @property
    def batch_sampler(self) -> BatchSampler:
        # It keeps this loader, so the loader doesn't keep it.
        made = self._batch_sampler()
        if made is None:
            made = BatchSampler(cast("DataLoader", self))
            self._batch_sampler = weakref.ref(made)
        return made


def _no_sampler() -> None:
    """None was made so far."""


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

        One batch is a look, and so is the first loop that takes more.  The
        next one of these trains on what the first has seen: then the epoch
        counts as finished, unless set_epoch() says before each loop which
        epoch it is about, as frameworks do.
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

    def finish(self, stream_epoch: int) -> None:
        """The end of that epoch was heard."""
        self.finished = max(self.finished, stream_epoch)
        self._loops = 0

    def go_on_in_another(self) -> None:
        """The loader reads another stream from now on.

        Its numbers go on as a rule, and begin with 0 where its producer was
        killed; either way its first epoch is none that was begun before.
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
