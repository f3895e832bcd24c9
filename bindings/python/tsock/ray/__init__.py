# SPDX-License-Identifier: MIT
"""tsock.ray: streams of the nodes of a Ray cluster.

On each node a named, detached actor has the producer of a stream, with as many
CPUs of Ray's account as the producer has threads.  The first loader on a node
makes the actor, all loaders attach to its producer, whichever of Ray's jobs
they are of, and the actor ends with the producer: some time after the last
loader, or by stop().

The producer is a child of the actor's process and ends with it.  Loaders then
have a new actor made, and go on at the exact next sample.

nodes       Ray, and its nodes
keeper      the actor
asking      what asks the actors for producers
meeting     ranks of Ray Train without a process group
"""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Mapping, Optional, Sequence

from .. import attach, errors, loader, recipe
from ..streams import opened
from .asking import Ask
from .meeting import peers
from .nodes import (
    NAMESPACE,
    alive,
    check,
    folder_of,
    made_folder,
    ray as _ray,
    short,
    this_node,
)

STARTED_IDLE = "600"  # exit_when_idle of producers of start()
_PART = r"(\.\d+to\d+of\d+(\.\d+at\d+)?)?"

__all__ = ("DataLoader", "folder_of", "start", "stop")


_task: Optional[str] = None  # or actor of Ray's that used this module last


def _check_task() -> None:
    """Forget what another task of Ray's has read in this process: whoever
    stopped a stream did so to that one."""
    global _task
    context = _ray.get_runtime_context()
    if context.worker.mode != _ray.WORKER_MODE:
        return  # a driver, which is one job
    task = context.get_actor_id() or context.get_task_id()
    if task != _task:
        _task = task
        opened.clear()


class _Nodes:
    """What has the producers of loaders: the actor of the node."""

    def path_of(self, name: str) -> str:
        if "/" in name:
            raise ValueError(
                "%r is a path; a stream of Ray's nodes is called by a name "
                "alone, and has its sockets in a folder of each node" % name
            )
        return os.path.join(made_folder(this_node()), name)

    def start(
        self, path: str, checked: Mapping[str, str], wait: Optional[float]
    ) -> None:
        check()
        node = this_node()
        ask = Ask(node, alive()[node], os.path.basename(path), checked)
        ask.until_served(path, wait)


class DataLoader(loader.DataLoader[Any]):
    """tsock.DataLoader for workers of Ray Train, trials of Ray Tune, and other
    tasks and actors of Ray.

    loader = tsock.ray.DataLoader(root="/data/imagenet", batch_size=256)

    Takes what tsock.DataLoader takes.  With root the producer is held by an
    actor of this Ray node, which takes a CPU of Ray's for each of the
    producer's threads=, by default half of the node's.  wait= is also how long
    Ray may need until it has CPUs for the actor.

    The workers of a Ray Train run are the ranks of a job, by their process
    group, or else by what Ray Train says of them.  A trial of Ray Tune is a
    job of its own, which reads the whole stream.
    """

    _keeper = _Nodes()

    def __init__(
        self, name: Any = None, batch_size: Optional[int] = 1, **keywords: Any
    ) -> None:
        check()
        _check_task()
        if not {"rank", "world_size", "gather"} & keywords.keys():
            keywords.update(peers())
        super().__init__(name, batch_size, **keywords)


def _on_each(
    nodes: Sequence[str], function: Callable[[str], Any]
) -> dict[str, Any]:
    with ThreadPoolExecutor(max(len(nodes), 1)) as pool:
        return dict(zip(nodes, pool.map(function, nodes)))


def start(
    name: Optional[str] = None,
    *,
    nodes: Optional[Sequence[str]] = None,
    wait: Optional[float] = attach.WAIT,
    **producer: Any,
) -> dict[str, str]:
    """Start a stream's producer on each node, so that it has its CPUs before
    the trials of a search take them all.

    name        of the stream; by default the folder's
    nodes       Ray's names of nodes (ray.nodes()); by default all that have
                CPUs
    wait        seconds that Ray may need until it has CPUs for the actors
    root, dataset, split, ...
                options of tsock-producer, as tsock.DataLoader has them.
                exit_when_idle is 600 by default: the producers end so many
                seconds after the last trial

    Returns the stream's path on each node.  Nodes on which it runs keep it.
    """
    check()
    if not producer.get("root"):
        raise TypeError("tsock.ray.start needs root=, the folder of a data set")
    producer.setdefault("exit_when_idle", STARTED_IDLE)
    if producer.get("transform") is not None:
        producer["transform"] = recipe.text_of(producer["transform"])
    want = attach.Wanted(name, producer, "tsock.ray.start")
    if "/" in want.name:
        raise ValueError("%r is a path; give the stream a name" % want.name)
    there = alive()
    if nodes is None:
        nodes = [node for node, cpus in there.items() if cpus >= 1]
    for node in nodes:
        if node not in there:
            raise ValueError(
                "%r is no node of Ray's that is alive: %s"
                % (node, ", ".join(there))
            )
    checked = want.started_with(1)
    asks = {node: Ask(node, there[node], want.name, checked) for node in nodes}
    found = _on_each(nodes, lambda node: asks[node].until_served(None, wait))
    for node, (_, options) in found.items():
        _check_options(want.name, node, checked, options)
    return {node: path for node, (path, _) in found.items()}


def _check_options(
    name: str,
    node: str,
    checked: Mapping[str, str],
    runs: Mapping[str, str],
) -> None:
    """Raise an error if the producer was started with others before."""
    own = {"threads", "exit_when_idle", "least_batch"}
    differ = [
        "%s=%s (asked for: %s)" % (key, runs.get(key), checked.get(key))
        for key in sorted({*checked, *runs} - own)
        if runs.get(key) != checked.get(key)
    ]
    if runs and differ:
        raise errors.OtherStream(
            "stream %r runs on Ray's node %s with %s: use another name, or "
            "end it by tsock.ray.stop(%r)"
            % (name, short(node), ", ".join(differ), name)
        )


def stop(name: str, force: bool = False) -> None:
    """End a stream on all nodes for good, and its actors; those of parts of it
    (NAME.AtoBofWORLD), too.

    As tsock.stop(): Refused, if a job reads it, unless force is given.
    """
    check()
    here = re.compile("(%s%s) on [0-9a-f]+" % (re.escape(name), _PART))
    known = [
        actor["name"]
        for actor in _ray.util.list_named_actors(all_namespaces=True)
        if actor["namespace"] == NAMESPACE and " on " in actor["name"]
    ]
    actors = [one for one in known if here.fullmatch(one)]
    if not actors:
        others = sorted({one.partition(" on ")[0] for one in known})
        raise errors.NoProducer(
            "no actor of Ray's has the producer of a stream %r; there are %s"
            % (name, ", ".join(map(repr, others)) or "none at all")
        )
    refused = [
        said
        for said in _on_each(actors, lambda one: _stop(one, force)).values()
    ]
    refused = [said for said in refused if said]
    if refused:
        raise errors.Refused("; ".join(refused))


def _stop(actor: str, force: bool) -> Optional[str]:
    try:
        found = _ray.get_actor(actor, NAMESPACE)
        said: Optional[str] = _ray.get(found.stop.remote(force))
        if said is None:
            _ray.kill(found)
        return said
    except (ValueError, _ray.exceptions.RayActorError):
        return None  # it has ended by itself
