# SPDX-License-Identifier: MIT
"""The torch order is what torch's own DataLoader and DistributedSampler visit,
and the index is what torchvision's ImageFolder lists.

TSOCK_ORDERDUMP names the program that prints ours (build/test/orderdump).
"""
import os
import random
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


def our_index(root):
    out = subprocess.run([DUMP, "index", root], capture_output=True)
    if out.returncode:
        return out.stderr.decode(errors="replace")
    lines = out.stdout.split(b"\0")[:-1]
    return [(os.fsdecode(line.split(b" ", 1)[1]), int(line.split(b" ", 1)[0]))
            for line in lines]


def torchvisions_index(root):
    folder = pytest.importorskip("torchvision.datasets").ImageFolder(root)
    return [(os.path.relpath(path, root), label)
            for path, label in folder.samples]


NAMES = [b"a", b"b", b"B", b"a-b", b"a b", b"10", b"9", b"_", b".x", b"\n",
         b"\xe9", b"\xe9\x80", b"\xe9\x80\x80", b"\xed\xa0\x80",
         b"\xee\x80\x80", b"\xc3\xa9", b"\xf0\x9f\x90\x88", b"\xff",
         b"\xc0\x80", b"\xf4\x90\x80\x80", b"x" * 200, b"n01440764"]
ENDS = [b".jpg", b".JPEG", b".png", b".ppm", b".bmp", b".pgm", b".tif",
        b".TIFF", b".webp", b".txt", b"", b".jpg.gz", b".gif"]


def random_tree(root, rng):
    """A tree with awkward names, nested folders and links."""
    folders = []
    for name in rng.sample(NAMES, rng.randint(1, 6)):
        folders.append(os.path.join(root, name))
    for _ in range(rng.randint(0, 8)):
        folders.append(os.path.join(rng.choice(folders), rng.choice(NAMES)))
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
    for folder in folders:
        for name in [b"one"] + rng.sample(NAMES, rng.randint(0, 9)):
            path = os.path.join(folder, name + rng.choice(ENDS))
            if name == b"one":
                path = os.path.join(folder, b"one.jpg")
            if not os.path.lexists(path):
                if rng.random() < 0.1:
                    os.symlink(b"nowhere", path)
                else:
                    open(path, "wb").close()
    outside = root + b"-outside"
    os.makedirs(os.path.join(outside, b"in"))
    open(os.path.join(outside, b"in", b"7.jpg"), "wb").close()
    os.symlink(outside, os.path.join(folders[0], b"link"))
    os.symlink(outside, os.path.join(root, b"zlink"))


@pytest.mark.parametrize("seed", range(40))
def test_index_is_image_folders(seed, tmp_path):
    root = os.fsencode(tmp_path / "tree")
    random_tree(root, random.Random(seed))
    expected = torchvisions_index(str(tmp_path / "tree"))
    assert len(expected) > 0
    assert our_index(root) == expected


def test_index_of_real_images_is_image_folders():
    data = os.environ.get("TSOCK_TEST_DATA") or str(
        Path(__file__).resolve().parents[3] / "shared" / "data")
    root = os.path.join(data, "imagenet-sample", "train")
    if not os.path.isdir(root):
        pytest.skip("no folder " + root)
    expected = torchvisions_index(root)
    assert our_index(root) == expected
