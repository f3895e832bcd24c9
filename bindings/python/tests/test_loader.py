# SPDX-License-Identifier: MIT
"""tsock.DataLoader as a loader: lengths, epochs, fields, errors."""

import itertools
import pickle
import threading
import time
import warnings

import pytest

import tsock
from conftest import INDEX, N, RAW, everything, indices, until

pytest.importorskip("numpy")


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


def broken_off(loader, batches):
    """The epoch of a loop that ends after so many batches."""
    for i, _ in enumerate(loader, 1):
        if i == batches:
            break
    return loader.stream_epoch


def test_a_loop_that_is_broken_off_again_and_again_goes_on(serve, caplog):
    serve()
    loader = tsock.DataLoader("toy", batch_size=10, **INDEX)
    assert [broken_off(loader, 5) for _ in range(2)] == [0, 0]
    assert "a second time" in caplog.text and "set_epoch()" in caplog.text
    caplog.clear()
    assert [broken_off(loader, 5) for _ in range(4)] == [1, 2, 3, 4]
    assert loader.epoch == 4
    # A look at what comes next costs nothing.
    assert [broken_off(loader, 1) for _ in range(3)] == [5] * 3
    assert [broken_off(loader, 2) for _ in range(2)] == [5, 6]
    assert not caplog.records
    # After a whole epoch a look may be a longer one, once.
    assert sorted(indices(loader)) == everything()
    assert loader.stream_epoch == 7
    assert [broken_off(loader, 5) for _ in range(3)] == [8, 8, 9]


def test_looks_cost_nothing_however_many(serve, caplog):
    serve()
    loader = tsock.DataLoader("toy", batch_size=10, **INDEX)
    for epoch in range(2):
        assert [broken_off(loader, 1) for _ in range(10)] == [epoch] * 10
        assert broken_off(loader, 3) == epoch
        assert sorted(indices(loader)) == everything()
        assert loader.stream_epoch == epoch
    assert not [r for r in caplog.records if "a second time" in r.message]


def test_loops_that_set_epoch_announces_are_about_that_epoch(serve):
    serve()
    loader = tsock.DataLoader("toy", batch_size=10, **INDEX)
    for epoch in range(2):
        for _ in range(4):
            loader.set_epoch(epoch)
            assert broken_off(loader, 5) == epoch
    # What it said once holds for one loop.
    assert [broken_off(loader, 5) for _ in range(4)] == [1, 1, 2, 3]


def test_iterators_side_by_side_are_one_loop(serve):
    serve()
    loader = tsock.DataLoader("toy", batch_size=10, **INDEX)
    seen = []
    for _ in range(4):
        for i, ((a,), (b,)) in enumerate(zip(loader, loader)):
            assert a.tolist() == b.tolist()
            if i == 3:
                break
        seen.append(loader.stream_epoch)
    assert seen == [0, 0, 1, 2]


def test_a_loop_within_one_of_another_loader_stays_beside_it(serve):
    serve()
    outer = tsock.DataLoader("toy", batch_size=50, **INDEX)
    inner = tsock.DataLoader("toy", batch_size=10, **INDEX)
    assert [broken_off(inner, 3) for _ in outer] == [0] * len(outer)


def test_the_subsets_batches_are_counted(serve):
    serve()
    loader = tsock.DataLoader("toy", 3, subset=range(9), **INDEX)
    assert [broken_off(loader, 1) for _ in range(4)] == [0] * 4
    assert [broken_off(loader, 2) for _ in range(4)] == [0, 0, 1, 2]


def test_an_order_that_is_always_the_same_is_begun_again(serve):
    serve("--order", "sequential")
    loader = tsock.DataLoader("toy", batch_size=10, **INDEX)
    assert [broken_off(loader, 5) for _ in range(4)] == [0] * 4


def test_the_order_that_comes_next_is_the_next_epochs(serve):
    serve()
    loader = tsock.DataLoader("toy", batch_size=10, **INDEX)
    for _ in range(2):
        broken_off(loader, 5)
    coming = list(loader.sampler)
    assert indices(loader) == coming and loader.stream_epoch == 1


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


def test_join_now_gives_a_short_first_epoch_and_then_whole_ones(serve):
    serve("--ring", 64, "--max-batch", 16, "--join-window", 16)
    a = tsock.DataLoader("toy", batch_size=16, **INDEX)
    begun = threading.Event()

    # A thread of its own from the start: one that reads two loaders is told
    # that they wait for each other.
    def lead():
        running = iter(a)
        for _ in range(8):
            next(running)
        begun.set()
        until(lambda: tsock.query("toy")["consumers"] == 2)
        for _ in running:
            pass

    leading = threading.Thread(target=lead)
    leading.start()
    assert begun.wait(150)
    b = tsock.DataLoader("toy", batch_size=16, join="now", **INDEX)
    first = [i for (batch,) in b for i in batch.tolist()]
    leading.join()
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
    assert callable(loader.collate_fn) and loader.generator is None
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
        list(loader)
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


def test_a_timeout_is_torchs_error_and_the_iterator_goes_on(serve):
    serve("--min-consumers", 2)
    loader = tsock.DataLoader("toy", batch_size=16, timeout=0.3, **INDEX)
    began = time.monotonic()
    with pytest.raises(
        RuntimeError, match="DataLoader timed out after 0.3 seconds"
    ):
        next(iter(loader))
    assert 0.25 < time.monotonic() - began

    # Both have to be readers before anything comes.
    second = tsock.DataLoader("toy", batch_size=16, timeout=60, **INDEX)
    result = []
    thread = threading.Thread(target=lambda: result.append(indices(second)))
    thread.start()
    seen = []
    while not seen:
        try:
            seen = indices(loader)
        except tsock.TimedOut:
            pass
    loader.close()
    thread.join()
    assert sorted(seen) == sorted(result[0]) == everything()


def test_other_threads_run_while_one_waits(serve, monkeypatch):
    """During one call of the library, which waits a tenth of a second."""
    serve("--min-consumers", 2)
    loader = tsock.DataLoader("toy", batch_size=16, timeout=0.2, **INDEX)
    count, during, stop = [0], [], threading.Event()
    plain = tsock._ffi.lib.tsock_next

    def counted(*arguments):
        before = count[0]
        err = plain(*arguments)
        during.append(count[0] - before)
        return err

    def work():
        while not stop.is_set():
            count[0] += 1
            time.sleep(0.001)

    monkeypatch.setattr(tsock._ffi.lib, "tsock_next", counted)
    thread = threading.Thread(target=work)
    thread.start()
    iterator = iter(loader)

    def others_ran():
        with pytest.raises(tsock.TimedOut):
            next(iterator)
        return max(during, default=0) > 5

    try:
        until(others_ran)
    finally:
        stop.set()
        thread.join()



def test_drop_last_that_would_drop_all_is_refused(serve):
    serve()
    with pytest.raises(tsock.Refused, match="204.*203 samples"):
        tsock.DataLoader("toy", 204, drop_last=True)


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
