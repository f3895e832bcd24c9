# SPDX-License-Identifier: MIT
"""Loaders of a process one after the other: no epoch comes twice."""

import os
import signal

import pytest

import tsock
from conftest import INDEX, SIZE, everything, indices, until

pytest.importorskip("numpy")

pytestmark = pytest.mark.usefixtures("warm")

# All epochs of these tests are in the ring, as long as somebody is in the first
# who reads bytes as they are made: other views have rings of their own.
RING = ("--ring", 2048, "--max-batch", 64)

OTHER = """
import signal
import tsock

loader = tsock.DataLoader("toy", 4, fields=("index",), dtype="uint8", layout="hwc")
for batch in loader:
    print("begun", flush=True)
    signal.pause()
"""


@pytest.fixture
def beside(serve, script):
    """A job of another process that is in the first epoch."""
    serve(*RING)
    other = script(OTHER)
    assert other.stdout.readline() == "begun\n"
    yield other
    other.kill()


def fresh():
    return tsock.DataLoader("toy", 16, **INDEX)


def orders(number):
    """What loaders read that are made one after the other."""
    found = []
    for _ in range(number):
        loader = fresh()
        found.append(indices(loader))
        assert sorted(found[-1]) == everything() and loader.epoch == 0
    return found


def distinct(orders):
    return len({tuple(order) for order in orders})


def test_a_new_loader_for_each_epoch_reads_another_one(beside):
    assert distinct(orders(4)) == 4
    loader = fresh()
    next(iter(loader))
    assert loader.stream_epoch == 4


def test_a_loader_in_the_place_of_another_goes_on(beside):
    loader = None
    for epoch in range(3):
        loader = fresh()  # while the one before is there
        indices(loader)
        assert loader.stream_epoch == epoch


def test_a_loader_that_was_forgotten_in_mid_epoch_is_no_reader(beside):
    first = fresh()
    next(iter(first))
    assert distinct(orders(3)) == 3
    assert sorted(indices(first)) == everything()


def test_loaders_that_read_at_once_may_read_the_same_epoch(beside):
    outer = fresh()
    seen = []
    for i, _ in enumerate(outer):
        if i < 3:
            seen.append(indices(fresh()))
    assert distinct(seen) == 1


def test_iterators_of_a_new_loader_begin_together(beside):
    orders(1)
    loader = fresh()
    for (a,), (b,) in zip(loader, loader):
        assert a.tolist() == b.tolist()
    assert loader.stream_epoch == 1


def test_a_look_costs_a_new_loader_nothing(beside):
    for batches in (0, 1, 5):
        loader = fresh()
        iterator = iter(loader)
        for _ in range(batches):
            next(iterator)
        del iterator, loader
    assert distinct(orders(2)) == 2
    loader = fresh()
    next(iter(loader))
    assert loader.stream_epoch == 2


def test_a_state_of_before_goes_back(beside):
    loader = fresh()
    iterator = iter(loader)
    first = [next(iterator)[0].tolist() for _ in range(2)]
    state = loader.state_dict()
    del iterator
    loader.close()
    orders(2)
    loader = fresh()
    loader.load_state_dict(state)
    assert sorted(sum(first, []) + indices(loader)) == everything()
    assert loader.stream_epoch == 0
    loader.close()
    loader = fresh()
    next(iter(loader))
    assert loader.stream_epoch == 1


def test_a_stream_that_others_make_goes_back_to_a_state(served, script):
    torch = pytest.importorskip("torch")
    served(torch.utils.data.DataLoader(torch.arange(40), 4), "toy")
    loader = tsock.DataLoader("toy", 4)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    del iterator
    for _ in range(2):
        list(loader)
    loader.close()
    loader = tsock.DataLoader("toy", 4)
    loader.load_state_dict(state)
    with pytest.raises(tsock.CannotResume):
        next(iter(loader))  # it is gone, and isn't mistaken for a later one


def test_a_stream_that_a_loader_starts_again_goes_on(place, images):
    def rooted():
        return tsock.DataLoader(
            root=images,
            name="toy",
            size=SIZE,
            threads=1,
            no_cache=True,
            batch_size=16,
            **INDEX
        )

    for epoch in range(3):
        with rooted() as loader:
            assert sorted(indices(loader)) == everything()
            assert loader.stream_epoch == epoch
        os.kill(tsock.query("toy")["pid"], signal.SIGTERM)
        until(lambda: not tsock.streams())


def own_producer(images):
    return tsock.Producer(
        dataset="imagefolder",
        root=images,
        name="toy",
        size=SIZE,
        threads=1,
        no_cache=True,
    )


def test_a_producer_of_ones_own_begins_with_the_first_epoch(place, images):
    kept = []  # between two epochs, as a notebook leaves them
    for _ in range(3):
        with own_producer(images):
            for epoch in range(2):
                loader = fresh()
                assert sorted(indices(loader)) == everything()
                assert loader.stream_epoch == epoch
            kept.append(loader)
    # The first goes on where it was, when it is asked.
    with own_producer(images):
        assert sorted(indices(kept[0])) == everything()
        assert (kept[0].epoch, kept[0].stream_epoch) == (1, 2)
    for loader in kept:
        loader.close()


def test_lightning_reloads_the_loader_for_each_epoch(beside, tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")
    torch = pytest.importorskip("torch")

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.epochs = {}

        def train_dataloader(self):
            return fresh()

        def training_step(self, batch, _):
            seen = self.epochs.setdefault(self.current_epoch, [])
            seen += batch[0].tolist()
            return self.layer(torch.ones(1, 1)).sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    quiet = dict(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    model = Model()
    lightning.Trainer(fast_dev_run=True, **quiet).fit(model)
    model.epochs.clear()
    lightning.Trainer(
        max_epochs=4, reload_dataloaders_every_n_epochs=1, **quiet
    ).fit(model)
    assert all(sorted(o) == everything() for o in model.epochs.values())
    assert distinct(model.epochs.values()) == 4


def test_a_fresh_loader_that_is_broken_off_each_time_goes_on(beside, caplog):
    firsts = set()

    def broken_off():
        loader = tsock.DataLoader("toy", 16, **INDEX)
        for i, (index,) in enumerate(loader):
            if i == 0:
                firsts.add(tuple(index.tolist()))
            if i == 2:
                break
        loader.close()

    for _ in range(5):
        broken_off()
    # The first loop may have been a look; each one from the second on counts.
    assert len(firsts) == 4
    said = [m for m in caplog.messages if "broken off a second time" in m]
    assert len(said) == 1
