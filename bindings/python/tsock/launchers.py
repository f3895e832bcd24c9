# SPDX-License-Identifier: MIT
"""What torchrun and srun say to the processes that they start.

None of it decides what a rank reads: ranks ask each other (nodes.py).  But
where they can't, a rank on one of several machines would wait for others that
never come, or read what they read, too; so that is an error, or a warning.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple, Optional

from . import errors
from .nodes import At


class Launch(NamedTuple):
    """The launcher of this process, and which of how many processes this is."""

    by: str
    keys: str  # the variables that say so
    rank: int
    world: int
    local_rank: int
    local_world: int  # how many of them are on this machine

    @property
    def spread(self) -> bool:
        """Are there processes on other machines?"""
        return self.local_world < self.world


def _number(key: str) -> Optional[int]:
    text = os.environ.get(key, "")
    return int(text) if text.isdecimal() and text.isascii() else None


def _tasks_here(world: int) -> int:
    """srun's tasks on this machine, by "4(x2),3": of the first two 4 each."""
    at = _number("SLURM_NODEID") or 0
    said = os.environ.get("SLURM_STEP_TASKS_PER_NODE", "")
    for tasks, nodes in re.findall(r"(\d+)(?:\(x(\d+)\))?", said):
        if at < int(nodes or 1):
            return int(tasks)
        at -= int(nodes or 1)
    return world


def launched() -> Optional[Launch]:
    """None for a process that is alone, or was started by something else."""
    rank, world = _number("RANK"), _number("WORLD_SIZE")
    if rank is not None and world is not None:
        local = _number("LOCAL_WORLD_SIZE")
        if "FORK_LAUNCHED" in os.environ:
            # accelerate's notebook_launcher() and debug_launcher() fork, and
            # its PartialState then writes 1 where nobody said a number.
            local = _number("NPROC")
        return Launch(
            "torchrun",
            "RANK, WORLD_SIZE",
            rank,
            world,
            _number("LOCAL_RANK") or 0,
            world if local is None else local,
        )
    rank, world = _number("SLURM_PROCID"), _number("SLURM_STEP_NUM_TASKS")
    if rank is not None and world is not None:
        return Launch(
            "srun",
            "SLURM_PROCID, SLURM_STEP_NUM_TASKS",
            rank,
            world,
            _number("SLURM_LOCALID") or 0,
            _tasks_here(world),
        )
    return None


def check_here(at: At, name: str, job: Optional[str]) -> None:
    """Refuse ranks of which some are on other machines, if they can't be asked
    where they are: they would never come.

    A caller that gives the ranks a job of their own knows that they meet.
    """
    by = launched()
    if at.layout is not None or by is None or not by.spread:
        return
    if at.world != by.world or job is not None:
        return
    raise ValueError(
        "rank %d of %d of %r: %s has started %d of these ranks on this "
        "machine and the others elsewhere, and without a process group they "
        "can't be asked where: %s"
        % (at.rank, at.world, name, by.by, by.local_world, _HOW)
    )


_HOW = (
    "call torch.distributed.init_process_group() before the loader is "
    "iterated, or pass gather=, a function of one object that returns the list "
    "of all ranks' objects, with rank= and world_size=; rank=0, world_size=1 "
    "is for a process that reads everything alone, such as one trial of a "
    "search"
)

_warned: set[str] = set()


def check_group(name: str, group: Any) -> None:
    """Look whether a launcher's ranks would all read the same.

    For a loader that was told no rank: what a launcher says to each process is
    known to torch.distributed only when that was initialised.  On one machine
    that is a warning, once in a process; on several an error.
    """
    by = launched()
    if group is not None or not by or by.world < 2:
        return
    if by.spread:
        raise ValueError(
            "%s has made this process rank %d of %d (%s), on several machines, "
            "but torch.distributed has no process group, so each of these "
            "processes would read all samples of %r: %s"
            % (by.by, by.rank, by.world, by.keys, name, _HOW)
        )
    if "group" in _warned:
        return
    _warned.add("group")
    errors.warn(
        "a launcher such as %s has made this process rank %d of %d "
        "(%s), but torch.distributed has no process group: each "
        "of these processes reads all samples of %r, so that all train on "
        "the same ones; call torch.distributed.init_process_group() before "
        "the first batch, or give tsock.DataLoader rank= and world_size= "
        "(rank=0, world_size=1 if each is to read everything)"
        % (by.by, by.rank, by.world, by.keys, name),
    )


def warn_of_nodes(rank: int, world: int, name: str) -> None:
    """Warn, once in a process, that each machine's ranks read all samples."""
    by = launched()
    if (
        "nodes" in _warned
        or by is None
        or not by.spread
        or world < 2
        or (rank, world) != (by.local_rank, by.local_world)
    ):
        return
    _warned.add("nodes")
    errors.warn(
        "rank=%d, world_size=%d are this process's among those of this "
        "machine, and %s has started %d on several machines: the ranks of each "
        "machine read all samples of %r, so that a step of the job has the "
        "same samples on other machines, or an epoch has each sample once a "
        "machine; leave out rank= and world_size=, so that all ranks divide "
        "each epoch, or give each machine's producer another seed"
        % (rank, world, by.by, by.world, name),
    )
