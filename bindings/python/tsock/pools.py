# SPDX-License-Identifier: MIT
"""The connections of all loaders of this process, by stream."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Protocol


class Reads(Protocol):
    """A pool, as far as others of the process know one."""

    @property
    def run(self) -> Any: ...

    @property
    def name(self) -> Any: ...

    @property
    def reads(self) -> bool: ...

    def leave_between(self) -> None: ...


_pools: weakref.WeakSet[Reads] = weakref.WeakSet()
_lock = threading.Lock()


def add(pool: Reads) -> None:
    with _lock:
        _pools.add(pool)


def every() -> list[Reads]:
    """All pools; those of loaders that are closed, too."""
    with _lock:
        return list(_pools)


def leave_between(name: str) -> None:
    """Loaders that are between two epochs of that stream leave it."""
    for pool in every():
        if os.path.basename(os.fspath(pool.name)) == name:
            pool.leave_between()
