# SPDX-License-Identifier: MIT
"""tsock.serve(): what goes wrong in a loader is told to every consumer."""

import os
import signal
import sys
import threading
import types

import pytest

import tsock
from conftest import finish, until
from test_serve_loader import N, Squares, cut, labels, loader_of
from tsock.serving import consumer

numpy = pytest.importorskip("numpy")


def failing(*batches):
    """What a consumer is told of a loader with these batches."""
    with pytest.raises(tsock.StreamFailed) as caught:
        for _ in range(3):
            list(loader_of(batch_size=4))
    return str(caught.value)


def test_what_a_loader_raises_reaches_every_consumer_and_run(served):
    def broken():
        yield numpy.zeros((4, 3))
        yield numpy.zeros((4, 3))
        raise KeyError("no such sample: 17")

    server = served(broken, length=100, min_consumers=2)
    texts = []

    def read():
        texts.append(failing())

    other = threading.Thread(target=read)
    other.start()
    read()
    other.join()
    assert len(texts) == 2
    for text in texts:
        assert "KeyError" in text and "no such sample: 17" in text
        assert "Traceback (most recent call last):\n" in text
        assert "in broken\n" in text
    with pytest.raises(KeyError, match="17"):
        server.run()


def test_who_closes_because_of_an_error_does_so_after_consumers_heard(served):
    """They were told that the producer had shut down."""

    class Closes(Exception):
        def __str__(self):
            if server.error:
                server.close()
            return "no more"

    def broken():
        yield numpy.zeros((4, 3))
        raise Closes

    server = served(broken, length=100)
    assert "Closes: no more" in failing()


class Bad(Squares):
    def __getitem__(self, i):
        if i == 50:
            raise ValueError("sample %d is bad" % i)
        return super().__getitem__(i)


def test_what_a_worker_raises_has_its_own_traceback(served):
    torch = pytest.importorskip("torch")
    served(torch.utils.data.DataLoader(Bad(), batch_size=10, num_workers=1))
    text = failing()
    assert "stopped: ValueError: sample 50 is bad" in text
    assert "in __getitem__" in text


@pytest.mark.parametrize(
    "second, words",
    [
        ({"x": numpy.zeros((4, 5))}, ["x has", "(5,)", "(3,)", "ragged"]),
        ({"x": numpy.zeros((4, 3), "int8")}, ["x is int8", "float64"]),
        ({"y": numpy.zeros((4, 3))}, ["y wasn't in the first", "ragged"]),
        ({"x": numpy.zeros((4, 3)), "z": 1}, ["'z'", "ragged"]),
        ({"x": 5}, ["neither tensors"]),
    ],
)
def test_batches_that_change(served, second, words):
    served([{"x": numpy.zeros((4, 3))}, second], length=8)
    text = failing()
    assert "batch 1 of epoch 0" in text
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    "first, text",
    [
        ({"x": numpy.zeros((4, 3)), "y": numpy.zeros(5)}, "y has 5 rows"),
        ({"x": numpy.zeros((4, 3)), "y": numpy.array(5)}, "y is one number"),
        ({"x": numpy.zeros((4, 0))}, "no elements"),
        ({"x": numpy.zeros(4), "s": ["a" * 300] * 4}, "string_bytes=300"),
        ({"x": numpy.zeros(4), "o": object()}, "pack="),
        ({"x": numpy.zeros(4, "datetime64[s]")}, "can't be served"),
        ({str(i): numpy.zeros(4) for i in range(17)}, "at most 16"),
        ({(1, 2): numpy.zeros(4)}, "keys may be"),
    ],
)
def test_what_can_not_be_served_is_said_at_once(place, first, text):
    with pytest.raises((TypeError, ValueError), match=text):
        tsock.serve([first], "mine")
    assert not tsock.streams()


@pytest.mark.parametrize("name", ["tsock-copy", "tsock-serve", "tsock-watch"])
def test_a_stream_whose_threads_do_not_start_is_not_served(
    place, monkeypatch, name
):
    start = threading.Thread.start

    def refuse(thread):
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    before = set(threading.enumerate())
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            tsock.serve([labels(range(4))], "mine", timeout=60)
    assert not tsock.streams()
    until(lambda: not set(threading.enumerate()) - before)
    tsock.serve([labels(range(4))], "mine").close()


def test_a_stream_that_says_nonsense_is_left_again(monkeypatch):
    class Pool:
        about = types.SimpleNamespace(
            name="mine", fields=(), identity={"structure": "{"}
        )
        open = True

        def close(self):
            self.open = False

    pools = []

    def connect():
        if not pools:
            pools.append(None)
            raise tsock.Refused("batch size 8: the stream allows 1 to 1")
        pools.append(Pool())
        return pools[-1]

    opts = types.SimpleNamespace(batch_size=0)
    with pytest.raises(ValueError, match="can't be read"):
        consumer.connected("mine", opts, 8, connect)
    assert len(pools) == 2 and not pools[1].open


def test_a_loader_that_ends_early_is_named(served):
    served(cut(labels), length=200)
    text = failing()
    assert "LoaderLength" in text and "had 103 samples" in text
    assert "length is 200" in text


def test_a_loader_that_goes_on_is_named_before_the_epoch_ends(served):
    served(cut(labels), length=96)
    assert "goes on after the end of epoch 0" in failing()


@pytest.mark.parametrize("now", [90, 130])
@pytest.mark.parametrize("ragged", [False, True])
def test_a_data_set_that_grew_or_shrank_is_named_between_epochs(
    served, now, ragged
):
    """All of the epoch before comes first, and then both lengths."""
    torch = pytest.importorskip("torch")

    class Growing(torch.utils.data.Dataset):
        size = 100

        def set_epoch(self, epoch):
            self.size = now if epoch else self.size

        def __len__(self):
            return self.size

        def __getitem__(self, i):
            return torch.tensor([i])

    data = Growing()
    loader = torch.utils.data.DataLoader(data, 10)
    server = served(loader, ragged=ragged, epochs=2)
    mine = tsock.DataLoader("mine", None if ragged else 16)
    seen = [int(i) for batch in mine for i in batch]
    assert seen == list(range(100))
    with pytest.raises(tsock.StreamFailed, match="serve the loader again") as e:
        next(iter(mine))
    what = "%d batches for epoch 1, and had %d" if ragged else (
        "%d samples for epoch 1, and had %d"
    )
    old, new = (10, now // 10) if ragged else (100, now)
    assert what % (new, old) in str(e.value)
    assert "LoaderLength" in str(e.value)
    server.close()
    # Served again it has its new length.
    served(torch.utils.data.DataLoader(data, 10), ragged=ragged)
    again = tsock.DataLoader("mine", None if ragged else 16)
    assert sum(len(batch) for batch in again) == now


def test_a_generator_can_be_iterated_once(served):
    served((batch for batch in cut(labels)), length=N)
    mine = loader_of(batch_size=10)
    assert sum(len(b) for b in mine) == N
    with pytest.raises(tsock.StreamFailed, match="serve a function"):
        list(mine)


def test_a_length_that_can_not_be_told_is_asked_for(place):
    with pytest.raises(ValueError, match="give length="):
        tsock.serve((batch for batch in cut(labels)), "mine")
    with pytest.raises(ValueError, match="no batch"):
        tsock.serve([], "mine")


def test_a_loader_that_hangs_is_named(served):
    gate = threading.Event()

    def hangs():
        yield numpy.zeros((4, 3))
        gate.wait()

    served(hangs, length=8, timeout=0.2)
    try:
        # The error was raised nowhere, so there is no traceback.
        assert failing().endswith("TimedOut: the loader gave no batch for 0.2 s")
    finally:
        gate.set()


@pytest.mark.parametrize(
    "keywords, text",
    [
        ({"length": 0}, "length 0"),
        ({"epochs": -1}, "epochs -1"),
        ({"threads": True}, "threads True"),
        ({"transform": 3}, "is a function"),
        ({"ragged": True, "max_batch": 3}, "own batches"),
        ({"ragd": True}, "did you mean 'ragged'"),
        ({"timeout": -1}, "number of seconds"),
    ],
)
def test_arguments_that_can_not_be(place, keywords, text):
    with pytest.raises((TypeError, ValueError), match=text):
        tsock.serve(cut(labels), "mine", **keywords)


def test_only_served_loaders_have_batches_of_their_own(serve):
    serve()
    with pytest.raises(ValueError, match="no batches of its own"):
        tsock.DataLoader("toy", None)
    with pytest.raises(ValueError, match="isn't one of tsock.serve"):
        tsock.DataLoader("toy", 8, unpack=len)


def test_a_data_set_is_no_loader(place):
    with pytest.raises(TypeError, match="DataLoader"):
        tsock.serve(Squares(), "mine")


def test_what_is_no_iterable_is_no_loader(place):
    with pytest.raises(TypeError, match="an object of type int: it takes an"):
        tsock.serve(5, "mine")


def test_ctrl_c_ends_a_server(place, script):
    process = script(SERVE, "{}")
    assert process.stdout.readline() == "serving\n"
    mine = loader_of(batch_size=50)
    assert sum(len(b) for b in mine) == 100
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=150)
    assert "KeyboardInterrupt" in err and process.returncode
    with pytest.raises(tsock.ProducerLost):
        while True:
            list(mine)


def test_modules_may_be_imported_meanwhile(place, monkeypatch):
    """Another thread is importing torch: it has no Tensor yet."""
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    with tsock.serve(cut(labels), "mine") as server:
        assert sum(len(b) for b in loader_of(batch_size=10)) == N
        assert server.error is None


@pytest.mark.parametrize(
    "keywords",
    [
        {"dtype": "float16"},
        {"layout": "hwc"},
        {"normalize": ((0, 0, 0), (1, 1, 1))},
    ],
)
def test_a_loaders_samples_are_not_converted(served, keywords):
    served(cut(labels))
    with pytest.raises(ValueError, match="are for images that tsock-producer"):
        loader_of(**keywords)


def test_a_name_that_is_taken(served):
    served(cut(labels))
    with pytest.raises(tsock.Error) as caught:
        tsock.serve(cut(labels), "mine")
    assert caught.value.code == "TSOCK_EEXIST"


SERVE = (
    "import sys, numpy, tsock\n"
    "batches = [numpy.full((5, 3), i) for i in range(20)]\n"
    "with tsock.serve(batches, 'mine', **eval(sys.argv[1])) as server:\n"
    "    print('serving', flush=True)\n"
    "    server.run()\n"
    "print('done', flush=True)\n"
)


def test_a_process_serves_to_the_streams_end(place, script):
    process = script(SERVE, "{'epochs': 2}")
    assert process.stdout.readline() == "serving\n"
    mine = loader_of(batch_size=50)
    for _ in range(2):
        assert sum(len(b) for b in mine) == 100
    mine.close()
    assert finish(process)[0] == "done\n"


@pytest.mark.kills
def test_the_serving_process_is_killed(place, script):
    process = script(SERVE, "{'ring': 40, 'max_batch': 10}")
    assert process.stdout.readline() == "serving\n"
    mine = loader_of(batch_size=10)
    iterator = iter(mine)
    next(iterator)
    process.kill()
    process.wait()
    with pytest.raises(tsock.ProducerLost):
        while True:
            list(iterator)
            iterator = iter(mine)


WORKERS = (
    "import torch, tsock\n"
    "class Zeros(torch.utils.data.Dataset):\n"
    "    def __len__(self): return 100000\n"
    "    def __getitem__(self, i): return torch.zeros(3)\n"
    "loader = torch.utils.data.DataLoader(Zeros(), 10, num_workers=2)\n"
    "with tsock.serve(loader, 'mine') as server:\n"
    "    print('serving', flush=True)\n"
    "    server.run()\n"
)


def test_workers_that_outlive_a_killed_server_hold_nothing(served, script):
    """They are forks of it, with copies of its sockets, for some seconds."""
    pytest.importorskip("torch")
    process = script(WORKERS)
    assert process.stdout.readline() == "serving\n"
    iterator = iter(loader_of(batch_size=10))
    next(iterator)
    process.kill()
    process.wait()
    with pytest.raises(tsock.ProducerLost):
        list(iterator)
    served(cut(labels))
    assert sum(len(b) for b in loader_of(batch_size=10)) == N


def test_an_interpreter_that_ends_closes_what_it_serves(place, script):
    process = script(
        "import numpy, tsock\n"
        "server = tsock.serve([numpy.zeros((5, 3))] * 9, 'mine')\n"
        "for b in tsock.DataLoader('mine', 9, framework='numpy'): pass\n"
    )
    assert finish(process) == ("", "")
    assert not tsock.streams() and os.listdir(place) == []


class Pictures:
    """A data set of Pillow's images, as torchvision's without a transform."""

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i > 7:
            raise IndexError
        return pytest.importorskip("PIL.Image").new("RGB", (4, 4)), i


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("joined", [False, True])
def test_images_of_pillows_are_refused_by_one_sentence(
    served, workers, joined
):
    data = pytest.importorskip("torch.utils.data")
    how = {"collate_fn": lambda rows: list(zip(*rows))} if joined else {}
    loader = data.DataLoader(Pictures(), 4, num_workers=workers, **how)
    with pytest.raises(tsock.BadBatch, match="a transform that makes") as e:
        served(loader)
    assert "\n" not in str(e.value) and isinstance(e.value, ValueError)
    del loader
