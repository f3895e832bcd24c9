# SPDX-License-Identifier: MIT
"""Ranks that a script starts by torch.multiprocessing.spawn, under tsock.run.

Each is a Python of its own, in which nothing of this process holds but what is
pickled for it.  So the function that it runs is sent inside an object that
patches torch's DataLoader there first.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from typing import Any, Callable

# spawn() finds there what starts all ranks.
MODULE = "torch.multiprocessing.spawn"
_PACKAGE = "torch.multiprocessing"  # has the same function
_ATTRIBUTE = "_tsock"  # of the function in its place

_rank = 0  # of this process, if spawn() has started it


def is_first() -> bool:
    """Is this the rank whose log speaks for all?"""
    return _rank == 0 and os.environ.get("RANK", "0") == "0"


def log_to_stderr() -> None:
    log = logging.getLogger("tsock")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("tsock.run: %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


class _Rank:
    """What a rank runs in place of the script's function."""

    def __init__(self, run: Callable[..., Any], serve: bool, table: bool):
        self._run, self._serve, self._table = run, serve, table

    def __call__(self, rank: int, *args: Any) -> Any:
        global _rank
        from .patch import Patch

        _rank = rank
        log_to_stderr()
        patch = Patch(self._serve, self._table and rank == 0)
        patch.install()
        try:
            return self._run(rank, *args)
        finally:
            patch.close()


def patch(
    module: Any, serve: bool, table: bool, is_here: Callable[[], bool]
) -> None:
    """Have the ranks that this process starts read shared streams, too."""
    own = getattr(module, "start_processes", None)
    if own is None or hasattr(own, _ATTRIBUTE):
        return

    @functools.wraps(own)
    def start_processes(fn: Any, *args: Any, **more: Any) -> Any:
        if is_here() and not isinstance(fn, _Rank):
            fn = _Rank(fn, serve, table)
        return own(fn, *args, **more)

    setattr(start_processes, _ATTRIBUTE, own)
    _replace(own, start_processes)


def restore() -> None:
    now = getattr(sys.modules.get(MODULE), "start_processes", None)
    if hasattr(now, _ATTRIBUTE):
        _replace(now, getattr(now, _ATTRIBUTE))


def _replace(old: Any, new: Any) -> None:
    for name in (MODULE, _PACKAGE):
        module: Any = sys.modules.get(name)
        if getattr(module, "start_processes", None) is old:
            module.start_processes = new
