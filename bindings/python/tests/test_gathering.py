# SPDX-License-Identifier: MIT
"""What ranks tell each other, by torch's store and by a function."""

import datetime
import logging
import threading

import pytest

import tsock
from tsock import gathering
from tsock.gathering import ByFunction, ByStore

distributed = pytest.importorskip("torch.distributed")


def together(*calls):
    """What the calls return or raise, each in a thread."""
    found = [None] * len(calls)

    def one(at):
        try:
            found[at] = calls[at]()
        except Exception as e:
            found[at] = e

    threads = [
        threading.Thread(target=one, args=(at,)) for at in range(len(calls))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    if request.param == "memory":
        made = distributed.HashStore()
    else:
        made = distributed.FileStore(str(tmp_path / "store"), 1)
    made.set_timeout(datetime.timedelta(seconds=30))
    return made


def test_a_store_gives_all_ranks_what_each_said(store):
    ranks = [ByStore(rank, 3, store) for rank in range(3)]
    for number in range(4):
        values = [{"a": [number, "ü", rank]} for rank in range(3)]
        found = together(
            *(
                lambda rank=rank: rank.gather("x", values[rank.rank], "meet")
                for rank in ranks
            )
        )
        assert found == [values] * 3
    assert together(
        *(lambda rank=rank: rank.gather("y", 1, "meet") for rank in ranks)
    ) == 3 * [[1, 1, 1]]


def test_a_store_keeps_nothing_but_the_last_of_each(store):
    ranks = [ByStore(rank, 2, store) for rank in range(2)]
    before = store.num_keys()
    sizes = set()
    for _ in range(5):
        together(*(lambda r=r: r.gather("x", r.rank, "meet") for r in ranks))
        sizes.add(store.num_keys() - before)
    assert sizes == {1}


def test_words_of_ranks_before_are_not_these_ranks(store):
    """torchelastic starts ranks again with the same store: here one more each
    time, and each run is broken off in another state."""
    for world in range(2, 6):
        before = [ByStore(rank, world, store) for rank in range(world)]
        together(
            *(
                lambda r=r: r.gather("x", "old", "meet", 0.2)
                for r in before[1:]
            )
        )
        before = [ByStore(rank, world, store) for rank in range(world)]
        together(*(lambda r=r: r.gather("x", "old", "meet") for r in before))
        together(
            *(
                lambda r=r: r.gather("x", "old", "meet", 0.2)
                for r in before[1:]
            )
        )
        now = [ByStore(rank, world - 1, store) for rank in range(world - 1)]
        found = together(
            *(lambda r=r: r.gather("x", r.rank, "meet", 30) for r in now)
        )
        assert found == [list(range(world - 1))] * (world - 1)


def test_who_is_waited_for_is_said_and_the_wait_ends(monkeypatch, caplog):
    monkeypatch.setattr(gathering, "FIRST_WORD", 0.05)
    store = distributed.HashStore()
    ranks = [ByStore(rank, 12, store) for rank in range(3)]
    with caplog.at_level(logging.WARNING, "tsock"):
        found = together(
            *(
                lambda r=r: r.gather("x", 0, "begin an epoch of 'toy'", 0.3)
                for r in ranks
            )
        )
    for rank, error in enumerate(found):
        assert isinstance(error, tsock.TimedOut)
        text = (
            "rank %d of 12 has waited for 0 s for ranks 3, 4, 5, 6, 7, 8, 9, "
        )
        text += "10 and 1 more: all ranks begin an epoch of 'toy'"
        assert str(error) == text % rank
    assert len(caplog.records) == 3
    assert "needs rank=0, world_size=1" in caplog.text


def test_a_store_that_is_gone_is_an_error():
    class Gone:
        def check(self, keys):
            raise distributed.DistError("Broken pipe\nException raised from")

    with pytest.raises(tsock.Error, match="perhaps rank 0 has ended: Broken"):
        ByStore(0, 2, Gone()).gather("x", 0, "meet")


@pytest.mark.parametrize(
    "given, said",
    [
        (lambda told: [told], "gave 1 objects, and world_size is 2"),
        (lambda told: [told, told], "rank 0 said as the 1-th object"),
        (lambda told: [told, 7], "gave 7 for rank 1"),
        (
            lambda told: [told, {**told, "rank": 1, "key": ["y", 0]}],
            r"rank 0 and rank 1 don't gather the same: \('y', 0\) there",
        ),
    ],
)
def test_a_function_that_does_not_gather_is_refused(given, said):
    with pytest.raises((ValueError, tsock.Error), match=said):
        ByFunction(0, 2, given).gather("x", 0, "meet")


def test_what_gather_needs(serve):
    serve()
    with pytest.raises(ValueError, match="needs rank= and world_size="):
        tsock.DataLoader("toy", 8, gather=lambda told: [told])
    with pytest.raises(TypeError, match="a function of one object"):
        tsock.DataLoader("toy", 8, gather=7, rank=0, world_size=2)
