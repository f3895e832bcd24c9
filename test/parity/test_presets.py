# SPDX-License-Identifier: MIT
"""Presets and the recipes that their authors published are the same, and
samples are what the published objects make of the file, with the sample's draws
in place of their own.
"""
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("PIL")
torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from PIL import Image  # noqa: E402
from torchvision import transforms as v1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_pixels import DATA, IMGLOAD, PILLOW, Recipe  # noqa: E402
from test_recipes import files, full  # noqa: E402, F401
import given  # noqa: E402
import published  # noqa: E402
from tsock.replay import replay  # noqa: E402

pytestmark = [
    pytest.mark.skipif(PILLOW < 13, reason="the order of passes is Pillow 13's"),
    pytest.mark.filterwarnings("ignore:The transform .ToTensor")]


def preset(name, size):
    """The recipe's text in full."""
    program = Path(IMGLOAD).parents[1] / "bin" / "tsock-producer"
    said = subprocess.run(
        [program, "--describe", "--dataset", "imagefolder", "--root", "/none",
         "--preset", name, *(["--size", str(size)] if size else [])],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.search("^transform=(.*)$", said, re.M)[1]


def simclr(package, size):
    return 2 * [published.simclr(package, size)]


# The preset, its --size, and the published transform, or those of its views.
PRESETS = [
    ("torchvision", 224, partial(published.references, v1)),
    ("torchvision", 224, partial(published.references, v2)),
    ("torchvision-v2", 176, partial(published.references, v1, 176, "ta_wide",
                                    0.1)),
    ("torchvision-v2", 176, partial(published.references, v2, 176, "ta_wide",
                                    0.1)),
    ("timm", 224, published.timm),
    ("timm-rand", 224, published.deit),
    ("simclr", 96, partial(simclr, v1, 96)),
    ("simclr", 96, partial(simclr, v2, 96)),
    ("dino", 224, published.dino),
    ("cifar", None, partial(published.cifar, v1)),
    ("cifar", None, partial(published.cifar, v2)),
]
# Recipes that have no preset of their own, or are options of one.
OTHERS = {
    f"{name}, {package.__name__.rpartition('.')[2]}": partial(make, package)
    for package in (v1, v2)
    for name, make in {
        "references, RandAugment": partial(published.references, size=176,
                                           policy="ra", erase=0.25),
        "references, AutoAugment": partial(published.references,
                                           policy="imagenet"),
        "references, erased": partial(published.references, erase=1.0),
        "references, evaluation": published.references_eval,
        "references, old evaluation": partial(published.references_eval,
                                              resize=256),
        "FixRes": published.fixres,
        "FixRes, evaluation": published.fixres_eval,
    }.items()
}
OTHERS["timm, RSB"] = partial(
    published.timm, 160, auto_augment="rand-m7-mstd0.5-inc1")
OTHERS["timm, erased"] = partial(published.timm, re_prob=0.9)
OTHERS["DeiT, evaluation"] = published.deit_eval


def made(make):
    try:
        return make()
    except ImportError:
        pytest.skip("timm isn't installed")


@pytest.mark.parametrize("name, size, make", PRESETS)
def test_a_preset_is_the_recipe_that_was_published(name, size, make):
    assert preset(name, size) == full(published.text(made(make)))


def apart(transform):
    """What makes a picture, and what makes a tensor of it, in two parts."""
    steps = list(published.flat(transform))
    at = [published.is_end(step) for step in steps].index(True)
    behind = [step for step in steps[at:] if published.is_end(step)]
    return v1.Compose(steps[:at]), v1.Compose(steps[at:]), v1.Compose(behind)


def erased(transform, draws, shape):
    """Which pixels RandomErasing has changed behind Normalize, and whether
    with noise."""
    box = np.zeros(shape, bool)
    erasing = [step for step in published.flat(transform)
               if type(step).__name__ == "RandomErasing"]
    noisy = bool(erasing) and getattr(erasing[0], "mode", "") == "pixel"
    assert len(draws) == len(erasing) * (5 + noisy)
    if erasing and draws[0]:
        top, left, height, width = map(int, draws[1:5])
        box[top:top + height, left:left + width] = True
    return box, noisy


def differing(transform, image, draws, sample, again):
    """How many pixels of the sample aren't those of the published objects."""
    picture, behind, convert = apart(transform)
    want, rest = given.run(picture, image, draws)
    box, noisy = erased(transform, rest, sample.shape[:2])
    bad = (np.asarray(want) != sample).any(2) & ~box
    # tsock.replay() makes the box, too.
    bad |= (np.asarray(again) != sample).any(2)
    # A job's tensor is the published one, in the box to half a level.
    tensor, _ = given.run(behind, want, rest)
    level = 1 / 255 / torch.tensor(published.STD)[:, None, None]
    far = (convert(Image.fromarray(sample)) - tensor).abs() / level
    bad |= (far > 0).any(0).numpy() & ~box
    if not noisy:
        bad |= (far > 0.5001).any(0).numpy()
    return int(bad.sum())


def must_be_made_by(views, text, paths, indices):
    several = isinstance(views, list)
    with Recipe(text, 11) as loader:
        for number, path in enumerate(paths):
            image = Image.open(path).convert("RGB")
            for index in range(indices):
                err, _, rest = loader.load(path, 3, 100 * number + index)
                assert not err, (path, image.size, rest)
                again = replay(image, loader.draws, text)
                draws, at = list(loader.draws), 0
                for view, one in zip(views if several else [views],
                                     again if several else [again]):
                    size = one.width * one.height * 3
                    sample = np.frombuffer(rest, np.uint8, size, at).reshape(
                        one.height, one.width, 3)
                    count = drawn(view)
                    bad = differing(view, image, draws[:count], sample, one)
                    assert not bad, (path, image.size, draws[:count])
                    draws, at = draws[count:], at + size
                assert not draws and at == len(rest)


def drawn(transform):
    """How many numbers it draws for a sample."""
    total = 0
    for step in published.flat(transform):
        name = type(step).__name__
        if name == "RandomApply":
            total += 1 + drawn(step)
            continue
        if type(step).__module__.startswith("timm."):
            name = f"timm {name}"
        count = given.STEPS.get(name, (0,))[0]
        total += count if isinstance(count, int) else count(step)
    return total


def photos():
    """Of the sample set, where it is: wide and high ones."""
    return sorted((DATA / "imagenet-sample").rglob("*.JPEG"))[::12]


def whole(files, views):
    """Those that torchvision's Resize() and RandomCrop() don't refuse."""
    steps = published.flat(views[0] if isinstance(views, list) else views)
    names = {type(step).__name__ for step in steps}
    least = 24 if "RandomCrop" in names else 2 if "Resize" in names else 1
    return [p for p in files if min(Image.open(p).size) >= least]


@pytest.mark.parametrize("name, size, make", PRESETS)
def test_a_presets_samples_are_made_by_what_was_published(files, name, size,
                                                          make):
    views, text = made(make), preset(name, size)
    few = isinstance(views, list)
    must_be_made_by(views, text, whole(files, views), 2 if few else 6)
    must_be_made_by(views, text, photos()[::5 if few else 1], 2)


@pytest.mark.parametrize("name", OTHERS)
def test_published_recipes_make_the_samples(files, name):
    transform = made(OTHERS[name])
    text = full(published.text(transform))
    must_be_made_by(transform, text, whole(files, transform), 6)
    must_be_made_by(transform, text, photos(), 2)
