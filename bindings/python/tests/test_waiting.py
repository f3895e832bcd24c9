# SPDX-License-Identifier: MIT
"""Streams that nobody serves yet: which are waited for, and which are not."""

import os
import subprocess
import sys
import time

import pytest

import tsock
from conftest import N, finish, until
from test_attach import start  # noqa: F401 - a fixture
from tsock import attach, launch

numpy = pytest.importorskip("numpy")


def test_a_bare_name_starts_nothing(place):
    with pytest.raises(tsock.NoProducer, match="serves .toy. "):
        tsock.DataLoader("toy", wait=0.05)
    assert tsock.streams() == [] and os.listdir(place) == []


def test_a_wrong_name_fails_at_once_where_others_run(serve):
    serve(name="tulips")
    serve(name="roses")
    until(lambda: len(tsock.streams()) == 2)
    with pytest.raises(tsock.NoProducer) as caught:
        tsock.DataLoader("tulip")
    assert str(caught.value) == (
        "no stream 'tulip' runs here, but 'roses', 'tulips'; did you mean "
        "'tulips'? (wait=60 would wait for it, and root=DIR would start it)"
    )


def test_a_name_that_is_being_started_is_waited_for(place, serve):
    serve(name="tulips")
    until(tsock.streams)
    start = launch.Launch(None, "toy", [])
    seen = []

    def serves():
        other = os.open(start.log, os.O_RDWR)
        locked = start._lock(other)
        os.close(other)
        assert not locked, "the lock isn't held"
        attach.refuse_wrong_name("toy")
        seen.append(launch.is_starting("toy"))
        return True

    start.until(serves)
    assert seen == [True]
    with pytest.raises(tsock.NoProducer, match="no stream 'toy' runs here"):
        attach.refuse_wrong_name("toy")


def test_a_name_whose_producer_was_killed_is_waited_for(serve, script):
    serve(name="tulips")
    killed = serve()
    until(lambda: len(tsock.streams()) == 2)
    killed.process.kill()
    killed.process.wait()
    job = script(
        "import tsock\n"
        "print(len(tsock.DataLoader('toy', framework='numpy')))\n"
    )
    assert "waiting for producer toy" in job.stderr.readline()
    serve()
    assert finish(job)[0] == "%d\n" % N


def test_a_name_whose_producer_ended_is_a_wrong_one(serve):
    """Unless it left readers, which wait for the next producer."""
    serve(name="tulips")
    served = serve()
    until(lambda: len(tsock.streams()) == 2)
    reader = iter(tsock.DataLoader("toy", 8, framework="numpy"))
    next(reader)
    served.stop()
    assert served.process.returncode == 0
    attach.refuse_wrong_name("toy")
    reader.close()
    served = serve()
    until(lambda: len(tsock.streams()) == 2)
    served.stop()
    with pytest.raises(tsock.NoProducer, match="no stream 'toy' runs here"):
        attach.refuse_wrong_name("toy")


HOLDER = """
import fcntl, os, sys
lock = open(os.path.join(os.environ["TSOCK_DIR"], "toy.lock"), "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
os.unlink(lock.name)
"""


@pytest.fixture
def scanning(place):
    """A producer of "toy" that was started by hand, and scans still."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.stdin.close()
    process.wait()
    process.stdout.close()


def test_a_name_whose_producer_scans_is_waited_for(serve, scanning, script):
    serve(name="tulips")
    until(tsock.streams)
    job = script(
        "import tsock, tsock.attach\n"
        "print(len(tsock.DataLoader('toy', framework='numpy')))\n"
    )
    assert "waiting for producer toy" in job.stderr.readline()
    scanning.stdin.close()
    scanning.wait()
    serve()
    assert finish(job)[0] == "%d\n" % N


def test_a_scan_may_take_longer_than_the_wait(scanning, monkeypatch):
    """The loader waits for the scan, and gives up when the producer is gone."""
    monkeypatch.setattr(attach, "WAIT", 0.05)
    tries = []

    def connect(seconds):
        tries.append(seconds)
        if len(tries) == 3:
            scanning.stdin.close()
            scanning.wait()
        raise tsock.NoProducer("none")

    with pytest.raises(tsock.NoProducer):
        attach.attached(None, "toy", 1, attach.WAIT, connect)
    assert tries == [0.05] * 3


def test_one_that_is_ended_while_it_starts_leaves_nothing(serve, place):
    for _ in range(5):
        served = serve()
        while "toy.lock" not in os.listdir(place):
            assert served.process.poll() is None
        served.stop()
        assert served.process.returncode == 0
        assert os.listdir(place) == []


def test_root_starts_no_second_producer_while_one_scans(
    scanning, start, monkeypatch, caplog
):
    """The loader waits for the first, and starts its own when that is gone."""
    monkeypatch.setattr(launch, "_FIRST_WORD", 0)
    sleep = time.sleep

    def let_it_go(seconds):
        scanning.stdin.close()
        scanning.wait()
        sleep(seconds)

    monkeypatch.setattr(launch.time, "sleep", let_it_go)
    loader = start("toy")
    assert len(loader.dataset) == N
    assert "process %d starts it" % scanning.pid in caplog.text


def test_a_process_never_unlocks_what_it_serves_itself(served, script):
    """To look at a lock is to open its file, and closing that unlocks it."""
    served([numpy.zeros((4, 3))])
    assert launch.holder(None, "mine") == 0
    look = "import tsock.launch as l; print(l.holder(None, 'mine'))"
    assert finish(script(look))[0] == "%d\n" % os.getpid()


def test_what_it_served_once_another_process_may_serve(
    served, script, tmp_path
):
    """A process that had served the name never saw that others have it."""
    server = served([numpy.zeros((4, 3))])
    with pytest.raises(tsock.Error, match="already served by"):
        tsock.serve([numpy.zeros((4, 3))], "mine")
    assert launch.holder(None, "mine") == 0  # it is still this process's
    server.close()
    other = script(
        "import numpy, os, sys, time, tsock\n"
        "with tsock.serve([numpy.zeros((4, 3))], 'mine'):\n"
        "    print('serves', flush=True)\n"
        "    while not os.path.exists(sys.argv[1]):\n"
        "        time.sleep(0.02)\n",
        tmp_path / "seen",
    )
    assert other.stdout.readline() == "serves\n"
    assert launch.holder(None, "mine") == other.pid
    (tmp_path / "seen").touch()
    finish(other)


def test_a_wait_that_was_asked_for_is_kept(serve, script):
    serve(name="tulips")
    until(tsock.streams)
    process = script(
        "import tsock\n"
        "loader = tsock.DataLoader('toy', wait=60, framework='numpy')\n"
        "print(len(loader))\n"
    )
    assert "waiting for producer" in process.stderr.readline()
    serve()
    assert process.stdout.readline() == "%d\n" % N
