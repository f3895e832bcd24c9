# SPDX-License-Identifier: MIT
"""A line that says how far a long indexing is."""

from __future__ import annotations

import sys
import time
from typing import Callable, Optional, TextIO

_FIRST = 1.0  # seconds until the first line
_ON_TERMINAL, _IN_LOG = 0.2, 5.0  # ... and between two


def _time_left(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return "%d:%02d:%02d" % (hours, minutes, seconds)
    return "%d:%02d" % (minutes, seconds)


class Telling:
    """what: who speaks, in front of each line.  total: all bytes that are
    read; samples and bytes of an earlier run count as done, not as fast."""

    def __init__(
        self,
        what: str,
        total: float,
        out: Optional[TextIO] = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._total = what, total
        self._out, self._clock = out or sys.stderr, clock
        self._live = self._out is not None and self._out.isatty()
        self.began = clock()
        self._next = self.began + _FIRST
        self._before = (0, 0.0)
        self._width = 0

    def skip(self, samples: int, done: float) -> None:
        """So much was there from an earlier run."""
        self._before = (samples, done)

    def at(self, samples: int, done: float) -> None:
        """So many samples, and so many bytes of the total, are done."""
        now = self._clock()
        if now >= self._next and self._out is not None:
            self._next = now + (_ON_TERMINAL if self._live else _IN_LOG)
            self._say(self.line(samples, done, now))

    def line(self, samples: int, done: float, now: float) -> str:
        passed = max(now - self.began, 1e-9)
        rate = (samples - self._before[0]) / passed
        line = "%s: %s samples, %s a second" % (
            self._what,
            format(samples, ","),
            format(round(rate), ","),
        )
        read = done - self._before[1]
        if self._total and read > 0:
            line += ", %d %%, %s left" % (
                100 * done / self._total,
                _time_left((self._total - done) / read * passed),
            )
        return line

    def _say(self, line: str) -> None:
        if self._live:
            # Over the line before.
            self._out.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._out.write(line + "\n")
        self._out.flush()

    def end(self) -> None:
        """Clear the line, if one stands on a terminal."""
        if self._width:
            self._out.write("\r" + " " * self._width + "\r")
            self._out.flush()
            self._width = 0
