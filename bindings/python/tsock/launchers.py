# SPDX-License-Identifier: MIT
"""What torchrun and srun say to the processes that they start.

A stream is shared by the processes of one machine.  Of ranks that a launcher
has started on several machines each would wait for others that never come, so
that is an error; and processes that all read the same samples are warned.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple, Optional

from . import errors


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


def check_here(rank: int, world: int, name: str, job: Optional[str]) -> None:
    """Refuse ranks of which some are on other machines, and never come.

    A caller that gives the ranks a job of their own knows that they meet.
    """
    by = launched()
    if by is None or not by.spread or world != by.world or job is not None:
        return
    raise ValueError(
        "rank %d of %d of %r: %s has started %d of these ranks on this "
        "machine and the others elsewhere, and the ranks that read a stream "
        "together have to be on one machine, or they wait for each other for "
        "ever.  Pass rank=0, world_size=1 for a loader that reads everything "
        "alone; rank=%d, world_size=%d (%s) if the ranks of each machine are "
        "to share an epoch, so that each machine reads all samples; or read "
        "on each machine a stream for each of its ranks, whose producer has "
        "--shard RANK/WORLD"
        % (
            rank,
            world,
            name,
            by.by,
            by.local_world,
            by.local_rank,
            by.local_world,
            _local_keys(by),
        )
    )


def _local_keys(by: Launch) -> str:
    if by.by == "srun":
        return "SLURM_LOCALID and the tasks of a node"
    return "LOCAL_RANK, LOCAL_WORLD_SIZE"


_warned: set[str] = set()


def warn_without_group(name: str, group: Any) -> None:
    """Warn, once in a process, that a launcher's ranks all read the same.

    For a loader that was told no rank: what a launcher says to each process is
    known to torch.distributed only when that was initialised.
    """
    by = launched()
    if "group" in _warned or group is not None or not by or by.world < 2:
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
        "machine; give each machine's producer another seed, or each rank a "
        "stream of its own, whose producer has --shard RANK/WORLD"
        % (rank, world, by.by, by.world, name),
    )
