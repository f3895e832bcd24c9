# SPDX-License-Identifier: MIT
"""state_dict(): going on where a loader has stopped."""

import json
import threading

import pytest

import tsock
from conftest import N, until

pytest.importorskip("numpy")
INDEX = dict(fields=("index",), dtype="uint8")
SMALL = ("--ring", 64, "--max-batch", 16, "--join-window", 32)


def take(iterator, batches):
    return [int(i) for _ in range(batches) for i in next(iterator)[0]]


def rest(loader):
    return [int(i) for (index,) in loader for i in index]


def through_json(loader):
    text = json.dumps(loader.state_dict())
    assert len(text) < 400
    return json.loads(text)


def test_a_state_counts_the_samples_that_were_given_out(serve):
    serve()
    loader = tsock.DataLoader("toy", 10, **INDEX)
    rest(loader)
    iterator = iter(loader)
    for batches in range(1, 21):
        take(iterator, 1)
        state = through_json(loader)
        assert state["samples_yielded"] == 10 * batches
        assert (state["epoch"], state["number"]) == (1, 1)
        assert not state["finished"]
    assert len(take(iterator, 1)) == 3
    assert loader.state_dict()["samples_yielded"] == N
    assert loader.state_dict()["finished"]
    # A loader shows the state that it was given until it has gone on.
    other = tsock.DataLoader("toy", 7, **INDEX)
    other.load_state_dict(state)
    assert other.state_dict() == state and other.resumed is None


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("size", [16, 7, 100])
def test_what_is_held_still_is_gone_on_with(serve, size, gone):
    serve()
    loader = tsock.DataLoader("toy", 10, **INDEX)
    loader.set_epoch(12)
    iterator = iter(loader)
    first = take(iterator, 6)
    other = tsock.DataLoader("toy", size, **INDEX)
    other.load_state_dict(through_json(loader))
    if gone:
        del iterator
    seen = rest(other)
    assert sorted(first + seen) == list(range(N))
    assert other.resumed == "held" and other.epoch == 12
    if not gone:
        assert rest(iterator) == seen
    # And then epochs are whole ones again.
    assert sorted(rest(other)) == list(range(N))
    assert other.epoch == 13


def test_the_same_loader_goes_on_too(serve):
    serve()
    loader = tsock.DataLoader("toy", 10, **INDEX)
    first = take(iter(loader), 5)
    state = loader.state_dict()
    assert loader.state_dict() == state
    loader.load_state_dict(state)
    assert sorted(first + rest(loader)) == list(range(N))


def test_an_empty_state_changes_nothing(serve):
    serve()
    loader = tsock.DataLoader("toy", 10, **INDEX)
    loader.load_state_dict({})
    assert sorted(rest(loader)) == list(range(N))
    loader.load_state_dict({})
    assert sorted(rest(loader)) == list(range(N))
    assert loader.epoch == loader.stream_epoch == 1


def test_a_state_of_nothing_begins_at_the_beginning(serve):
    serve()
    loader = tsock.DataLoader("toy", 10, **INDEX)
    state = through_json(loader)
    assert state["epoch"] is None and state["samples_yielded"] == 0
    iter(loader)
    assert loader.state_dict() == state
    loader.load_state_dict(state)
    assert sorted(rest(loader)) == list(range(N)) and loader.epoch == 0


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("heard", [False, True])
def test_a_finished_epoch_is_followed_by_a_new_one(serve, drop_last, heard):
    serve()
    loader = tsock.DataLoader("toy", 10, drop_last=drop_last, **INDEX)
    loader.set_epoch(4)
    iterator = iter(loader)
    take(iterator, len(loader))
    if heard:
        assert rest(iterator) == []
    state = through_json(loader)
    assert state["finished"]
    del iterator
    loader.close()
    other = tsock.DataLoader("toy", 10, drop_last=drop_last, **INDEX)
    other.load_state_dict(state)
    assert len(rest(other)) == len(other) * 10 - (0 if drop_last else 7)
    assert other.epoch == 5


def finished(size=10):
    """A state of epoch 2 that was read to its end, and what comes next."""
    loader = tsock.DataLoader("toy", size, **INDEX)
    for _ in range(3):
        rest(loader)
    state = through_json(loader)
    assert state["finished"] and state["epoch"] == 2
    following = rest(loader)
    loader.close()
    return state, following


def going_on(state, size=16, **keywords):
    loader = tsock.DataLoader("toy", size, **INDEX, **keywords)
    loader.load_state_dict(state)
    assert loader.epoch == 3
    return loader


@pytest.mark.parametrize("subset", [None, range(0, N, 2)])
def test_the_epoch_after_a_finished_one_is_the_next_producers_too(
    serve, subset
):
    served = serve(*SMALL)
    if subset is not None:
        whole = tsock.DataLoader("toy", 10, subset=subset, **INDEX)
        for _ in range(3):
            rest(whole)
        state, following = through_json(whole), rest(whole)
        whole.close()
    else:
        state, following = finished()
    served.stop()
    # Started again it would begin with epoch 0.
    serve(*SMALL)
    loader = going_on(state, subset=subset)
    assert list(loader.sampler) == following
    assert rest(loader) == following
    assert loader.resumed == "moved"
    assert loader.epoch == loader.stream_epoch == 3
    assert rest(loader) != following and loader.epoch == 4


def test_an_epoch_that_was_finished_is_not_begun_again_beside_others(serve):
    serve()
    behind = tsock.DataLoader("toy", 10, **INDEX)
    running = iter(behind)
    first = take(running, 1)  # who comes now gets all of this epoch
    ahead = tsock.DataLoader("toy", 7, **INDEX)
    assert sorted(rest(ahead)) == list(range(N))
    state = through_json(ahead)
    ahead.close()
    loader = tsock.DataLoader("toy", 16, **INDEX)
    loader.load_state_dict(state)
    following = rest(loader)
    assert loader.epoch == loader.stream_epoch == 1
    loader.close()
    assert sorted(first + rest(running)) == list(range(N))
    assert rest(behind) == following


def test_where_others_have_gone_past_a_finished_epoch_a_later_one_comes(serve):
    served = serve(*SMALL)
    state, following = finished()
    served.stop()
    serve(*SMALL)
    ahead = tsock.DataLoader("toy", 10, **INDEX)
    ahead.load_state_dict(state)
    assert rest(ahead) == following
    running = iter(ahead)
    take(running, 15)
    loader = going_on(state)
    done = []
    reads = threading.Thread(target=lambda: done.append(rest(loader)))
    reads.start()
    until(lambda: tsock.query("toy")["consumers"] == 2)
    rest(running)
    rest(ahead)
    ahead.close()
    reads.join()
    assert sorted(done[0]) == list(range(N))
    assert loader.resumed is None
    assert (loader.epoch, loader.stream_epoch) == (3, 5)


def test_others_who_are_epochs_behind_are_not_waited_for(serve):
    served = serve(*SMALL)
    state, _ = finished()
    served.stop()
    serve(*SMALL)
    behind = tsock.DataLoader("toy", 10, **INDEX)
    running = iter(behind)
    take(running, 1)
    loader = going_on(state)
    iterator = iter(loader)
    take(iterator, 1)
    assert (loader.epoch, loader.stream_epoch) == (3, 0)
    assert loader.resumed is None


def test_a_stream_that_is_not_there_yet_is_moved_by_who_is_alone(serve):
    served = serve(*SMALL)
    loader = tsock.DataLoader("toy", 10, **INDEX)
    for _ in range(3):
        rest(loader)
    iterator = iter(loader)
    first = take(iterator, 15)
    state = through_json(loader)
    whole = first + rest(iterator)
    loader.close()
    served.stop()
    # Started again it begins with epoch 0.
    serve(*SMALL)
    other = tsock.DataLoader("toy", 16, **INDEX)
    other.load_state_dict(state)
    assert first + rest(other) == whole
    assert other.resumed == "moved"
    assert other.epoch == other.stream_epoch == 3
    # No sample that lies between was made.
    assert tsock.query("toy")["produced"] < N + 64
    assert sorted(rest(other)) == list(range(N)) and other.epoch == 4


def test_a_stream_that_others_read_is_waited_for(serve):
    served = serve(*SMALL)
    loader = tsock.DataLoader("toy", 10, **INDEX)
    rest(loader)
    first = take(iter(loader), 4)
    state = through_json(loader)
    loader.close()
    served.stop()
    serve(*SMALL)
    others = tsock.DataLoader("toy", 16, **INDEX)
    go_on, begun = threading.Event(), threading.Event()

    def read():
        running = iter(others)
        next(running)
        begun.set()
        go_on.wait()
        rest(running)
        rest(others)
        others.close()

    thread = threading.Thread(target=read)
    thread.start()
    begun.wait()
    waiting = tsock.DataLoader("toy", 16, timeout=0.2, **INDEX)
    waiting.load_state_dict(state)
    iterator = iter(waiting)

    def awaited():
        with pytest.raises(tsock.TimedOut):
            next(iterator)
        return waiting.resumed == "awaited"

    until(awaited)
    go_on.set()
    waiting.timeout = 100
    assert sorted(first + rest(iterator)) == list(range(N))
    assert waiting.stream_epoch == 1
    thread.join()


def gone_past(loader):
    """A state whose epoch's start the stream doesn't hold any more, and what
    came before and after it."""
    iterator = iter(loader)
    first = take(iterator, 2)
    state = through_json(loader)
    whole = first + rest(iterator)
    rest(loader)
    rest(loader)
    return state, first, whole


def test_who_is_alone_takes_a_stream_back(serve):
    serve(*SMALL)
    loader = tsock.DataLoader("toy", 16, **INDEX)
    state, first, whole = gone_past(loader)
    loader.close()
    other = tsock.DataLoader("toy", 7, **INDEX)
    other.load_state_dict(state)
    assert first + rest(other) == whole
    assert other.resumed == "moved"
    assert other.epoch == other.stream_epoch == 0
    # A look at the next one costs nothing, as ever.
    looked = take(iter(other), 1)
    assert rest(other)[:7] == looked and other.epoch == 1


def test_the_same_loader_takes_its_stream_back(serve):
    serve(*SMALL)
    loader = tsock.DataLoader("toy", 16, **INDEX)
    state, first, whole = gone_past(loader)
    for _ in range(2):
        loader.load_state_dict(state)
        assert first + rest(loader) == whole
        assert loader.resumed == "moved" and loader.epoch == 0


def test_a_subset_takes_a_stream_back(serve):
    serve(*SMALL)
    evens = range(0, N, 2)
    loader = tsock.DataLoader("toy", 16, subset=evens, **INDEX)
    state, first, whole = gone_past(loader)
    loader.close()
    other = tsock.DataLoader("toy", 10, subset=evens, **INDEX)
    other.load_state_dict(state)
    assert first + rest(other) == whole
    assert other.resumed == "moved" and other.epoch == 0


def test_ranks_take_a_stream_back_together(serve):
    serve(*SMALL)
    loader = tsock.DataLoader("toy", 8, **INDEX)
    state, first, whole = gone_past(loader)
    loader.close()
    parts = [
        tsock.DataLoader(
            "toy", 8, rank=rank, world_size=2, job="back", **INDEX
        )
        for rank in range(2)
    ]
    seen, failed = [[], []], []

    def read(rank):
        try:
            parts[rank].load_state_dict(state)
            seen[rank] = rest(parts[rank])
        except Exception as e:
            failed.append(e)

    other = threading.Thread(target=read, args=(1,), daemon=True)
    other.start()
    read(0)
    # Without rank 0 the other one may wait for ever.
    assert not failed
    other.join()
    assert not failed
    assert set(first + seen[0] + seen[1]) == set(whole)
    assert len(seen[0]) == len(seen[1]) == (N - len(first) + 1) // 2
    assert [part.resumed for part in parts] == ["moved"] * 2


def test_a_stream_that_others_read_on_says_so_and_then_begins_anew(serve):
    serve(*SMALL)
    loader = tsock.DataLoader("toy", 16, **INDEX)
    state, _, _ = gone_past(loader)
    beside = iter(loader)
    next(beside)
    other = tsock.DataLoader("toy", 16, **INDEX)
    other.load_state_dict(state)
    with pytest.raises(tsock.CannotResume) as caught:
        next(iter(other))
    for text in ("sample 32 of epoch 0", "1 other consumer", "iterate again"):
        assert text in str(caught.value)
    assert other.resumed is None
    beside.close()
    assert sorted(rest(other)) == list(range(N))


def test_a_state_of_which_nothing_is_left_is_followed_by_a_new_epoch(serve):
    """Less than a batch of another size is left, which drop_last drops."""
    serve()
    loader = tsock.DataLoader("toy", 10, **INDEX)
    take(iter(loader), 20)
    state = through_json(loader)
    assert not state["finished"]
    other = tsock.DataLoader("toy", 16, drop_last=True, **INDEX)
    other.load_state_dict(state)
    assert rest(other) == []
    assert len(rest(other)) == N // 16 * 16
    assert other.epoch == 1


def test_a_state_of_another_stream_is_refused_with_the_difference(serve):
    serve("--seed", 1, name="one")
    serve("--seed", 2, name="two")
    one = tsock.DataLoader("one", 16, **INDEX)
    next(iter(one))
    two = tsock.DataLoader("two", 16, **INDEX)
    with pytest.raises(ValueError, match="seed is 1 there and 2 here"):
        two.load_state_dict(one.state_dict())
    assert sorted(rest(two)) == list(range(N))


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"epoch": ""},
        {"epoch": 1 << 64},
        {"samples_yielded": 1 << 64},
        {"order": {1: 2}},
        {"samples_yielded": -1},
        {"samples_yielded": "x"},
        {"epoch": 1.5},
        {"order": None},
        {"order": {}},
    ],
    ids=str,
)
def test_what_is_no_state_is_refused(serve, change):
    serve()
    loader = tsock.DataLoader("toy", 16, **INDEX)
    next(iter(loader))
    with pytest.raises(ValueError, match="state"):
        loader.load_state_dict(dict(loader.state_dict(), **change))
    with pytest.raises(ValueError, match="no state"):
        loader.load_state_dict({"sampler": 1})


def test_a_state_of_another_version_says_so_whatever_is_in_it(serve):
    serve()
    loader = tsock.DataLoader("toy", 16, **INDEX)
    with pytest.raises(ValueError, match="is of version 2, and this tsock"):
        loader.load_state_dict({"version": 2, "position": 17})


def test_an_epoch_that_no_stream_has_is_not_another_one(serve):
    serve()
    loader = tsock.DataLoader("toy", 16, **INDEX)
    next(iter(loader))
    # Times the length this is beyond 2 ** 64: in 64 bits, in the first epoch.
    state = dict(loader.state_dict(), epoch=(1 << 64) // N + 1)
    loader.load_state_dict(state)
    with pytest.raises(tsock.CannotResume, match="so many epochs"):
        next(iter(loader))


def test_where_epochs_begin_anywhere_a_state_is_of_whole_epochs(serve):
    serve("--segments", 4)
    loader = tsock.DataLoader("toy", 10, join="segment", **INDEX)
    take(iter(loader), 3)
    assert loader.state_dict()["finished"]
    assert tsock.query("toy")["epoch_len"] == N
    until(lambda: tsock.query("toy")["consumers"] == 0)
