# SPDX-License-Identifier: MIT
"""tsock.ray: streams of the nodes of a Ray cluster.

On each node a named, detached actor has the producer of a stream, with as many
CPUs of Ray's account as the producer has threads.  The first loader on a node
makes the actor, all loaders attach to its producer, whichever of Ray's jobs
they are of, and the actor ends with the producer: some time after the last
loader, or by stop().

The producer is a child of the actor's process and ends with it.  Loaders then
have a new actor made, and go on at the exact next sample.

The only file that imports Ray.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Mapping, Optional, Sequence

from . import _ffi, attach, errors, launch, loader, ranks, recipe
from .gathering import FIRST_WORD, MOST, THEN, Gathering, Wait
from .producer import following_thread
from .streams import is_running, opened
from .streams import stop as stop_stream

try:
    _ray: Any = importlib.import_module("ray")
    _strategies: Any = importlib.import_module(
        "ray.util.scheduling_strategies"
    )
except ImportError as e:
    raise ImportError(
        "tsock.ray needs Ray, which can't be imported (pip install ray): %s"
        % e
    ) from e

_log = logging.getLogger("tsock")

NAMESPACE = "tsock"  # of Ray's names of actors
STARTED_IDLE = "600"  # exit_when_idle of producers of start()
_KEPT = 20.0  # seconds that an actor without a producer waits for loaders
_LOOK = 0.1  # seconds between two questions to an actor
_TRIES = 5  # of actors that end before they have answered
_PART = r"(\.\d+to\d+of\d+(\.\d+at\d+)?)?"

_version = _ffi.lib.tsock_version_string().decode()


# ---- nodes ----


def _check() -> None:
    if not _ray.is_initialized():
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


def _node() -> str:
    """Ray's name of the node that this process is on."""
    found: str = _ray.get_runtime_context().get_node_id()
    return found


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


def _short(node: str) -> str:
    return node[:12]


def _nodes() -> dict[str, float]:
    """The CPUs of each node that is alive, as Ray counts them."""
    return {
        node["NodeID"]: node["Resources"].get("CPU", 0.0)
        for node in _ray.nodes()
        if node["Alive"]
    }


def _free(node: str) -> str:
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
    return os.path.join(launch.folder_of_sockets(), "ray-" + _short(node))


def _made_folder(node: str) -> str:
    given = bool(os.environ.get("TSOCK_DIR"))
    launch.make_folder(launch.folder_of_sockets(), given)
    folder = folder_of(node)
    launch.make_folder(folder, False)
    return folder


def _threads(checked: Mapping[str, str], node: str, cpus: float) -> int:
    """Of the producer, and CPUs of the actor; by default half of the node's."""
    said = checked.get("threads", "auto")
    threads = max(int(cpus) // 2, 1) if said == "auto" else int(said)
    if threads > cpus:
        raise ValueError(
            "threads=%d: Ray's node %s has %g CPUs in all, and the producer's "
            "actor takes one for each thread" % (threads, _short(node), cpus)
        )
    return threads


# ---- the actor ----


class _Child(launch.Launch):
    """A start of a producer that ends with the thread that starts it."""

    process: Optional[subprocess.Popen[bytes]] = None

    def run(self) -> int:
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                following_thread(self.command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=launch.environment(self.folder),
                start_new_session=True,
            )
        return self.process.pid


class Keeper:
    """The actor that has the producer of one stream on one node.

    Its thread starts the producer and looks after it; the methods, which Ray
    runs one by one, never wait for that.
    """

    def __init__(self, name: str, node: str, threads: int) -> None:
        self._me = _ray.get_runtime_context().current_actor
        self._path = os.path.join(_made_folder(node), name)
        self._threads = threads
        self._changed = threading.Condition()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._options: dict[str, str] = {}  # of the last start
        self._starts = 0
        self._starting = self._ends = False
        self._failed: Optional[str] = None  # why the last start has failed
        self._used = time.monotonic()
        threading.Thread(
            target=self._look_after, name="tsock-keeper", daemon=True
        ).start()

    def hello(self) -> tuple[str, str]:
        """The stream's path, and the version of tsock here."""
        self._used = time.monotonic()
        return self._path, _version

    def hold(
        self, checked: Mapping[str, str]
    ) -> Optional[tuple[int, dict[str, str]]]:
        """Have a producer started unless one runs; the start's number, for
        look(), and the options of the producer.  None: the actor ends."""
        with self._changed:
            if self._ends:
                return None
            self._used = time.monotonic()
            if not self._starting and not is_running(self._path):
                self._options = {**checked, "threads": str(self._threads)}
                self._starts += 1
                self._starting, self._failed = True, None
                self._changed.notify()
            return self._starts, self._options

    def look(self, start: int) -> tuple[Optional[bool], str]:
        """True if the producer of that start serves, None while it starts, or
        False and why it doesn't; and what its log says."""
        self._used = time.monotonic()
        if start == self._starts and self._failed is not None:
            return False, self._failed
        if start == self._starts and self._starting:
            return None, launch.last_line(self._path + ".log")
        return True, ""

    def stop(self, force: bool) -> Optional[str]:
        """End the stream for good; why not, if it was refused."""
        try:
            stop_stream(self._path, force)
        except errors.NoProducer:
            pass
        except errors.Error as e:
            return str(e)
        return None

    def _is_unused(self) -> bool:
        if self._starting:
            return False
        if self._process is not None:
            status = self._process.poll()
            if status is None:
                self._used = time.monotonic()
                return False
            if status == 0:  # of one that was stopped, or had been idle
                return True
        return time.monotonic() - self._used > _KEPT

    def _look_after(self) -> None:
        """The thread: start producers, and end the actor after the last."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._starting, 1)
                self._ends = self._is_unused()
            if self._ends:
                # Not by exit_actor(), which only a task can call: this thread
                # would call that, and the actor wait for its answer first.
                _ray.kill(self._me)
                return
            if self._starting:
                failed = self._start()
                with self._changed:
                    self._failed, self._starting = failed, False

    def _start(self) -> Optional[str]:
        """Start a producer; why there is none, or None."""
        try:
            started = attach.run_producer(_Child, self._path, self._options)
        except Exception as e:  # noqa: BLE001 - it is somebody else's to know
            return str(e)
        self._process = started.process
        return None


# ---- what asks the actors ----


class _Ask:
    """One ask for the producer of a stream on a node."""

    def __init__(
        self, node: str, cpus: float, name: str, checked: Mapping[str, str]
    ) -> None:
        self._node, self._name, self._checked = node, name, checked
        self._threads = _threads(checked, node, cpus)
        self._begin = time.monotonic()
        self._say = self._begin + FIRST_WORD

    def until_served(
        self, path: Optional[str], wait: Optional[float]
    ) -> tuple[str, dict[str, str]]:
        """The stream's path, once there is a producer, and its options.

        path    what it has to be, if that is known
        wait    seconds for an actor to get its CPUs
        """
        left = _TRIES
        while True:
            try:
                found = self._once(path, wait)
                if found:
                    return found
            except _ray.exceptions.RayActorError as e:
                # It has ended just now; the name is free for another one.
                left -= 1
                if not left or e.actor_init_failed:
                    raise self._failure(e) from e
                _log.info("trying again: %s", e)
            except (
                _ray.exceptions.RayTaskError,
                _ray.exceptions.RuntimeEnvSetupError,
                _ray.exceptions.ActorUnschedulableError,
            ) as e:
                raise self._failure(e) from e
            time.sleep(_LOOK)

    def _failure(self, why: Exception) -> errors.Error:
        lines = [line for line in str(why).splitlines() if line.strip()]
        text = (
            "the actor that is to have the producer of %r can't run on Ray's "
            "node %s: " % (self._name, _short(self._node))
        )
        missing = [line for line in lines if "No module named" in line]
        if missing:
            text += "tsock has to be installed there, or be in the job's "
            text += "runtime_env: "
        said = (missing or lines or [type(why).__name__])[-1]
        return errors.NoProducer(text + said.strip())

    def _actor(self) -> Any:
        return (
            _ray.remote(Keeper)
            .options(
                name="%s on %s" % (self._name, self._node),
                namespace=NAMESPACE,
                lifetime="detached",
                get_if_exists=True,
                num_cpus=self._threads,
                scheduling_strategy=(
                    _strategies.NodeAffinitySchedulingStrategy(
                        self._node, soft=False
                    )
                ),
            )
            .remote(self._name, self._node, self._threads)
        )

    def _once(
        self, path: Optional[str], wait: Optional[float]
    ) -> Optional[tuple[str, dict[str, str]]]:
        """None if the actor ends just now."""
        actor = self._actor()
        hello = actor.hello.remote()
        while not _ray.wait([hello], timeout=_LOOK)[0]:
            self._until_it_has_cpus(wait)
        there, version = _ray.get(hello)
        self._check(path, there, version)
        held = _ray.get(actor.hold.remote(dict(self._checked)))
        if held is None:
            return None
        start, options = held
        while True:
            serves, said = _ray.get(actor.look.remote(start))
            if serves:
                return there, options
            if serves is not None:
                raise errors.NoProducer(
                    "Ray's node %s: %s" % (_short(self._node), said)
                )
            self._tell("it starts: %s; its log is %s.log" % (said, there))
            _ffi.check_interrupt()
            time.sleep(_LOOK)

    def _check(self, path: Optional[str], there: str, version: str) -> None:
        if version != _version:
            raise errors.NoProducer(
                "the actor that has the producer of %r on Ray's node %s has "
                "tsock %s, and this process %s: end it by tsock.ray.stop(%r)"
                % (
                    self._name,
                    _short(self._node),
                    version,
                    _version,
                    self._name,
                )
            )
        if path and path != there:
            raise errors.NoProducer(
                "the actor that has the producer of %r on Ray's node %s has "
                "its sockets in %s, and this process looks in %s: let "
                "TSOCK_DIR be the same in the runtime_env of all jobs"
                % (
                    self._name,
                    _short(self._node),
                    os.path.dirname(there),
                    os.path.dirname(path),
                )
            )

    def _until_it_has_cpus(self, wait: Optional[float]) -> None:
        _ffi.check_interrupt()
        waited = time.monotonic() - self._begin
        text = (
            "Ray hasn't started the actor with %d CPUs, one for each thread "
            "(threads=), on its node %s for %d s, and %s"
            % (self._threads, _short(self._node), waited, _free(self._node))
            if waited > FIRST_WORD or (wait is not None and waited > wait)
            else ""
        )
        if wait is not None and waited > wait:
            raise errors.NoProducer(
                "no producer of %r: %s: leave CPUs to it by fewer workers or "
                "trials at a time, give it fewer threads=, or call "
                "tsock.ray.start() before the trials begin"
                % (self._name, text)
            )
        if text:
            self._tell(text)

    def _tell(self, what: str) -> None:
        if time.monotonic() < self._say:
            return
        self._say = time.monotonic() + THEN
        _log.warning("waiting for the producer of %r: %s", self._name, what)


class _Nodes:
    """What has the producers of loaders: the actor of the node."""

    def path_of(self, name: str) -> str:
        if "/" in name:
            raise ValueError(
                "%r is a path; a stream of Ray's nodes is called by a name "
                "alone, and has its sockets in a folder of each node" % name
            )
        return os.path.join(_made_folder(_node()), name)

    def start(
        self, path: str, checked: Mapping[str, str], wait: Optional[float]
    ) -> None:
        _check()
        node = _node()
        ask = _Ask(node, _nodes()[node], os.path.basename(path), checked)
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
        _check()
        _check_task()
        if not {"rank", "world_size", "gather"} & keywords.keys():
            keywords.update(_peers())
        super().__init__(name, batch_size, **keywords)


# ---- ranks of Ray Train without a process group ----


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
            _ray.remote(Meeting)
            .options(
                name="ranks of " + run,
                namespace=NAMESPACE,
                get_if_exists=True,
                num_cpus=0,
                scheduling_strategy=(
                    _strategies.NodeAffinitySchedulingStrategy(
                        _node(), soft=True
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
            found[:] = _ray.get(self._actor.hear.remote(at, self.rank)) or []
            return bool(found)

        try:
            _ray.get(self._actor.tell.remote(at, self.rank, value))
            Wait(self, what, timeout or MOST).until(
                is_there, lambda: _ray.get(self._actor.missing.remote(at))
            )
        except errors.Error:
            # The next try is the same one.
            self._times[key] = number
            raise
        except _ray.exceptions.RayActorError as e:
            raise errors.Error(
                "rank %d of %d: the actor by which the ranks of Ray Train ask "
                "each other, where all %s, is gone; perhaps another rank has "
                "ended: %s"
                % (self.rank, self.world, what, str(e).split("\n")[0])
            ) from e
        return found


# Of this process's run, so that all loaders count together.
_of_run: Optional[tuple[Any, Gathering]] = None


def _peers() -> dict[str, Any]:
    """rank=, world_size= and gather= of a worker of Ray Train, if it has no
    process group."""
    global _of_run
    # Not imported for this: a worker has done so.
    train: Any = sys.modules.get("ray.train")
    if train is None or ranks.group() is not None:
        return {}
    try:
        context = train.get_context()
        rank, world = context.get_world_rank(), context.get_world_size()
    except Exception:  # noqa: BLE001 - no worker of Ray Train
        return {}
    if not world or world < 2:
        return {}
    # All workers of an attempt are in a placement group of their own.
    group = _ray.util.get_current_placement_group()
    run = (
        group.id.hex()
        if group
        else "%s %s"
        % (
            _ray.get_runtime_context().get_job_id(),
            context.get_experiment_name(),
        )
    )
    if _of_run is None or _of_run[0] != (run, rank):
        _of_run = (run, rank), ByActor(rank, world, run)
    return dict(rank=rank, world_size=world, gather=_of_run[1])


# ---- by hand ----


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
    _check()
    if not producer.get("root"):
        raise TypeError(
            "tsock.ray.start needs root=, the folder of a data set"
        )
    producer.setdefault("exit_when_idle", STARTED_IDLE)
    if producer.get("transform") is not None:
        producer["transform"] = recipe.text_of(producer["transform"])
    want = attach.Wanted(name, producer, "tsock.ray.start")
    if "/" in want.name:
        raise ValueError("%r is a path; give the stream a name" % want.name)
    there = _nodes()
    if nodes is None:
        nodes = [node for node, cpus in there.items() if cpus >= 1]
    for node in nodes:
        if node not in there:
            raise ValueError(
                "%r is no node of Ray's that is alive: %s"
                % (node, ", ".join(there))
            )
    checked = want.started_with(1)
    asks = {
        node: _Ask(node, there[node], want.name, checked) for node in nodes
    }
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
            % (name, _short(node), ", ".join(differ), name)
        )


def stop(name: str, force: bool = False) -> None:
    """End a stream on all nodes for good, and its actors; those of parts of it
    (NAME.AtoBofWORLD), too.

    As tsock.stop(): Refused, if a job reads it, unless force is given.
    """
    _check()
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
