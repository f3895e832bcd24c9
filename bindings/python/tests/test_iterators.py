# SPDX-License-Identifier: MIT
"""Iterators of loaders, side by side and one after the other."""

import itertools
import os
import signal
import sys
import threading
import time

import pytest

import tsock
from conftest import INDEX, everything, indices, until

pytest.importorskip("numpy")


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
    until(lambda: tsock.query("toy")["consumers"] == 1)


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


def test_an_iterator_more_takes_few_descriptors(serve):
    def count():
        return len(os.listdir("/proc/self/fd"))

    serve()
    loaders = [tsock.DataLoader("toy", 16) for _ in range(2)]
    before = count()
    kept = [iter(loaders[0])]
    next(kept[0])
    took = []
    for loader in loaders * 2:
        at = count()
        kept.append(iter(loader))
        next(kept[-1])
        took.append(count() - at)
    assert max(took) < 7, took
    for iterator in kept:
        iterator.close()
    for loader in loaders:
        loader.close()
    until(lambda: count() < before, what="the descriptors' end")


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


@pytest.mark.parametrize("subset", [None, range(0, 200, 2)])
def test_threads_share_an_iterator(serve, subset):
    serve("--max-batch", 8)
    loader = tsock.DataLoader("toy", batch_size=1, subset=subset, **INDEX)
    seen, failed = [], []

    def read(iterator):
        try:
            for (index,) in iterator:
                seen.append(int(index[0]))
        except BaseException as e:
            failed.append(e)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            iterator = iter(loader)
            threads = [
                threading.Thread(target=read, args=(iterator,))
                for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not failed
            assert sorted(seen) == list(subset or everything())
            seen.clear()
    finally:
        sys.setswitchinterval(before)


def test_a_child_that_is_forked_while_a_thread_waits(serve):
    producer = serve("--ring", 16, "--max-batch", 8, "--join-window", 8)
    loader = tsock.DataLoader("toy", batch_size=8, **INDEX)
    iterator = iter(loader)
    seen = [next(iterator)[0].tolist()]
    os.kill(producer.process.pid, signal.SIGSTOP)

    def read():
        seen.extend(index.tolist() for (index,) in iterator)

    thread = threading.Thread(target=read)
    thread.start()

    def waits():
        """Is the thread in next(), and has it got nothing for a while?"""
        before = len(seen)
        time.sleep(0.3)
        if iterator._lock.acquire(blocking=False):
            iterator._lock.release()
            return False
        return len(seen) == before

    until(waits, what="the thread to wait")
    child = os.fork()
    if not child:
        signal.alarm(60)  # which ends a child that hangs
        try:
            next(iterator)
        except tsock.Error as e:
            os._exit(0 if e.code == "TSOCK_EFORK" else 3)
        finally:
            os._exit(4)
    os.kill(producer.process.pid, signal.SIGCONT)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    assert sorted(sum(seen, [])) == everything()
