# SPDX-License-Identifier: MIT
"""The loader of a stream that a process of Python's serves, from its pickle."""

from __future__ import annotations

import logging
import os
import pickle
import re
import sys
from typing import Any, Mapping, Optional

from .. import arguments, errors
from ..about import About
from ..attach import IDLE
from ..connection import Stream
from ..launch import Launch, folder_of_sockets
from ..loader import DataLoader
from ..option_table import ProducerOptions
from ..streams import is_running, streams
from . import orders, parcel
from .look import is_pinned

_log = logging.getLogger("tsock")

_WAIT = 60.0  # seconds for the stream to answer
HOSTING = "TSOCK_SHARE_HOST"  # set in the process that serves
# The program, wherever the package lies: file names of the loader's code follow.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from tsock.sharing.host import main; sys.exit(main(sys.argv[1:]))"
)
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


def refuse_inside_host(what: str) -> None:
    """A script that is imported for its classes mustn't begin its work."""
    if os.environ.get(HOSTING) == str(os.getpid()):
        raise RuntimeError(
            "%s was called while the process that serves a loader imported "
            "the script: put what the script does under "
            "`if __name__ == '__main__':`, since its classes and functions "
            "alone are wanted there" % what
        )


def _base(loader: Any) -> str:
    data = getattr(loader, "dataset", loader)
    root = getattr(data, "root", None)
    name = type(data).__qualname__
    if isinstance(root, (str, os.PathLike)):
        name = os.path.basename(os.path.abspath(root)) or name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:32] or "loader"


def _write(name: str, sent: parcel.Parcel) -> str:
    """The file that the process reads, and removes."""
    folder = os.path.dirname(name) or folder_of_sockets()
    os.makedirs(folder, 0o700, exist_ok=True)
    path = os.path.join(
        folder, "%s.%d.loader" % (os.path.basename(name), os.getpid())
    )
    fd = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600
    )
    with open(fd, "wb") as f:
        pickle.dump(parcel.preparation(sent.main), f)
        pickle.dump((sent.ragged, parcel.told(sent)), f)
        f.write(sent.data())
    return path


def _start(name: str, sent: parcel.Parcel, idle: float) -> None:
    path = _write(name, sent)
    folder, _, base = name.rpartition("/")
    try:
        Launch(
            folder or None,
            base,
            [sys.executable, "-c", _PROGRAM, _PACKAGES, base, path, str(idle)],
            "the script's loader",
        ).until(lambda: is_running(name))
    finally:
        if os.path.exists(path):
            os.unlink(path)


def _split(more: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of tsock.DataLoader; the others have no effect here."""
    other = sorted(set(more) & set(ProducerOptions.__annotations__))
    if other:
        _log.warning(
            "tsock.share: %s: no effect, since the script's own loader makes "
            "the samples",
            ", ".join(other),
        )
    return {key: value for key, value in more.items() if key not in other}


def _ranks(loader: Any) -> dict[str, int]:
    sampler: Any = getattr(loader, "sampler", None)
    if orders.is_all_ranks(sampler):
        return {"rank": sampler.rank, "world_size": sampler.num_replicas}
    return {"rank": 0, "world_size": 1}


def _what_runs(name: str) -> str:
    """What the stream of that name says of the loader that it has."""
    opts = arguments.options(
        "uint8", "hwc", None, "epoch", None, False, False
    )[0]
    opts.batch_size = 1
    stream = Stream(name, opts, _WAIT)
    try:
        return About(stream.check(), name).identity.get("share", "")
    finally:
        stream.close()


def _other_versions(said: str, sent: parcel.Parcel) -> str:
    """Of which packages the stream's process has other versions."""
    mine, its = sent.versions, parcel.versions_of(said)[1]
    return ", ".join(
        "%s %s there and %s here"
        % (key, its.get(key, "none"), mine.get(key, "none"))
        for key in sorted(set(mine) | set(its))
        if mine.get(key) != its.get(key)
    )


def _compare(name: str, sent: parcel.Parcel) -> None:
    """Raise OtherStream if the stream is of another loader."""
    said = _what_runs(name)
    if said.partition(" ")[0] == sent.digest:
        return
    differ = said and _other_versions(said, sent)
    raise errors.OtherStream(
        "stream %r runs and is of another loader%s: leave out name=, so that "
        "each loader has a stream of its own, or use another name"
        % (name, " (%s)" % differ if differ else "")
    )


def _name_those_apart(base: str, sent: parcel.Parcel) -> None:
    """Warn of a stream that would be this one but for some versions."""
    for stream in streams():
        if not stream.name.startswith(base + "-"):
            continue
        try:
            said = _what_runs(stream.name)
        except errors.Error:
            continue  # it has ended, or is busy
        if parcel.versions_of(said)[0] == sent.plain:
            _log.warning(
                "tsock.share: stream %r has the same loader with other "
                "packages (%s), and isn't shared",
                stream.name,
                _other_versions(said, sent),
            )


def opened(
    loader: Any,
    name: Optional[str],
    seed: Optional[int],
    more: Mapping[str, Any],
) -> DataLoader[Any]:
    """A loader of the stream of the script's own, which is started if nobody
    serves it."""
    data: Any = getattr(loader, "dataset", None)
    if hasattr(data, "__len__") and not len(data):
        raise ValueError(
            "tsock.share: the loader's data set, %s, has no samples"
            % type(data).__qualname__
        )
    generator = getattr(loader, "generator", None)
    if seed is None:
        seed = generator.initial_seed() if generator is not None else 0
    sent = parcel.packed(loader, seed)
    chosen = name is not None
    base = _base(loader)
    if name is None:
        name = "%s-%s" % (base, sent.digest)
    more = dict(more)
    idle = more.pop("exit_when_idle", float(IDLE))
    arguments.seconds("exit_when_idle", idle, 0)
    if not is_running(name):
        if not chosen:
            _name_those_apart(base, sent)
        _start(name, sent, idle)
    if chosen:
        _compare(name, sent)
    keywords: dict[str, Any] = _ranks(loader)
    keywords.update(pin_memory=is_pinned(loader))
    if sent.ragged:
        keywords.update(batch_size=None)
    else:
        keywords.update(
            batch_size=loader.batch_size, drop_last=bool(loader.drop_last)
        )
    keywords.update(_split(more))
    return DataLoader(name, **keywords)
