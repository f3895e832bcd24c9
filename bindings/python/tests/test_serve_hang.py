# SPDX-License-Identifier: MIT
"""tsock.serve(): a loader that keeps its jobs waiting is told of."""

import logging
import threading

import pytest

from conftest import until
from test_serve_loader import cut, labels, loader_of
from tsock.serving import watch
from tsock.serving.feed import Feed

numpy = pytest.importorskip("numpy")


def said(caplog):
    return [
        r.getMessage()
        for r in caplog.records
        if r.levelno == logging.WARNING and "no batch" in r.getMessage()
    ]


class Stream:
    """A stream with so many jobs that wait, which is told of what fails."""

    name = "mine"
    waiting = 1
    error = None

    def __init__(self):
        self.said = []

    def stats(self):
        rows = [{"waiting": int(i < self.waiting)} for i in range(3)]
        return {"rows": rows}

    def fail(self, error):
        self.error = error

    def doing(self, what):
        self.said.append(what)


@pytest.fixture
def watched():
    """watched(timeout) is a stream, its loader's feed and their watch."""

    def make(timeout=0.0):
        feed = Feed([], lambda batch: batch, "mine")
        stream = Stream()
        return stream, feed, watch.Watch(stream, feed, timeout, stream.fail)

    return make


def test_a_minute_without_a_batch_is_told_once(watched, caplog):
    stream, feed, watcher = watched()
    watcher.look(1e9)  # the loader wasn't asked
    feed.asked = 1000.0
    for now in (1000, 1059, 1060):
        watcher.look(now)
    assert not said(caplog)
    for now in (1061, 1062, 5000):
        watcher.look(now)
    (line,) = said(caplog)
    assert line.startswith(
        "stream mine: the loader has given no batch for 61 s, and 1 of its "
        "consumers waits for one; "
    )
    assert "timeout=SECONDS" in line
    # The loader gave a batch, and hangs again.
    feed.asked, stream.waiting = 6000.0, 2
    watcher.look(6059)
    watcher.look(6075)
    watcher.look(6099)
    assert len(said(caplog)) == 2
    assert "for 75 s, and 2 of its consumers wait for" in said(caplog)[1]
    assert stream.error is None


def test_nobody_is_told_while_nobody_waits(watched, caplog):
    stream, feed, watcher = watched()
    feed.asked, stream.waiting = 1000.0, 0
    watcher.look(2000)
    assert not said(caplog)
    stream.waiting = 1
    watcher.look(2001)
    assert len(said(caplog)) == 1


def test_a_timeout_below_a_minute_comes_instead(watched, caplog):
    stream, feed, watcher = watched(timeout=30)
    feed.asked = 1000.0
    watcher.look(1030)
    assert stream.error is None
    watcher.look(1031)
    assert "no batch for 30 s" in str(stream.error)
    assert not said(caplog)


def read(loader, into):
    thread = threading.Thread(target=lambda: into.extend(loader))
    thread.start()
    return thread


def test_a_loader_that_hangs_is_told_of_and_goes_on(
    served, caplog, monkeypatch
):
    monkeypatch.setattr(watch, "PATIENCE", 0.05)
    gate = threading.Event()

    def hangs():
        for i, batch in enumerate(cut(labels)):
            if i == 3:
                gate.wait()
            yield batch

    server = served(hangs, length=103, epochs=1)
    got = []
    job = read(loader_of(batch_size=16), got)
    try:
        until(lambda: said(caplog), what="the warning")
    finally:
        gate.set()
        job.join(150)
    assert said(caplog)[0].startswith("stream mine: the loader has given no")
    assert sum(len(batch) for batch in got) == 103
    assert server.error is None


def test_a_producers_loop_that_stops_is_told_of(place, caplog, monkeypatch):
    """The loop over a TensorProducer hangs, and not the loader."""
    torch = pytest.importorskip("torch")
    from tsock.tensorsocket import TensorConsumer, TensorProducer

    batches = [torch.full((8,), i) for i in range(4)]
    got = []
    with TensorProducer(batches) as producer:
        steps = iter(producer)
        next(steps)
        job = read(TensorConsumer(batch_size=8, device="cpu"), got)
        try:
            until(lambda: producer._paced.tsock_stalled, what="the loop's turn")
            monkeypatch.setattr(watch, "PATIENCE", 0.05)
            until(lambda: said(caplog), what="the warning")
        finally:
            for _ in producer:
                pass
            job.join(150)
    line = said(caplog)[0]
    assert "the loop over the TensorProducer has asked for no batch" in line
    assert "join()" in line
    assert len(got) == 4


def test_a_producers_loop_that_has_ended_is_told_of_as_such(place, caplog):
    """One consumer wants more, while join() waits for another one."""
    torch = pytest.importorskip("torch")
    from tsock.tensorsocket import TensorConsumer, TensorProducer

    with TensorProducer([torch.full((8,), i) for i in range(4)]) as producer:
        slow = TensorConsumer(batch_size=8, device="cpu")
        next(slow)
        for _ in producer:
            pass
        joining = threading.Thread(target=producer.join)
        joining.start()
        feed = producer.server._feed
        until(lambda: producer._paced.is_joined and producer._paced.is_whole)
        until(lambda: producer._paced.tsock_stalled)
        # Another consumer would be seen as this stream's is.
        watcher = watch.Watch(Stream(), feed, 0.0, lambda error: None)
        watcher.look(feed.asked + 61)
        assert len(list(slow)) == 3
        joining.join(150)
    (line,) = said(caplog)
    assert "has ended, with no batch for 61 s" in line
    assert "join() waits for the other" in line


def test_who_waits_hears_that_it_is_for_the_loader(watched):
    stream, feed, watcher = watched()
    feed.asked = 1000.0
    for now in (1001, 1003, 1010):
        watcher.look(now)
    assert stream.said == ["waiting for its loader's next batch"]
    feed.asked = None
    watcher.look(1011)
    watcher.look(1012)
    assert stream.said[1:] == [None]
