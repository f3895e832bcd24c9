# SPDX-License-Identifier: MIT
"""The connections of all loaders of this process, by stream."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .connection import Pool

_pools: weakref.WeakSet[Pool] = weakref.WeakSet()
_lock = threading.Lock()


def add(pool: Pool) -> None:
    with _lock:
        _pools.add(pool)


def every() -> list[Pool]:
    """All pools; those of loaders that are closed, too."""
    with _lock:
        return list(_pools)


def leave_between(name: str) -> None:
    """Whoever is between two epochs of that stream reads no more."""
    for pool in every():
        if os.path.basename(os.fspath(pool.name)) == name:
            pool.leave_between()
