# SPDX-License-Identifier: MIT
"""The program that serves a script's loader, started by tsock.share().

It is given the stream's name, the file that holds the loader, and the seconds
without a consumer after which it ends.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import re
import signal
import sys
import time
from typing import Any, Iterator

from .. import identity
from ..serving import Server
from ..serving.options import Options
from . import parcel
from .served import HOSTING, refuse_inside_host

_log = logging.getLogger("tsock")


@contextlib.contextmanager
def _without_loops() -> Iterator[None]:
    """While the script is imported for its classes, it reads no loader."""
    try:
        from torch.utils.data import DataLoader
    except ImportError:
        yield
        return
    own = DataLoader.__iter__
    kind: Any = DataLoader
    kind.__iter__ = lambda _: refuse_inside_host("a DataLoader's iterator")
    try:
        yield
    finally:
        kind.__iter__ = own


def _read(path: str) -> tuple[Any, bool, str]:
    """The loader, whether it is ragged, and what identifies it."""
    with open(path, "rb") as f:
        preparation = pickle.load(f)
        ragged, said = pickle.load(f)
        os.unlink(path)
        os.environ[HOSTING] = str(os.getpid())
        try:
            with _without_loops():
                parcel.prepare(preparation)
            loader = parcel.make(pickle.load(f))
        finally:
            del os.environ[HOSTING]
    return loader, ragged, identity.line("share", said)


def _options(loader: Any) -> Options:
    """A first batch that is smaller than a loader's batches doesn't say how
    large a job's are."""
    size = getattr(loader, "batch_size", None)
    data: Any = getattr(loader, "dataset", None)
    if size and hasattr(data, "__len__") and len(data) < size:
        return Options(max_batch=size)
    return Options()


def _as_is(batch: Any) -> Any:
    return batch


def _until_idle(server: Server, seconds: float) -> None:
    last = time.monotonic()
    while not server.closed and server.error is None and not server.stopped:
        now = time.monotonic()
        if server.connected > 0:
            last = now
        elif now - last > seconds:
            _log.info("no consumer for %g s: end", seconds)
            return
        time.sleep(0.1)


def _said(error: Exception) -> str:
    """The error in a line."""
    last = str(error).strip().split("\n")[-1]
    missing = re.match("Can't get attribute '(.*)' on .*__mp_main__", last)
    if missing:
        last = (
            "%s isn't there when the script is imported: define it at the top "
            "level, before `if __name__ == '__main__':`" % missing[1]
        )
    return "%s: %s" % (type(error).__name__, last)


def main(argv: list[str]) -> int:
    name, path, idle = argv
    logging.basicConfig(
        level=logging.INFO,
        format="tsock-share: %(asctime)s %(levelname)s: %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
    )
    for level in (logging.INFO, logging.WARNING, logging.ERROR):
        logging.addLevelName(level, logging.getLevelName(level).lower())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        # What those hear who wait for the stream.
        _log.info("importing what the script's loader needs")
        loader, ragged, said = _read(path)
        _log.info("waiting for the loader's first batch")
        options = Options() if ragged else _options(loader)
        server = Server(
            loader, name, options, _as_is, ragged, None, 0, None, said
        )
    except Exception as e:  # noqa: BLE001 - of the script's own code
        _log.error("%s", _said(e), exc_info=True)
        print("tsock-share: %s" % _said(e), file=sys.stderr)
        return 1
    with server:
        _log.info("serving stream %r", name)
        _until_idle(server, float(idle))
        if server.error is not None:
            server.run()
    return 0
