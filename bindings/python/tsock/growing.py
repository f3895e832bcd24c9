# SPDX-License-Identifier: MIT
"""A data set that grows: how a loader goes on with the next stream of a name.

When files were added or removed, a producer with --grows ends its stream after
an epoch, and begins another stream of the same name with the files that are
there by then.
"""

from __future__ import annotations

import time
from typing import Callable, Optional

from . import errors, launch
from .about import About
from .connection import Pool
from .streams import is_running

_PAUSE = 0.1  # seconds between two looks for the next stream
_NEVER = float("inf")
_TRY = 5.0  # seconds for one attempt at a connection
# Lines of the identity that are others when files were added or removed.
_FILES = frozenset(("samples", "files", "classes", "segments"))


def grows(about: About) -> bool:
    return about.identity.get("grows") == "1"


def refuse_subset(about: About) -> None:
    if grows(about):
        raise ValueError(
            "subset: the data set of stream %r grows (--grows), so that an "
            "index means another sample later; read a stream without --grows"
            % about.name
        )


def has_ended(about: About, why: errors.Error) -> bool:
    """May that error be because the data set has changed?"""
    return grows(about) and why.code in ("TSOCK_EENDED", "TSOCK_ELOST")


def _is_there(name: str) -> bool:
    """Has any process the name, whether it serves it already or not?"""
    folder, _, base = name.rpartition("/")
    return launch.holder(folder or None, base) > 0 or is_running(name)


def _is_next(before: About, now: About) -> bool:
    """Is that another stream than the one that has ended?

    A producer that serves the same files again, because the change was undone,
    says that its stream has no end; one whose stream ends says where.
    """
    return now.run != before.run or not now.epochs


def _is_of_same(before: About, now: About) -> bool:
    """Do the two differ by their files alone?"""
    keys = (before.identity.keys() | now.identity.keys()) - _FILES
    if now.pid == before.pid:
        # A link that it was given may lead to another folder by now.
        keys -= {"root"}
    return all(
        before.identity.get(key) == now.identity.get(key) for key in keys
    )


class Absence:
    """What is done while nobody serves the name between two streams.

    Between the two streams the producer keeps the name.  If it is gone, it was
    killed or shut down before it served the new files: then the loader waits
    for the next producer as long as it would in the middle of an epoch.
    """

    def __init__(
        self, seconds: Optional[float], revive: Optional[Callable[[], None]]
    ) -> None:
        self._seconds, self._revive = seconds, revive
        self._until: Optional[float] = None

    def over(self) -> None:
        self._until = None

    def bear(self, before: About, why: errors.Error) -> None:
        """Raise an error when that takes too long, or at once if no other
        stream was expected, or the wait for it is over."""
        if why.code != "TSOCK_EENDED":
            raise why
        # An end that was known from the beginning may be that of --epochs.
        if before.epochs and not launch.was_cut_off(before.name):
            raise why
        now, most = time.monotonic(), self._seconds
        if self._until is None:
            self._until = now + (_NEVER if most is None else most)
        if now >= self._until:
            error = errors.from_code(
                errors.ELOST,
                "the data set of stream %r has changed, its producer is gone "
                "before it served the new files, and no other one came within "
                "%g s: make a new tsock.DataLoader" % (before.name, most or 0),
            )
            raise errors.naming_log(error, before.log)
        if self._revive:
            self._revive()


def next_pool(
    before: About,
    connect: Callable[[float], Pool],
    timeout: float,
    why: errors.Error,
    absence: Absence,
) -> Pool:
    """Connections to the next stream, once it is there.

    It is there when the slowest job has finished its epoch.  If something else
    is served, the error why is raised.
    """
    until = time.monotonic() + timeout if timeout else None
    while True:
        pool: Optional[Pool] = None
        if _is_there(before.name):
            absence.over()
            try:
                pool = connect(_TRY)
            except (errors.NoProducer, errors.ProducerLost):
                pass  # it is between them, or it has ended since
        else:
            absence.bear(before, why)
        if pool is not None:
            if _is_next(before, pool.about):
                if _is_of_same(before, pool.about):
                    return pool
                pool.close()
                raise why
            pool.close()
        if until is not None and time.monotonic() > until:
            raise errors.TimedOut(
                "tsock.DataLoader timed out after %g seconds: it waited for "
                "the next stream of %r, whose data set has changed"
                % (timeout, before.name)
            )
        time.sleep(_PAUSE)
