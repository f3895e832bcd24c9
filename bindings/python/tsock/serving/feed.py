# SPDX-License-Identifier: MIT
"""A loader's batches, by their place in a stream.

The loader is iterated once for each epoch, and what is served of it goes by
sequence number: sample number s is in epoch s // length.  Where a stream leaps
ahead (nobody reads the rest of an epoch any more) what lies between is left
out.  A stream that keeps its identity may also begin in the middle of an
epoch, and go back: that epoch is iterated from its first batch, and what comes
before is dropped.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Callable, Iterator, Optional

from . import fixed, pillow
from .arrays import Memory

_log = logging.getLogger("tsock")

_END: Any = object()
COUNTING = 10.0  # seconds of counting an epoch that are long enough to be told


class LoaderLength(RuntimeError):
    """A loader has, or gave, more samples or fewer than an epoch has."""


class Batch:
    """A batch, and the numbers of its samples."""

    __slots__ = ("first", "end", "leaves")

    def __init__(self, first: int, count: int, leaves: list[Memory]) -> None:
        self.first = first
        self.end = first + count
        self.leaves = leaves


def sized(value: Any) -> Optional[int]:
    """Its len(), if it has one."""
    try:
        return len(value)
    except Exception:  # noqa: BLE001 - torch's raise TypeError and others
        return None


def listeners(loader: Any) -> list[Any]:
    """What of a loader has a set_epoch(), each once."""
    batches = getattr(loader, "batch_sampler", None)
    looked_at: list[Any] = []
    for each in (
        getattr(loader, "dataset", None),
        getattr(loader, "sampler", None),
        batches,
        getattr(batches, "sampler", None),
        loader,
    ):
        if each is None or any(each is other for other in looked_at):
            continue
        looked_at.append(each)
    return [
        each
        for each in looked_at
        if callable(getattr(each, "set_epoch", None))
    ]


def set_epoch(loader: Any, epoch: int) -> None:
    """Tell everything that shuffles which epoch begins."""
    for each in listeners(loader):
        each.set_epoch(epoch)


def length_of(loader: Any, rows_of_first: int, ragged: bool) -> int:
    """Samples of an epoch (ragged: batches), as the loader tells."""
    batches = sized(loader)
    if ragged and batches:
        return batches
    if batches and isinstance(loader, (list, tuple)):
        return sum(fixed.count(batch) for batch in loader)
    # torch's knows its batch size; the first batch may be a short one.
    size = getattr(loader, "batch_size", None)
    if not isinstance(size, int) or size < rows_of_first:
        size = rows_of_first
    for name in ("sampler", "dataset"):
        samples = sized(getattr(loader, name, None))
        if batches and samples and -(-samples // size) == batches:
            return samples
        if batches and samples and samples // size == batches:
            return batches * size  # the rest is dropped
    what = "batches" if ragged else "samples"
    raise ValueError(
        "how many %s an epoch of this %s has can't be told: %s; give "
        "length=, the number of %s"
        % (
            what,
            type(loader).__qualname__,
            "it has no length, and can be iterated only once"
            if not batches
            else "it has %d batches, and neither a sampler nor a data set "
            "says of how many samples" % batches,
            what,
        )
    )


class Feed:
    """The batches of a loader.

    loader may be a function that gives what is to be iterated, each epoch.
    """

    def __init__(
        self,
        loader: Any,
        prepare: Callable[[Any], Any],
        name: str,
    ) -> None:
        self._loader = loader
        self._name = name  # of the stream
        self._prepare = prepare  # transform and pack
        self._iterator: Optional[Iterator[Any]] = None
        self._schema: Any = None  # of fixed.py, or ragged.py
        self.is_once = False  # the loader is its own iterator
        self.length = 0
        self._counted = False  # by a pass over the loader
        self._measure: Callable[[], Optional[int]] = lambda: None
        self.epoch = -1
        self._position = 0  # in the epoch, of the next batch
        self._batch: Optional[Batch] = None
        self._ahead: Any = _END  # a batch that was looked at
        self.batches = 0
        self.wait_ns = 0
        self.asked: Optional[float] = None  # when the loader was asked

    def first(self) -> Any:
        """The first batch, which is had again by at(0)."""
        self._begin(0)
        try:
            self._ahead = item = self._next()
        except TypeError as e:
            if not pillow.is_why(e):
                raise
            raise pillow.bad_batch() from None
        if item is _END:
            raise ValueError(
                "the loader gave no batch: there is nothing to serve"
            )
        pillow.refuse(item)
        return item

    def ready(self, schema: Any, length: Optional[int], ragged: bool) -> None:
        """What batches are, and how long an epoch is.

        None is what the loader says, before each epoch.  One that says
        nothing, and can be iterated again, is counted here, and its first
        batch is had again after that.
        """
        self._schema = schema
        if length is not None:
            self.length = length
            return
        if sized(self._loader) is None and not self.is_once:
            self._count()
            return
        first = schema.batch_size
        self.length = length_of(self._loader, first, ragged)
        self._measure = lambda: length_of(self._loader, first, ragged)

    def _count(self) -> None:
        """How long an epoch is, by the rest of the one that has begun."""
        began, told = time.monotonic(), False
        item, total = self._ahead, 0
        while item is not _END:
            total += self._rows(item)
            if not told and time.monotonic() - began > COUNTING:
                told = True
                _log.warning(
                    "stream %s: the loader has no length, and is iterated "
                    "once to count it: %d %s so far; length= saves that pass, "
                    "and a loader without an end needs it",
                    self._name,
                    total,
                    self._what(),
                )
            item = self._next()
        seconds = time.monotonic() - began
        self.length, self._counted = total, True
        self.wait_ns = 0  # what was waited for until now wasn't served
        _log.warning(
            "stream %s: the loader has no length, so it was iterated once, in "
            "%.1f s, to count the %d %s of an epoch; length=%d saves that "
            "pass",
            self._name,
            seconds,
            total,
            self._what(),
            total,
        )
        self._begin(0)
        self._ahead = self._next()
        if self._ahead is _END:
            raise ValueError(
                "the loader gave %d %s when they were counted, and nothing "
                "when it was iterated again: give length=%d, or serve a "
                "function that makes what is iterated"
                % (total, self._what(), total)
            )

    def at(self, seq: int) -> Batch:
        """The batch that holds sample seq."""
        batch = self._batch
        if batch is not None and seq < batch.first:
            self._begin(seq // self.length)
            batch = None
        while batch is None or not batch.first <= seq < batch.end:
            if seq // self.length != self.epoch:
                self._begin(seq // self.length)
            batch = self._batch = self._advance()
        return batch

    @property
    def stalled(self) -> tuple[str, str]:
        """What to say, and to advise, where the next batch doesn't come."""
        said = getattr(self._loader, "tsock_stalled", None)
        if isinstance(said, tuple):  # tensorsocket.py's, whose user decides
            return str(said[0]), str(said[1])
        return (
            "the loader has given no batch",
            "if it hangs, timeout=SECONDS in serve() ends the stream, with an "
            "error for every job",
        )

    def close(self) -> None:
        """Have done with the loader's iterator, and its workers."""
        self._iterator = self._batch = None
        self._ahead = _END

    def _begin(self, epoch: int) -> None:
        self.close()
        set_epoch(self._loader, epoch)
        length = self._measure() or self.length
        if length != self.length:
            raise LoaderLength(
                "the loader has %d %s for epoch %d, and had %d when it was "
                "served: all epochs of a stream are of one length; close the "
                "server and serve the loader again, and its jobs make new "
                "loaders" % (length, self._what(), epoch, self.length)
            )
        source = self._loader
        if not hasattr(source, "__iter__") and callable(source):
            source = source()
        self._iterator = iter(source)
        self.is_once = self._iterator is self._loader
        self.epoch = epoch
        self._position = 0

    def _next(self) -> Any:
        """The loader's next batch, prepared; _END at its end."""
        if self._iterator is None:
            return _END
        began = time.monotonic()
        self.asked = began
        item = next(self._iterator, _END)
        self.asked = None
        self.wait_ns += int((time.monotonic() - began) * 1e9)
        if item is _END:
            self._iterator = None
            return _END
        return self._prepare(item)

    def _rows(self, item: Any) -> int:
        """How much of an epoch a batch is."""
        if isinstance(self._schema, fixed.FixedSchema):
            return fixed.count(item)
        return 1

    def _advance(self) -> Batch:
        item, self._ahead = self._ahead, _END
        if item is _END:
            item = self._next()
        if item is _END:
            raise self._early()
        try:
            count, leaves = self._schema.read(item)
        except fixed.BadBatch as e:
            raise fixed.BadBatch(
                "batch %d of epoch %d: %s" % (self.batches, self.epoch, e)
            ) from None
        made = Batch(
            self.epoch * self.length + self._position, count, leaves
        )
        self._position += count
        self.batches += 1
        if self._position >= self.length:
            # Before anybody can see the epoch's last sample.
            if self._position == self.length:
                self._ahead = self._next()
            if self._position > self.length or self._ahead is not _END:
                raise self._late()
        return made

    def _early(self) -> LoaderLength:
        hint = ""
        if self._position == 0 and self.epoch > 0:
            hint = (
                "; a generator can be iterated only once: serve a function "
                "that makes one"
            )
        return LoaderLength(
            "the loader ended early: epoch %d had %d %s, and its length is "
            "%d%s; length= says what it is%s"
            % (
                self.epoch,
                self._position,
                self._what(),
                self.length,
                self._by_count(),
                hint,
            )
        )

    def _late(self) -> LoaderLength:
        return LoaderLength(
            "the loader goes on after the end of epoch %d: its length is %d "
            "%s%s; length= says what it is, and itertools.islice() cuts one "
            "without an end"
            % (self.epoch, self.length, self._what(), self._by_count())
        )

    def _by_count(self) -> str:
        return ", as counted when it was served" if self._counted else ""

    def _what(self) -> str:
        is_fixed = isinstance(self._schema, fixed.FixedSchema)
        return "samples" if is_fixed else "batches"
