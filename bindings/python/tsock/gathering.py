# SPDX-License-Identifier: MIT
"""How the ranks of a job tell each other what each of them knows.

torch.distributed's ranks use the store of their process group: it works with
every backend, no collective of the training can come between, and whoever has
waited for ten seconds can say which ranks haven't come.  Ranks without a
process group are given a function.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import time
from typing import Any, Callable, Optional

from . import _ffi, errors

_log = logging.getLogger("tsock")

FIRST_WORD, THEN = 10.0, 60.0  # seconds until it is said who is waited for
MOST = 1800.0  # seconds for a gather, as long as torch waits in collectives
_SHORTEST, _LONGEST = 0.001, 0.02  # pauses of a rank that waits
_PER_RANK = 25e-6  # so that one store can answer thousands of them
_NAMED = 8  # ranks that a message lists


def _some(ranks: list[int]) -> str:
    text = ", ".join(map(str, ranks[:_NAMED]))
    if len(ranks) > _NAMED:
        text += " and %d more" % (len(ranks) - _NAMED)
    return ("rank " if len(ranks) == 1 else "ranks ") + text


class Gathering:
    """All ranks of a job, which can tell each other something."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world
        self.pid = os.getpid()
        # How often each thing was gathered: ranks do so equally often.
        self._times: dict[str, int] = {}
        # What was found out with their help, by folder of sockets.
        self.layouts: dict[str, Any] = {}

    def number(self, key: str) -> int:
        """How often that was asked before."""
        times = self._times.get(key, 0)
        self._times[key] = times + 1
        return times

    def gather(
        self, key: str, value: Any, what: str, timeout: float = 0
    ) -> list[Any]:
        """The values of all ranks, in their order.

        key     names what is gathered, and is the same on all ranks
        value   of numbers, strings, lists and dicts
        what    the ranks do here, for messages: "make a loader of 'toy'"
        timeout seconds, 0 for MOST
        """
        raise NotImplementedError


class ByFunction(Gathering):
    """Ranks that have a function for it: gather=."""

    def __init__(
        self, rank: int, world: int, function: Callable[[Any], Any]
    ) -> None:
        super().__init__(rank, world)
        self._function = function

    def gather(
        self, key: str, value: Any, what: str, timeout: float = 0
    ) -> list[Any]:
        number = self.number(key)
        told = {"rank": self.rank, "key": [key, number], "value": value}
        found = list(self._function(told))
        if len(found) != self.world:
            raise ValueError(
                "gather= gave %d objects, and world_size is %d: it takes one "
                "rank's object and returns those of all ranks, in the order "
                "of the ranks" % (len(found), self.world)
            )
        for rank, other in enumerate(found):
            self._check(rank, other, [key, number], what)
        return [other["value"] for other in found]

    def _check(self, rank: int, other: Any, key: list[Any], what: str) -> None:
        if not isinstance(other, dict) or set(other) != {
            "rank",
            "key",
            "value",
        }:
            raise ValueError(
                "gather= gave %.60r for rank %d: it returns what the ranks "
                "gave to it, unchanged" % (other, rank)
            )
        if other["rank"] != rank:
            raise ValueError(
                "gather= gave what rank %d said as the %d-th object: it "
                "returns them in the order of the ranks"
                % (other["rank"], rank)
            )
        if list(other["key"]) != key:
            raise errors.Error(
                "rank %d and rank %d don't gather the same: %r there, and %r "
                "here, where ranks %s; all ranks make their loaders, and begin "
                "their epochs, in the same order"
                % (self.rank, rank, tuple(other["key"]), tuple(key), what)
            )


class ByStore(Gathering):
    """Ranks of a process group, which have a store of keys and values.

    Rank 0 collects what the others have set, and sets all of it, so each other
    rank asks for one value.
    """

    def __init__(self, rank: int, world: int, store: Any) -> None:
        super().__init__(rank, world)
        self._store = store
        self._run: Optional[str] = None

    def gather(
        self, key: str, value: Any, what: str, timeout: float = 0
    ) -> list[Any]:
        wait = Wait(self, what, timeout or MOST)
        number = self.number(key)
        try:
            before = "tsock/%s/%s/" % (self._named(wait), key)
            found = self._exchange(
                before + str(number), json.dumps(value), wait
            )
            if self.rank == 0 and number:
                # All have read what came before.
                self._delete(before + str(number - 1))
        except errors.Error:
            # The next try is the same one.
            self._times[key] = number
            raise
        except RuntimeError as e:  # torch's DistError
            raise errors.Error(
                "the ranks of torch.distributed's group can't be asked where "
                "all %s, since their store has failed; perhaps rank 0 has "
                "ended: %s" % (what, str(e).split("\n")[0])
            ) from e
        values: list[Any] = json.loads(found)
        return values * self.world if len(values) == 1 else values

    def _exchange(self, at: str, said: str, wait: Wait) -> str:
        keys = ["%s/%d" % (at, rank) for rank in range(self.world)]

        def missing() -> list[int]:
            found = [
                rank
                for rank, key in enumerate(keys)
                if not self._store.check([key])
            ]
            # While others haven't greeted it, rank 0 hasn't come as far.
            return found[1:] if found[:1] == [0] and found[1:] else found

        self._store.set(keys[self.rank], said)
        if self.rank:
            wait.until(lambda: bool(self._store.check([at])), missing)
            return self._get(at)
        texts = []
        for key in keys:
            wait.until(lambda: bool(self._store.check([key])), missing)
            texts.append(self._get(key))
        # Thousands of ranks usually say the same.
        if len(set(texts)) == 1:
            del texts[1:]
        text = "[%s]" % ",".join(texts)
        self._store.set(at, text)
        for key in keys:
            self._delete(key)
        return text

    # ---- the name of this run ----

    def _named(self, wait: Wait) -> str:
        """A name for the keys of this run of the ranks.

        torchelastic may start the ranks again with the same store, which has
        still the words of those before.
        """
        if self._run is None:
            mine = os.urandom(8).hex()
            greet = self._greet if self.rank else self._welcome
            self._run = greet(mine, wait)
        return self._run

    def _greet(self, mine: str, wait: Wait) -> str:
        """Say that it is here, and hear the name, from an answer to that."""
        words: list[str] = []

        def is_answered() -> bool:
            words[:] = self._get("tsock/welcome/%d" % self.rank).split()
            return words[:1] == [mine]

        self._store.set("tsock/hello/%d" % self.rank, mine)
        wait.until(is_answered, lambda: [0])
        self._store.set("tsock/thanks/%d" % self.rank, words[1])
        return words[1]

    def _welcome(self, mine: str, wait: Wait) -> str:
        """Give all ranks the name, and hear that they have it."""
        left = list(range(1, self.world))
        answered: dict[int, str] = {}

        def all_have_it() -> bool:
            for rank in tuple(left):
                hello = self._get("tsock/hello/%d" % rank)
                if hello and hello != answered.get(rank):
                    answered[rank] = hello
                    self._store.set(
                        "tsock/welcome/%d" % rank, hello + " " + mine
                    )
                if self._get("tsock/thanks/%d" % rank) == mine:
                    left.remove(rank)
            return not left

        wait.until(all_have_it, lambda: left)
        for rank in range(1, self.world):
            for word in "hello", "welcome", "thanks":
                self._delete("tsock/%s/%d" % (word, rank))
        return mine

    def _get(self, key: str) -> str:
        """The value, or "" where there is none."""
        if not self._store.check([key]):
            return ""
        found: str = self._store.get(key).decode()
        return found

    def _delete(self, key: str) -> None:
        try:
            self._store.delete_key(key)
        except Exception:  # noqa: BLE001 - not every store can do that
            pass


class Wait:
    """A rank's wait for others, which is said, and ends."""

    def __init__(self, ranks: Gathering, what: str, timeout: float) -> None:
        self._ranks, self._what, self._timeout = ranks, what, timeout
        self._begin = time.monotonic()
        self._say = self._begin + FIRST_WORD
        self._most = _LONGEST + _PER_RANK * ranks.world

    def until(
        self, there: Callable[[], bool], missing: Callable[[], list[int]]
    ) -> None:
        pause = _SHORTEST
        while not there():
            _ffi.check_interrupt()
            waited = time.monotonic() - self._begin
            if waited > self._timeout or time.monotonic() > self._say:
                whom = list(missing())
                if not there():
                    self._speak(waited, _some(whom))
            time.sleep(pause)
            pause = min(pause * 1.5, self._most)

    def _speak(self, waited: float, whom: str) -> None:
        self._say = time.monotonic() + THEN
        text = "rank %d of %d has waited for %d s for %s: all ranks %s" % (
            self._ranks.rank,
            self._ranks.world,
            waited,
            whom,
            self._what,
        )
        if waited > self._timeout:
            raise errors.TimedOut(text)
        _log.warning(
            "%s (a loader that one rank alone uses needs rank=0, "
            "world_size=1)",
            text,
        )


class ByCollective(Gathering):
    """Ranks of a process group that has no store, as MPI's hasn't."""

    def gather(
        self, key: str, value: Any, what: str, timeout: float = 0
    ) -> list[Any]:
        self.number(key)
        found: list[Any] = [None] * self.world
        sys.modules["torch.distributed"].all_gather_object(found, value)
        return found


# Of this process's group, so that all loaders count together.
_of_group: Optional[tuple[Any, Gathering]] = None


def of_group(distributed: Any) -> Optional[Gathering]:
    """What the ranks of torch.distributed's default group gather by; None if
    that can't be told."""
    global _of_group
    c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")
    try:
        group = c10d._get_default_group()
        store = c10d._get_default_store()
    except Exception:  # noqa: BLE001 - it isn't there, or these are others
        return None
    if (
        _of_group is None
        or _of_group[0] is not group
        or _of_group[1].rank != distributed.get_rank()
    ):
        rank, world = distributed.get_rank(), distributed.get_world_size()
        made: Gathering
        if store is None:
            made = ByCollective(rank, world)
        else:
            made = ByStore(rank, world, store)
        _of_group = (group, made)
    return _of_group[1]
