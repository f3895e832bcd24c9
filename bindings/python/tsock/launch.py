# SPDX-License-Identifier: MIT
"""A stream's server as a program of its own: it outlives the job that started it.

The program, tsock-producer or the one that serves a loader of Python's, has a
session of its own, no descriptor of this process, and a log file in the folder
of the sockets; the lock on that file says which process starts the program.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import select
import stat
import struct
import subprocess
import time
from typing import Callable, Mapping, Optional, Sequence

from . import errors
from .options import command_line
from .producer import find_program

_log = logging.getLogger("tsock")

MOST_LOG = 1 << 20  # bytes; a longer log of earlier runs is emptied
_FIRST_WORD, _THEN = 5.0, 60.0  # seconds until somebody who waits is told

# The program's parent ends at once, so that it is nobody's child here: no
# zombie is left, and no wait() of the job's own meets it.
_DETACH = 'exec 3>&1 >>"$0" 2>&1; "$@" 3>&- & echo $! >&3'


def folder_of_sockets() -> str:
    """Where a producer that is started here puts its sockets."""
    given = os.environ.get("TSOCK_DIR")
    if given:
        return os.path.abspath(given)
    run = os.environ.get("XDG_RUNTIME_DIR", "")
    if run.startswith("/"):
        try:
            if os.stat(run).st_uid == os.geteuid():
                return os.path.join(run.rstrip("/"), "tsock")
        except OSError:
            pass
    return "/tmp/tsock-%d" % os.geteuid()


def make_folder(path: str, given: bool) -> None:
    """As the producer makes it: for this user alone."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as e:
        raise errors.Error(
            "the folder for streams' sockets can't be made: %s" % e
        ) from e
    status = os.stat(path) if given else os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise errors.Error(
            "%s, where streams have their sockets, is not a folder of this "
            "user; choose another by TSOCK_DIR" % path
        )


def log_path(folder: Optional[str], name: str) -> str:
    return os.path.join(folder or folder_of_sockets(), name + ".log")


# How the program begins its lines: those with a level are its log's.
_LINE = re.compile(
    r"^tsock-\w+: ([0-9-]{10} [0-9:]{8} (?P<level>\w+): )?"
)


def _last_line(path: str, start: int) -> tuple[str, Optional[str]]:
    """The last line of a log from there on, without program and time, and its
    level, which is "error" where it has none; None of a log without lines."""
    try:
        with open(path, "rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(start, size - 65536))
            text = log.read().decode("utf-8", "replace")
    except OSError as e:
        return "its log can't be read: %s" % e, "error"
    lines = text.split("\n")
    lines = [line.strip() for line in lines if line.strip()]
    if not lines:
        return "it said nothing", None
    found = _LINE.match(lines[-1])
    if not found:
        return lines[-1], "error"
    return lines[-1][found.end() :], found["level"] or "error"


def last_line(path: str, start: int = 0) -> str:
    """The last line of a log from there on, without program and time."""
    return _last_line(path, start)[0]


def log_of(pid: int) -> Optional[str]:
    """The file to which that process writes its log, if it is a producer."""
    try:
        with open("/proc/%d/comm" % pid) as f:
            if f.read().strip() != "tsock-producer":
                return None
        path = os.readlink("/proc/%d/fd/2" % pid)
        return path if stat.S_ISREG(os.stat(path).st_mode) else None
    except OSError:
        return None


# The locks of what this process serves: closing any descriptor of such a file
# would unlock it.
_locks_here: list[str] = []


def _lock_path(folder: Optional[str], name: str) -> str:
    return os.path.join(folder or folder_of_sockets(), name + ".lock")


def serves_here(name: str) -> Callable[[], None]:
    """Note that this process is about to serve that name, or path; returns a
    function to be called when it no longer does."""
    folder, _, base = name.rpartition("/")
    path = _lock_path(folder or None, base)
    _locks_here.append(path)
    return lambda: _locks_here.remove(path)


def holder(folder: Optional[str], name: str) -> int:
    """Another process that has locked the name, to serve it; or 0."""
    path = _lock_path(folder, name)
    if path in _locks_here:
        return 0
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        # struct flock of 64-bit Linux.
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        lock = fcntl.fcntl(fd, fcntl.F_GETLK, lock)
        kind, _, _, _, pid = struct.unpack("hhqqi4x", lock)
    except OSError:
        return 0
    finally:
        os.close(fd)
    # One in another namespace of process ids has none here.
    return 0 if kind == fcntl.F_UNLCK else max(int(pid), 1)


def is_starting(name: str) -> bool:
    """Does another process start it right now, as far as one can see?"""
    if holder(None, name):
        return True
    try:
        fd = os.open(log_path(None, name), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    finally:
        os.close(fd)
    return False


def _folders() -> list[str]:
    """Where a stream may have its sockets, if its name says no folder."""
    folders = [folder_of_sockets()]
    if not os.environ.get("TSOCK_DIR"):
        user = os.geteuid()
        folders += ["/run/user/%d/tsock" % user, "/tmp/tsock-%d" % user]
    return folders


def was_cut_off(name: str) -> bool:
    """Did a producer of that name end with readers, or without taking its
    files away?  Then another one may be about to come."""
    return any(
        os.path.lexists(os.path.join(folder, name + end))
        for folder in _folders()
        for end in (".door", ".bus", ".lock", ".readers")
    )


def environment(folder: Optional[str]) -> dict[str, str]:
    """This job's, less what is its own affair.

    The producer serves other jobs too, on other GPUs.  A MIG instance has to
    be named: it would see no other.
    """
    env = dict(os.environ)
    if not env.get("CUDA_VISIBLE_DEVICES", "").startswith("MIG"):
        env.pop("CUDA_VISIBLE_DEVICES", None)
    if folder or env.get("TSOCK_DIR"):
        env["TSOCK_DIR"] = folder or os.path.abspath(env["TSOCK_DIR"])
    return env


def producers_command(name: str, checked: Mapping[str, str]) -> list[str]:
    """The command line of tsock-producer with these options."""
    program = find_program()
    if "/" in program:
        program = os.path.abspath(program)
    return command_line(program, name, checked)


class Launch:
    """One start of the program that serves a stream.

    folder      of its sockets; None is the usual one
    command     its words
    program     what users call the program
    """

    def __init__(
        self,
        folder: Optional[str],
        name: str,
        command: Sequence[str],
        program: str = "tsock-producer",
    ) -> None:
        given = folder is not None or bool(os.environ.get("TSOCK_DIR"))
        self.folder = os.path.abspath(folder) if folder else None
        self.command = list(command)
        self._name = name
        self._program = program
        make_folder(self.folder or folder_of_sockets(), given)
        self.log = log_path(self.folder, name)
        self._told = time.monotonic() + _FIRST_WORD
        # True if the producer ended without saying why: it was killed.
        self.killed = False

    def until(self, serves: Callable[[], bool]) -> None:
        """Start it, unless another process does; returns once it serves."""
        fd = os.open(
            self.log,
            os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o600,
        )
        try:
            while not self._lock(fd):
                if serves():
                    return
                self._tell("another process starts it")
                time.sleep(0.05)
            while not serves():
                pid = holder(self.folder, self._name)
                if not pid:
                    self._start(fd, serves)
                    break
                # One that was started by hand, and scans.
                self._tell("process %d starts it" % pid)
                time.sleep(0.05)
        finally:
            # A process that was forked meanwhile has the descriptor, too.
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    @staticmethod
    def _lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _start(self, fd: int, serves: Callable[[], bool]) -> None:
        if os.fstat(fd).st_size > MOST_LOG:
            os.ftruncate(fd, 0)
        begin = os.fstat(fd).st_size
        pid = self.run()
        _log.info(
            "started %s (process %d) for stream %r; its log is %s",
            self._program,
            pid,
            self._name,
            self.log,
        )
        alive = _Alive(pid)
        try:
            pause = 0.01
            while not serves():
                if alive.ended(pause):
                    # Perhaps because another one had the name by then.
                    if not self._others(serves):
                        raise self._err_ended(begin)
                    time.sleep(pause)
                pause = min(pause * 1.5, 0.25)
                self._tell(last_line(self.log, begin))
        finally:
            alive.close()

    def _err_ended(self, begin: int) -> errors.Error:
        said, level = _last_line(self.log, begin)
        self.killed = level != "error"
        if self.killed and level:
            said = "perhaps killed; its last words: " + said
        return errors.NoProducer(
            "%s was started for stream %r and ended: %s; its log is %s"
            % (self._program, self._name, said, self.log)
        )

    def _others(self, serves: Callable[[], bool]) -> bool:
        """Does another process serve it, or begin to?"""
        return holder(self.folder, self._name) > 0 or serves()

    def run(self) -> int:
        """Start the program, detached; its process's number."""
        done = subprocess.run(
            ["/bin/sh", "-c", _DETACH, self.log] + self.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=environment(self.folder),
            start_new_session=True,
        )
        if done.returncode or not done.stdout.strip().isdigit():
            said = done.stderr.decode("utf-8", "replace").strip()
            raise errors.NoProducer(
                "%s can't be started: %s"
                % (self._program, said or "no shell")
            )
        return int(done.stdout)

    def _tell(self, what: str) -> None:
        if time.monotonic() < self._told:
            return
        self._told = time.monotonic() + _THEN
        _log.warning(
            "waiting for the producer of stream %r: %s; its log is %s",
            self._name,
            what,
            self.log,
        )


class _Alive:
    """A process that is no child of this one: does it still run?"""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._fd = -1
        self._gone = False
        try:
            self._fd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._gone = True
        except OSError:
            pass  # no such call here

    def ended(self, seconds: float) -> bool:
        """Wait so long for its end."""
        if self._gone:
            return True
        if self._fd >= 0:
            poll = select.poll()
            poll.register(self._fd, select.POLLIN)
            return bool(poll.poll(seconds * 1000))
        time.sleep(seconds)
        return not os.path.exists("/proc/%d" % self._pid)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
