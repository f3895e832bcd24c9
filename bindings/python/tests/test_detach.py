# SPDX-License-Identifier: MIT
"""A loader that others wait for is detached, and told what it missed."""

import threading

import pytest

tsock = pytest.importorskip("tsock")

RING = ("--ring", 64, "--max-batch", 16, "--join-window", 32)
FIELDS = {"fields": ("image", "label", "index"), "framework": "numpy"}


def read_some(batches, read, done, failures):
    """A job that reads so much, which is more than the rings hold, and stays.

    Nobody waits for it, so that it misses nothing itself.
    """
    try:
        with tsock.DataLoader("toy", 16, **FIELDS) as loader:
            iterator = iter(loader)
            for _ in range(batches):
                next(iterator)
            read.set()
            done.wait()
            assert loader.missed == 0
    except BaseException as e:
        failures.append(e)
        read.set()


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_a_loader_that_others_wait_for_misses_samples(serve, dtype):
    serve(*RING, "--slow", "detach:0.3")
    read, done, failures = threading.Event(), threading.Event(), []
    with tsock.DataLoader("toy", 8, dtype=dtype, **FIELDS) as loader:
        iterator = iter(loader)
        batch = next(iterator)
        before = [part.tobytes() for part in batch]
        other = threading.Thread(
            target=read_some, args=(9, read, done, failures)
        )
        other.start()
        try:
            assert read.wait(150)
            assert not failures
            stats = tsock.query("toy")
            assert stats["detached"] == 1 and stats["consumers"] == 1
            # What it had in hand is as it was.
            assert [part.tobytes() for part in batch] == before
            assert loader.missed == 0  # as far as it knows
        finally:
            done.set()
            other.join()
        # The loader reads on, at once or with the next epoch, then whole ones.
        rest = list(iterator)
        assert loader.missed > 0
        more = list(loader)
        assert rest or more
        missed = loader.missed
        assert len(list(loader)) == len(loader)
        assert loader.missed == missed
    assert not failures


def test_a_state_counts_what_was_missed(serve):
    serve(*RING, "--slow", "detach:0.3")
    read, done, failures = threading.Event(), threading.Event(), []
    with tsock.DataLoader("toy", 8, **FIELDS) as loader:
        iterator = iter(loader)
        next(iterator)
        other = threading.Thread(
            target=read_some, args=(7, read, done, failures)
        )
        other.start()
        try:
            assert read.wait(150)
            assert not failures
            next(iterator)
            missed = loader.missed
            assert 0 < missed < 203
            state = loader.state_dict()
            coming = list(next(iterator)[2])
        finally:
            done.set()
            other.join()
        assert state["samples_yielded"] == 16 + missed
    assert loader.missed == missed  # also when it is closed
    with tsock.DataLoader("toy", 8, **FIELDS) as loader:
        loader.load_state_dict(state)
        assert list(next(iter(loader))[2]) == coming
    assert not failures


def test_the_policy_is_an_option_of_the_producer(serve, images):
    serve(*RING, "--slow", "detach:5")
    with tsock.DataLoader("toy", 8, **FIELDS) as loader:
        assert len(list(loader)) == len(loader)
        assert loader.missed == 0
    with pytest.raises(tsock.NoProducer, match=r"block\|detach:SEC"):
        tsock.DataLoader("other", 8, root=images, slow="drop:3")
