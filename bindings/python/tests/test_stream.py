# SPDX-License-Identifier: MIT
"""The stream behind a loader: its end, its producer, its order."""

import os
import re
import signal
import time

import pytest

import tsock
from conftest import INDEX, N, everything, indices, runs, until
from tsock import _ffi

pytest.importorskip("numpy")


def test_the_stream_ends_after_its_epochs(serve):
    served = serve("--epochs", 1)
    loader = tsock.DataLoader("toy", batch_size=48, **INDEX)
    assert sorted(indices(loader)) == everything()
    for _ in range(2):
        with pytest.raises(tsock.StreamEnded):
            next(iter(loader))
    loader.close()
    assert served.ended() == 0


def test_an_epoch_that_was_only_begun_is_not_counted_as_read(serve):
    """--epochs 1: its start is there for whoever comes next."""
    served = serve("--epochs", 1)
    for _ in range(2):
        with tsock.DataLoader("toy", batch_size=48, **INDEX) as loader:
            next(iter(loader))
    assert served.process.poll() is None
    with tsock.DataLoader("toy", batch_size=48, **INDEX) as loader:
        assert sorted(indices(loader)) == everything()
    assert served.ended() == 0


@pytest.mark.kills
def test_a_killed_producer_is_a_named_error_when_one_asks(serve):
    served = serve("--ring", 64, "--max-batch", 16, "--join-window", 16)
    loader = tsock.DataLoader(
        "toy", batch_size=16, rejoin_timeout=0, **INDEX
    )
    iterator = iter(loader)
    kept = next(iterator)
    before = kept[0].tolist()
    served.kill()
    with pytest.raises(tsock.ProducerLost) as e:
        for _ in iterator:  # what was made before may still come
            pass
    assert "came within" not in str(e.value)  # none was waited for
    for _ in range(2):
        with pytest.raises(tsock.ProducerLost) as e:
            next(iterator)
        assert e.value.code == "TSOCK_ELOST"
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


def test_a_thousand_joins_leave_no_descriptor_behind(serve):
    import os

    def are_closed():
        return len(os.listdir("/proc/self/fd")) <= before + 2

    serve()
    loader = tsock.DataLoader("toy", batch_size=16, **INDEX)
    next(iter(loader))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        next(iter(loader))
    until(are_closed)
    for _ in range(20):
        tsock.DataLoader("toy", batch_size=16, **INDEX).close()
    until(are_closed)


@pytest.mark.parametrize("seed", [0, 1, 4711])
def test_torch_order_is_what_torchs_own_loader_visits(serve, seed):
    torch = pytest.importorskip("torch")
    serve("--order", "torch", "--seed", seed)
    generator = torch.Generator()
    generator.manual_seed(seed)
    theirs = torch.utils.data.DataLoader(
        range(N), batch_size=20, shuffle=True, generator=generator
    )
    ours = tsock.DataLoader("toy", batch_size=20, **INDEX)
    for _ in range(3):
        wanted = [batch.tolist() for batch in theirs]
        assert [batch.tolist() for (batch,) in ours] == wanted


def test_sequential_streams_are_left_between_epochs(serve):
    serve("--order", "sequential")
    loader = tsock.DataLoader("toy", batch_size=48, **INDEX)
    assert indices(loader) == everything()
    until(lambda: tsock.query("toy")["consumers"] == 0)
    assert sorted(indices(loader)) == everything()


def test_a_validation_loader_gets_every_epoch_and_nothing_is_made_in_vain(serve):
    small = ("--ring", 48, "--max-batch", 8, "--join-window", 8)
    served = serve("--preset", "eval", "--epochs", 6, *small)
    loader = tsock.DataLoader("toy", batch_size=8, fields=("image", "index"))
    query = tsock.query("toy")
    for epoch in range(6):
        seen = []
        for images, index in loader:
            assert images.shape[1:] == (3, 32, 32)
            seen.extend(int(i) for i in index)
            if len(seen) == N and epoch < 5:  # all is made that may be
                most = (epoch + 1) * N + query["capacity"]
                until(lambda: tsock.query("toy")["head"] >= most)
            elif len(seen) == N:
                assert tsock.query("toy")["produced"] == 6 * N
        assert loader.epoch == epoch
        assert sorted(seen) == everything()
    with pytest.raises(tsock.StreamEnded):
        next(iter(loader))
    assert served.ended() == 0


def test_between_leave_leaves_and_hold_holds(serve):
    serve()
    leaver = tsock.DataLoader("toy", batch_size=48, between="leave", **INDEX)
    assert sorted(indices(leaver)) == everything()
    until(lambda: tsock.query("toy")["consumers"] == 0)
    holder = tsock.DataLoader("toy", batch_size=48, between="hold", **INDEX)
    assert sorted(indices(holder)) == everything()
    assert tsock.query("toy")["consumers"] == 1


def state(pid):
    """A letter: T is stopped."""
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rpartition(")")[2].split()[0]


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


def test_the_producer_class_ends_one_that_is_stopped(images, place):
    with tsock.Producer(
        dataset="imagefolder", root=images, name="mine", no_cache=True
    ) as producer:
        os.kill(producer.pid, signal.SIGSTOP)
        until(lambda: state(producer.pid) == "T", what="the stop")
    # In good order: it wasn't waited for in vain, and killed.
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
    until(lambda: not runs(pid), what="the producer's end")


def test_sigterms_soon_after_the_first_are_the_same_one(serve, place):
    # As when a parent dies that has several threads.
    process = serve().process
    tsock.DataLoader("toy", 16).close()  # it is up
    for _ in range(5):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.002)
    assert process.wait(60) == 0
    assert not os.path.exists(os.path.join(place, "toy.lock"))


def test_an_old_loader_of_a_restarted_producer_is_told_to_open_again(serve):
    # A ring that can't hold the next epoch, which could be read on else.
    old = serve("--ring", 64, "--max-batch", 16, "--join-window", 16)
    loader = tsock.DataLoader("toy", 16, rejoin_timeout=0)
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
            next(iter(loader))
        assert e.value.code == "TSOCK_ELOST"
        assert "DataLoader" in str(e.value)
    loader = tsock.DataLoader("toy", 16)
    assert sum(len(labels) for _, labels in loader) == len(loader.sampler)
    assert loader.epoch == 0


def test_exit_when_idle_counts_loaders_that_only_connected(serve):
    served = serve("--exit-when-idle", 8)
    loader = tsock.DataLoader("toy", 16)

    def is_counted():
        log = open(served.log, "rb").read()
        assert served.process.poll() is None, log
        return b"1 loader is connected" in log

    until(is_counted)
    assert sum(len(labels) for _, labels in loader) == len(loader.sampler)
    loader.close()
    assert served.ended() == 0
    assert b"no loader connected" in open(served.log, "rb").read()


def test_all_that_a_query_tells_is_documented(serve):
    serve()
    loader = tsock.DataLoader("toy", 16)
    batches = iter(loader)
    next(batches)
    text = tsock.query.__doc__
    told = tsock.query("toy")
    (row,) = told["rows"]
    wait = {name for name, _ in _ffi.Wait._fields_} - {"reserved"}
    for key in (*told, *row, *wait):
        assert re.search(r"(^ +|, )%s[ ,\n]" % key, text, re.M), key
    assert str(_ffi.STATS_ROWS) in text and str(_ffi.STATS_WAITS) in text
