# SPDX-License-Identifier: MIT
"""tsock.share: functions and objects of a script's that apply a transform."""

import functools
import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torch.utils.data import DataLoader  # noqa: E402
from torchvision import transforms as T  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

from tsock.sharing.look import look  # noqa: E402
from test_share import cache, same, shared  # noqa: E402,F401

TRAIN = T.Compose([T.RandomResizedCrop(32), T.ToTensor()])
EVAL = T.Compose([T.Resize(40), T.CenterCrop(32), T.ToTensor()])


class Preset:
    """As torchvision's references have them."""

    def __init__(self, transforms, **more):
        self.transforms = transforms
        self.__dict__.update(more)

    def __call__(self, image):
        return self.transforms(image)


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = torch.nn.Sequential(
            v2.Resize((32, 32)),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
        )

    def forward(self, image):
        return self.steps(image)


class Twice(Preset):
    def __call__(self, image):
        return 2 * self.transforms(image)


class Noisy(Preset):
    def __call__(self, image):
        random.random()
        return self.transforms(image)


def by_name(image):
    return TRAIN(image)


def by_names(image):
    return by_name(image)


def either(image):
    return (TRAIN if image is None else EVAL)(image)


def applied(transform, image):
    return transform(image)


def made(transform):
    return lambda image: transform(image.convert("RGB"))


@pytest.mark.parametrize(
    "transform",
    [
        Preset(TRAIN),
        by_name,
        Module(),
        by_names,
        made(TRAIN),
        functools.partial(applied, TRAIN),
        Preset(TRAIN).__call__,
    ],
)
def test_what_applies_one_transform_is_that_transform(images, transform):
    plan = look(DataLoader(ImageFolder(images, transform), 8))
    assert plan.native, plan.why
    assert "which applies its" in plan.parts[1].what


@pytest.mark.parametrize(
    "transform",
    [
        Twice(TRAIN),
        Noisy(TRAIN),
        Preset(TRAIN, other=EVAL),
        either,
        lambda image: torch.zeros(3, 32, 32),
    ],
)
def test_what_does_more_is_python_s(images, transform):
    torch.manual_seed(2)
    before = torch.get_rng_state()
    plan = look(DataLoader(ImageFolder(images, transform), 8))
    assert not plan.native and "transform" in plan.why
    assert torch.equal(torch.get_rng_state(), before)


def test_a_preset_s_batches_are_the_script_s(images, shared):  # noqa: F811
    loader = DataLoader(ImageFolder(images, Preset(EVAL)), 20)
    assert same(shared(loader), loader) == len(loader.dataset)


# ---- steps on tensors ----


FLOATS = [v2.ToDtype(torch.float32, scale=True)]


@pytest.mark.parametrize(
    "steps",
    [
        [v2.ToImage(), v2.CenterCrop(32), v2.GaussianBlur(3), *FLOATS],
        [T.ToTensor(), T.RandomCrop(32, 4), T.RandomHorizontalFlip()],
        [T.PILToTensor(), T.RandomCrop(32, 4, fill=3), *FLOATS],
    ],
)
def test_steps_may_stand_behind_a_conversion(
    images, shared, steps
):  # noqa: F811
    loader = DataLoader(ImageFolder(images, T.Compose(steps)), 20)
    plan = look(loader)
    assert plan.native, plan.why


@pytest.mark.parametrize(
    "steps",
    [
        [v2.ToImage(), v2.Resize((32, 32)), *FLOATS],
        [T.PILToTensor(), T.RandomResizedCrop(32), *FLOATS],
        [T.CenterCrop(32), T.ToTensor(), T.ColorJitter(0.4)],
        [T.ToTensor(), T.RandomCrop(32, 4, fill=3)],
        [T.ToTensor(), T.RandomCrop(32, 4, fill=0.5)],
        [T.CenterCrop(32), T.ToTensor(), T.GaussianBlur(3)],
        [T.ToTensor(), T.Normalize(0.5, 0.5), T.RandomCrop(32, 4)],
        [
            T.CenterCrop(32),
            v2.ToImage(),
            v2.RandomApply([v2.RandomRotation(9)]),
        ],
    ],
)
def test_steps_that_differ_on_tensors_are_python_s(images, steps):
    plan = look(DataLoader(ImageFolder(images, T.Compose(steps)), 20))
    assert not plan.native and "works on tensors" in plan.why
    assert (
        "before the conversion" in [p for p in plan.parts if p.why][0].instead
    )
