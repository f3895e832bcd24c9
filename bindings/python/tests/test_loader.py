# SPDX-License-Identifier: MIT
"""tsock.DataLoader as a loader: lengths, epochs, iterators, errors."""

import itertools
import pickle
import threading
import time
import warnings

import pytest

import tsock
from conftest import N, until

numpy = pytest.importorskip("numpy")
RAW = dict(dtype="uint8", layout="hwc")
INDEX = dict(fields=("index",), **RAW)


def indices(loader):
    """What an epoch visits."""
    return [int(i) for (index,) in loader for i in index]


def everything():
    return list(range(N))


def test_an_epoch_is_every_sample_once_and_the_last_batch_is_short(serve):
    serve()
    with tsock.DataLoader("toy", batch_size=48, **INDEX) as loader:
        batches = [list(map(int, index)) for (index,) in loader]
    assert [len(b) for b in batches] == [48, 48, 48, 48, N - 4 * 48]
    assert sorted(sum(batches, [])) == everything()


def test_len_is_torchs(serve):
    serve()
    for size in (1, 7, 64, 100):
        for drop_last in (False, True):
            loader = tsock.DataLoader(
                "toy", batch_size=size, drop_last=drop_last, **INDEX
            )
            wanted = N // size if drop_last else -(-N // size)
            assert len(loader) == len(iter(loader)) == wanted
            assert sum(1 for _ in loader) == wanted
            loader.close()


def test_drop_last_drops_the_short_batch_and_nothing_else(serve):
    serve()
    loader = tsock.DataLoader("toy", batch_size=48, drop_last=True, **INDEX)
    for _ in range(2):
        assert [len(b) for (b,) in loader] == [48] * 4
    loader.close()


def test_two_epochs_differ_in_order_and_not_in_samples(serve):
    serve()
    loader = tsock.DataLoader("toy", batch_size=10, **INDEX)
    assert loader.epoch is None
    first = indices(loader)
    assert loader.epoch == 0
    second = indices(loader)
    assert loader.epoch == 1
    assert sorted(first) == sorted(second) == everything()
    assert first != second


def test_a_look_at_the_first_batch_costs_nothing_of_the_epoch(serve):
    serve("--epochs", 2)
    loader = tsock.DataLoader("toy", batch_size=10, **INDEX)
    for epoch in range(2):
        first = next(iter(loader))[0].tolist()
        iter(loader)
        for _ in loader:
            break
        whole = indices(loader)
        assert whole[:10] == first
        assert sorted(whole) == everything()
        assert loader.epoch == loader.stream_epoch == epoch
    with pytest.raises(tsock.StreamEnded):
        next(iter(loader))


def test_an_epoch_whose_start_is_gone_is_not_begun_again(serve):
    serve("--ring", 64, "--max-batch", 16, "--join-window", 16)
    loader = tsock.DataLoader("toy", batch_size=16, **INDEX)
    for epoch in range(3):
        iterator = iter(loader)
        for _ in range(7):
            next(iterator)
        assert loader.epoch == epoch
        del iterator
    assert sorted(indices(loader)) == everything()
    assert loader.epoch == loader.stream_epoch == 3


def test_set_epoch_asks_for_another_epoch_than_the_one_broken_off(serve):
    serve()
    loader = tsock.DataLoader("toy", batch_size=10, **INDEX)
    next(iter(loader))  # a look, before anybody counts
    firsts = []
    for epoch in range(3):
        loader.set_epoch(epoch)
        for _ in range(2):
            firsts.append(next(iter(loader))[0].tolist())
        assert loader.epoch == loader.stream_epoch == epoch
        assert firsts[-1] == firsts[-2]
    assert firsts[0] != firsts[2] != firsts[4]


def test_joining_waits_for_the_first_batch_that_is_asked_for(serve):
    serve()
    loader = tsock.DataLoader("toy", batch_size=10, **INDEX)
    iterators = [iter(loader) for _ in range(100)]
    assert tsock.query("toy")["consumers"] == 0 and loader.epoch is None
    next(iterators[7])
    assert tsock.query("toy")["consumers"] == 1 and loader.epoch == 0


def test_two_loaders_of_one_process_see_the_same_epoch(serve):
    serve("--max-batch", 100)
    a = tsock.DataLoader("toy", batch_size=48, **INDEX)
    b = tsock.DataLoader("toy", batch_size=100, **INDEX)
    one, two = iter(a), iter(b)
    assert a.epoch == b.epoch
    seen = [[], []]
    for pair in itertools.zip_longest(one, two):
        for list_, batch in zip(seen, pair):
            list_ += [] if batch is None else batch[0].tolist()
    assert seen[0] == seen[1]
    assert sorted(seen[0]) == everything()


def test_zip_stops_with_the_shorter_and_leaves_nobody_stuck(serve):
    serve("--max-batch", 100)
    a = tsock.DataLoader("toy", batch_size=7, **INDEX)
    b = tsock.DataLoader("toy", batch_size=100, **INDEX)
    assert sum(1 for _ in zip(b, a)) == 3
    # a is behind by most of an epoch; as its iterator is gone it has left.
    for _ in range(3):
        assert sorted(indices(b)) == everything()


def test_an_exhausted_iterator_stays_exhausted(serve):
    serve()
    iterator = iter(tsock.DataLoader("toy", batch_size=64, **INDEX))
    assert len(list(iterator)) == 4
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)
    assert iter(iterator) is iterator


def test_iterators_of_a_loader_are_independent(serve):
    serve()
    loader = tsock.DataLoader("toy", batch_size=10, **INDEX)
    older = iter(loader)
    first = next(older)[0].tolist()
    newer = iter(loader)
    assert next(newer)[0].tolist() == first
    rest = [i for (b,) in newer for i in b.tolist()]
    assert sorted(first + rest) == everything()
    assert first + [i for (b,) in older for i in b.tolist()] == first + rest
    assert loader.epoch == 0


def test_a_loader_zipped_with_itself(serve):
    serve("--ring", 64, "--max-batch", 16, "--join-window", 32)
    loader = tsock.DataLoader("toy", batch_size=16, **INDEX)
    for epoch in range(3):
        seen = []
        for (a,), (b,) in zip(loader, loader):
            assert a.tolist() == b.tolist()
            seen += a.tolist()
        assert sorted(seen) == everything() and loader.epoch == epoch
    # Nothing that was left of that stands in the way.
    for _ in range(3):
        assert sorted(indices(loader)) == everything()
    assert tsock.query("toy")["consumers"] == 1


def test_an_iterator_that_was_forgotten_is_left_behind(serve):
    serve("--ring", 64, "--max-batch", 16, "--join-window", 16)
    loader = tsock.DataLoader("toy", batch_size=16, **INDEX)
    forgotten = iter(loader)
    kept = next(forgotten)[0]
    before = kept.tolist()
    for _ in range(3):
        assert sorted(indices(loader)) == everything()
    with pytest.raises(tsock.Error, match="left behind"):
        next(forgotten)
    assert kept.tolist() == before
    assert loader.transport is None
    assert sorted(indices(loader)) == everything()


def test_connections_are_used_again(serve):
    served = serve()
    loader = tsock.DataLoader("toy", batch_size=16, **INDEX)
    for _ in range(5):
        for _ in zip(loader, loader, loader):
            pass
    assert len(loader._pool._all) == 3
    loader.close()
    with pytest.raises(tsock.Error, match="closed"):
        iter(loader)
    assert served.process.poll() is None


def test_an_iterator_that_is_dropped_holds_nobody_up(serve):
    serve("--max-batch", 16, "--ring", 64, "--join-window", 16)
    idle = tsock.DataLoader("toy", batch_size=16, **INDEX)
    iterator = iter(idle)
    kept = next(iterator)
    before = kept[0].tolist()
    del iterator
    other = tsock.DataLoader("toy", batch_size=16, timeout=60, **INDEX)
    for _ in range(3):
        assert sorted(indices(other)) == everything()
    assert kept[0].tolist() == before


def test_a_loader_that_does_not_iterate_holds_nobody_up(serve):
    serve("--max-batch", 16, "--ring", 64, "--join-window", 16)
    idle = tsock.DataLoader("toy", batch_size=16, **INDEX)
    other = tsock.DataLoader("toy", batch_size=16, timeout=60, **INDEX)
    for _ in range(3):
        assert sorted(indices(other)) == everything()
    assert len(idle) == 13


def test_itertools_cycle_over_epochs(serve):
    serve()
    loader = tsock.DataLoader("toy", batch_size=100, **INDEX)
    forever = itertools.chain.from_iterable(itertools.repeat(loader))
    assert [len(b) for (b,) in itertools.islice(forever, 7)] == [
        100,
        100,
        3,
        100,
        100,
        3,
        100,
    ]


def test_join_now_gives_a_short_first_epoch_and_then_whole_ones(serve):
    serve("--ring", 64, "--max-batch", 16, "--join-window", 16)
    a = tsock.DataLoader("toy", batch_size=16, **INDEX)
    running = iter(a)
    for _ in range(8):
        next(running)
    b = tsock.DataLoader("toy", batch_size=16, join="now", **INDEX)
    iterator = iter(b)
    first = []

    def go_on():
        until(lambda: tsock.query("toy")["consumers"] == 2)
        for _ in running:
            pass

    rest = threading.Thread(target=go_on)
    rest.start()
    for (batch,) in iterator:
        first += batch.tolist()
    rest.join(20)
    assert 0 < len(first) < N and len(set(first)) == len(first)
    a.close()
    assert sorted(indices(b)) == everything()


def test_fields_come_in_the_order_asked_for(serve):
    serve()
    loader = tsock.DataLoader(
        "toy", batch_size=5, fields=("index", "label", "image"), **RAW
    )
    index, label, image = next(iter(loader))
    assert index.shape == label.shape == (5,)
    assert str(index.dtype).endswith("int64")
    assert str(label.dtype).endswith("int64")
    assert image.shape == (5, 32, 32, 3)
    # Files are sorted within classes, and 203 = 68 + 68 + 67.
    assert [int(i) // 68 for i in index] == label.tolist()


def test_a_batch_is_a_list(serve):
    serve()
    batch = next(iter(tsock.DataLoader("toy", batch_size=5, **RAW)))
    assert type(batch) is list and len(batch) == 2


def test_an_unknown_field_lists_those_of_the_stream(serve):
    serve()
    with pytest.raises(ValueError) as caught:
        tsock.DataLoader("toy", fields=("image", "depth"))
    for name in ("depth", "image", "label", "index"):
        assert name in str(caught.value)


def test_a_batch_beyond_the_streams_maximum_is_refused_with_both(serve):
    serve("--max-batch", 16)
    with pytest.raises(tsock.Refused) as caught:
        tsock.DataLoader("toy", batch_size=17)
    assert "17" in str(caught.value) and "16" in str(caught.value)


def test_what_frameworks_read(serve):
    serve()
    loader = tsock.DataLoader("toy", batch_size=48, **INDEX)
    assert loader.batch_size == 48 and loader.drop_last is False
    assert loader.num_workers == 0 and loader.pin_memory is False
    assert loader.timeout == 0 and loader.persistent_workers is False
    assert loader.collate_fn is None and loader.generator is None
    assert loader.classes == ["class0", "class1", "class2"]
    assert loader.dataset.classes == loader.classes
    assert loader.dataset.class_to_idx["class2"] == 2
    assert len(loader.dataset) == len(loader.sampler) == N
    assert len(loader.batch_sampler) == len(loader) == 5
    assert loader.batch_sampler.sampler is loader.sampler
    assert "toy" in repr(loader) and "48" in repr(loader)


@pytest.mark.parametrize("name", ["batch_size", "sampler", "dtype"])
def test_what_is_fixed_can_not_be_set(serve, name):
    serve()
    loader = tsock.DataLoader("toy", batch_size=48, **INDEX)
    with pytest.raises(ValueError, match=name):
        setattr(loader, name, 1)


def test_set_epoch_never_moves_the_stream_and_warns_once(serve):
    serve()
    loader = tsock.DataLoader("toy", batch_size=64, **INDEX)
    loader.set_epoch(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        indices(loader)
        loader.sampler.set_epoch(1)
        indices(loader)
    loader.batch_sampler.set_epoch(7)
    with pytest.warns(UserWarning, match="epoch 2 of this job") as caught:
        indices(loader)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        indices(loader)
    assert loader.epoch == 3


def test_a_job_that_comes_late_counts_from_its_own_first_epoch(serve):
    serve("--ring", 64, "--max-batch", 16, "--join-window", 16)
    early = tsock.DataLoader("toy", batch_size=16, **INDEX)
    for _ in range(3):
        indices(early)
    early.close()
    late = tsock.DataLoader("toy", batch_size=16, **INDEX)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for epoch in (5, 6):  # as a job that goes on has it
            late.set_epoch(epoch)
            assert sorted(indices(late)) == everything()
            assert late.epoch == epoch
            assert late.stream_epoch == epoch - 2


def test_the_order_of_a_sequential_stream_is_every_epochs(serve):
    serve("--order", "sequential")
    loader = tsock.DataLoader("toy", batch_size=64, **INDEX)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for epoch in (0, 7, 3):
            loader.set_epoch(epoch)
            assert indices(loader) == everything()
    assert loader.epoch == 2


def test_loaders_are_pickled_and_iterators_are_not(serve):
    serve()
    loader = tsock.DataLoader("toy", batch_size=48, drop_last=True, **INDEX)
    again = pickle.loads(pickle.dumps(loader))
    assert len(again) == 4 and again.fields == ("index",)
    assert repr(again) == repr(loader)
    iterator = iter(loader)
    with pytest.raises(NotImplementedError):
        pickle.dumps(iterator)
    assert len(next(iterator)[0]) == 48


def test_a_closed_loader_says_so(serve):
    serve()
    with tsock.DataLoader("toy", batch_size=48, **INDEX) as loader:
        iterator = iter(loader)
        kept = next(iterator)
        before = kept[0].tolist()
    assert loader.closed
    with pytest.raises(RuntimeError, match="closed"):
        next(iterator)
    with pytest.raises(RuntimeError, match="closed"):
        iter(loader)
    loader.close()
    assert len(loader) == 5 and "closed" in repr(loader)
    assert kept[0].tolist() == before


def test_the_stream_ends_after_its_epochs(serve):
    served = serve("--epochs", 1)
    loader = tsock.DataLoader("toy", batch_size=48, **INDEX)
    assert sorted(indices(loader)) == everything()
    for _ in range(2):
        with pytest.raises(tsock.StreamEnded):
            next(iter(loader))
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
    for _ in range(2):
        with pytest.raises(tsock.ProducerLost) as e:
            next(iterator)
        assert e.value.code == "TSOCK_ELOST"
    assert kept[0].tolist() == before


def test_a_timeout_is_torchs_error_and_the_iterator_goes_on(serve):
    serve("--min-consumers", 2)
    loader = tsock.DataLoader("toy", batch_size=16, timeout=0.3, **INDEX)
    began = time.monotonic()
    with pytest.raises(
        RuntimeError, match="DataLoader timed out after 0.3 seconds"
    ):
        next(iter(loader))
    assert 0.25 < time.monotonic() - began < 30

    # Both have to be readers before anything comes.
    second = tsock.DataLoader("toy", batch_size=16, timeout=60, **INDEX)
    result = []
    thread = threading.Thread(target=lambda: result.append(indices(second)))
    thread.start()
    seen, deadline = [], time.monotonic() + 30
    while not seen and time.monotonic() < deadline:
        try:
            seen = indices(loader)
        except tsock.TimedOut:
            pass
    loader.close()
    thread.join(30)
    assert sorted(seen) == sorted(result[0]) == everything()


def test_other_threads_run_while_one_waits(serve):
    serve("--min-consumers", 2)
    loader = tsock.DataLoader("toy", batch_size=16, timeout=0.5, **INDEX)
    count = [0]
    stop = threading.Event()

    def work():
        while not stop.is_set():
            count[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    with pytest.raises(tsock.TimedOut):
        next(iter(loader))
    stop.set()
    thread.join()
    assert count[0] > 20


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

    serve()
    loader = tsock.DataLoader("toy", batch_size=16, **INDEX)
    next(iter(loader))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        next(iter(loader))
    assert len(os.listdir("/proc/self/fd")) <= before + 2
    for _ in range(20):
        tsock.DataLoader("toy", batch_size=16, **INDEX).close()
    assert len(os.listdir("/proc/self/fd")) <= before + 2


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
    assert served.process.wait(30) == 0


def test_between_leave_leaves_and_hold_holds(serve):
    serve()
    leaver = tsock.DataLoader("toy", batch_size=48, between="leave", **INDEX)
    assert sorted(indices(leaver)) == everything()
    until(lambda: tsock.query("toy")["consumers"] == 0)
    holder = tsock.DataLoader("toy", batch_size=48, between="hold", **INDEX)
    assert sorted(indices(holder)) == everything()
    assert tsock.query("toy")["consumers"] == 1


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


def zipped(first, second):
    for _ in zip(first, second):
        pass


def nested(first, second):
    for _ in second:
        for _ in first:
            pass


@pytest.mark.parametrize("read", [zipped, nested])
@pytest.mark.parametrize("dtypes", [("uint8", "uint8"), ("float32", "uint8")])
def test_two_loaders_in_one_thread_are_told_that_they_block(
    serve, read, dtypes
):
    serve("--ring", 64, "--max-batch", 16, "--join-window", 16)
    first = tsock.DataLoader("toy", 16, dtype=dtypes[0])
    second = tsock.DataLoader("toy", 4, dtype=dtypes[1])
    job = tsock.DataLoader("toy", 10, between="leave")
    seen = []

    def read_all():  # held up as long as the two are
        seen.extend(len(labels) for _, labels in job)

    other = threading.Thread(target=read_all)
    other.start()
    with pytest.raises(tsock.Error) as e:
        read(first, second)
    assert e.value.code == "TSOCK_EHELD"
    text = str(e.value)
    assert "'toy'" in text and "batch size 16" in text
    assert "batch size 4" in text and "this thread" in text
    first.close()
    second.close()
    other.join()
    assert sum(seen) == len(job.sampler)


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
            next(iter(loader))
        assert e.value.code == "TSOCK_ELOST"
        assert "DataLoader" in str(e.value)
    loader = tsock.DataLoader("toy", 16)
    assert sum(len(labels) for _, labels in loader) == len(loader.sampler)
    assert loader.epoch == 0


def test_drop_last_that_would_drop_all_is_refused(serve):
    serve()
    with pytest.raises(tsock.Refused, match="204.*203 samples"):
        tsock.DataLoader("toy", 204, drop_last=True)


@pytest.fixture
def two_ranks(monkeypatch):
    """torch.distributed as rank 1 of 2 sees it."""
    distributed = pytest.importorskip("torch.distributed")
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)


def test_a_rank_alone_waits_for_the_others(serve, two_ranks):
    serve()
    loader = tsock.DataLoader("toy", 16, timeout=0.5)
    assert len(loader.sampler) == 102
    with pytest.raises(tsock.TimedOut):
        next(iter(loader))
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
    with pytest.raises(ValueError, match="rank 0 of 4 now"):
        next(iter(loader))


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


def test_a_loader_that_is_dropped_is_gone_without_the_collector(serve):
    import gc

    serve()
    loader = tsock.DataLoader("toy", 16, **INDEX)
    assert sorted(indices(loader)) == everything()
    assert tsock.query("toy")["consumers"] == 1  # between two epochs
    gc.disable()
    try:
        del loader
        until(lambda: tsock.query("toy")["consumers"] == 0)
    finally:
        gc.enable()
