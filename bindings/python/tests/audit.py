# SPDX-License-Identifier: MIT
"""What a test leaves behind.

conftest.py asks after each test, and fails it, unless TSOCK_TEST_AUDIT is 0.

Descriptors (those of memory without a name among them), threads, child
processes, mapped memory of streams, files in the folder of sockets, and
processes that have that folder as their TSOCK_DIR, whoever started them.  Kept
on purpose, by the standard library: the two processes that multiprocessing
starts once, and its ends of their pipes.
"""

import gc
import os
import threading
import time
from multiprocessing import forkserver, resource_tracker

LIMIT = 60  # seconds for what ends by itself, only where something is wrong

# Native threads by these names are libtsock's and ZeroMQ's.
THREADS = ("tsock", "ZMQbg")


def _text(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""  # gone since


def _helpers():
    """The two processes of multiprocessing."""
    tracker, server = resource_tracker._resource_tracker, forkserver._forkserver
    return tracker._pid, server._forkserver_pid


def _descriptors():
    kept = {resource_tracker._resource_tracker._fd}
    kept.add(forkserver._forkserver._forkserver_alive_fd)
    for fd in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            continue  # that of the listing itself
        if int(fd) not in kept:
            yield "descriptor %s, %s" % (fd, link)


def _threads():
    for thread in threading.enumerate():
        # Python never forgets a thread of the library's that once called it.
        if not isinstance(thread, threading._DummyThread):
            yield "thread %r" % thread
    for task in os.listdir("/proc/self/task"):
        name = _text("/proc/self/task/%s/comm" % task).decode().strip()
        if name.startswith(THREADS):
            yield "native thread %s, %s" % (task, name)


def _children():
    try:
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        os.waitid(os.P_ALL, 0, how)
    except ChildProcessError:
        return
    for pid in filter(str.isdigit, os.listdir("/proc")):
        name, _, rest = _text("/proc/%s/stat" % pid).rpartition(b")")
        if rest and int(rest.split()[1]) == os.getpid():
            command = _text("/proc/%s/cmdline" % pid)
            if int(pid) not in _helpers():
                text = command.replace(b"\0", b" ") or name
                yield "child %s, %s" % (pid, text.decode(errors="replace"))


def _memory():
    for line in _text("/proc/self/maps").splitlines():
        if b"/memfd:tsock" in line:
            yield "memory %s" % line.decode()


def _files(folder):
    try:
        return ["file %s" % name for name in os.listdir(folder or "")]
    except OSError:
        return []


def _until_nothing(look):
    """What look() still has when all that ends by itself has ended."""
    deadline = time.monotonic() + LIMIT
    while True:
        left = look()
        if not left or time.monotonic() > deadline:
            return left
        gc.collect()
        time.sleep(0.01)


def of_folder(folder):
    """The processes that have it as TSOCK_DIR: a dict, commands by pid."""
    mine = b"\0TSOCK_DIR=%s\0" % os.fsencode(folder)
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if mine in b"\0" + _text("/proc/%s/environ" % pid):
            command = _text("/proc/%s/cmdline" % pid)
            if command and int(pid) not in _helpers():
                found[int(pid)] = command
    found.pop(os.getpid(), None)
    return found


def processes(folder):
    """What still runs with this folder when all that ends by itself has."""
    return _until_nothing(
        lambda: [
            "process %d, %s"
            % (pid, command.replace(b"\0", b" ").decode(errors="replace"))
            for pid, command in sorted(of_folder(folder).items())
        ]
    )


def sockets(folder):
    """What only a producer that was killed leaves in its folder.

    Others leave a log, and a record of their readers for the next producer.
    """
    ends = (".bus", ".door", ".lock", ".cpus")
    return _until_nothing(
        lambda: sorted(n for n in os.listdir(folder) if n.endswith(ends))
    )


class Audit:
    """What there was when it was made; left() is what has come since."""

    def __init__(self):
        self._folder = os.environ.get("TSOCK_DIR")
        self._before = self._now()

    def _now(self):
        found = set(_files(self._folder))
        for look in (_descriptors, _threads, _children, _memory):
            found.update(look())
        return found

    def _since(self):
        return sorted(self._now() - self._before)

    def left(self):
        return _until_nothing(self._since)
