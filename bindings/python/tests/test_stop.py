# SPDX-License-Identifier: MIT
"""tsock.stop(): a stream ends for good, and who read it doesn't begin it anew."""

import os
import subprocess

import pytest

import tsock
from conftest import INDEX, N, PRODUCER, indices, runs, until
from test_attach import pid_of, start  # noqa: F401 - a fixture

numpy = pytest.importorskip("numpy")

READS = """
import sys, tsock
loader = tsock.DataLoader("toy", 8, root=sys.argv[1], size=32, threads=1)
try:
    while True:
        for batch in loader:
            if sys.stdout:
                print("reads", flush=True)
                sys.stdout = None
except tsock.StreamEnded as e:
    print(e, file=sys.stderr, flush=True)
try:
    # Nor does one that makes a loader for each epoch.
    next(iter(
        tsock.DataLoader("toy", 8, root=sys.argv[1], size=32, threads=1)
    ))
except tsock.StreamEnded as e:
    print("again:", e, file=sys.stderr, flush=True)
"""


def ask(*arguments):
    return subprocess.run(
        [PRODUCER, "--stop", "toy", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_nobody_who_read_it_starts_it_again(place, script, images):
    job = script(READS, images)
    assert job.stdout.readline() == "reads\n"
    first = pid_of()
    with pytest.raises(tsock.Refused) as caught:
        tsock.stop("toy")
    assert "1 process reads the stream: %d (" % job.pid in str(caught.value)
    assert str(caught.value).endswith("force=True stops it all the same")
    said = ask()
    assert said.returncode == 69 and "%d (" % job.pid in said.stderr
    assert "--force stops it all the same" in said.stderr
    assert runs(first) and job.poll() is None
    said = ask("--force")
    assert (said.returncode, said.stdout) == (0, "stopped toy\n"), said
    _, errors = job.communicate(timeout=150)
    lines = errors.splitlines()
    assert lines[0].startswith("the stream 'toy' was stopped by process ")
    assert "(tsock-producer) at " in lines[0]
    # Between them it may say that it waits, while the producer still closes.
    assert lines[-1] == "again: " + lines[0] and job.returncode == 0
    until(lambda: not runs(first))
    assert tsock.streams() == []
    # A job that begins now is another matter.
    with tsock.DataLoader(
        "toy", 8, root=images, size=32, threads=1, **INDEX
    ) as loader:
        assert sorted(indices(loader)) == list(range(N))
        assert pid_of() != first


def test_what_a_process_stopped_itself_it_may_begin_anew(start):
    loader = start()
    assert sorted(indices(loader)) == list(range(N))
    first = pid_of()
    with pytest.raises(tsock.Refused):
        tsock.stop("toy")  # this loader has its next epoch in view
    tsock.stop("toy", force=True)
    with pytest.raises(tsock.StreamEnded, match="was stopped by process"):
        while True:
            indices(loader)  # what was made is read to the end
    assert not runs(first)
    assert sorted(indices(start())) == list(range(N))


def test_a_served_loader_is_closed(served):
    server = served([numpy.ones((4, 2))])
    job = tsock.DataLoader("mine", 4)
    list(job)
    tsock.stop("mine", force=True)
    until(lambda: server.closed, what="the end of the server")
    with pytest.raises(tsock.StreamEnded, match="was stopped by"):
        while True:
            list(job)
    until(lambda: not tsock.streams(), what="the end of the stream")
    assert server.error is None


def test_what_is_not_there_can_not_be_stopped(place):
    with pytest.raises(tsock.NoProducer, match="serves a stream called toy"):
        tsock.stop("toy")
    assert ask().returncode == 69
    assert os.listdir(place) == []


def test_a_supervised_producer_is_not_started_again(serve):
    served = serve("--supervise")
    until(tsock.streams)
    assert ask().returncode == 0
    assert served.ended() == 0
    assert tsock.streams() == []
