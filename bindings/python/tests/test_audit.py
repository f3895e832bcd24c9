# SPDX-License-Identifier: MIT
"""What a test leaves behind is found, whatever it is."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import audit
import tsock
from conftest import RAW, until

pytest.importorskip("numpy")


@pytest.fixture
def left(monkeypatch):
    """left() is what has come since the test began, without a wait."""
    monkeypatch.setattr(audit, "LIMIT", 0)
    return audit.Audit().left


def test_nothing_is_found_where_nothing_is_left(left):
    assert left() == []


def test_a_descriptor_is_found(left):
    fd = os.open("/dev/null", os.O_RDONLY)
    try:
        assert left() == ["descriptor %d, /dev/null" % fd]
    finally:
        os.close(fd)


def test_a_thread_is_found(left):
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="stays")
    thread.start()
    try:
        (found,) = left()
        assert "stays" in found
    finally:
        end.set()
        thread.join()


def test_a_child_is_found_until_it_was_waited_for(left):
    child = subprocess.Popen([sys.executable, "-c", ""])
    try:
        assert any("child %d, " % child.pid in one for one in left())
    finally:
        child.wait()
    assert left() == []


def test_a_batch_that_is_kept_is_found(serve, left):
    serve()
    loader = tsock.DataLoader("toy", 16, framework="numpy", **RAW)
    for kept in loader:
        break
    del loader
    assert any("memory " in one for one in left()), kept


def test_a_process_of_the_folder_is_found(place, monkeypatch):
    """The process is no child of ours, as a producer that a loader starts."""
    monkeypatch.setattr(audit, "LIMIT", 0)
    start = (
        "from subprocess import DEVNULL, Popen\n"
        "print(Popen(['sleep', '1000'], stdout=DEVNULL).pid)"
    )
    pid = int(subprocess.check_output([sys.executable, "-c", start]))
    try:
        assert audit.processes(place) == ["process %d, sleep 1000 " % pid]
    finally:
        os.kill(pid, signal.SIGKILL)
    until(lambda: audit.processes(place) == [])


def test_sockets_are_found(place, monkeypatch):
    monkeypatch.setattr(audit, "LIMIT", 0)
    for name in ("a.log", "a.readers", "a.lock", "b.door"):
        open(os.path.join(place, name), "w").close()
    assert audit.sockets(place) == ["a.lock", "b.door"]
    for name in ("a.lock", "b.door"):
        os.unlink(os.path.join(place, name))
