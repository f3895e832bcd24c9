# SPDX-License-Identifier: MIT
"""tsock.serve(): loaders that don't know how many samples an epoch has."""

import logging

import pytest

import tsock
from test_serve_loader import N, cut, labels, loader_of
from tsock.serving import feed

numpy = pytest.importorskip("numpy")

BATCHES = len(cut(labels))


class Unsized:
    """Can be iterated again and again, and has no length."""

    def __init__(self, lengths=(N,)):
        self.lengths = lengths
        self.passes = 0
        self.epochs = []

    def set_epoch(self, epoch):
        self.epochs.append(epoch)

    def __iter__(self):
        n = self.lengths[min(self.passes, len(self.lengths) - 1)]
        self.passes += 1
        yield from cut(labels, n)


def function():
    yield from cut(labels)


def said(caplog):
    """What was logged of the loader, as warnings."""
    return [
        r.getMessage()
        for r in caplog.records
        if r.levelno == logging.WARNING and "the loader" in r.getMessage()
    ]


@pytest.mark.parametrize("make", [Unsized, lambda: function])
def test_a_loader_without_a_length_is_counted(served, caplog, make):
    """An epoch ends where it does, and the next one begins."""
    served(make(), epochs=2)
    (line,) = said(caplog)
    assert line.startswith("stream mine: the loader has no length")
    assert "the %d samples of an epoch; length=%d saves" % (N, N) in line
    mine = loader_of(batch_size=10)
    assert len(mine) == 11
    for _ in range(2):
        iterator = iter(mine)
        got = numpy.concatenate([next(iterator) for _ in range(11)])
        assert (got == labels(range(N))).all()
        with pytest.raises(StopIteration):
            next(iterator)
    with pytest.raises(tsock.StreamEnded):
        next(iter(mine))


def test_what_is_counted_is_begun_anew(served):
    """By set_epoch() with the first epoch's number, and one pass more."""
    loader = Unsized()
    server = served(loader, epochs=1)
    assert loader.epochs == [0, 0] and loader.passes == 2
    assert sum(len(b) for b in loader_of(batch_size=10)) == N
    assert server.stats()["batches"] == BATCHES
    given = Unsized()
    served(given, "given", length=N)
    assert given.epochs == [0] and given.passes == 1


def test_what_transform_makes_is_counted(served):
    served(Unsized(), transform=lambda batch: batch[::2], epochs=1)
    got = [int(x) for b in loader_of(batch_size=7) for x in b]
    assert got == [7 * i for i in range(0, N - 1, 2)] + [7 * (N - 1)]


def test_ragged_batches_are_counted(served, caplog):
    served(function, ragged=True, epochs=2)
    assert "%d batches of an epoch" % BATCHES in said(caplog)[0]
    mine = loader_of(batch_size=None)
    assert len(mine) == BATCHES
    for _ in range(2):
        assert [len(b) for b in mine] == [len(b) for b in cut(labels)]


@pytest.mark.parametrize("workers", [0, 2])
def test_torchs_loader_of_an_iterable_data_set(served, workers):
    torch = pytest.importorskip("torch")

    class Numbers(torch.utils.data.IterableDataset):
        def __iter__(self):
            info = torch.utils.data.get_worker_info()
            first, step = (info.id, info.num_workers) if info else (0, 1)
            return iter(range(first, N, step))

    loader = torch.utils.data.DataLoader(
        Numbers(), 10, num_workers=workers, persistent_workers=workers > 0
    )
    served(loader, epochs=2)
    mine = tsock.DataLoader("mine", 25)
    assert len(mine) == 5
    for _ in range(2):
        assert sorted(int(i) for b in mine for i in b) == list(range(N))


@pytest.mark.parametrize("now, text", [(90, "had 90 samples"), (130, "goes")])
def test_a_later_epoch_of_another_length_is_named(served, now, text):
    served(Unsized([N, N, now]), epochs=2)
    mine = loader_of(batch_size=10)
    assert sum(len(b) for b in mine) == N
    with pytest.raises(tsock.StreamFailed, match=text) as caught:
        list(mine)
    for word in ("LoaderLength", "epoch 1", "is %d" % N, "as counted when it"):
        assert word in str(caught.value)


@pytest.mark.parametrize("make", [iter, enumerate, lambda b: zip(b, b)])
def test_what_can_be_iterated_once_is_not_counted(place, caplog, make):
    with pytest.raises(ValueError, match="only once; give length=.*samples"):
        tsock.serve(make(cut(labels)), "mine")
    assert not said(caplog) and not tsock.streams()


def test_a_second_pass_that_is_empty_is_an_error_at_once(place):
    only = function()
    with pytest.raises(ValueError, match="%d samples when they were" % N) as e:
        tsock.serve(lambda: only, "mine")
    assert "give length=%d, or serve a function" % N in str(e.value)
    assert not tsock.streams()


def test_what_is_raised_while_a_loader_is_counted_is_raised_by_serve(place):
    def broken():
        yield labels(range(4))
        raise KeyError("no such sample: 17")

    with pytest.raises(KeyError, match="17"):
        tsock.serve(broken, "mine")
    assert not tsock.streams()


def test_a_loader_without_an_end_is_told_of_while_it_is_counted(
    place, caplog, monkeypatch
):
    monkeypatch.setattr(feed, "COUNTING", 0)

    class Enough(Exception):
        pass

    def endless():
        for _ in range(20):
            yield labels(range(4))
        raise Enough

    with pytest.raises(Enough):
        tsock.serve(endless, "mine")
    (line,) = said(caplog)
    assert "samples so far; length=" in line and "without an end" in line
