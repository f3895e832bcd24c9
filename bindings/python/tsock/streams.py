# SPDX-License-Identifier: MIT
"""Which streams run on this machine, and their statistics."""

from __future__ import annotations

import os
from ctypes import byref
from typing import Any, NamedTuple, Optional, Union

from . import _ffi, arguments, errors
from .interrupts import patiently


class Stream(NamedTuple):
    name: str
    folder: str


def streams() -> list[Stream]:
    """The streams that answer to this user: a list of (name, folder)."""
    found: list[Stream] = []

    def add(_arg: Any, name: bytes, folder: bytes) -> None:
        found.append(Stream(os.fsdecode(name), os.fsdecode(folder)))

    def ask() -> Optional[errors.Error]:
        code = _ffi.lib.tsock_list(_ffi.LISTER(add), None)
        return _ffi.failure(code) if code < 0 else None

    failure = patiently(ask)
    if failure:
        raise failure
    return found


def _members(struct: Any, skip: tuple[str, ...]) -> dict[str, Any]:
    return {
        name: getattr(struct, name)
        for name, _ in struct._fields_
        if name not in skip
    }


def query(
    name: Union[str, os.PathLike[str]], timeout: float = 1.0
) -> dict[str, Any]:
    """Statistics of a stream, as a dict; NoProducer where nobody answers.

    name        of the stream, or its path
    timeout     seconds to wait for the answer

    In the dict are, with numbers of samples counted from the stream's first:

    pid         process of the producer
    epoch_len   samples in an epoch
    head        the first sample that isn't there yet
    claimed     the first one that nobody has begun to make
    limit       the first one that may not be begun yet, since readers hold
                those that it would overwrite
    capacity    samples in the ring
    produced    samples made by this producer
    read_bytes  of the data set, by this producer
    bad_samples samples that a substitute stands in for
    bad_files   files that are known to be bad
    shard, shard_ranks, shards
                which part of the epochs the stream is; shards 0: all
    memory      bytes in rings
    views       other dtypes or layouts that are made for readers now
    consumers   readers
    detached    readers that it went on without (slow="detach:SEC"), so far
    rows        a dict for each reader, for 32 of them at most, those that are
                furthest behind:
        pid         its process
        batch_size  samples
        tail        the first sample that it needs
        samples     read so far, by this connection
        wait_ns     nanoseconds that it has waited for samples
        view        0 where it reads as stored, or the number of its view
        waiting     1 while it waits for samples
        transport   to a GPU: 1 "vmm", 2 "legacy", 3 "staged"; 0 on the host
    waits       a dict for each consumer that has waited for more than ten
                seconds, for 8 of them at most, the longest first:
        pid         its process
        kind        what it waits for: "reader", "rank", "consumers", "return"
                    or "producer"
        for_pid     the process that it waits for, 0 where that is none
        waited_ms   milliseconds so far
        held_batches, held_samples
                    what a reader holds that it waits for
        who         it waits for, in words
        why         and what can be done, in words
    """
    stats = _ffi.Stats()

    def ask() -> Optional[errors.Error]:
        code = _ffi.lib.tsock_query(
            arguments.stream_name(name), int(timeout * 1000), byref(stats)
        )
        return _ffi.failure(code) if code else None

    failure = patiently(ask)
    if failure:
        raise failure
    return stats_dict(stats)


# When this process opened its first loader of each stream that it has read
# (time.monotonic_ns()).  It may begin a stream anew that it stopped itself.
opened: dict[tuple[str, str], int] = {}


def key_of(name: Any) -> tuple[str, str]:
    return os.environ.get("TSOCK_DIR", ""), str(name)


def stop(
    name: Union[str, os.PathLike[str]],
    force: bool = False,
    timeout: float = 30.0,
) -> None:
    """End a stream for good.

    Jobs that read it get StreamEnded, which says who stopped it, and none of
    them starts it again, although it has root=.  A job that begins after that
    may.  Where processes read it, or wait for its next producer, this raises
    Refused and names them; force=True ends it for them all the same.  Raises
    NoProducer where there is nothing to stop, and TimedOut where the producer's
    process hasn't ended within timeout seconds.
    """

    def ask() -> tuple[int, Optional[errors.Error]]:
        code = _ffi.lib.tsock_stop(
            arguments.stream_name(name), int(force), int(timeout * 1000)
        )
        return code, _ffi.failure(code) if code else None

    code, failure = patiently(ask)
    if failure:
        text = str(failure)
        if failure.code == "TSOCK_EREFUSED":
            failure.args = (text + "; force=True stops it all the same",)
        if code == errors.EAGAIN:
            failure = errors.TimedOut(text)
        raise failure
    opened.pop(key_of(os.fspath(name)), None)


def check_stopped(name: Any, since: Optional[int]) -> None:
    """Raise StreamEnded if somebody stopped it after since."""
    if since is None:
        return
    code = _ffi.lib.tsock_stopped(arguments.stream_name(name), since)
    if code == errors.EENDED:
        raise _ffi.failure(code)


def is_running(name: str) -> bool:
    """Does any producer, busy or not, have the name?"""
    if "/" in name:
        try:
            query(name, 0.5)
        except errors.NoProducer as e:
            return "didn't answer" in str(e)
        return True
    return any(stream.name == name for stream in streams())


def stats_dict(stats: _ffi.Stats) -> dict[str, Any]:
    """The members of the struct; rows, a dict for each reader; and waits, a
    dict for each long wait."""
    skip = ("size", "reserved", "reserved2", "row", "nrows", "wait", "nwaits")
    result = _members(stats, skip)
    result["rows"] = [
        _members(stats.row[i], ("reserved",))
        for i in range(min(stats.nrows, _ffi.STATS_ROWS))
    ]
    result["waits"] = [
        _wait(stats.wait[i])
        for i in range(min(stats.nwaits, _ffi.STATS_WAITS))
    ]
    return result


# enum tsock_wait_for in tsock.h.
_KINDS = "nothing", "reader", "rank", "consumers", "return", "producer"


def _wait(wait: _ffi.Wait) -> dict[str, Any]:
    result = _members(wait, ("reserved",))
    kind = result["kind"]
    result["kind"] = _KINDS[kind] if kind < len(_KINDS) else "other"
    for name in "who", "why":
        result[name] = result[name].decode("utf-8", "replace")
    return result


def next_epoch(name: Any, window: int) -> int:
    """The epoch that a loader which joined now would get, most likely.

    Only joining tells for certain: others may go on meanwhile.
    """
    stats = query(name)
    length = stats["epoch_len"]
    if stats["rows"]:
        front = max(min(row["tail"], stats["head"]) for row in stats["rows"])
        within = window
    else:
        # Samples made for readers that have left, ahead of where they were.
        front, within = stats["head"], stats["capacity"] + 1
    epoch = front // length
    return int(epoch + (front - epoch * length >= within))


def devices() -> list[str]:
    """A line about each GPU that this process can use, or one that says why
    there is none."""
    lines: list[str] = []

    def add(_arg: Any, line: bytes) -> None:
        lines.append(line.decode("utf-8", "replace"))

    patiently(lambda: _ffi.lib.tsock_devices(_ffi.TELLER(add), None))
    return lines
