# SPDX-License-Identifier: MIT
"""Samples of recipes with chance are the same bytes whatever makes them: any
number of threads, a pack, the cache of packed images, a producer that was
killed and started again.
"""
import os
import subprocess

import pytest

import tsock
from conftest import N, PRODUCER

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")
PACK = os.path.join(os.path.dirname(PRODUCER), "tsock-pack")

CHAIN = (
    "RandomResizedCrop(24, interpolation=bicubic) RandomHorizontalFlip() "
    "RandomOrder([RandAugment(2, 9, interpolation=bilinear), "
    "RandomApply([ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8)]) "
    "PILGaussianBlur(0.5) RandomErasing(0.3)"
)
VIEWS = (
    "Views([RandomResizedCrop(24) TrivialAugmentWide() ColorJitter(0.4)], "
    "[RandomCrop((20, 30), padding=2) TimmRandAugment(m=9, mstd=0.5)])"
)
MASKED = (
    "RandomResize(24, 60) RandomAffine(20, shear=5) RandomHorizontalFlip() "
    "RandomCrop(28, pad_if_needed=True, mask_fill=255) ColorJitter(0.4)"
)
RECIPES = {
    "a chain": (CHAIN, ("image",)),
    "two views": (VIEWS, ("image", "image2")),
    "masks": (MASKED, ("image", "mask")),
}
EVERY = pytest.mark.parametrize("recipe", RECIPES)
# A ring that holds far less than an epoch.
OPTIONS = ("--epochs", 3, "--seed", 5, "--ring", 48, "--max-batch", 16)


@pytest.fixture(scope="session")
def masks(images, tmp_path_factory):
    """A mask for each of the images."""
    root, rng = tmp_path_factory.mktemp("masks"), np.random.default_rng(3)
    for path in images.glob("*/*.jpg"):
        width, height = Image.open(path).size
        mask = root / path.parent.name / (path.stem + ".png")
        mask.parent.mkdir(exist_ok=True)
        numbers = rng.integers(0, 21, (height, width), dtype=np.uint8)
        Image.fromarray(numbers).save(mask)
    return root


@pytest.fixture
def begin(serve, request):
    """begin(recipe, options...) starts a producer of it, and says the fields."""

    def start(recipe, *options, **keywords):
        text, fields = RECIPES[recipe]
        given = ["--transform", text, *OPTIONS, *options]
        if "mask" in fields:
            given += ["--masks", request.getfixturevalue("masks")]
        return serve(*given, **keywords), fields

    return start


def read(fields, stream="toy", between=None):
    """The bytes of all samples of all epochs, and their indices."""
    seen, batches = [], 0
    with tsock.DataLoader(
        stream, 16, fields=("index", "draws", *fields), wait=60,
        dtype="uint8", layout="hwc", framework="numpy", rejoin_timeout=100,
    ) as loader:
        for epoch in range(3):
            for batch in loader:
                batches += 1
                if between:
                    between(batches)
                for index, *rest in zip(*batch):
                    whole = b"".join(field.tobytes() for field in rest)
                    seen.append((epoch, int(index), whole))
    return seen


def must_be_different(seen):
    """Each sample once in an epoch, and others in other epochs."""
    assert len(seen) == len({(epoch, index) for epoch, index, _ in seen}) == 3 * N
    assert len({whole for _, _, whole in seen}) > 2.9 * N


@EVERY
def test_four_threads_make_what_one_makes(begin, recipe):
    _, fields = begin(recipe)
    begin(recipe, "--threads", 4, name="four")
    one = read(fields)
    must_be_different(one)
    assert read(fields, "four") == one


@EVERY
def test_the_cache_of_packed_images_makes_what_files_make(begin, recipe):
    _, fields = begin(recipe)
    begin(recipe, "--cache", "64M", name="cached")
    assert read(fields, "cached") == read(fields)


@pytest.mark.parametrize("recipe", ["a chain", "two views"])
def test_a_pack_makes_what_the_folder_makes(begin, images, tmp_path, recipe):
    pack = tmp_path / "pack"
    subprocess.run([PACK, "--no-cache", images, pack], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, fields = begin(recipe)
    begin(recipe, "--threads", 3, name="packed", root=pack)
    assert read(fields, "packed") == read(fields)


@EVERY
def test_a_producer_that_was_killed_is_followed_by_the_same_samples(
        begin, recipe):
    _, fields = begin(recipe, name="whole")
    running = [begin(recipe, "--threads", 2)[0]]

    def kill(batches):
        # In the first, the second and the third epoch.
        if batches in (5, 19, 33):
            running[-1].kill()
            running.append(begin(recipe, "--threads", len(running))[0])

    got = read(fields, "toy", kill)
    assert len(running) == 4
    assert got == read(fields, "whole")
