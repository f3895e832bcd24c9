# SPDX-License-Identifier: MIT
"""tsock.serve(identity=): jobs go on when the loader is served again."""

import inspect
import threading

import pytest

import tsock
from conftest import finish, until
from test_serve_loader import loader_of

numpy = pytest.importorskip("numpy")

N, OWN = 43, 8  # samples of an epoch, of the loader's own batches
EPOCHS = 3
SMALL = {"ring": 20, "max_batch": 10, "join_window": 5}


class Shuffled:
    """A loader whose epochs are functions of their numbers.

    dies: an epoch, and the batch of it before which the loader waits for ever.
    """

    def __init__(self, n=43, own=8, width=3, seed=0, dies=None):
        self.n, self.own, self.width, self.seed = n, own, width, seed
        self.dies, self.epoch = dies, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        draw = numpy.random.RandomState(self.seed + self.epoch)
        order = draw.permutation(self.n)
        for i in range(0, self.n, self.own):
            if self.dies == (self.epoch, i // self.own):
                threading.Event().wait()
            y = order[i : i + self.own]
            x = numpy.outer(y + 1000 * self.epoch, numpy.ones(self.width))
            yield {"x": x.astype("float32"), "y": y, "name": list(map(str, y))}


SERVE = (
    "import sys, threading, numpy, tsock\n"
    + inspect.getsource(Shuffled)
    + "dies, keywords = eval(sys.argv[1])\n"
    "loader = Shuffled(dies=dies)\n"
    "with tsock.serve(loader, 'mine', identity='runs-1', **keywords) as s:\n"
    "    print('serving', flush=True)\n"
    "    s.run()\n"
)


def said(batches):
    """What came, sample by sample."""
    return [
        (batch["x"][i].tobytes(), int(batch["y"][i]), batch["name"][i])
        for batch in batches
        for i in range(len(batch["y"]))
    ]


def epoch_of(number, **keywords):
    loader = Shuffled(**keywords)
    loader.set_epoch(number)
    return said(loader)


class Job(threading.Thread):
    """Reads all epochs, with batches of a size."""

    def __init__(self, size):
        super().__init__(daemon=True)
        self.loader = loader_of(batch_size=size)
        self.got, self.error = [], None
        self.start()

    def run(self):
        try:
            for _ in range(EPOCHS):
                self.got.append(said(self.loader))
        except BaseException as e:
            self.error = e

    def result(self):
        self.join()
        if self.error:
            raise self.error
        return self.got


@pytest.mark.parametrize("ragged", [False, True], ids=["fixed", "ragged"])
@pytest.mark.parametrize("dies", [(1, 2), (1, 0)], ids=["middle", "edge"])
def test_jobs_go_on_at_the_exact_next_sample(place, script, dies, ragged):
    """Each where it was, when the process that served was killed."""
    length, own = (-(-N // OWN), 1) if ragged else (N, OWN)
    head = dies[0] * length + dies[1] * own
    keywords = {"ragged": ragged, "epochs": EPOCHS, "min_consumers": 2}
    keywords["length"] = length
    first = script(SERVE, (dies, keywords))
    assert first.stdout.readline() == "serving\n"
    jobs = [Job(None) if ragged else Job(size) for size in (10, 7)]
    until(lambda: tsock.query("mine")["head"] == head)
    first.kill()
    first.wait()
    second = script(SERVE, (None, keywords))
    assert second.stdout.readline() == "serving\n"
    for job in jobs:
        assert job.result() == [epoch_of(e) for e in range(EPOCHS)]
        job.loader.close()
    finish(second)


@pytest.mark.parametrize(
    "loader, keywords, text",
    [
        ({"n": 40}, {}, "its epoch's length was 43 and is 40"),
        ({"width": 4}, {}, "a field was x and is another or of another shape"),
        ({"own": 6}, {}, "batch was 8 and is 6"),
        ({"seed": 9}, {}, "another stream: its first batch's checksum was"),
        ({}, {"identity": "b"}, "another stream: identity was a and is b;"),
        ({}, {"identity": None}, "resumable was 1 and is 0"),
    ],
)
def test_a_loader_that_is_not_the_same_any_more_is_refused(
    served, loader, keywords, text
):
    first = served(Shuffled(), length=N, identity="a", **SMALL)
    mine = loader_of(batch_size=10)
    assert said(mine) == epoch_of(0)
    first.close()
    keywords = dict({"identity": "a"}, **keywords)
    served(Shuffled(**loader), length=loader.get("n", N), **keywords)
    with pytest.raises(tsock.ProducerLost, match=text) as caught:
        for _ in range(EPOCHS):  # what was published before still comes
            said(mine)
    assert "serves another stream: " in str(caught.value)


@pytest.mark.parametrize("epochs", [0, 2], ids=["same epoch", "later ones"])
def test_a_saved_state_takes_a_served_loader_back(served, epochs):
    """Also in the next server, and not under another identity."""
    n = 203
    server = served(Shuffled(n), length=n, identity="a", **SMALL)
    loader = loader_of(batch_size=10)
    assert said(loader) == epoch_of(0, n=n)
    iterator = iter(loader)
    before = said([next(iterator), next(iterator)])
    state = loader.state_dict()
    behind = state["samples_yielded"] + n + server.stats()["capacity"]
    for _ in range(epochs):
        said(iterator)
        iterator = iter(loader)
    until(lambda: next(iterator) and server.stats()["claimed"] > behind)
    assert (server.stats()["epoch"] > 1) == (epochs > 0)

    def leave(reader):
        reader.close()
        until(lambda: not server.stats()["consumers"])

    leave(loader)

    def gone_on():
        other = loader_of(batch_size=7)
        other.load_state_dict(state)
        got = said(other), other.resumed, said(other)
        leave(other)
        return got

    want = epoch_of(1, n=n)[len(before) :], "moved", epoch_of(2, n=n)
    assert before == epoch_of(1, n=n)[:20] and gone_on() == want
    server.close()
    server = served(Shuffled(n), length=n, identity="a", **SMALL)
    assert gone_on() == want
    server.close()
    served(Shuffled(n), length=n, identity="b", **SMALL)
    with pytest.raises(ValueError, match="identity is a there and b here"):
        loader_of().load_state_dict(state)


def test_torchs_loader_goes_on_where_its_order_is_of_the_epoch(served):
    torch = pytest.importorskip("torch")
    data = torch.arange(N)

    def loader():
        sampler = torch.utils.data.DistributedSampler(
            data, num_replicas=1, rank=0, seed=5
        )
        return torch.utils.data.DataLoader(data, OWN, sampler=sampler)

    def order(epoch):
        made = loader()
        made.sampler.set_epoch(epoch)
        return [int(i) for batch in made for i in batch]

    first = served(loader(), identity="a")
    mine = loader_of(batch_size=10)
    assert [int(i) for batch in mine for i in batch] == order(0)
    iterator = iter(mine)
    got = [next(iterator)]
    first.close()
    served(loader(), identity="a")
    got += list(iterator) + list(mine)
    assert [int(i) for batch in got for i in batch] == order(1) + order(2)


def test_a_loader_that_can_not_keep_the_promise_is_refused(place):
    torch = pytest.importorskip("torch")
    shuffled = torch.utils.data.DataLoader(
        torch.arange(N), OWN, shuffle=True
    )
    with pytest.raises(ValueError, match="RandomSampler draws another order"):
        tsock.serve(shuffled, "mine", identity="a")
    # A sampler that is told the epoch's number may seed the generator by it.
    shuffled.set_epoch = lambda epoch: None
    tsock.serve(shuffled, "mine", identity="a").close()
    with pytest.raises(ValueError, match="generator can be iterated only once"):
        tsock.serve(iter(Shuffled()), "mine", length=N, identity="a")
    for wrong in ("", 3, "a\0b"):
        with pytest.raises(ValueError, match="identity .*: it is a text"):
            tsock.serve(Shuffled(), "mine", length=N, identity=wrong)
    assert not tsock.streams()
