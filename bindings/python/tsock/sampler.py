# SPDX-License-Identifier: MIT
"""The order in which a loader visits samples, and batches for loaders that
others build around it.

accelerate skips batches by making a torch loader around loader.dataset and the
rest of loader.batch_sampler, and torch's own loader can be given the two as
well. The batches of such a loader are those of the stream: each batch that the
batch_sampler names is asked for by its number, and dataset.__getitems__() has
it read by an iterator of the loader that begins there.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Iterator, Optional, Protocol
from typing import Sequence, Union

from . import callers, errors
from .progress import Progress
from .source import Source


class Sampler:
    """Which samples of the data set the epoch visits, in its order.

    The order is the producer's.  Iterating gives the order of the epoch that is
    being read, or else of the one that the next iterator will read, as far as
    that is known before the first batch.  The field "index" says with certainty
    what a batch holds.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> Any:
            # Lightning's overfit_batches wants the same batches in each epoch,
            # and would make another loader where the sampler isn't torch's
            # sequential one.  They are the same while that trainer runs.
            trainer = callers.overfitting_trainer()
            if trainer is None:
                return type(self)
            self._progress.repeat_for(trainer)
            data = importlib.import_module("torch.utils.data")
            return data.SequentialSampler

    def __len__(self) -> int:
        return self._progress.samples

    def indices(self, stream_epoch: Optional[int] = None) -> Sequence[int]:
        """The order of an epoch of the stream."""
        return self._progress.order(stream_epoch)

    def __iter__(self) -> Iterator[int]:
        return iter(self._progress.places())

    def places(self) -> Sequence[int]:
        """As iterating gives it: a slice is found when it is asked for."""
        return self._progress.places()

    def set_epoch(self, epoch: int) -> None:
        self._progress.epochs.set_epoch(epoch)


class Lender(Protocol):
    """A loader, as far as samplers know one."""

    sampler: Sampler
    batch_size: int
    drop_last: bool
    even: bool

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def lend(self) -> Source: ...


class BatchSampler:
    """The sampler's indices, in batches.

    It keeps the loader, for frameworks that make another loader of it.
    """

    def __init__(self, loader: Lender) -> None:
        self._loader = loader
        # What accelerate's join_uneven_inputs() looks for, and sets.
        self.even_batches = loader.even

    @property
    def sampler(self) -> Sampler:
        return self._loader.sampler

    @property
    def batch_size(self) -> int:
        return self._loader.batch_size

    @property
    def drop_last(self) -> bool:
        return self._loader.drop_last

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Union[Named, Unknown]]:
        reading = Reading(self._loader)
        size = self.batch_size
        try:
            indices = self.sampler.places()
        except ValueError as e:  # the stream doesn't say in which order
            for i in range(len(self)):
                yield Unknown(reading, i, e)
            return
        for i in range(len(self)):
            yield Named(reading, i, indices[i * size : (i + 1) * size])

    def set_epoch(self, epoch: int) -> None:
        self.sampler.set_epoch(epoch)


class Reading:
    """An epoch of a loader, in batches that are asked for by number."""

    def __init__(self, loader: Lender) -> None:
        self._loader = loader
        self._batches: Optional[Iterator[Any]] = None
        self._next = 0

    def batch(self, number: int) -> Any:
        if self._batches is None or number != self._next:
            self._batches = None  # the one that reads elsewhere leaves first
            self._batches = self._begin(number)
        try:
            made = next(self._batches)
        except errors.CannotResume as e:
            raise errors.CannotResume(
                "%s (ignore_data_skip=True makes Hugging Face's Trainer do "
                "so)" % e
            ) from None
        self._next = number + 1
        return made

    def _begin(self, number: int) -> Iterator[Any]:
        batches = iter(self._loader)
        for _ in range(self._loader.lend().progress.skip(number)):
            next(batches)
        return batches


class Asked:
    """A batch that can be read, by its number."""

    def __init__(self, reading: Reading, number: int) -> None:
        self._reading, self._number = reading, number

    def read(self) -> Any:
        """The batch of the stream."""
        return self._reading.batch(self._number)


class Named(list[int], Asked):
    """One with the indices of its samples."""

    def __init__(
        self, reading: Reading, number: int, indices: Sequence[int]
    ) -> None:
        list.__init__(self, indices)
        Asked.__init__(self, reading, number)

    def __reduce__(self) -> Any:
        # In another process, a worker of torch's, they are mere numbers.
        return list, (list(self),)


class Unknown(Asked):
    """One whose indices nobody knows: the stream has an order of its own."""

    def __init__(self, reading: Reading, number: int, why: ValueError) -> None:
        super().__init__(reading, number)
        self._why = why

    def __iter__(self) -> Iterator[int]:
        raise ValueError(*self._why.args)

    def __len__(self) -> int:
        raise ValueError(*self._why.args)

    def __reduce__(self) -> Any:
        raise ValueError(*self._why.args)


class Made:
    """A batch that was read, on its way through a torch loader."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch


def collate(samples: Any) -> Any:
    """A batch of what dataset.__getitems__() gave, as loader.collate_fn.

    A batch of the stream is one already, as_dict and all; others are put
    together as torch's loader does.
    """
    if isinstance(samples, Made):
        return samples.batch
    return importlib.import_module("torch.utils.data").default_collate(samples)
