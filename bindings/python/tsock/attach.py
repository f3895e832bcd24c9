# SPDX-License-Identifier: MIT
"""How a loader finds its stream, and starts the producer if it has to.

A bare name never starts anything.  With root= a loader says which stream it
wants: if one runs by that name it has to be that one, and if none does, the
program tsock-producer is started, detached from this process, under a lock:
of several jobs one starts it, and all attach.
"""

from __future__ import annotations

import logging
import os
import re
import time
from typing import Any, Callable, Mapping, Optional, TypeVar, Union

from . import arguments, errors, options, readers
from .dataset import EXTENSIONS
from .keywords import did_you_mean
from .launch import Launch, is_starting, was_cut_off
from .streams import check_stopped, is_running, key_of, opened, streams
from .producer import default_name

_log = logging.getLogger("tsock")
_T = TypeVar("_T")

WAIT = float(60)  # a loader's default; an equal number of the user's is not it
IDLE = "60"  # seconds after which a producer that was started here ends
USUAL_BATCH = 512  # a producer's --max-batch, if nothing is said
NONE = "none"  # what isn't in an identity
_STARTS = 3  # of a producer that ends before it was found
_LOOK = 0.2  # seconds between two looks for a producer that is gone
_TRY = 10.0  # seconds for one attempt at a connection
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")


def refuse_wrong_name(name: str) -> None:
    """Nobody comes by that name, as far as one can tell: others run here."""
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


class Wanted:
    """The stream that a loader asks for by root= and other options."""

    def __init__(
        self, name: Optional[str], given: Mapping[str, Any], who: str
    ) -> None:
        checked = options.check(who, given)
        self._given = frozenset(checked)
        if not checked["root"]:
            raise ValueError("root '': it is the folder of a data set")
        _refuse_address(checked["root"])
        root = os.path.abspath(checked["root"])
        checked["root"] = root
        if "dataset" not in checked:
            checked["dataset"] = _guess(root)
        for key in ("cache_dir", "select"):
            if key in checked:
                checked[key] = os.path.abspath(checked[key])
        if name is None:
            name = default_name(
                checked["dataset"], root, checked.get("split")
            )
        if not _NAME.match(name.rpartition("/")[2]):
            raise ValueError(
                "%r can't be a stream's name: 1 to 63 letters, digits, '.', "
                "'_' and '-', a letter or digit first" % name
            )
        self.name = name
        self._options = checked

    @property
    def identity(self) -> dict[str, Optional[str]]:
        """What tsock_identity() has to say; None is whatever it says."""
        o = self._options
        split = o.get("split")
        if split is None and o["dataset"] == "imagenet":
            split = "train"
        preset = o.get("preset", "eval" if split == "val" else "train")
        evaluates = preset == "eval"
        order = o.get("order", "sequential" if evaluates else "philox")
        # The default of a sequential stream depends on its length.
        segments = None if order == "sequential" else "1"
        pillow = int(o.get("pillow", "13"))
        root = os.path.realpath(_split_folder(o["root"], split))
        return {
            "dataset": "packed" if _is_pack(root) else o["dataset"],
            "root": root,
            "select": (
                os.path.realpath(o["select"]) if "select" in o else NONE
            ),
            "order": order,
            "seed": o.get("seed", "0"),
            "segments": o.get("segments", segments),
            "shard": o.get("shard", NONE),
            "on-error": o.get("on_error", "substitute"),
            "preset": preset,
            "size": o.get("size", "224"),
            "resize": o.get("resize", "256") if evaluates else NONE,
            "pillow": "12" if pillow < 13 else "13",
            "fast": "1" if "fast" in o else NONE,
            # A field more is in nobody's way.
            "keys": "1" if "keys" in o else None,
            "grows": "1" if "grows" in o else NONE,
        }

    def differences(self, runs: Mapping[str, str]) -> list[str]:
        """Lines about what the stream that runs has and isn't wanted."""
        lines = []
        for key, mine in self.identity.items():
            its = runs.get(key, NONE)
            if mine is None or mine == its:
                continue
            if key == "root" and _same_folder(mine, its):
                continue
            given = key.replace("-", "_") in self._given
            if key == "dataset" and not given:
                if {mine, its} <= set(options.IMAGE_FOLDERS):
                    continue
            lines.append(
                "  %-9s is %s, and %s %s"
                % (
                    key,
                    its,
                    mine,
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

    def start(self, batch_size: int) -> None:
        """Have somebody serve it; returns when somebody does.

        One that is killed while it starts is started again.
        """
        # Not by a job that read it, and that would begin it again and again:
        # it hears so once.
        try:
            check_stopped(self.name, opened.get(key_of(self.name)))
        except errors.StreamEnded:
            del opened[key_of(self.name)]
            raise
        checked = dict(self._options)
        checked.setdefault("exit_when_idle", IDLE)
        if batch_size > USUAL_BATCH:
            checked.setdefault("max_batch", str(batch_size))
        folder, _, name = self.name.rpartition("/")
        for left in reversed(range(_STARTS)):
            launch = Launch(folder or None, name, checked)
            try:
                launch.until(lambda: is_running(self.name))
                return
            except errors.NoProducer as e:
                if not launch.killed or not left:
                    raise
                _log.info("trying again: %s", e)


class Revival:
    """Has the producer of a loader's stream started again when it is gone."""

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


# A split's own name and the other usual ones, as the program has them.
_SPLITS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation", "test"),
}
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|pipe:")


def _refuse_address(root: str) -> None:
    if _ADDRESS.match(root):
        raise ValueError(
            "root %r: files of this machine alone are read; copy the data "
            "set here, or mount it (mount-s3, gcsfuse, rclone mount) and "
            "give that folder" % root
        )


def _split_folder(root: str, split: Optional[str]) -> str:
    """The folder below the root that the program takes for the split."""
    if split is None:
        return root
    own, *others = [os.path.join(root, name) for name in _SPLITS[split]]
    found = [path for path in others if os.path.isdir(path)]
    if os.path.isdir(own) or len(found) != 1:
        return own
    return found[0]


def _guess(root: str) -> str:
    """The format of a folder, by what is in it."""
    if all(os.path.isdir(_split_folder(root, split)) for split in _SPLITS):
        return "imagenet"
    if _is_pack(root):
        return "packed"
    if root.endswith(".tar") or _has_shards(root):
        return "webdataset"
    return "imagefolder"


def _is_pack(root: str) -> bool:
    """Whether tsock-pack wrote it; the producer sees that by itself, too."""
    return os.path.isfile(os.path.join(root, "pack.index"))


def _has_shards(root: str) -> bool:
    """Tar files in a folder, and neither folders of classes nor images."""
    shards = False
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                name = entry.name.lower()
                if name.endswith(EXTENSIONS) or entry.is_dir():
                    return False
                shards = shards or name.endswith(".tar")
    except OSError:
        return False
    return shards


def _same_folder(a: str, b: str) -> bool:
    try:
        return os.path.samefile(a, b)
    except OSError:
        return False


def wanted(
    name: Union[str, os.PathLike[str], None],
    given: Mapping[str, Any],
    who: str = "tsock.DataLoader",
) -> Optional[Wanted]:
    """What the arguments ask for; None for a stream that has to run."""
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
            want.start(batch_size)
            starts, until = starts + 1, None
        if until is None:
            until = time.monotonic() + (2**32 if wait is None else wait)
        try:
            return connect(_TRY)
        except (errors.NoProducer, errors.ProducerLost) as e:
            # It has ended since (then it is started again), or is slow.
            if starts == _STARTS or time.monotonic() > until:
                raise
            _log.info("trying again: %s", e)
