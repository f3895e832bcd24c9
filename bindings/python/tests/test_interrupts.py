# SPDX-License-Identifier: MIT
"""Between two calls of the library Ctrl-C is seen: none of them waits long."""

import gc
import threading
import time

import pytest

import tsock
from conftest import INDEX, everything, indices
from tsock import interrupts

pytest.importorskip("numpy")

AT = {
    "tsock_begin_timed": 1,
    "tsock_next": 1,
    "tsock_leave_timed": 1,
    "tsock_resume": 3,
}


@pytest.fixture
def waits(monkeypatch):
    """By function, the milliseconds of each call."""
    called = {name: [] for name in AT}

    def watch(name):
        plain = getattr(tsock._ffi.lib, name)

        def watched(*arguments):
            called[name].append(arguments[AT[name]])
            return plain(*arguments)

        monkeypatch.setattr(tsock._ffi.lib, name, watched)

    for name in AT:
        watch(name)
    return called


@pytest.fixture
def leaving(monkeypatch):
    """leaving(code, ...): what leaving gives, call by call; the last again.

    It is told with the list of the calls that were made.
    """
    plain = tsock._ffi.lib.tsock_leave_timed
    calls = []

    def start(*codes):
        codes = list(codes)

        def leave(handle, ms):
            calls.append(ms)
            plain(handle, ms)
            code = codes.pop(0) if len(codes) > 1 else codes[0]
            if code is KeyboardInterrupt:
                raise code
            return code

        monkeypatch.setattr(tsock._ffi.lib, "tsock_leave_timed", leave)
        return calls

    return start


def load(**keywords):
    return tsock.DataLoader("toy", 16, framework="numpy", **INDEX, **keywords)


@pytest.mark.parametrize("timeout", [0, 60])
@pytest.mark.parametrize("between", ["hold", "leave"])
def test_no_call_waits_longer_than_a_slice(serve, waits, between, timeout):
    serve()
    loader = load(between=between, timeout=timeout)
    assert sorted(indices(loader)) == everything()
    some = iter(loader)
    next(some)
    state = loader.state_dict()
    some.close()
    loader.load_state_dict(state)
    next(iter(loader))
    loader.close()
    for name, of in waits.items():
        assert of and max(of) <= tsock.connection.SLICE_MS <= 50, name


def test_an_iterator_that_is_dropped_is_left_within_a_slice(serve, leaving):
    """Perhaps a Ctrl-C has ended the loop that had it."""
    serve()
    loader = load()
    iterator = iter(loader)
    next(iterator)
    calls = leaving(tsock.errors.EAGAIN)
    del iterator
    gc.collect()
    assert calls == [tsock.connection.SLICE_MS]
    loader.close()


def test_one_that_is_closed_is_left_with_patience(serve, leaving):
    serve()
    loader = load()
    iterator = iter(loader)
    next(iterator)
    calls = leaving(tsock.errors.EAGAIN, tsock.errors.EAGAIN, 0)
    iterator.close()
    assert len(calls) == 3
    loader.close()


def test_after_a_ctrl_c_while_leaving_nothing_is_waited_for(serve, leaving):
    serve()
    loader = load()
    iterator = iter(loader)
    next(iterator)
    calls = leaving(
        tsock.errors.EAGAIN, KeyboardInterrupt, tsock.errors.EAGAIN
    )
    with pytest.raises(KeyboardInterrupt):
        iterator.close()
    assert len(calls) == 2
    loader.close()
    assert len(calls) == 3


@pytest.mark.parametrize(
    "order, between, leaves",
    [
        ("philox", "leave", True),
        ("philox", "hold", False),
        ("philox", None, False),
        ("sequential", None, True),
        ("sequential", "hold", False),
    ],
)
def test_the_librarys_leaving_at_an_epochs_end_is_waited_for(
    serve, leaving, order, between, leaves
):
    serve("--order", order)
    loader = load(between=between)
    calls = leaving(tsock.errors.EAGAIN, tsock.errors.EAGAIN, 0)
    indices(loader)
    assert len(calls) == (3 if leaves else 0)
    loader.close()


@pytest.mark.parametrize("where", ["run", "with"])
def test_ctrl_c_waits_a_moment_for_a_loader_that_is_served(
    place, served, monkeypatch, where
):
    numpy = pytest.importorskip("numpy")
    server = served([numpy.zeros((4, 2), "f4")] * 3)
    joined, join = [], server._thread.join

    def note(seconds):
        joined.append(seconds)
        join(60)

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(server._thread, "join", note)
    with pytest.raises(KeyboardInterrupt):
        if where == "run":
            monkeypatch.setattr(server, "_drained", interrupt)
            server.run()
        else:
            with server:
                raise KeyboardInterrupt
    assert joined and max(joined) <= 0.05


def test_a_call_is_waited_for_by_no_lock_that_a_signal_may_leave(
    monkeypatch,
):
    """Nor does what is broken off keep the helper thread, or this one."""
    enter = threading.Condition.__enter__
    broken = []

    def broken_off(self):
        result = enter(self)
        if called.is_set() and threading.current_thread() is here:
            broken.append(self)
            raise KeyboardInterrupt
        return result

    class Called:
        at = False

        def is_set(self):
            return self.at

    here, called = threading.current_thread(), Called()

    def call():
        time.sleep(0.2)  # until the caller waits, and not for this thread
        called.at = True
        time.sleep(0.2)
        called.at = False
        return 7

    monkeypatch.setattr(threading.Condition, "__enter__", broken_off)
    assert interrupts.patiently(call) == 7 and not broken
