# SPDX-License-Identifier: MIT
"""The thread that notices when a served loader hangs."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Callable, Optional

from .. import errors
from .feed import Feed

if TYPE_CHECKING:
    from .server import Server

_log = logging.getLogger("tsock")

SLOW = 2.0  # seconds without a batch, after which waiting readers hear of it
PATIENCE = 60.0  # seconds without a batch, while a job waits, that are told


class Watch:
    """Looks whether the loader has given a batch, until end().

    A batch that takes longer than timeout seconds (0: it may) is an error, for
    fail(); one that takes longer than PATIENCE while a consumer waits is a
    line in the log.
    """

    def __init__(
        self,
        server: Server,
        feed: Feed,
        timeout: float,
        fail: Callable[[BaseException], None],
    ) -> None:
        self._server = server
        self._feed = feed
        self._timeout = timeout
        self._fail = fail
        self._told: Optional[float] = None  # of the batch asked for then
        self._slow = False
        # Locked until the end.  Not an Event: one that a signal handler breaks
        # off in the main thread may stay locked inside.
        self._over = threading.Lock()
        self._over.acquire()

    def start(self) -> None:
        threading.Thread(
            target=self._work, name="tsock-watch", daemon=True
        ).start()

    def end(self) -> None:
        try:
            self._over.release()
        except RuntimeError:
            pass  # it was before

    def _work(self) -> None:
        pause = min(1.0, PATIENCE / 4, self._timeout / 4 or 1.0)
        while not self._over.acquire(timeout=pause):
            if self._server.stopped:
                self._server.close()
                return
            self.look(time.monotonic())

    def look(self, now: float) -> None:
        asked = self._feed.asked
        slow = asked is not None and now - asked > SLOW
        if slow != self._slow:
            self._slow = slow
            what = "waiting for its loader's next batch" if slow else None
            self._server.doing(what)
        if asked is None:
            return
        if self._timeout and now - asked > self._timeout:
            self._fail(
                errors.TimedOut(
                    "the loader gave no batch for %g s" % self._timeout
                )
            )
        elif now - asked > PATIENCE and self._told != asked:
            jobs = sum(row["waiting"] for row in self._server.stats()["rows"])
            if jobs and self._feed.asked == asked:
                self._told = asked
                self._tell(now - asked, jobs)

    def _tell(self, seconds: float, jobs: int) -> None:
        what, advice = self._feed.stalled
        _log.warning(
            "stream %s: %s for %d s, and %d of its consumers %s; %s",
            self._server.name,
            what,
            seconds,
            jobs,
            "waits for one" if jobs == 1 else "wait for one",
            advice,
        )
