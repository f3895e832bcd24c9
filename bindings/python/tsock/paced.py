# SPDX-License-Identifier: MIT
"""A loader that goes on a batch at a time, as another thread's loop does.

For tensorsocket.py, whose user drives a producer with a for loop, while
tsock.serve() iterates what it serves in a thread of its own.
"""

from __future__ import annotations

import threading
from itertools import islice
from typing import Any, Callable, Iterator, Optional

from .serving import feed
from .serving.copiers import Gone


class Paced:
    """A loader whose batches are had when somebody asks for one more.

    The server's thread iterates it, epoch by epoch, and waits for step() of
    the thread that drives the producer.
    """

    def __init__(self, loader: Any, prepare: Callable[[Any], Any]) -> None:
        self._loader = loader
        self._prepare = prepare
        self._changed = threading.Condition()
        self._begun = 0  # epochs that the server has come to
        self._asked = 0  # epochs that the producer's user has come to
        self._steps = 0  # of the one that he is in: asked for
        self._taken = 0  # ... and had
        self._closed = False
        self._held = False  # the server waits for the producer's loop
        self.is_joined = False  # which has ended, says who drives it
        self._number = 0  # the stream's number of the epoch begun last
        self.epoch = 0  # ... of the last one that was asked for
        self._first: list[Any] = []
        self._source = self._iterate()
        for item in self._source:
            self._first.append(item)
            break

    @property
    def first(self) -> Any:
        """The first batch."""
        if not self._first:
            raise ValueError("the data loader gave no batch")
        return self._first[0]

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        if name in ("sampler", "dataset", "batch_sampler", "batch_size"):
            return getattr(self._loader, name)
        raise AttributeError(name)

    def set_epoch(self, epoch: int) -> None:
        self._number = epoch
        if callable(getattr(self._loader, "set_epoch", None)):
            self._loader.set_epoch(epoch)

    # ---- the server's thread ----

    def _iterate(self) -> Iterator[Any]:
        # A loader that never stops has as many batches as it says.
        for item in islice(iter(self._loader), feed.sized(self._loader)):
            yield self._prepare(item)

    def __iter__(self) -> Iterator[Any]:
        with self._changed:
            self._begun += 1  # so the one before has ended, or was left
            epoch = self._begun
            self._changed.notify_all()
        if epoch > 1:
            self._wait(lambda: self._asked >= epoch)
            # Not before: set_epoch() of the user's is for this.
            self._source = self._iterate()
        else:
            # The first batch is available at once: shapes are needed before a step.
            first, self._first = self._first, []
            self._taken = len(first)
            yield from first
        self.epoch = self._number
        for item in self._source:
            self._wait(
                lambda: self._asked >= epoch and self._steps > self._taken
            )
            with self._changed:
                self._taken += 1
                self._changed.notify_all()
            yield item

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            self._held = True
            self._changed.wait_for(lambda: self._closed or condition())
            self._held = False
            if self._closed:
                raise Gone

    @property
    def tsock_stalled(self) -> Optional[tuple[str, str]]:
        """As Feed.stalled, where it isn't the loader that hangs."""
        if not self._held:
            return None
        if self.is_joined:
            return (
                "the loop over the TensorProducer has ended, with no batch",
                "join() waits for the other consumers to read what there is",
            )
        return (
            "the loop over the TensorProducer has asked for no batch",
            "it has to go on, or to end, and join() after it",
        )

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # ---- who drives the producer ----

    def enter(self) -> None:
        """Begin an epoch, or go on in one that was left in the middle."""
        with self._changed:
            if self.is_whole:
                if self._asked:
                    self._taken = 0
                self._steps = 0
                self._asked += 1
                self._changed.notify_all()

    def step(self, seconds: float, new: bool) -> Optional[bool]:
        """One batch more (new): True when it was had, False at the epoch's
        end, None when neither has come yet."""
        with self._changed:
            if new:
                if self.is_whole:
                    return False
                self._steps += 1
                self._changed.notify_all()
            self._changed.wait_for(
                lambda: self.is_whole
                or self._taken >= self._steps
                or self._closed,
                seconds,
            )
            # The batch was taken, although the epoch may have ended by that.
            if self._taken >= self._steps:
                return True
            return False if self.is_whole or self._closed else None

    def enter_first(self) -> None:
        """Begin the first epoch, if none was begun."""
        if not self._asked:
            self.enter()

    @property
    def entered(self) -> int:
        """Epochs that the user has come to."""
        return self._asked

    @property
    def is_whole(self) -> bool:
        """Has the server done with the epoch that was asked for last?

        It has come to the next one then, and set_epoch() was called with that
        one's number: the producer's loop may call it with another.
        """
        return self._begun > self._asked
