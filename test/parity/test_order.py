"""The torch order is what torch's own DataLoader and DistributedSampler visit.

TSOCK_ORDERDUMP names the program that prints ours (build/test/orderdump).
"""
import os
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, Dataset  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

DUMP = os.environ.get("TSOCK_ORDERDUMP") or str(
    Path(__file__).resolve().parents[2] / "build" / "test" / "orderdump")

SEEDS = [0, 1, 42, 2**32 - 1, 2**32 + 5, 2**53 + 7, 2**63 + 11, 2**64 - 1]
COUNTS = [1, 2, 7, 300, 5000]
EPOCHS = 5


class Numbers(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i


def ours(kind, seed, count, epochs=EPOCHS, rank=None, world=None):
    args = [DUMP, kind, str(seed), str(count), str(epochs)]
    if world is not None:
        args += [str(rank), str(world)]
    out = subprocess.run(args, check=True, capture_output=True, text=True)
    return [[int(i) for i in line.split()] for line in out.stdout.splitlines()]


def passes(seed, count, **kwargs):
    loader = DataLoader(Numbers(count), shuffle=True,
                        generator=torch.Generator().manual_seed(seed),
                        **kwargs)
    return [[int(i) for batch in loader for i in batch] for _ in range(EPOCHS)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", COUNTS)
def test_torch_order_is_dataloaders_without_workers(seed, count):
    got = ours("torch", seed, count)
    assert len(got) == EPOCHS
    assert got == passes(seed, count, batch_size=64)


@pytest.mark.parametrize("seed", [0, 2**32 + 5])
@pytest.mark.parametrize("count", COUNTS)
def test_torch_order_is_dataloaders_with_workers(seed, count):
    got = ours("torch", seed, count)
    assert got == passes(seed, count, batch_size=64, num_workers=2)


@pytest.mark.parametrize("count, batch", [(300, 300), (300, 100), (7, 1),
                                          (5000, 4999)])
def test_torch_order_does_not_depend_on_the_batch_size(count, batch):
    assert ours("torch", 3, count) == passes(3, count, batch_size=batch)


def test_torch_order_holds_for_drop_last():
    got = [epoch[:288] for epoch in ours("torch", 9, 300)]
    assert got == passes(9, 300, batch_size=32, drop_last=True)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2**32 - 2, 2**32 + 5])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_sharded_order_is_distributed_samplers(world, count, seed, shuffle):
    kind = "torch" if shuffle else "sequential"
    for rank in range(world):
        sampler = DistributedSampler(Numbers(count), num_replicas=world,
                                     rank=rank, shuffle=shuffle, seed=seed)
        expected = []
        for epoch in range(EPOCHS):
            sampler.set_epoch(epoch)
            expected.append(list(sampler))
        assert ours(kind, seed, count, rank=rank, world=world) == expected


def test_sequential_order_is_the_data_sets():
    assert ours("sequential", 5, 300) == [list(range(300))] * EPOCHS


@pytest.mark.parametrize("count", COUNTS)
def test_philox_order_has_every_sample_once(count):
    epochs = ours("philox", 5, count)
    assert all(sorted(epoch) == list(range(count)) for epoch in epochs)
    if count >= 300:
        assert len({tuple(epoch) for epoch in epochs}) == EPOCHS


def test_philox_ranks_cover_the_padded_epoch():
    whole = ours("philox", 5, 301)
    parts = [ours("philox", 5, 301, rank=r, world=4) for r in range(4)]
    for epoch in range(EPOCHS):
        padded = whole[epoch] + whole[epoch][:3]
        for rank in range(4):
            assert parts[rank][epoch] == padded[rank::4]
