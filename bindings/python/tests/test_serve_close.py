# SPDX-License-Identifier: MIT
"""tsock.serve(): what close() and Ctrl-C wait for, and what they don't."""

import os
import signal
import threading

import pytest

import tsock
from conftest import until
from test_serve_loader import N, cut, labels, loader_of
from tsock.serving import copiers

numpy = pytest.importorskip("numpy")


def lost(loader):
    with pytest.raises(tsock.ProducerLost):
        while True:
            list(loader)


@pytest.fixture
def threads():
    """threads() are those that began since, and haven't ended."""
    before = set(threading.enumerate())
    return lambda: set(threading.enumerate()) - before


@pytest.mark.parametrize("where", ["loader", "transform"])
def test_a_loader_that_hangs_is_not_waited_for(served, threads, where):
    """close() returns, and the name is free, while it hangs."""
    gate, hanging = threading.Event(), threading.Event()

    def wait(batch):
        if batch[0]:
            hanging.set()
            gate.wait()
        return batch

    def loader():
        for batch in cut(labels):
            yield wait(batch) if where == "loader" else batch

    server = served(
        loader, length=N, transform=wait if where == "transform" else None
    )
    job = loader_of(batch_size=16)
    iterator = iter(job)
    try:
        assert next(iterator).tolist() == labels(range(16)).tolist()
        until(hanging.is_set)
        server.close()
        assert server.closed and not gate.is_set()
        lost(iterator)
        with tsock.serve(cut(labels), "mine"):
            assert sum(len(b) for b in loader_of(batch_size=20)) == N
    finally:
        gate.set()
    until(lambda: not threads(), what="the end of the loader's thread")


def test_a_full_ring_is_not_waited_for(served, threads):
    """The thread that waits for room ends, and has done with the loader."""
    ended = threading.Event()

    def loader():
        try:
            yield from cut(labels, 1000, 10)
        finally:
            ended.set()

    server = served(loader, length=1000, ring=40, max_batch=10)
    job = loader_of(batch_size=10)
    iterator = iter(job)
    next(iterator)
    until(lambda: server.stats()["claimed"] == server.stats()["limit"])
    server.close()
    until(ended.is_set, what="the end of the loader's iterator")
    until(lambda: not threads(), what="the end of the threads")
    lost(iterator)


def test_a_server_may_be_closed_again_and_by_several_threads(served):
    """From the fourth time on it waited for ever."""
    server = served(cut(labels), ring=40, max_batch=10)
    closing = [
        threading.Thread(target=server.close, daemon=True) for _ in range(4)
    ]
    for thread in closing:
        thread.start()
    for thread in closing:
        until(lambda: not thread.is_alive(), what="the end of close()")
    assert server.closed and not tsock.streams()
    for _ in range(9):
        server.close()
    server.run()  # has nothing to wait for


HANGS = """
import sys, threading, numpy, tsock

def hang(when):
    if when == sys.argv[1]:
        print("hangs", flush=True)
        threading.Event().wait()

def loader():
    hang("first")
    yield numpy.zeros((5, 3))
    hang("second")
    yield numpy.zeros((5, 3))

class Counted:
    def __iter__(self):
        return loader()

# "counted": it hangs in the pass that serve() makes to count.
length = None if sys.argv[2] == "counted" else 10
with tsock.serve(Counted(), "mine", length=length) as server:
    print("serving", flush=True)
    server.run()
"""


@pytest.mark.parametrize(
    "when, how",
    [("first", "given"), ("second", "given"), ("second", "counted")],
)
def test_ctrl_c_ends_a_process_whose_loader_hangs(place, script, when, how):
    process = script(HANGS, when, how)
    is_there = (when, how) == ("second", "given")
    if is_there:
        assert process.stdout.readline() == "serving\n"
        job = iter(loader_of(batch_size=5))
        next(job)
    assert process.stdout.readline() == "hangs\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=150)
    assert process.returncode and err.strip().endswith("KeyboardInterrupt")
    if is_there:
        lost(job)
    assert not tsock.streams() and os.listdir(place) == []


def test_a_call_that_a_signal_has_broken_off_is_not_waited_for(served):
    """What a handler raises may come after the call has begun to count."""
    server = served(cut(labels))

    def raise_in_call():
        server._handle.__enter__()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        raise_in_call()
    server.close()
    assert server.closed


def test_who_closes_second_waits_for_the_first(place, monkeypatch):
    """As `with` does, where run() ends in a thread: then the name is free."""
    closes, go = threading.Event(), threading.Event()
    close = copiers._lib.tsock_serve_close

    def slow(server):
        closes.set()
        go.wait(60)
        close(server)

    class Library:
        tsock_serve_close = staticmethod(slow)

        def __getattr__(self, name):
            return getattr(tsock._ffi.lib, name)

    server = tsock.serve([numpy.ones((4, 2))], "mine")
    monkeypatch.setattr(copiers, "_lib", Library())
    first = threading.Thread(target=server.close)
    first.start()
    assert closes.wait(60)
    done = []
    second = threading.Thread(target=lambda: done.append(server.close()))
    second.start()
    second.join(0.5)
    assert not done and second.is_alive()
    go.set()
    first.join()
    second.join()
    assert done == [None] and server.closed
    server.close()
    with tsock.serve([numpy.ones((4, 2))], "mine"):
        pass

BROKEN_OFF = """
import sys, threading, numpy, tsock

enter = threading.Condition.__enter__
armed = False

def broken_off(self):
    result = enter(self)
    # As what a signal handler raises, at the worst place there is.
    if armed and threading.current_thread() is threading.main_thread():
        sys.exit(3)
    return result

threading.Condition.__enter__ = broken_off
with tsock.serve([numpy.ones((4, 2))], "mine", epochs=1) as server:
    close = server.close

    def disarm():
        global armed
        armed = False
        close()

    server.close = disarm
    armed = True
    print("serving", flush=True)
    server.run()
"""


def test_a_signal_handler_that_raises_leaves_no_lock(place, script):
    """run() waits by no Event or Condition, whose lock that would leave taken:
    close() then waited for it for ever."""
    process = script(BROKEN_OFF)
    assert process.stdout.readline() == "serving\n"
    list(loader_of(batch_size=4))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
