# SPDX-License-Identifier: MIT
"""Ranks that read several producers' streams begin the same epochs.

The producers know nothing of each other, and each may be in another epoch, by
what other jobs read there.  So at the beginning of an epoch every rank begins
the one that its stream offers, all tell each other which that is, and those that
are behind go on to the latest.  Usually all are the same, and that was the
epoch's only exchange.
"""

from __future__ import annotations

import hashlib
from typing import Any, Callable, Mapping, Optional, Sequence

from . import errors
from .connection import Stream
from .gathering import Gathering

# What may be otherwise on another node: paths, and what follows from the part.
_OF_A_NODE = frozenset(("root", "select", "shard"))


def _common(identity: Mapping[str, str]) -> dict[str, str]:
    made = {k: v for k, v in identity.items() if k not in _OF_A_NODE}
    if made.get("order") == "sequential":
        made.pop("segments", None)
    return made


def _digest(lines: Mapping[str, str]) -> str:
    text = "\n".join("%s=%s" % line for line in sorted(lines.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _differing(
    said: Sequence[Mapping[str, Any]], key: str
) -> Optional[tuple[int, int]]:
    """Two ranks that say different things of that, the first and another."""
    for rank, other in enumerate(said):
        if other.get(key) != said[0].get(key):
            return 0, rank
    return None


class Agreement:
    """What the ranks of a job on several nodes have in common.

    what        the loader, for messages: "'toy'"
    facts       what has to be equal on all ranks, by the name that messages
                have for it
    identity    what the rank's stream says about itself
    """

    def __init__(
        self,
        gathering: Gathering,
        key: str,
        what: str,
        facts: Mapping[str, Any],
        identity: Mapping[str, str],
    ) -> None:
        self._gathering, self._key, self._what = gathering, key, what
        self._facts = dict(facts)
        self._identity = _common(identity)
        self._stream = _digest(self._identity)
        self._all_are_here = False

    def _meet(self, timeout: float) -> None:
        """Wait until all ranks are about to begin their first epoch.

        A rank that has begun one holds other jobs up on its node, and programs
        start at different times.
        """
        if not self._all_are_here:
            self._exchange({}, timeout)
            self._all_are_here = True

    def _exchange(
        self, said: Mapping[str, Any], timeout: float
    ) -> list[dict[str, Any]]:
        return self._gathering.gather(
            self._key, said, "begin an epoch of " + self._what, timeout
        )

    def join(
        self,
        stream: Stream,
        begin: Callable[[], None],
        goes_on: str,
        timeout: float,
    ) -> None:
        """begin() an epoch, and then go on to the one that all ranks begin.

        goes_on is where in an epoch that will be: all begin there.
        """
        self._meet(timeout)
        failure = self._try(begin)
        while True:
            said: dict[str, Any] = {"epoch": stream.epoch}
            if failure is not None:
                said = {"error": type(failure).__name__, "why": str(failure)}
            said.update(self._facts, begins=goes_on, stream=self._stream)
            try:
                found = self._exchange(said, timeout)
                self._compare(found, timeout)
                self._check_failed(found, failure)
            except BaseException:
                if failure is None:
                    stream.leave()
                raise
            latest = max(other["epoch"] for other in found)
            if all(other["epoch"] == latest for other in found):
                return
            failure = self._try(lambda: stream.begin_from(latest, timeout))

    @staticmethod
    def _try(begin: Callable[[], None]) -> Optional[Exception]:
        try:
            begin()
        except Exception as e:  # noqa: BLE001 - the other ranks are told
            return e
        return None

    def _check_failed(
        self, found: list[dict[str, Any]], failure: Optional[Exception]
    ) -> None:
        if failure is not None:
            raise failure
        for rank, other in enumerate(found):
            if "error" in other:
                kind = getattr(errors, other["error"], errors.Error)
                if not issubclass(kind, errors.Error):
                    kind = errors.Error
                raise kind(
                    "rank %d can't begin an epoch of %s, so no rank does: %s"
                    % (rank, self._what, other["why"])
                )

    def _compare(self, found: list[dict[str, Any]], timeout: float) -> None:
        """Raise an error, on all ranks, if they can't read together."""
        for key in (*self._facts, "begins"):
            ranks = _differing(found, key)
            if ranks:
                a, b = ranks
                raise errors.Error(
                    "the ranks of %s disagree: %s %s on rank %d, and %s on "
                    "rank %d"
                    % (
                        self._what,
                        key + " is" if key != "begins" else "the next epoch",
                        found[a].get(key),
                        a,
                        found[b].get(key),
                        b,
                    )
                )
        ranks = _differing(found, "stream")
        if ranks:
            self._compare_streams(ranks, timeout)

    def _compare_streams(self, ranks: tuple[int, int], timeout: float) -> None:
        # The two say what they have, and all hear it.
        mine: Mapping[str, str] = {}
        if self._gathering.rank in ranks:
            mine = self._identity
        found = self._exchange(mine, timeout)
        a, b = (found[rank] for rank in ranks)
        lines = [
            "%s is %s on rank %d, and %s on rank %d"
            % (
                key,
                a.get(key, "not said"),
                ranks[0],
                b.get(key, "not said"),
                ranks[1],
            )
            for key in sorted(set(a) | set(b))
            if a.get(key) != b.get(key)
        ]
        raise errors.OtherStream(
            "the ranks of %s read different streams: %s%s"
            % (
                self._what,
                "; ".join(lines),
                (
                    " (files are the names and sizes of the data set's)"
                    if a.get("files") != b.get("files")
                    else ""
                ),
            )
        )
