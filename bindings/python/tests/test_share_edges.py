# SPDX-License-Identifier: MIT
"""tsock.share: samplers of other data sets, odd sizes, and what is no loader."""

import os
import pickle
import shutil
import subprocess
import sys

import pytest

import tsock
from conftest import N

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
from torch.utils.data import (
    DataLoader,
    SequentialSampler,
    Subset,
)  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402
from torchvision import transforms as T  # noqa: E402
from torchvision.datasets import CIFAR10, ImageFolder  # noqa: E402

from test_share import EVAL, cache, same, shared  # noqa: E402, F401
from tsock.sharing import parcel  # noqa: E402
from tsock.sharing.look import look  # noqa: E402

pytestmark = pytest.mark.usefixtures("warm")

# ---- CIFAR ----


@pytest.fixture
def cifar(tmp_path, monkeypatch):
    """CIFAR10's files, of 6 images each."""
    folder = tmp_path / "cifar" / CIFAR10.base_folder
    folder.mkdir(parents=True)
    random = torch.Generator().manual_seed(1)
    for name, _ in CIFAR10.train_list + CIFAR10.test_list:
        pixels = torch.randint(256, (6, 3072), generator=random)
        batch = {
            "data": pixels.to(torch.uint8).numpy(),
            "labels": torch.randint(10, (6,), generator=random).tolist(),
        }
        (folder / name).write_bytes(pickle.dumps(batch))
    names = {"label_names": ["class %d" % i for i in range(10)]}
    (folder / "batches.meta").write_bytes(pickle.dumps(names))
    monkeypatch.setattr(CIFAR10, "_check_integrity", lambda self: True)
    monkeypatch.setattr(
        torchvision.datasets.cifar, "check_integrity", lambda *_: True
    )
    return tmp_path / "cifar"


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize(
    "transform",
    [
        T.ToTensor(),
        T.Compose([T.ToTensor(), T.Normalize((0.5,) * 3, (0.2,) * 3)]),
        T.PILToTensor(),
        T.Compose([T.CenterCrop(24), T.ToTensor()]),
    ],
)
def test_both_splits_of_cifar(cifar, shared, train, transform):  # noqa: F811
    loader = DataLoader(CIFAR10(cifar, train, transform), 4)
    assert same(shared(loader), loader) == (30 if train else 6)


# ---- samplers ----


def of_others(n):
    yield SequentialSampler(range(n))
    yield DistributedSampler(range(n), 1, 0, shuffle=False)
    yield DistributedSampler(range(n), 1, 0)


def test_samplers_of_another_data_set_are_python_s(images):
    data = ImageFolder(images, EVAL)
    for sampler in of_others(10):
        plan = look(DataLoader(data, 4, sampler=sampler))
        assert "numbers 10 samples, and the data set has 203" in plan.why
    for sampler in of_others(N):
        assert look(DataLoader(data, 4, sampler=sampler)).native


def test_served_samplers_have_their_own_number_of_samples():
    data = TensorDataset(torch.arange(20))
    for sampler in of_others(10):
        loader = DataLoader(data, 4, sampler=sampler)
        again = parcel.make(parcel.spec_of(loader, 0, False))
        assert sorted(torch.cat([x for (x,) in again]).tolist()) == [
            *range(10)
        ]


def test_one_rank_of_one_has_torch_s_order(images):
    data = ImageFolder(images, EVAL)
    for sampler, differs in zip(of_others(N), (False, False, True)):
        plan = look(DataLoader(data, 4, sampler=sampler))
        assert bool(plan.differs) == differs
    ranks = DistributedSampler(range(N), 2, 0, shuffle=False)
    plan = look(DataLoader(data, 4, sampler=ranks))
    assert "it gives ranks other samples" in "it " + plan.differs


# ---- sizes ----


def test_indices_are_checked(images):
    data = ImageFolder(images, EVAL)
    with pytest.raises(
        IndexError, match="index 203 is out of range.* 203 sam"
    ):
        look(DataLoader(Subset(data, [0, 203]), 2))
    plan = look(DataLoader(Subset(data, [-3, -1]), 2))
    assert [plan.data.get(i)[1] for i in range(2)] == [
        data.targets[i] for i in (-3, -1)
    ]
    plan = look(DataLoader(Subset(data, range(-N, 0)), 2))
    assert plan.keywords["subset"] == list(range(N))


def test_an_empty_data_set_is_refused_at_once(images, shared):  # noqa: F811
    for data in (
        Subset(ImageFolder(images, EVAL), []),
        TensorDataset(torch.ones(0)),
    ):
        with pytest.raises(ValueError, match="set.* has no samples"):
            shared(DataLoader(data, 4), native="auto")


def test_single_samples_are_python_s(images):
    plan = look(DataLoader(ImageFolder(images, EVAL), None))
    assert "batches (batch_size=None) are single samples" in plan.why


def test_a_batch_may_be_larger_than_a_served_data_set(shared):  # noqa: F811
    loader = DataLoader(TensorDataset(torch.arange(5)), 600)
    mine = shared(loader, native=False)
    assert [x.tolist() for (x,) in mine] == [[0, 1, 2, 3, 4]]
    mine.close()
    tsock.stop(mine.name, force=True)


# ---- arguments ----


@pytest.mark.parametrize(
    "wrong", [7, None, "flowers", TensorDataset(torch.ones(2))]
)
def test_what_is_no_loader_is_a_type_error(wrong):
    for function in (tsock.share, tsock.explain):
        with pytest.raises(TypeError, match="takes torch's DataLoader, or"):
            function(wrong)


@pytest.mark.parametrize("seed", ["x", 1.5, -1, 2**63])
def test_a_seed_is_a_whole_number(images, seed):
    loader = DataLoader(ImageFolder(images, EVAL), 20)
    with pytest.raises((TypeError, ValueError), match="seed .*: it is "):
        tsock.share(loader, seed=seed)


def test_a_name_isn_t_empty(images, cache):  # noqa: F811
    loader = DataLoader(ImageFolder(images, EVAL), 20)
    for native in (True, False):
        with pytest.raises(ValueError, match="name"):
            tsock.share(loader, name="", native=native)
    with pytest.raises(TypeError, match="name 3: a stream's name is a string"):
        tsock.share(loader, name=3)


def test_a_shared_loader_is_returned_and_explained(
    images, shared, capsys  # noqa: F811
):
    mine = shared(DataLoader(ImageFolder(images, EVAL), 20))
    assert tsock.share(mine) is mine
    tsock.explain(mine)
    assert repr(mine.name) in capsys.readouterr().out


def test_what_can_t_be_pickled_is_named():
    batches = (torch.ones(3) for _ in range(3))
    with pytest.raises(ValueError, match="cannot pickle 'generator'") as e:
        tsock.share(batches)
    assert "Functions and classes" not in str(e.value)
    assert os.linesep not in str(e.value)


# ---- folders and files ----


def test_a_cache_that_can_t_be_written(
    images, tmp_path, shared, monkeypatch
):  # noqa: F811
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    data = ImageFolder(images, EVAL)
    loader = DataLoader(data, 20)
    assert same(shared(loader), loader) == N  # what was compared is forgotten
    with pytest.raises(tsock.Error, match="can't be written: Not a dir.*XDG"):
        shared(DataLoader(Subset(data, [3, 4]), 2))


def test_a_folder_that_is_gone_is_named_without_a_lost_log(
    images, tmp_path, shared  # noqa: F811
):
    shutil.copytree(images, tmp_path / "gone")
    data = ImageFolder(tmp_path / "gone", EVAL)
    shutil.rmtree(tmp_path / "gone")
    with pytest.raises(tsock.NoProducer, match="gone: No such file") as e:
        shared(DataLoader(data, 20))
    assert "its log" not in str(e.value) and "first 8 samples" in str(e.value)


FROM_A_PIPE = """
import torch, tsock
class Mine(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return i
if __name__ == "__main__":
    tsock.share(torch.utils.data.DataLoader(Mine()))
"""


def test_a_script_from_a_pipe_can_t_be_sent(place):
    path = os.path.dirname(os.path.dirname(tsock.__file__))
    done = subprocess.run(
        [sys.executable, "-"],
        input=FROM_A_PIPE,
        env=dict(os.environ, PYTHONPATH=path),
        capture_output=True,
        text=True,
    )
    last = done.stderr.strip().split("\n")[-1]
    assert last.startswith("ValueError: tsock.share: the loader has functions")
