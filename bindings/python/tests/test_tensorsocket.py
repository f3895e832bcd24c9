# SPDX-License-Identifier: MIT
"""What TensorSocket's classes do, a producer and its consumers here."""

import threading

import pytest

import tsock
from conftest import until

torch = pytest.importorskip("torch")

from tsock.tensorsocket import TensorConsumer, TensorPayload  # noqa: E402
from tsock.tensorsocket import TensorProducer  # noqa: E402

N = 103


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return N

    def __getitem__(self, i):
        return torch.full((3,), float(i)), i


def loader_of(**keywords):
    keywords.setdefault("batch_size", 8)
    return torch.utils.data.DataLoader(Samples(), **keywords)


@pytest.fixture
def produce(place):
    """produce(loader, epochs, ...) drives a producer in a thread."""
    running = []

    def start(loader, epochs=1, **keywords):
        producer = TensorProducer(loader, **keywords)
        errors = []

        def drive():
            try:
                for _ in range(epochs):
                    for _ in producer:
                        pass
                producer.join()
            except Exception as e:  # noqa: BLE001 - looked at by the test
                errors.append(e)

        thread = threading.Thread(target=drive)
        running.append((producer, thread))
        thread.start()
        producer.errors = errors
        producer.thread = thread
        return producer

    yield start
    for producer, thread in running:
        producer.close()
        thread.join(150)
        assert not thread.is_alive()


def consume(**keywords):
    keywords.setdefault("device", "cpu")
    return TensorConsumer(**keywords)


@pytest.mark.parametrize("size", [1, 5, 8, 12, 20, 64, 100, -1])
def test_every_sample_comes_once_for_any_batch_size(produce, size):
    """TensorSocket skipped and repeated samples, and lost each epoch's end."""
    produce(loader_of(), epochs=2, producer_batch_size=13)
    consumer = consume(batch_size=size)
    each = 8 if size == -1 else size
    for epoch in range(2):
        sizes, seen = [], []
        for x, y in consumer:
            assert (x[:, 0] == y).all()
            sizes.append(len(y))
            seen += y.tolist()
            assert consumer.batch_count == len(sizes)
        assert seen == list(range(N))
        assert len(sizes) == len(consumer) == -(-N // each)
        assert consumer.epoch == epoch + 1 and consumer.batch_count == 0
    with pytest.raises(tsock.StreamEnded, match="port 5555"):
        next(consumer)


class Numbers(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(N))


def test_a_loader_without_a_length_is_given_one(produce):
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=8)
    producer = produce(loader, epochs=2, length=N)
    consumer = consume(batch_size=20)
    for epoch in range(2):
        got = [int(i) for (batch,) in consumer for i in batch]
        assert got == list(range(N))
    with pytest.raises(tsock.StreamEnded):
        next(consumer)
    assert len(producer) == producer.data_loader_len == 13
    assert consumer.data_loader_len == 13 and len(consumer) == 6
    producer.thread.join(150)
    assert producer.epoch == 2 and not producer.errors


def test_consumers_of_different_sizes_see_the_same(produce):
    producer = produce(loader_of(shuffle=True), epochs=3, rubber_band_pct=1)
    seen = {}
    # Nobody is further than the window when the last of them comes.
    begun = threading.Barrier(3)

    def read(size):
        with consume(batch_size=size) as consumer:
            first = next(consumer)
            begun.wait()
            epochs = [[first] + list(consumer)]
            epochs += [list(consumer) for _ in range(2)]
            seen[size] = [
                torch.cat([y for _, y in epoch]).tolist() for epoch in epochs
            ]

    threads = [
        threading.Thread(target=read, args=(size,)) for size in (7, 16, 33)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 3 and seen[7] == seen[16] == seen[33]
    assert all(sorted(epoch) == list(range(N)) for epoch in seen[7])
    producer.thread.join()
    assert not producer.errors


def test_a_loop_that_was_left_goes_on_where_it_was(produce):
    produce(loader_of())
    consumer = consume(batch_size=10)
    for _, y in consumer:
        break
    assert y.tolist() == list(range(10))
    rest = [int(i) for _, y in consumer for i in y]
    assert rest == list(range(10, N)) and consumer.epoch == 1


def test_the_producer_goes_a_batch_at_a_time(place):
    """As it does; the steps are the loader's batches."""
    with TensorProducer(loader_of()) as producer:
        assert len(producer) == 13 and producer.loader_batch_size == 8
        consumer = consume(batch_size=8)
        got = []
        thread = threading.Thread(target=lambda: got.extend(consumer))
        thread.start()
        assert sum(1 for _ in producer) == 13
        assert producer.epoch == 1
        thread.join()
        assert len(got) == 13
        # The second epoch is begun by iterating again, and not before.
        server = producer.server
        assert server.stats()["head"] == N
        iterator = iter(producer)
        assert next(iterator) is None and next(iterator) is None
        assert next(iter(consumer))[1].tolist() == list(range(8))
        assert server.stats()["head"] <= N + 16


class Rotated:
    """A sampler whose order is that of its epoch."""

    def __init__(self):
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return N

    def __iter__(self):
        return iter([(i + self.epoch) % N for i in range(N)])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("told", [False, True])
def test_an_epoch_is_the_one_that_the_loop_has_set(place, told, workers):
    """The next epoch's iterator was made before the loop could set the epoch."""
    sampler = Rotated()
    loader = loader_of(sampler=sampler, num_workers=workers)
    with TensorProducer(loader) as producer:
        consumer = consume(batch_size=20)
        seen = []

        def read():
            for _ in range(3):
                seen.append([int(i) for _, y in consumer for i in y])

        thread = threading.Thread(target=read)
        thread.start()
        for epoch in range(3):
            if told:
                sampler.set_epoch(epoch * 10)
            for _ in producer:
                pass
        thread.join()
        firsts = [0, 10, 20] if told else [0, 1, 2]
        assert seen == [[(i + f) % N for i in range(N)] for f in firsts]


def test_join_waits_for_what_is_unread_and_for_nothing_else(produce):
    producer = produce(loader_of())
    consumer = consume(batch_size=10)
    kept = [next(consumer)]
    # The loop has ended when the last batch was had, and join() waits.
    until(lambda: producer.epoch == 1)
    assert producer.thread.is_alive() and not producer.server.closed
    kept += [next(consumer) for _ in range(8)]
    assert producer.thread.is_alive() and not producer.server.closed
    kept += list(consumer)
    # Batches that are kept, and who is still there, hold nobody up.
    producer.thread.join()
    assert not producer.errors and producer.server.closed
    assert [int(i) for _, y in kept for i in y] == list(range(N))
    with pytest.raises(tsock.StreamEnded):
        next(consumer)


def test_dicts_and_padding(produce):
    batches = [
        {
            "tokens": torch.full((4, 3 + i), i + 1),
            "labels": torch.full((4, 3 + i), i + 1),
            "length": torch.full((4,), 3 + i),
        }
        for i in range(5)
    ]
    produce(batches, max_tensor_length=8)
    consumer = consume(batch_size=10)
    seen = 0
    for batch in consumer:
        assert type(batch) is dict and batch["tokens"].shape[1] == 8
        for tokens, labels, n in zip(*batch.values()):
            n = int(n)
            assert (tokens[:n] == n - 2).all() and (tokens[n:] == 0).all()
            assert (labels[:n] == n - 2).all() and (labels[n:] == -100).all()
            seen += 1
    assert seen == 20


def test_what_is_longer_than_the_padding_is_named(place):
    with pytest.raises(ValueError, match="'x' is 9 long, and max_tensor_len"):
        TensorProducer([{"x": torch.zeros(4, 9)}], max_tensor_length=8)


def test_functions_that_pack_and_unpack(produce):
    def half(data):
        x, y = data
        return {"x": TensorPayload(x.half()), "y": y + 1, "kind": "half"}

    def back(data):
        assert isinstance(data["x"], TensorPayload)
        assert data["kind"] == "half"
        return data["x"].tensor.float(), data["y"] - 1

    produce(loader_of(), pack_fn=half)
    got = list(consume(batch_size=50, unpack_fn=back))
    assert torch.cat([y for _, y in got]).tolist() == list(range(N))
    assert torch.cat([x for x, _ in got])[:, 2].tolist() == list(range(N))


def test_an_unpack_function_of_its_own_gets_payloads(produce):
    produce(loader_of())
    consumer = consume(
        unpack_fn=lambda data: [payload.tensor + 1 for payload in data]
    )
    assert next(consumer)[1].tolist() == list(range(1, 65))


def test_transform_runs_once_for_all(produce):
    calls = []

    def double(batch):
        calls.append(1)
        return batch[0] * 2, batch[1]

    produce(loader_of(), transform=double)
    for x, y in consume():
        assert (x[:, 0] == 2 * y).all()
    assert len(calls) == 13


def test_two_producers_have_two_ports(place):
    with TensorProducer(loader_of()), TensorProducer(loader_of(), port=7):
        assert sorted(s.name for s in tsock.streams()) == [
            "tensorsocket-5555",
            "tensorsocket-7",
        ]
        with pytest.raises(tsock.Error) as caught:
            TensorProducer(loader_of(), port="7")
        assert caught.value.code == "TSOCK_EEXIST"


def test_a_batch_that_is_too_large_is_refused_with_the_numbers(produce):
    """In TensorSocket such a batch stopped every consumer."""
    produce(loader_of(), producer_batch_size=9)
    with pytest.raises(tsock.Refused, match="72"):
        consume(batch_size=73)
    assert len(list(consume(batch_size=72))) == 2


def test_its_parameters_size_the_ring(place):
    """In samples: what it held for each consumer, and in its window."""
    batches = [torch.zeros(8, 2)] * 1000
    for least, keywords in (
        (8 * (100 + 20), dict(consumer_max_buffer_size=100)),
        (8000 * 0.2 + 2 * 8 * 20, dict(rubber_band_pct=0.2)),
        (4 * 8 * 20, {}),
    ):
        with TensorProducer(
            batches, producer_batch_size=20, **keywords
        ) as producer:
            capacity = producer.server.stats()["capacity"]
            assert least <= capacity <= 1.25 * least
            consume(batch_size=8 * 20).close()
            with pytest.raises(tsock.Refused):
                consume(batch_size=8 * 20 + 1)


def test_a_consumer_that_comes_late_has_the_epoch_within_the_window(place):
    with TensorProducer(loader_of(), rubber_band_pct=0.5) as producer:
        drive = threading.Thread(target=lambda: [0 for _ in producer])
        drive.start()
        first = consume(batch_size=10)
        ahead = [next(first)[1].tolist() for _ in range(5)]
        late = consume(batch_size=10)
        assert [next(late)[1].tolist() for _ in range(5)] == ahead
        for consumer in (first, late):
            rest = [int(i) for _, y in consumer for i in y]
            assert rest == list(range(50, N))
        drive.join()
