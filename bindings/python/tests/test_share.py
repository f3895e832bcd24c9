# SPDX-License-Identifier: MIT
"""tsock.share: loaders of torch that tsock-producer makes itself."""

import os
import random
import subprocess
import sys

import pytest

import tsock
from conftest import N, everything

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
from torch.utils.data import ConcatDataset, DataLoader, Subset  # noqa: E402
from torchvision import transforms as T  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

from tsock.sharing.look import look  # noqa: E402

pytestmark = pytest.mark.usefixtures("warm")

EVAL = T.Compose([T.Resize(40), T.CenterCrop(32), T.ToTensor()])
TRAIN = T.Compose(
    [T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor()]
)


@pytest.fixture
def cache(tmp_path, monkeypatch, place):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tsock"


@pytest.fixture
def shared(cache):
    """tsock.share(), closed at the end."""
    made = []

    def share(loader, **more):
        if not more.get("native") is False:
            more.setdefault("native", True)
            more.setdefault("threads", 1)
        made.append(tsock.share(loader, **more))
        return made[-1]

    yield share
    for loader in made:
        getattr(loader, "loader", loader).close()


def same(mine, its):
    """Are the batches of one epoch the same?"""
    count = 0
    for (x, y), (u, v) in zip(mine, its, strict=True):
        assert x.dtype == u.dtype and torch.equal(x, u)
        assert y.dtype == v.dtype and torch.equal(y, v)
        count += len(x)
    return count


def test_an_evaluation_loader_has_the_script_s_batches(images, shared):
    loader = DataLoader(ImageFolder(images, EVAL), 20)
    mine = shared(loader)
    assert len(mine) == len(loader)
    assert same(mine, loader) == N
    assert mine.identity["dataset"] == "imagefolder"


@pytest.mark.parametrize("drop_last", [False, True])
def test_a_training_loader_has_each_sample_once(images, shared, drop_last):
    loader = DataLoader(
        ImageFolder(images, TRAIN), 32, True, drop_last=drop_last
    )
    mine = shared(loader, fields=("image", "label", "index"))
    assert len(mine) == len(loader)
    seen = [[], []]
    for epoch in range(2):
        for x, y, index in mine:
            assert x.shape[1:] == (3, 32, 32) and x.dtype == torch.float32
            assert y.tolist() == [loader.dataset.targets[i] for i in index]
            seen[epoch] += index.tolist()
    if not drop_last:
        assert sorted(seen[0]) == sorted(seen[1]) == everything()
    assert seen[0] != seen[1]


def test_memory_is_pinned_where_the_loader_s_is(images, monkeypatch):
    data = ImageFolder(images, EVAL)
    assert not look(DataLoader(data, 2, pin_memory=True)).keywords["pin_memory"]
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert look(DataLoader(data, 2, pin_memory=True)).keywords["pin_memory"]
    assert not look(DataLoader(data, 2)).keywords["pin_memory"]


def test_the_script_s_generator_gives_its_order(images, shared):
    generator = torch.Generator().manual_seed(7)
    loader = DataLoader(
        ImageFolder(images, EVAL), 20, shuffle=True, generator=generator
    )
    mine = shared(loader)
    assert mine.identity["order"] == "torch"
    assert same(mine, loader) == same(mine, loader) == N


def test_looking_draws_none_of_the_script_s_numbers(images, shared, capsys):
    loader = DataLoader(ImageFolder(images, TRAIN), 32, shuffle=True)
    torch.manual_seed(1)
    random.seed(1)
    wanted = torch.rand(3).tolist(), random.random()
    torch.manual_seed(1)
    random.seed(1)
    tsock.explain(loader)
    shared(loader)
    shared(DataLoader(ImageFolder(images, EVAL), 32))
    assert (torch.rand(3).tolist(), random.random()) == wanted


JOB = """
import sys
from torch.utils.data import DataLoader
from torchvision import transforms as T
from torchvision.datasets import ImageFolder
import tsock

t = T.Compose([T.RandomResizedCrop(32), T.ToTensor()])
loader = DataLoader(ImageFolder(sys.argv[1], t), 50, shuffle=True)
loader = tsock.share(loader, threads=1)
print(loader.name, sum(len(x) for x, _ in loader))
print(tsock.query(loader.name)["pid"])
"""


def start(tmp_path, script, *args):
    """A script of its own, as a process."""
    (tmp_path / "job.py").write_text(script)
    packages = os.path.dirname(os.path.dirname(tsock.__file__))
    return subprocess.Popen(
        [sys.executable, str(tmp_path / "job.py"), *map(str, args)],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, PYTHONPATH=packages),
    )


def test_jobs_with_one_loader_share_a_stream(images, cache, tmp_path):
    jobs = [start(tmp_path, JOB, images) for _ in range(2)]
    said = [job.communicate()[0].split() for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0]
    assert said[0][0] == said[1][0] and said[0][1] == said[1][1] == str(N)
    assert said[0][2] == said[1][2]


def test_another_transform_is_another_stream(images, shared):
    names = set()
    for size in (32, 48):
        t = T.Compose([T.Resize(size), T.CenterCrop(32), T.ToTensor()])
        names.add(shared(DataLoader(ImageFolder(images, t), 8)).name)
    assert len(names) == 2


# ---- data sets ----


def test_labels_go_through_target_transform(images, shared):
    data = ImageFolder(images, EVAL, target_transform=lambda label: 10 - label)
    loader = DataLoader(data, 20)
    assert same(shared(loader), loader) == N


def test_samples_that_the_script_changed_are_the_stream_s(images, shared):
    data = ImageFolder(images, EVAL)
    data.samples = data.samples[::-3]
    loader = DataLoader(data, 20)
    assert same(shared(loader), loader) == len(data)


@pytest.mark.parametrize("share_of", [0.25, 0.75])
def test_a_part_of_a_data_set(images, shared, share_of):
    data = ImageFolder(images, EVAL)
    some = torch.randperm(N)[: int(share_of * N)].tolist()
    loader = DataLoader(Subset(data, some), 20)
    assert same(shared(loader), loader) == len(some)


def test_a_large_part_shuffled_shares_the_whole_stream(images, shared):
    data = ImageFolder(images, TRAIN)
    whole = shared(DataLoader(data, 20, shuffle=True))
    some = torch.randperm(N)[: int(0.8 * N)].tolist()
    loader = DataLoader(Subset(data, some), 20, shuffle=True)
    mine = shared(loader, fields=("index",))
    assert mine.name == whole.name and len(mine) == len(loader)
    assert sorted(i for (index,) in mine for i in index.tolist()) == sorted(
        some
    )


def test_data_sets_one_behind_the_other(images, shared):
    data = ImageFolder(images, EVAL)
    both = ConcatDataset([data, Subset(data, [5, 3, 190])])
    loader = DataLoader(both, 20)
    assert same(shared(loader), loader) == N + 3


# ---- samplers ----


def test_ranks_have_all_samples_together(images, shared):
    data = ImageFolder(images, TRAIN)
    plans = []
    for rank in range(2):
        sampler = torch.utils.data.DistributedSampler(data, 2, rank)
        plans.append(look(DataLoader(data, 8, sampler=sampler)))
    assert [p.keywords["rank"] for p in plans] == [0, 1]
    assert all(p.native and p.keywords["world_size"] == 2 for p in plans)
    sampler = torch.utils.data.DistributedSampler(data, 2, 1, shuffle=False)
    plan = look(DataLoader(data, 8, sampler=sampler))
    assert plan.keywords["even"] and plan.options["order"] == "sequential"


RANK = """
import sys
import torch
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import transforms as T
from torchvision.datasets import ImageFolder
import tsock

t = T.Compose([T.RandomResizedCrop(32), T.ToTensor()])
data = ImageFolder(sys.argv[1], t)
sampler = DistributedSampler(data, 2, int(sys.argv[2]))
loader = DataLoader(data, 10, sampler=sampler)
mine = tsock.share(loader, threads=1, fields=("index",))
assert len(mine) == len(loader)
print(*(int(i) for (index,) in mine for i in index))
"""


def test_ranks_of_one_job_divide_an_epoch(images, cache, tmp_path):
    jobs = [start(tmp_path, RANK, images, rank) for rank in "01"]
    said = [[int(i) for i in job.communicate()[0].split()] for job in jobs]
    assert len(said[0]) == len(said[1]) == -(-N // 2)
    assert set(said[0] + said[1]) == set(everything())


def test_weights_are_the_sampler_s(images, shared):
    data = ImageFolder(images, TRAIN)
    weights = [float(label == 1) for label in data.targets]
    sampler = torch.utils.data.WeightedRandomSampler(weights, len(weights))
    mine = shared(DataLoader(data, 20, sampler=sampler))
    labels = [int(i) for _, y in mine for i in y]
    assert len(labels) == N and set(labels) == {1}


def test_weights_may_all_be_alike(images, shared):
    data = ImageFolder(images, EVAL)
    sampler = torch.utils.data.WeightedRandomSampler([1.0] * N, N)
    mine = shared(DataLoader(data, 20, sampler=sampler), fields=("index",))
    drawn = [int(i) for (index,) in mine for i in index]
    assert len(drawn) == N and N / 2 < len(set(drawn)) < 0.8 * N


def test_a_random_subset(images, shared):
    data = ImageFolder(images, TRAIN)
    sampler = torch.utils.data.SubsetRandomSampler(range(0, N, 10))
    mine = shared(DataLoader(data, 20, sampler=sampler))
    labels = [int(i) for _, y in mine for i in y]
    assert sorted(labels) == sorted(data.targets[::10])


# ---- batches ----


def as_dict(samples):
    return {
        "labels": torch.tensor([label for _, label in samples]),
        "pixel_values": torch.stack([image for image, _ in samples]),
    }


def noisy(samples):
    x, y = torch.utils.data.default_collate(samples)
    return x + 0 * torch.rand(1), y


def test_a_collate_fn_that_names_the_fields(images, shared):
    loader = DataLoader(ImageFolder(images, EVAL), 20, collate_fn=as_dict)
    for mine, its in zip(shared(loader), loader, strict=True):
        assert set(mine) == set(its)
        assert all(torch.equal(mine[key], its[key]) for key in its)


def test_a_collate_fn_that_draws_is_python_s(images):
    plan = look(DataLoader(ImageFolder(images, EVAL), 20, collate_fn=noisy))
    assert not plan.native and "noisy" in plan.why


def test_timm_s_loader_reads_the_stream(images, shared):
    timm = pytest.importorskip("timm.data")
    data = timm.create_dataset("", root=str(images), split="")
    loader = timm.create_loader(
        data, (3, 32, 32), 20, device=torch.device("cpu"), num_workers=0
    )
    wanted = [(x.clone(), y.clone()) for x, y in loader]
    mine = shared(loader)
    assert mine is loader
    assert same(mine, wanted) == N


# ---- what isn't native ----


def test_the_table_says_what_is_not_native(images, capsys):
    t = T.Compose(
        [T.CenterCrop(32), T.Lambda(lambda image: image), T.ToTensor()]
    )
    tsock.explain(DataLoader(ImageFolder(images, t), 20, shuffle=True))
    said = capsys.readouterr().out
    assert "native  CenterCrop" in said and "Python  Lambda" in said
    assert "native would be" in said and "serves it" in said
    assert "together" in said
    with pytest.raises(ValueError, match="Python  Lambda"):
        tsock.share(DataLoader(ImageFolder(images, t), 20), native=True)


def test_a_loader_of_images_without_tensors_is_not_native(images):
    plan = look(DataLoader(ImageFolder(images, T.CenterCrop(32)), 20))
    assert "doesn't end with a tensor" in plan.why
    plan = look(DataLoader(ImageFolder(images, T.Resize(32)), 20))
    assert not plan.native


def test_a_recipe_that_differs_from_the_script_is_an_error(
    images, shared, monkeypatch
):
    text = "Resize(40) CenterCrop(32) Grayscale(3) ToTensor()"
    monkeypatch.setattr(
        "tsock.recipe.text_of", lambda t: "" if isinstance(t, list) else text
    )
    with pytest.raises(tsock.Error, match="sample 0 .* in the script and"):
        shared(DataLoader(ImageFolder(images, EVAL), 20))


def test_a_subclass_with_samples_of_its_own_is_not_native(images):
    class Mine(ImageFolder):
        def __getitem__(self, index):
            image, label = super().__getitem__(index)
            return image * 2, label

    class Named(ImageFolder):
        pass

    class Short(ImageFolder):
        def __len__(self):
            return 10

    assert not look(DataLoader(Mine(images, EVAL), 20)).native
    assert "a length of its own" in look(DataLoader(Short(images, EVAL), 2)).why
    assert look(DataLoader(Named(images, EVAL), 20)).native
