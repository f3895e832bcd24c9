# SPDX-License-Identifier: MIT
"""The lock of a folder of caches: one process at a time writes in there."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from typing import Iterator

_log = logging.getLogger("tsock")

_FIRST_WORD, _THEN = 1.0, 60.0  # seconds until somebody who waits is told


def lock_of(folder: str) -> int:
    """A descriptor of the folder's lock, which isn't held yet; the folder is
    made if there is none."""
    os.makedirs(folder, 0o700, exist_ok=True)
    return os.open(
        os.path.join(folder, "lock"),
        os.O_RDWR | os.O_CREAT | os.O_CLOEXEC,
        0o600,
    )


@contextlib.contextmanager
def held(lock: int, what: str) -> Iterator[None]:
    """While no other process holds it, which is closed then.

    what        such a process does, for those who wait
    """
    try:
        tell = time.monotonic() + _FIRST_WORD
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                pass
            if time.monotonic() > tell:
                tell = time.monotonic() + _THEN
                _log.warning("waiting for another process, which %s", what)
            time.sleep(0.05)
        yield
    finally:
        os.close(lock)
