# SPDX-License-Identifier: MIT
"""Processes of the peers, for run.py and jobs.py.

Each peer's process leads a session, so that whatever it starts is found again:
to count its CPU seconds, to stop it between its turns, to end it.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))


class Missing(Exception):
    pass


class Failed(Exception):
    pass


def members(sessions):
    """The processes of these sessions."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                # The name may hold anything, a closing bracket too.
                fields = f.read().rpartition(")")[2].split()
        except (OSError, IndexError):
            continue
        if int(fields[3]) in sessions and fields[0] != "Z":
            found.append(int(pid))
    return found


def signal_all(sessions, number):
    for pid in members(sessions):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def too_late(*_):
    raise Failed("gave no images for long")


def handle_signals():
    """Failed when an alarm rings; SIGTERM ends this program in good order,
    with what it has started."""
    signal.signal(signal.SIGALRM, too_late)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


class Meter:
    """CPU seconds of sessions, of their processes that have ended as well."""

    def __init__(self):
        self.last = {}

    def seconds(self, sessions):
        for pid in members(sessions):
            try:
                # The kernel's number for a process's CPU clock.
                now = time.clock_gettime((~pid << 3) | 2)
            except OSError:
                continue
            self.last[pid] = max(now, self.last.get(pid, 0))
        return sum(self.last.values())


class Process:
    """One process of a peer, on some CPUs; it waits to be told what to do."""

    def __init__(self, command, cpus=None, log=None):
        def start():
            os.setsid()
            if cpus:
                os.sched_setaffinity(0, cpus)

        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log or subprocess.DEVNULL,
            preexec_fn=start,
        )
        self.session = self.process.pid

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed("ended with status %s" % self.process.wait())
        answer = json.loads(line)
        if "missing" in answer:
            raise Missing(answer["missing"])
        return answer

    def tell(self, images):
        self.process.stdin.write(b"%d\n" % images)
        self.process.stdin.flush()

    def end(self):
        """The end of its input ends it, by itself if it is quick."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        signal_all([self.session], signal.SIGCONT)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        signal_all([self.session], signal.SIGKILL)
        self.process.stdout.close()
        self.process.wait()


class Scratch:
    """A folder for a run: links to the images, sockets, packed sets."""

    def __init__(self, root, least):
        beside = os.environ.get("SCRATCH")
        self.folder = tempfile.mkdtemp(prefix="tsock-compare-", dir=beside)
        self.root = os.path.join(self.folder, "data")
        self.images = self.fill(root, least)
        os.environ["TSOCK_DIR"] = self.new("streams")
        os.chmod(os.environ["TSOCK_DIR"], 0o700)
        self.serial = 0

    def new(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path)
        return path

    def fill(self, root, least):
        """root's images, several times over if they are few: short epochs
        would measure how loaders start."""
        files = []
        for base, _, names in os.walk(root):
            files += [os.path.join(base, n) for n in names]
        if not files:
            raise Failed("no files in %s" % root)
        copies = -(-least // len(files))
        for path in files:
            target = os.path.join(self.root, os.path.relpath(path, root))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            stem, extension = os.path.splitext(target)
            first = "%s-0%s" % (stem, extension)
            shutil.copyfile(path, first)
            for i in range(1, copies):
                os.link(first, "%s-%d%s" % (stem, i, extension))
        return len(files) * copies

    def command(self, script, variant, form, threads, more=()):
        self.serial += 1
        scratch = self.new("%s-%d" % (script, self.serial))
        command = [sys.executable, os.path.join(HERE, script), self.root]
        command += ["--serve", "--variant", variant, "--form", form]
        command += ["--threads", str(threads), "--scratch", scratch]
        return command + list(more)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
