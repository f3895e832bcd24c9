# SPDX-License-Identifier: MIT
"""The stream behind a loader: its end, its producer, its ranks, its state."""

import time

import pytest

import tsock
from conftest import INDEX, N, everything, indices, until

pytest.importorskip("numpy")


def test_the_stream_ends_after_its_epochs(serve):
    served = serve("--epochs", 1)
    loader = tsock.DataLoader("toy", batch_size=48, **INDEX)
    assert sorted(indices(loader)) == everything()
    with pytest.raises(tsock.StreamEnded):
        iter(loader)
    loader.close()
    assert served.process.wait(20) == 0


def test_a_killed_producer_is_a_named_error_when_one_asks(serve):
    served = serve("--ring", 64, "--max-batch", 16, "--join-window", 16)
    loader = tsock.DataLoader("toy", batch_size=16, **INDEX)
    iterator = iter(loader)
    kept = next(iterator)
    before = kept[0].tolist()
    served.kill()
    began = time.monotonic()
    with pytest.raises(tsock.ProducerLost):
        for _ in iterator:  # what was made before may still come
            pass
    assert time.monotonic() - began < 30
    with pytest.raises(tsock.Error):
        next(iterator)
    assert kept[0].tolist() == before


def test_query_and_streams_tell_from_outside(serve, place):
    served = serve("--max-batch", 16, "--ring", 64, "--join-window", 16)
    loader = tsock.DataLoader("toy", batch_size=16, **INDEX)
    assert ("toy", place) in [tuple(s) for s in tsock.streams()]
    iterator = iter(loader)
    next(iterator)
    until(lambda: tsock.query("toy")["consumers"] == 1)
    stats = tsock.query("toy")
    assert stats["pid"] == served.process.pid
    assert stats["epoch_len"] == N and stats["capacity"] >= 64
    assert stats["rows"][0]["batch_size"] == 16
    del iterator
    until(lambda: tsock.query("toy")["consumers"] == 0)
    with pytest.raises(tsock.NoProducer):
        tsock.query("nobody", timeout=0.1)


def test_the_producer_class_serves_and_ends(images, place):
    with tsock.Producer(
        dataset="imagefolder",
        root=images,
        name="mine",
        size=32,
        threads=1,
        no_cache=True,
    ) as producer:
        assert producer.name == "mine" and "running" in repr(producer)
        loader = tsock.DataLoader(producer.name, batch_size=48, **INDEX)
        assert sorted(indices(loader)) == everything()
        loader.close()
    assert producer.returncode == 0
    assert tsock.streams() == []


def test_the_producer_class_passes_on_why_it_could_not_start(place):
    with pytest.raises(tsock.Error, match="/no/such/folder"):
        tsock.Producer(dataset="imagefolder", root="/no/such/folder")


def test_a_producer_dies_with_the_process_that_started_it(
    script, images, place
):
    import shutil

    if not shutil.which("setpriv"):
        pytest.skip("no setpriv (util-linux)")
    process = script(
        "import os, sys, time, tsock\n"
        "p = tsock.Producer(dataset='imagefolder', root=sys.argv[1],\n"
        "                   name='mine', size=32, no_cache=True)\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(60)\n",
        images,
    )
    pid = int(process.stdout.readline())
    process.kill()
    process.wait()

    def gone():
        try:
            with open("/proc/%d/stat" % pid) as f:
                return f.read().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    until(gone, what="the producer's end")


def test_an_old_loader_of_a_restarted_producer_is_told_to_open_again(serve):
    old = serve()
    loader = tsock.DataLoader("toy", 16)
    for _ in loader:
        pass
    old.kill()
    # The news of the death comes first, once.
    with pytest.raises(tsock.ProducerLost):
        for _ in loader:
            pass
    serve()
    tsock.DataLoader("toy", 16).close()  # it is up
    for _ in range(3):
        with pytest.raises(tsock.ProducerLost, match="restarted") as e:
            iter(loader)
        assert e.value.code == "TSOCK_ELOST"
        assert "DataLoader" in str(e.value)
    loader = tsock.DataLoader("toy", 16)
    assert sum(len(labels) for _, labels in loader) == len(loader.sampler)
    assert loader.epoch == 0


@pytest.fixture
def two_ranks(monkeypatch):
    """torch.distributed as rank 1 of 2 sees it."""
    distributed = pytest.importorskip("torch.distributed")
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)


def test_ranks_never_get_the_same_samples_unasked(serve, two_ranks):
    serve()
    with pytest.raises(ValueError, match="--shard 1/2"):
        tsock.DataLoader("toy", 16)
    loader = tsock.DataLoader("toy", 16, rank=0, world_size=1)
    assert sum(len(labels) for _, labels in loader) == len(loader.sampler)
    with pytest.raises(ValueError, match="both"):
        tsock.DataLoader("toy", 16, rank=0)
    with pytest.raises(ValueError, match="no such rank"):
        tsock.DataLoader("toy", 16, rank=2, world_size=2)


def test_a_rank_reads_its_own_shard_and_no_other(serve, two_ranks):
    serve("--shard", "1/2", name="one")
    serve("--shard", "0/2", name="zero")
    loader = tsock.DataLoader("one", 16)
    assert sum(len(labels) for _, labels in loader) == len(loader.sampler)
    with pytest.raises(ValueError, match="shard 0/2"):
        tsock.DataLoader("zero", 16)
    tsock.DataLoader("zero", 16, rank=0, world_size=2).close()


def test_ranks_that_come_after_the_loader_are_seen(serve, monkeypatch):
    serve()
    loader = tsock.DataLoader("toy", 16)
    distributed = pytest.importorskip("torch.distributed")
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_rank", lambda: 0)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 4)
    with pytest.raises(ValueError, match="--shard 0/4"):
        iter(loader)


def test_exit_when_idle_counts_loaders_that_only_connected(serve):
    served = serve("--exit-when-idle", 8)
    loader = tsock.DataLoader("toy", 16)
    while b"1 loader is connected" not in open(served.log, "rb").read():
        assert served.process.poll() is None, open(served.log).read()
        time.sleep(0.05)
    assert sum(len(labels) for _, labels in loader) == len(loader.sampler)
    loader.close()
    assert served.process.wait(50) == 0
    assert b"no loader connected" in open(served.log, "rb").read()
