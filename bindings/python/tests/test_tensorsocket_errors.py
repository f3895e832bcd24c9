# SPDX-License-Identifier: MIT
"""tsock.tensorsocket where something ends, is missing or can't be."""

import warnings

import pytest

import tsock
from conftest import finish, until

torch = pytest.importorskip("torch")

from test_tensorsocket import N, Numbers, Samples  # noqa: E402
from test_tensorsocket import consume, loader_of  # noqa: E402
from test_tensorsocket import produce  # noqa: E402,F401 - a fixture
from test_tensorsocket_scripts import EXAMPLE_PRODUCER, here  # noqa: E402
from tsock.tensorsocket import TensorConsumer, TensorProducer  # noqa: E402

pytestmark = pytest.mark.usefixtures("warm")


def test_a_loader_that_raises_is_heard_on_both_sides(produce):
    class Broken(Samples):
        def __getitem__(self, i):
            if i == 50:
                raise KeyError("sample 50")
            return super().__getitem__(i)

    producer = produce(torch.utils.data.DataLoader(Broken(), batch_size=8))
    consumer = consume(batch_size=8)
    with pytest.raises(tsock.StreamFailed, match="KeyError: 'sample 50'"):
        list(consumer)
    until(lambda: producer.errors)
    assert type(producer.errors[0]) is KeyError


@pytest.mark.kills
def test_a_producer_that_dies_is_an_error_of_its_consumers(place, script):
    process = script(here(EXAMPLE_PRODUCER), CUDA_VISIBLE_DEVICES="")
    consumer = consume(port=5556)
    next(consumer)
    process.kill()
    process.wait()
    with pytest.raises(tsock.ProducerLost):
        for _ in range(3):
            list(consumer)


def test_a_consumer_that_leaves_stops_nobody(produce):
    """In TensorSocket that cost the others ten seconds, and hung the producer."""
    produce(loader_of(), epochs=2)
    with consume(batch_size=8) as first:
        next(first)
        second = consume(batch_size=8)
        next(second)
    assert [int(i) for _, y in second for i in y] == list(range(8, N))
    assert [int(i) for _, y in second for i in y] == list(range(N))


def test_nobody_serves_that_port(place):
    with pytest.raises(tsock.NoProducer):
        TensorConsumer(port=9, wait=0.1)


@pytest.mark.parametrize(
    "keywords, text",
    [
        ({"port": "x"}, "port 'x': it is a number"),
        ({"rubber_band_pct": 2}, "part of an epoch"),
        ({"producer_batch_size": 0}, "producer_batch_size 0"),
        ({"consumer_max_buffer_size": 0}, "consumer_max_buffer_size 0"),
        ({"rubber_band": 2}, "did you mean 'rubber_band_pct'"),
    ],
)
def test_arguments_that_can_not_be(place, keywords, text):
    with pytest.raises((TypeError, ValueError), match=text):
        TensorProducer(loader_of(), **keywords)


def test_what_is_not_needed_any_more_is_said(place):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with TensorProducer(
            loader_of(), 1, 2, (3, 4), 0.02, clip=object(), online=True
        ):
            TensorConsumer(1, 2, (3, 4), 10).close()
    texts = [str(w.message) for w in said if "tsock.tens" in str(w.message)]
    assert [text.split(": ")[1].split("=")[0] for text in texts] == [
        "ack_port",
        "heart_ports",
        "clip",
        "ack_port",
        "heart_ports",
        "max_buffer_size",
    ]
    assert all(w.filename == __file__ for w in said[:6])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with TensorProducer(loader_of(), 1, 5556, (4444, 4445)):
            TensorConsumer(1, 5556).close()


@pytest.mark.parametrize("length", [N - 8, N + 8])
def test_a_length_that_is_wrong_is_heard_on_both_sides(produce, length):
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=8)
    producer = produce(loader, length=length)
    with pytest.raises(tsock.StreamFailed, match="LoaderLength.*length="):
        list(consume(batch_size=8))
    until(lambda: producer.errors)
    assert "its length is %d" % length in str(producer.errors[0])


def test_a_loader_without_a_length_needs_one(place):
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=8)
    with pytest.raises(TypeError, match="has no len.*give length=, the number"):
        TensorProducer(loader)
    with pytest.raises(ValueError, match="length 0: it is 1 or more"):
        TensorProducer(loader, length=0)


@pytest.mark.parametrize("size", [160, 200, 320])
def test_a_consumer_has_all_even_if_the_producer_is_gone(place, script, size):
    """The end of an epoch is known without anybody who says it."""
    process = script(
        here(EXAMPLE_PRODUCER)
        .replace("range(3)", "range(1)")
        .replace("0.02)", "0.02, producer_batch_size=40)"),
        CUDA_VISIBLE_DEVICES="",
    )
    consumer = consume(port=5556, batch_size=size)
    labels = [next(consumer)[1].clone()]  # and the batch is let go
    finish(process)
    labels += [y for _, y in consumer]
    assert torch.cat(labels).tolist() == [i // 8 for i in range(320)]
    assert consumer.epoch == 1
    with pytest.raises(tsock.StreamEnded):
        list(consumer)
