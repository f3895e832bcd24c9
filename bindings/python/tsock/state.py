# SPDX-License-Identifier: MIT
"""Where a loader has come to, to be saved and gone on from.

A state is a dict of numbers and strings, so JSON will do.  Its position is in
samples: a loader of another batch size may go on from it.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from . import _ffi, errors
from .about import About
from .connection import Stream

VERSION = 1
# Of what a stream says about itself: what decides which sample is where.
_ORDER = ("samples", "order", "seed", "segments", "shard")


def order_of(about: About) -> dict[str, str]:
    """What two streams must have in common for a position to mean the same."""
    said = about.identity
    found = {key: said[key] for key in _ORDER if key in said}
    return dict(found, length=str(about.epoch_len))


class State:
    """The position of a loader in its stream."""

    def __init__(
        self,
        order: dict[str, str],
        epoch: Optional[int] = None,
        number: Optional[int] = None,
        samples: int = 0,
        finished: bool = False,
        passed: Optional[int] = None,
    ) -> None:
        self.order = order
        self.epoch = epoch  # of the stream; None: none was begun
        self.number = number  # of the job's own
        self.samples = samples  # of that epoch, that were handed out
        self.finished = finished
        # Samples of the stream, where the others are those of a subset.
        self.passed = passed

    def as_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "version": VERSION,
            "order": self.order,
            "epoch": self.epoch,
            "number": self.number,
            "samples_yielded": self.samples,
            "finished": self.finished,
        }
        if "subset" in self.order:
            made["samples_passed"] = self.passed or 0
        return made


def from_dict(
    state: Mapping[str, Any], name: str, order: dict[str, str]
) -> Optional[State]:
    """The State of a dict; None of an empty one, which says nothing."""
    if not state:
        return None
    try:
        version = state["version"]
        theirs = dict(state["order"])
        made = State(
            theirs,
            state["epoch"],
            state["number"],
            state["samples_yielded"],
            state["finished"],
            state["samples_passed"] if "subset" in theirs else None,
        )
    except (KeyError, TypeError, ValueError) as e:
        raise ValueError(
            "this is no state of a tsock.DataLoader: %s" % e
        ) from None
    if version != VERSION:
        raise ValueError(
            "the state is of version %r, and this tsock knows version %d"
            % (version, VERSION)
        )
    numbers = (
        made.epoch or 0,
        made.number or 0,
        made.samples,
        made.passed or 0,
    )
    if not all(isinstance(n, int) and n >= 0 for n in numbers):
        raise ValueError(
            "the state has an epoch or a number of samples that can't be: %r"
            % (dict(state),)
        )
    if theirs != order:
        different = [
            "%s is %s there and %s here"
            % (key, theirs.get(key, "not said"), order.get(key, "not said"))
            for key in sorted(set(theirs) | set(order))
            if theirs.get(key) != order.get(key)
        ]
        raise ValueError(
            "the state is of another stream than %r: %s"
            % (name, "; ".join(different))
        )
    return made


def resume(
    to: State, stream: Stream, about: About, world: int, timeout: float
) -> str:
    """Join, and go on where the state says; how: "held" or "awaited"."""
    assert to.epoch is not None
    how = "held"
    stream.begin(timeout, again=True)
    while stream.epoch < to.epoch:
        # Its end is the earliest start of the next join.
        how = "awaited"
        stream.ask(_ffi.lib.tsock_skip, about.epoch_len)
        stream.leave()
        stream.begin(timeout)
    if stream.epoch > to.epoch:
        stream.leave()
        raise errors.CannotResume(
            "the state ends at sample %d of epoch %d of stream %r, which has "
            "gone past it: the next epoch that can be had is number %d; "
            "iterate again to begin that one"
            % (to.samples, to.epoch, about.name, stream.epoch)
        )
    # With a subset all of it has to be seen: a sample that stood in for a bad
    # file before that place doesn't come again after it.
    if to.passed is None:
        # The other ranks go on as much.
        stream.ask(_ffi.lib.tsock_skip, to.samples // world)
    return how
