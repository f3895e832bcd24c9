# SPDX-License-Identifier: MIT
"""A small folder of images, and producers that serve it, for every test."""

import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

import audit

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKOUT = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
BUILD = os.path.abspath(
    os.environ.get("TSOCK_BUILD", os.path.join(CHECKOUT, "build"))
)
PRODUCER = os.path.join(BUILD, "bin", "tsock-producer")

sys.path.insert(0, os.path.join(CHECKOUT, "bindings", "python"))
os.environ.setdefault(
    "LIBTSOCK_PATH", os.path.join(BUILD, "lib", "libtsock.so.0.1")
)
os.environ.setdefault("TSOCK_PRODUCER", PRODUCER)

# The CPUs run several tests at once; a pool of threads in each of them would
# spend its time waiting.
os.environ.setdefault("OMP_NUM_THREADS", "1")

AUDITED = os.environ.get("TSOCK_TEST_AUDIT") != "0"  # see audit.py

N = 203  # images: no batch size here divides it
SIZE = 32

RAW = dict(dtype="uint8", layout="hwc")
INDEX = dict(fields=("index",), **RAW)


def indices(loader):
    """What an epoch visits."""
    return [int(i) for (index,) in loader for i in index]


def everything():
    return list(range(N))


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """An ImageFolder of N small JPEG files, of odd sizes, in 3 classes."""
    image = pytest.importorskip("PIL.Image")
    root = tmp_path_factory.mktemp("images")
    for i in range(N):
        folder = root / ("class%d" % (i % 3))
        folder.mkdir(exist_ok=True)
        width, height = 40 + i % 13, 40 + i % 7
        pixels = bytes(
            (x * (3 + i % 5) + y * (7 + c) + i * 29) & 255
            for y in range(height)
            for x in range(width)
            for c in range(3)
        )
        image.frombytes("RGB", (width, height), pixels).save(
            folder / ("%03d.jpg" % i), quality=90
        )
    return root


def end_all(folder):
    """End the producers that loaders have started with this TSOCK_DIR.

    Also one that is just starting, and serves only when another has ended.
    """
    pids = [
        pid
        for pid, command in audit.of_folder(folder).items()
        if os.path.basename(command.split(b"\0")[0]) == b"tsock-producer"
    ]
    for pid in pids:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
    until(lambda: not any(map(runs, pids)), what="the producers' end")


def runs(pid):
    """Whether the process lives, whoever has still to wait for it."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def place(monkeypatch, request):
    """A folder for sockets: short, since a socket's path is."""
    killed = request.node.get_closest_marker("kills")
    folder = tempfile.mkdtemp(prefix="tsock-")
    os.chmod(folder, 0o700)
    monkeypatch.setenv("TSOCK_DIR", folder)
    yield folder
    end_all(folder)
    left = audit.sockets(folder) if AUDITED and not killed else []
    if AUDITED and getattr(request.node, "passed", False):
        left += audit.processes(folder)
    shutil.rmtree(folder, ignore_errors=True)
    assert not left, "the test left " + ", ".join(left)


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "minutes(n): how long the test may take, instead of three"
    )
    config.addinivalue_line(
        "markers", "kills: the last producer is killed, and leaves its sockets"
    )
    # Shells have what runs in the background ignore Ctrl-C, which the programs
    # that tests start would inherit.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.when == "call":
        item.passed = report.passed


@pytest.fixture(autouse=True)
def nothing_is_left(request):
    """What a test opens and starts is gone after it.

    A test that fails is not looked at, since its locals are still held.
    """
    before = audit.Audit() if AUDITED else None
    yield
    if before and getattr(request.node, "passed", False):
        left = before.left()
        assert not left, "the test left:\n" + "\n".join(left)


@pytest.fixture(autouse=True)
def no_test_hangs(request, nothing_is_left):
    """Three minutes are too long for any of them, on whatever machine.

    But for those which load a large framework in several processes.
    """
    marker = request.node.get_closest_marker("minutes")
    minutes = marker.args[0] if marker else 3

    def too_long(*_):
        raise TimeoutError("the test took longer than %d minutes" % minutes)

    old = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(60 * minutes)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


def running():
    """The names of the streams in this test's folder."""
    import tsock

    return {stream.name for stream in tsock.streams()}


class Served:
    """A producer that runs."""

    def __init__(self, name, command, log):
        self.name = name
        self.log = log
        with open(log, "wb") as out:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def begun(self):
        """Is its stream there, or has it ended already?"""
        return self.process.poll() is not None or self.name in running()

    def ended(self):
        """Its exit status, when it has ended by itself."""
        return self.process.wait(150)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
                raise


@pytest.fixture
def serve(images, place, tmp_path):
    """serve(*options) starts a producer of the stream "toy"."""
    started = []

    def start(*options, name="toy", root=images):
        served = Served(
            name,
            [
                PRODUCER,
                "--dataset",
                "imagefolder",
                "--root",
                str(root),
                "--name",
                name,
                "--threads",
                "1",
                "--no-cache",
            ]
            # A transform's text says the size.
            + ([] if "--transform" in options else ["--size", str(SIZE)])
            + [str(o) for o in options],
            tmp_path / ("producer%d.log" % len(started)),
        )
        started.append(served)
        # Where other streams run, a name that isn't there is an error at once.
        if len({other.name for other in started} | running()) > 1:
            for other in started:
                until(other.begun, what="stream %r" % other.name)
        return served

    yield start
    for served in started:
        served.stop()


@pytest.fixture
def served(place):
    """served(loader, ...) is tsock.serve(), closed after the test."""
    import tsock

    running = []

    def start(loader, name="mine", **keywords):
        running.append(tsock.serve(loader, name, **keywords))
        return running[-1]

    yield start
    for server in running:
        server.close()
    running.clear()  # closed ones hold their loaders, and those workers


@pytest.fixture
def script(tmp_path, place):
    """script(text) runs Python in a process of its own."""
    running = []

    def run(text, *arguments, **environment):
        path = tmp_path / ("script%d.py" % len(running))
        path.write_text(text)
        process = subprocess.Popen(
            [sys.executable, str(path)] + [str(a) for a in arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(
                os.environ,
                PYTHONPATH=os.path.join(CHECKOUT, "bindings", "python"),
                **environment
            ),
        )
        running.append(process)
        return process

    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def warm_python():
    """The path of a python with torch imported already (warm.py).

    Where there is no torch, that of python.
    """
    if importlib.util.find_spec("torch") is None:
        yield sys.executable
        return
    # Looks at sys.executable, once.
    import multiprocessing.spawn  # noqa: F401

    folder = tempfile.mkdtemp(prefix="tsock-")
    executable = os.path.join(folder, "python")
    socket = os.path.join(folder, "socket")
    command = [sys.executable, "-IS", os.path.join(HERE, "warm.py"), socket]
    with open(executable, "w") as f:
        f.write('#!/bin/sh\nexec %s "$@"\n' % shlex.join(command))
    os.chmod(executable, 0o700)
    server = subprocess.Popen(
        [sys.executable, os.path.join(HERE, "warm.py"), "--serve", socket]
        + [executable, "torch", "torchvision"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout.readline() == b"ready\n"
    yield executable
    server.communicate()
    shutil.rmtree(folder)


@pytest.fixture
def warm(warm_python, monkeypatch):
    """What runs sys.executable runs a python with torch imported already."""
    monkeypatch.setattr(sys, "executable", warm_python)


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """build("seen.c") is the program, compiled as its first lines say."""
    lib = os.path.join(BUILD, "lib")
    folder = tmp_path_factory.mktemp("examples")
    made = {}

    def compile_it(source):
        if source in made:
            return made[source]
        path = os.path.join(CHECKOUT, "examples", source)
        with open(path) as f:
            line = re.search(r"^ \*\s+((cc|c\+\+) .*)$", f.read(), re.M)
        words = line.group(1).split()
        compiler = os.environ.get({"cc": "CC", "c++": "CXX"}[words[0]])
        words[0] = shutil.which(compiler or words[0])
        if not words[0]:
            pytest.skip("no compiler for %s" % source)
        out = str(folder / source.replace(".", "-"))
        words[words.index(source)] = path
        words[words.index("-o") + 1] = out
        include = os.path.join(CHECKOUT, "include")
        subprocess.run(
            words
            + ["-I" + include, "-Wall", "-Wextra", "-Werror"]
            + ["-L" + lib, "-Wl,-rpath," + lib],
            check=True,
        )
        made[source] = out
        return out

    return compile_it


@pytest.fixture
def run():
    """run(program, arguments) in the background."""
    running = []

    def start(*command):
        process = subprocess.Popen(
            [str(c) for c in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def finish(process, timeout=150):
    """Its output, once it ended well."""
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, (process.returncode, out, err)
    return out, err


def until(condition, timeout=150, what="it"):
    """Poll until condition() holds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "%s did not happen" % what
        time.sleep(0.01)
