# SPDX-License-Identifier: MIT
"""How a loader finds its stream, and starts the producer if it has to.

A bare name never starts anything.  With root= a loader says which stream it
wants: a stream that runs under that name has to be the one that is wanted, and
if none runs, the program tsock-producer is started, detached from this process
and under a lock: one of several jobs starts it, and all attach.
"""

from __future__ import annotations

import copy
import logging
import os
import re
import time
from typing import Any, Callable, Mapping, Optional, Protocol, TypeVar, Union

from . import arguments, errors, options, readers
from .indexing.automatic import with_table
from .keywords import did_you_mean
from .launch import Launch, is_starting, producers_command, was_cut_off
from .parts import Part, Start
from .producer import describe, find_program
from .streams import check_stopped, is_running, key_of, opened, streams

_log = logging.getLogger("tsock")
_T = TypeVar("_T")
_L = TypeVar("_L", bound=Launch)

WAIT = float(60)  # a loader's default; an equal number of the user's is not it
IDLE = "60"  # seconds after which a producer that was started here ends
NONE = "none"  # what isn't in an identity
_STARTS = 3  # of a producer that ends before it was found
_LOOK = 0.2  # seconds between two looks for a producer that is gone
_TRY = 10.0  # seconds for one attempt at a connection
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")


def refuse_wrong_name(name: str) -> None:
    """Raise NoProducer if no producer of that name seems to be coming, while
    other streams run here."""
    running = sorted(stream.name for stream in streams())
    if "/" in name or not running or name in running:
        return
    if is_starting(name) or was_cut_off(name):
        return
    shown = ", ".join(repr(other) for other in running[:8])
    if len(running) > 8:
        shown += " and %d more" % (len(running) - 8)
    raise errors.NoProducer(
        "no stream %r runs here, but %s%s (wait=60 would wait for it, and "
        "root=DIR would start it)"
        % (name, shown, did_you_mean(name, running))
    )


# Options that decide a line of an identity that none has the name of.
_GIVES = {"transform": {"transform", "preset", "size", "resize"}}


def check_name(name: str) -> None:
    """Can a stream that is started be called so?"""
    if not _NAME.match(name.rpartition("/")[2]):
        raise ValueError(
            "%r can't be a stream's name: 1 to 63 letters, digits, '.', "
            "'_' and '-', a letter or digit first" % name
        )


class Keeper(Protocol):
    """What has a stream's producer in place of the loaders, such as Ray."""

    def path_of(self, name: str) -> str:
        """The path of the stream that is called so."""

    def start(
        self, path: str, checked: Mapping[str, str], wait: Optional[float]
    ) -> None:
        """Have it served; returns once it is.

        checked     the options of tsock-producer
        wait        seconds that the keeper may need until it begins
        """


class Wanted:
    """The stream that a loader asks for by root= and other options."""

    keeper: Optional[Keeper] = None

    def __init__(
        self, name: Optional[str], given: Mapping[str, Any], who: str
    ) -> None:
        checked = with_table(options.check(who, given))
        self._given = frozenset(checked)
        if not checked["root"]:
            raise ValueError("root '': it is the folder of a data set")
        self._options = options.absolute(checked)
        # By key what it may have, if the program has just said so.
        self._values: Optional[dict[str, list[str]]] = None
        if name is None:
            name, self._values = describe(find_program(), self._options)
        check_name(name)
        self.name = name

    def part(self, part: Part, start: Optional[Start]) -> Wanted:
        """The same stream, but for the part of one node's ranks."""
        made = copy.copy(self)
        made.name = part.name_of(self.name, start)
        check_name(made.name)
        made._options = dict(self._options, shard=part.option)
        if start:
            made._options["start"] = "%d:%d" % start
        made._values = None
        return made

    def differences(self, runs: Mapping[str, str]) -> list[str]:
        """Lines that say how the running stream differs from the wanted one."""
        values, self._values = self._values, None
        # A link in its path may lead elsewhere by now.
        if values is None:
            values = describe(find_program(), self._options)[1]
        lines = []
        for key, mine in values.items():
            its = runs.get(key, NONE)
            if any(_is_same(one, its) for one in mine):
                continue
            given = bool(
                self._given & _GIVES.get(key, {key.replace("-", "_")})
            )
            lines.append(
                "  %-9s is %s, and %s %s"
                % (
                    key,
                    its,
                    mine[0],
                    "was asked for" if given else "is the default",
                )
            )
        return lines

    def compare(self, runs: Mapping[str, str], pid: int) -> None:
        """Raise OtherStream if the stream that runs isn't the one wanted."""
        if "root" not in runs:
            raise errors.OtherStream(
                "stream %r is served by a program (process %d) that doesn't "
                "say which folder its samples are from: leave out root= and "
                "the other options of tsock-producer to read it as it is"
                % (self.name, pid)
            )
        lines = self.differences(runs)
        if lines:
            raise errors.OtherStream(
                "stream %r runs (process %d) and is another one:\n%s\n%s.  Ask "
                "for what it has, or use another name; without root= and the "
                "other options of tsock-producer it is read as it is"
                % (
                    self.name,
                    pid,
                    "\n".join(lines),
                    readers.fate_of(self.name, pid),
                )
            )

    def started_with(self, batch_size: int) -> dict[str, str]:
        """The options of a producer that is started for it."""
        checked = dict(self._options)
        checked.setdefault("exit_when_idle", IDLE)
        if batch_size > 1:  # whatever a ring of large images has room for
            checked.setdefault("least_batch", str(batch_size))
        return checked

    def start(self, batch_size: int, wait: Optional[float] = WAIT) -> None:
        """Start a producer if nobody serves the stream; return once it is."""
        # Not by a job that read it, and that would begin it again and again:
        # it hears so once.
        try:
            check_stopped(self.name, opened.get(key_of(self.name)))
        except errors.StreamEnded:
            del opened[key_of(self.name)]
            raise
        checked = self.started_with(batch_size)
        if self.keeper:
            self.keeper.start(self.name, checked, wait)
        else:
            run_producer(Launch, self.name, checked)


def run_producer(kind: type[_L], name: str, checked: Mapping[str, str]) -> _L:
    """Start a stream's producer if nobody serves the stream; return once it is.

    One that is killed while it starts is started again.
    """
    folder, _, base = name.rpartition("/")
    command = producers_command(base, checked)
    for left in reversed(range(_STARTS)):
        launch = kind(folder or None, base, command)
        try:
            launch.until(lambda: is_running(name))
            break
        except errors.NoProducer as e:
            if not launch.killed or not left:
                raise
            _log.info("trying again: %s", e)
    return launch


class Revival:
    """Starts the producer of a loader's stream again when it is gone."""

    def __init__(self, want: Wanted, batch_size: int) -> None:
        self._want, self._batch_size = want, batch_size
        self._looked = 0.0

    def __call__(self) -> None:
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        if not is_running(self._want.name):
            self._want.start(self._batch_size)


def _is_same(a: str, b: str) -> bool:
    """One value, or two paths of one file."""
    if a == b or not (a.startswith("/") and b.startswith("/")):
        return a == b
    try:
        return os.path.samefile(a, b)
    except OSError:
        return False


def wanted(
    name: Union[str, os.PathLike[str], None],
    given: Mapping[str, Any],
    who: str = "tsock.DataLoader",
) -> Optional[Wanted]:
    """The stream that the arguments ask for; None if it has to run already."""
    text = None if name is None else os.fspath(name)
    named = {key for key, value in given.items() if value is not None}
    if "root" in named:
        return Wanted(text, given, who)
    options.check(who, given)
    arguments.check_path(name)
    if named:
        raise ValueError(
            "%s: %s of the producer that root= starts; a stream that "
            "runs has its own"
            % (
                who,
                ", ".join(sorted(named))
                + (" is an option" if len(named) == 1 else " are options"),
            )
        )
    if text is None:
        raise TypeError(
            "%s needs the name of a stream, such as 'imagenet', or root=, the "
            "folder of a data set" % who
        )
    return None


def _hinting(error: errors.Error, name: str) -> errors.Error:
    """The error; with what may be meant where a folder has that name."""
    if os.path.isdir(name):
        error.args = (
            "%s; the folder %r here is read by root=%r" % (error, name, name),
        )
    return error


def attached(
    want: Optional[Wanted],
    name: str,
    batch_size: int,
    wait: Optional[float],
    connect: Callable[[float], _T],
) -> _T:
    """connect(seconds) to the stream, once there is a producer."""
    if want is None:
        while True:
            if wait is WAIT:
                refuse_wrong_name(name)
            try:
                return connect(2**32 if wait is None else wait)
            except errors.NoProducer as e:
                # One that scans a large data set has the name, and is there.
                if wait is not WAIT or not is_starting(name):
                    raise _hinting(e, name)
    starts, until = 0, None
    while True:
        if not is_running(name):
            want.start(batch_size, wait)
            starts, until = starts + 1, None
        if until is None:
            until = time.monotonic() + (2**32 if wait is None else wait)
        try:
            return connect(_TRY)
        except (errors.NoProducer, errors.ProducerLost) as e:
            # The producer has ended (then it is started again), or is slow.
            if starts == _STARTS or time.monotonic() > until:
                raise
            _log.info("trying again: %s", e)
