# SPDX-License-Identifier: MIT
"""What asks the actors for producers."""

from __future__ import annotations

import logging
import os
import time
from typing import Any, Mapping, Optional

from .. import _ffi, errors
from ..gathering import FIRST_WORD, THEN
from .keeper import VERSION, Keeper
from .nodes import NAMESPACE, free, ray, short, strategies

_log = logging.getLogger("tsock")

_LOOK = 0.1  # seconds between two questions to an actor
_TRIES = 5  # of actors that end before they have answered


def threads_of(checked: Mapping[str, str], node: str, cpus: float) -> int:
    """Of the producer, and CPUs of the actor; by default half of the node's."""
    said = checked.get("threads", "auto")
    threads = max(int(cpus) // 2, 1) if said == "auto" else int(said)
    if threads > cpus:
        raise ValueError(
            "threads=%d: Ray's node %s has %g CPUs in all, and the producer's "
            "actor takes one for each thread" % (threads, short(node), cpus)
        )
    return threads


class Ask:
    """One ask for the producer of a stream on a node."""

    def __init__(
        self, node: str, cpus: float, name: str, checked: Mapping[str, str]
    ) -> None:
        self._node, self._name, self._checked = node, name, checked
        self._threads = threads_of(checked, node, cpus)
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
            except ray.exceptions.RayActorError as e:
                # It has ended just now; the name is free for another one.
                left -= 1
                if not left or e.actor_init_failed:
                    raise self._failure(e) from e
                _log.info("trying again: %s", e)
            except (
                ray.exceptions.RayTaskError,
                ray.exceptions.RuntimeEnvSetupError,
                ray.exceptions.ActorUnschedulableError,
            ) as e:
                raise self._failure(e) from e
            time.sleep(_LOOK)

    def _failure(self, why: Exception) -> errors.Error:
        lines = [line for line in str(why).splitlines() if line.strip()]
        text = (
            "the actor that is to have the producer of %r can't run on Ray's "
            "node %s: " % (self._name, short(self._node))
        )
        missing = [line for line in lines if "No module named" in line]
        if missing:
            text += "tsock has to be installed there, or be in the job's "
            text += "runtime_env: "
        said = (missing or lines or [type(why).__name__])[-1]
        return errors.NoProducer(text + said.strip())

    def _actor(self) -> Any:
        return (
            ray.remote(Keeper)
            .options(
                name="%s on %s" % (self._name, self._node),
                namespace=NAMESPACE,
                lifetime="detached",
                get_if_exists=True,
                num_cpus=self._threads,
                scheduling_strategy=(
                    strategies.NodeAffinitySchedulingStrategy(
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
        while not ray.wait([hello], timeout=_LOOK)[0]:
            self._until_it_has_cpus(wait)
        there, version = ray.get(hello)
        self._check(path, there, version)
        held = ray.get(actor.hold.remote(dict(self._checked)))
        if held is None:
            return None
        start, options = held
        while True:
            serves, said = ray.get(actor.look.remote(start))
            if serves:
                return there, options
            if serves is not None:
                raise errors.NoProducer(
                    "Ray's node %s: %s" % (short(self._node), said)
                )
            self._tell("it starts: %s; its log is %s.log" % (said, there))
            _ffi.check_interrupt()
            time.sleep(_LOOK)

    def _check(self, path: Optional[str], there: str, version: str) -> None:
        if version != VERSION:
            raise errors.NoProducer(
                "the actor that has the producer of %r on Ray's node %s has "
                "tsock %s, and this process %s: end it by tsock.ray.stop(%r)"
                % (
                    self._name,
                    short(self._node),
                    version,
                    VERSION,
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
                    short(self._node),
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
            % (self._threads, short(self._node), waited, free(self._node))
            if waited > FIRST_WORD or (wait is not None and waited > wait)
            else ""
        )
        if wait is not None and waited > wait:
            raise errors.NoProducer(
                "no producer of %r: %s: leave CPUs to it by fewer workers or "
                "trials at a time, give it fewer threads=, or call "
                "tsock.ray.start() before the trials begin" % (self._name, text)
            )
        if text:
            self._tell(text)

    def _tell(self, what: str) -> None:
        if time.monotonic() < self._say:
            return
        self._say = time.monotonic() + THEN
        _log.warning("waiting for the producer of %r: %s", self._name, what)
