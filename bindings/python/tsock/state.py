# SPDX-License-Identifier: MIT
"""The position of a loader, which can be saved and resumed.

A state is a dict of numbers and strings, so it can be saved as JSON.  Its
position counts samples: a loader of another batch size may resume it.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from . import _ffi, errors, identity, streams
from .about import About
from .connection import Stream
from .parts import PartOf

VERSION = 1
# No stream has a sample of that number: C's numbers have 64 bits.
_END = 1 << 62
# The lines of a stream's identity that decide which sample is where.
_ORDER = (
    "samples",
    "files",
    "order",
    "order-version",
    "seed",
    "sampler",
    "segments",
    "identity",  # of tsock.serve(), as the next one
    identity.FIRST_BATCH,
)


def order_of(about: About, part: Optional[PartOf]) -> dict[str, str]:
    """What two streams must have in common for a position to mean the same.

    part: positions are in the epochs of all parts together.
    """
    said = about.identity
    found = {key: said[key] for key in _ORDER if key in said}
    if "weights" in said and "weighted" in said.get("sampler", ""):
        found["weights"] = said["weights"]
    if said.get("order") == "torch" and about.shard[1]:
        found["order"] = "DistributedSampler's"  # and not DataLoader's
    if said.get("order") == "sequential":
        # Where epochs may be begun, which depends on the part's length.
        found.pop("segments", None)
    if not part and "shard" in said:
        found["shard"] = said["shard"]
    length = part.whole if part else about.epoch_len
    return dict(found, length=str(length))


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


def _read(state: Mapping[str, Any]) -> State:
    """A dict as a State, whatever its values are."""
    try:
        version = state["version"]
        if version == VERSION:
            order = dict(state["order"])
            return State(
                order,
                state["epoch"],
                state["number"],
                state["samples_yielded"],
                state["finished"],
                state["samples_passed"] if "subset" in order else None,
            )
    except (KeyError, TypeError, ValueError) as e:
        raise ValueError(
            "this is no state of a tsock.DataLoader: %s" % e
        ) from None
    raise ValueError(
        "the state is of version %r, and this tsock knows version %d"
        % (version, VERSION)
    )


def from_dict(
    state: Mapping[str, Any], name: str, order: dict[str, str]
) -> Optional[State]:
    """The State of a dict; None of an empty one, which says nothing."""
    if not state:
        return None
    made = _read(state)
    theirs = made.order
    if "segments" not in order and theirs.get("order") == "sequential":
        theirs.pop("segments", None)  # earlier versions said it
    numbers = [made.samples]
    numbers += [
        n for n in (made.epoch, made.number, made.passed) if n is not None
    ]
    if not all(isinstance(n, int) and 0 <= n < _END for n in numbers):
        raise ValueError(
            "the state has an epoch or a number of samples that can't be: %r"
            % (dict(state),)
        )
    if theirs != order:
        different = [
            "%s is %s there and %s here"
            % (key, theirs.get(key, "not said"), order.get(key, "not said"))
            for key in sorted(set(theirs) | set(order), key=str)
            if theirs.get(key) != order.get(key)
        ]
        if theirs.get("order-version") != order.get("order-version"):
            different.append(
                "tsock shuffles large data sets in another order since then, "
                "so an epoch that was begun before has to be begun anew"
            )
        raise ValueError(
            "the state is of another stream than %r: %s"
            % (name, "; ".join(different))
        )
    return made


def resume(
    to: State,
    samples: int,
    stream: Stream,
    about: About,
    world: int,
    timeout: float,
) -> str:
    """Join, and go on where the state says; how: see DataLoader.resumed.

    samples of the stream's epoch come before that.
    """
    assert to.epoch is not None
    # With a subset all of the epoch has to be seen: a sample that stood in for
    # a bad file before that place doesn't come again after it.
    if to.passed is not None:
        samples = 0
    if not about.resumable:
        return _as_others_do(to, samples, stream, about, world, timeout)
    start = to.epoch * about.epoch_len
    if start >= _END:
        raise _gone_past(to, about, "no stream has so many epochs")
    how = _foreseen(about, start + samples)
    try:
        stream.resume(start, samples, timeout)
    except errors.Refused as e:
        raise _gone_past(to, about, str(e)) from None
    return how


def resume_after(
    to: State, stream: Stream, about: About, timeout: float
) -> Optional[str]:
    """Join at the epoch after the one that the state finished, and say how as
    resume() does; or, where others have gone past it, at a later one.

    A loader that is alone moves the stream there.  It doesn't wait for others
    that are epochs behind, in a stream that was begun anew.
    """
    assert to.epoch is not None
    if _may_come_to(to, about):
        start = (to.epoch + 1) * about.epoch_len
        how = _foreseen(about, start)
        try:
            stream.resume(start, 0, timeout)
            return how
        except errors.Refused:
            pass
    stream.begin(timeout)
    return None


def _may_come_to(to: State, about: About) -> bool:
    """Is the next epoch that of the state, or before long?"""
    assert to.epoch is not None
    if not about.resumable or (to.epoch + 1) * about.epoch_len >= _END:
        return False
    try:
        if not streams.query(about.name)["consumers"]:
            return True
        behind = streams.next_epoch(about.name, about.window) < to.epoch
    except errors.Error:
        return True
    # Epochs that are all alike are not worth a wait.
    return not behind and not about.sequential


def _foreseen(about: About, seq: int) -> str:
    """How the stream will come to that sample, as far as one can see."""
    try:
        stats = streams.query(about.name)
    except errors.Error:
        return "held"
    if seq > stats["head"]:
        return "awaited" if stats["consumers"] else "moved"
    return "held" if stats["claimed"] <= seq + stats["capacity"] else "moved"


def _gone_past(to: State, about: About, why: str) -> errors.CannotResume:
    return errors.CannotResume(
        "the state ends at sample %d of epoch %s of stream %r, and nothing "
        "goes on there: %s; iterate again to begin the next epoch that can be "
        "had" % (to.samples, to.epoch, about.name, why)
    )


def _as_others_do(
    to: State,
    samples: int,
    stream: Stream,
    about: About,
    world: int,
    timeout: float,
) -> str:
    """Go on in a stream that is another one each time, and can't be moved."""
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
        raise _gone_past(
            to, about, "the next epoch is number %d" % stream.epoch
        )
    # The other ranks go on as much.
    stream.ask(_ffi.lib.tsock_skip, samples // world)
    return how
