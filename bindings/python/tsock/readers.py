# SPDX-License-Identifier: MIT
"""The readers of a stream, and its end, for people who want its name."""

from __future__ import annotations

import os
from typing import Optional

from . import errors
from .streams import query

_MOST = 4  # processes that are named
_OPTION = b"--exit-when-idle"


def _words(pid: int) -> list[bytes]:
    """The command line of a process; [] where it can't be seen."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().rstrip(b"\0").split(b"\0")
    except OSError:
        return []


def _process(pid: int) -> str:
    """"process 4242 (train.py)"."""
    if pid == os.getpid():
        return "this process (an earlier loader, which close() ends)"
    words = [w for w in _words(pid)[1:] if not w.startswith(b"-")]
    name = os.path.basename(os.fsdecode(words[0])) if words else ""
    return "process %d%s" % (pid, " (%s)" % name if name else "")


def _idle(pid: int) -> Optional[str]:
    """The seconds of the producer's --exit-when-idle."""
    words = _words(pid)
    for i, word in enumerate(words):
        option, equals, value = word.partition(b"=")
        if option == _OPTION:
            return os.fsdecode(value if equals else b"".join(words[i + 1 : i + 2]))
    return None


def fate_of(name: str, producer: int) -> str:
    """One sentence about the stream's readers and its end, without a dot."""
    try:
        pids = sorted({row["pid"] for row in query(name)["rows"]})
    except errors.Error:
        pids = []
    who = [_process(pid) for pid in pids[:_MOST]]
    if len(pids) > _MOST:
        who.append("%d more" % (len(pids) - _MOST))
    reads = " and ".join([", ".join(who[:-1])] * (len(who) > 1) + who[-1:])
    idle = _idle(producer)
    return "%s it now; it ends %s, or at once by tsock.stop(%r%s)" % (
        (reads[0].upper() + reads[1:] + (" reads" if len(who) == 1 else " read"))
        if who
        else "Nobody reads",
        "%s s after the last loader has gone" % idle
        if idle
        else "when its producer is stopped",
        name,
        ", force=True" if who else "",
    )
