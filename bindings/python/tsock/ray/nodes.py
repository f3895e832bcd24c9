# SPDX-License-Identifier: MIT
"""Ray, and its nodes: which one this process is on, their CPUs, and the folder
of sockets of each.

Of this package's files the only one that imports Ray.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from .. import errors, launch

try:
    ray: Any = importlib.import_module("ray")
    strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
except ImportError as e:
    raise ImportError(
        "tsock.ray needs Ray, which can't be imported (pip install ray): %s" % e
    ) from e

NAMESPACE = "tsock"  # of Ray's names of actors


def check() -> None:
    if not ray.is_initialized():
        raise errors.Error(
            "tsock.ray: this process isn't connected to Ray: call ray.init() "
            "first, or use tsock.DataLoader, which needs no Ray"
        )
    if importlib.import_module("ray.util.client").ray.is_connected():
        raise errors.Error(
            "tsock.ray: this process is a client of Ray (ray://) and on none "
            "of its nodes: call tsock.ray in a task, or submit the program as "
            "a job"
        )


def this_node() -> str:
    """Ray's name of the node that this process is on."""
    found: str = ray.get_runtime_context().get_node_id()
    return found


def short(node: str) -> str:
    return node[:12]


def alive() -> dict[str, float]:
    """The CPUs of each node that is alive, as Ray counts them."""
    return {
        node["NodeID"]: node["Resources"].get("CPU", 0.0)
        for node in ray.nodes()
        if node["Alive"]
    }


def free(node: str) -> str:
    """Its CPUs that nobody has, in words."""
    try:
        state = importlib.import_module("ray._private.state")
        free = state.available_resources_per_node()[node].get("CPU", 0.0)
    except Exception:  # noqa: BLE001 - no public function says it
        return "it has too few free"
    return "%g are free" % free


def folder_of(node: str) -> str:
    """The folder of sockets of the streams on a node, which this process has
    to be on: two nodes may be on one machine."""
    return os.path.join(launch.folder_of_sockets(), "ray-" + short(node))


def made_folder(node: str) -> str:
    given = bool(os.environ.get("TSOCK_DIR"))
    launch.make_folder(launch.folder_of_sockets(), given)
    folder = folder_of(node)
    launch.make_folder(folder, False)
    return folder
