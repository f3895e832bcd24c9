# SPDX-License-Identifier: MIT
"""A small data set takes the memory of two or three epochs of it."""

import os

import pytest

from conftest import INDEX, N, SIZE, everything, indices
from test_serve_loader import cut, labels

import tsock

PIXELS = SIZE * SIZE * 3
OTHERS = 512 << 10  # headers, pages of tails, labels, all of them rounded up


def ring_bytes(pid):
    """The memory for samples that a process has."""
    sizes = {}
    for fd in os.listdir("/proc/%d/fd" % pid):
        path = "/proc/%d/fd/%s" % (pid, fd)
        try:
            if os.readlink(path).startswith("/memfd:tsock"):
                found = os.stat(path)
                sizes[found.st_ino] = found.st_size
        except FileNotFoundError:
            pass  # closed meanwhile
    return sum(sizes.values())


def test_the_rings_of_a_small_data_set_are_small(serve):
    served = serve()
    stored = tsock.DataLoader("toy", 16, dtype="uint8", layout="hwc")
    floats = tsock.DataLoader("toy", 16)
    begun = iter(stored), iter(floats)
    for batches in begun:
        next(batches)
    # A batch may be all of an epoch: one is kept, and two are in hand.
    epochs = ring_bytes(served.process.pid) / (PIXELS * 5 * N)
    assert 3 <= epochs <= 3.1 + OTHERS / (PIXELS * 5 * N)
    assert tsock.query("toy")["capacity"] in range(3 * N, 3 * N + 4)


def test_with_smaller_batches_two_epochs_are_held(serve):
    served = serve("--max-batch", 64)
    next(iter(tsock.DataLoader("toy", 64)))
    epochs = ring_bytes(served.process.pid) / (PIXELS * 5 * N)
    assert 2 <= epochs <= 2.1 + OTHERS / (PIXELS * 5 * N)


def test_what_ring_says_counts(serve):
    serve("--ring", 1000)
    next(iter(tsock.DataLoader("toy", 16, **INDEX)))
    assert tsock.query("toy")["capacity"] == 1000


@pytest.mark.parametrize("size", [1, 16, 101, N - 1, N, N + 1, 512])
def test_batches_of_all_sizes_come_as_before(serve, size):
    serve()
    loader = tsock.DataLoader("toy", size, **INDEX)
    for _ in range(4):
        assert sorted(indices(loader)) == everything()
    loader.close()


def test_a_job_with_larger_batches_comes_later(serve):
    serve()
    small = tsock.DataLoader("toy", 8, **INDEX)
    batches = iter(small)
    seen = [int(i) for i in next(batches)[0]]
    large = tsock.DataLoader("toy", 300, **INDEX)
    for (index,) in large:
        assert sorted(int(i) for i in index) == everything()
        break
    seen += [int(i) for (index,) in batches for i in index]
    assert sorted(seen) == everything()


def test_a_subset_has_a_ring_of_its_own_size(serve, tmp_path):
    names = [i for i in range(50)]
    serve()
    loader = tsock.DataLoader("toy", 16, subset=names, **INDEX)
    assert sorted(indices(loader)) == names
    loader.close()


def test_serve_holds_three_epochs_of_a_small_loader(served):
    batches = cut(labels)
    length = sum(len(batch) for batch in batches)
    served(batches)
    jobs = tsock.DataLoader("mine", 7)
    assert len(next(iter(jobs))) == 7
    most = max(64, 3 * length)
    assert length <= tsock.query("mine")["capacity"] <= most


def test_serve_holds_two_epochs_of_ragged_batches(served):
    served(cut(labels), ragged=True)
    jobs = tsock.DataLoader("mine", None)
    next(iter(jobs))
    assert tsock.query("mine")["capacity"] <= max(4, 2 * len(cut(labels)))
