# SPDX-License-Identifier: MIT
"""Ranks of Ray Train without a process group, which tell each other things by
an actor."""

from __future__ import annotations

import sys
from typing import Any, Optional

from .. import errors
from ..gathering import MOST, Gathering, Wait
from ..ranks import group as group_of_torch
from .nodes import NAMESPACE, ray, strategies, this_node


class Meeting:
    """The actor by which the ranks of a run tell each other something."""

    def __init__(self, world: int) -> None:
        self._world = world
        self._said: dict[str, dict[int, Any]] = {}  # by what is gathered
        self._heard: dict[str, set[int]] = {}

    def tell(self, at: str, rank: int, value: Any) -> None:
        self._said.setdefault(at, {})[rank] = value

    def hear(self, at: str, rank: int) -> Optional[list[Any]]:
        """What all ranks have said, or None."""
        said = self._said[at]
        if len(said) < self._world:
            return None
        found = [said[r] for r in range(self._world)]
        heard = self._heard.setdefault(at, set())
        heard.add(rank)
        if len(heard) == self._world:
            del self._said[at], self._heard[at]
        return found

    def missing(self, at: str) -> list[int]:
        said = self._said.get(at, range(self._world))
        return [rank for rank in range(self._world) if rank not in said]


class ByActor(Gathering):
    """Ranks that have an actor for it."""

    def __init__(self, rank: int, world: int, run: str) -> None:
        super().__init__(rank, world)
        # The first one makes it, and it lives as long as that rank.
        self._actor = (
            ray.remote(Meeting)
            .options(
                name="ranks of " + run,
                namespace=NAMESPACE,
                get_if_exists=True,
                num_cpus=0,
                scheduling_strategy=(
                    strategies.NodeAffinitySchedulingStrategy(
                        this_node(), soft=True
                    )
                ),
            )
            .remote(world)
        )

    def gather(
        self, key: str, value: Any, what: str, timeout: float = 0
    ) -> list[Any]:
        number = self.number(key)
        at = "%s/%d" % (key, number)
        found: list[Any] = []

        def is_there() -> bool:
            found[:] = ray.get(self._actor.hear.remote(at, self.rank)) or []
            return bool(found)

        try:
            ray.get(self._actor.tell.remote(at, self.rank, value))
            Wait(self, what, timeout or MOST).until(
                is_there, lambda: ray.get(self._actor.missing.remote(at))
            )
        except errors.Error:
            # The next try is the same one.
            self._times[key] = number
            raise
        except ray.exceptions.RayActorError as e:
            raise errors.Error(
                "rank %d of %d: the actor by which the ranks of Ray Train ask "
                "each other, where all %s, is gone; perhaps another rank has "
                "ended: %s"
                % (self.rank, self.world, what, str(e).split("\n")[0])
            ) from e
        return found


# Of this process's run, so that all loaders count together.
_of_run: Optional[tuple[Any, Gathering]] = None


def peers() -> dict[str, Any]:
    """rank=, world_size= and gather= of a worker of Ray Train, if it has no
    process group."""
    global _of_run
    # Not imported for this: a worker has done so.
    train: Any = sys.modules.get("ray.train")
    if train is None or group_of_torch() is not None:
        return {}
    try:
        context = train.get_context()
        rank, world = context.get_world_rank(), context.get_world_size()
    except Exception:  # noqa: BLE001 - no worker of Ray Train
        return {}
    if not world or world < 2:
        return {}
    # All workers of an attempt are in a placement group of their own.
    group = ray.util.get_current_placement_group()
    run = (
        group.id.hex()
        if group
        else "%s %s"
        % (
            ray.get_runtime_context().get_job_id(),
            context.get_experiment_name(),
        )
    )
    if _of_run is None or _of_run[0] != (run, rank):
        _of_run = (run, rank), ByActor(rank, world, run)
    return dict(rank=rank, world_size=world, gather=_of_run[1])
