# SPDX-License-Identifier: MIT
"""Several images of each file: --views, Views(...), the presets that have them."""
import pytest

import tsock

np = pytest.importorskip("numpy")

TEXT = (
    "Views([RandomResizedCrop(24) ColorJitter(0.4)], "
    "[Resize((16, 20)) RandomHorizontalFlip()])"
)


def test_views_are_fields_of_their_own_sizes(serve):
    pytest.importorskip("torchvision")
    image = pytest.importorskip("PIL.Image")
    serve("--transform", TEXT)
    raw = dict(dtype="uint8", layout="hwc", framework="numpy")
    fields = ("index", "image", "image2", "draws")
    with tsock.DataLoader("toy", 16, fields=fields, **raw) as loader:
        paths = loader.dataset.samples
        for batch in loader:
            for index, first, second, draws in zip(*batch):
                file = image.open(paths[index][0]).convert("RGB")
                want = tsock.replay(file, draws, loader.transform)
                assert (np.asarray(want[0]) == first).all()
                assert (np.asarray(want[1]) == second).all()


def test_each_view_is_converted_for_a_job(serve):
    serve("--transform", TEXT)
    fields = ("image", "image2")
    raw = dict(dtype="uint8", layout="hwc", framework="numpy")
    with tsock.DataLoader(
        "toy", 16, fields=fields, **raw
    ) as stored, tsock.DataLoader(
        "toy", 16, fields=fields, framework="numpy", normalize=None
    ) as floats:
        for bytes_, converted in zip(stored, floats):
            for view, (width, height) in enumerate(((24, 24), (20, 16))):
                got = converted[view]
                assert got.shape[1:] == (3, height, width)
                want = bytes_[view].transpose(0, 3, 1, 2) / np.float32(255)
                assert (got == want).all()


def test_views_of_one_recipe_differ_by_their_draws(serve):
    serve("--views", 3, "--preset", "train")
    fields = ("image", "image2", "image3")
    with tsock.DataLoader("toy", 16, fields=fields, framework="numpy") as loader:
        assert loader.transform.startswith("Views(3 * [RandomResizedCrop(")
        one, two, three = next(iter(loader))
        assert one.shape == two.shape == three.shape
        assert (one != two).any() and (two != three).any()


def test_views_from_the_cache_of_packed_images_are_those_of_the_files(serve):
    given = ("--transform", TEXT, "--order", "sequential", "--epochs", 2)
    fields = ("image", "image2", "draws")
    seen = {}
    for name, more in (("cached", ("--cache", "64M")), ("plain", ())):
        serve(*given, *more, name=name)
        with tsock.DataLoader(
            name, 16, fields=fields, framework="numpy", wait=60
        ) as loader:
            seen[name] = [
                [f.copy() for f in batch] for _ in range(2) for batch in loader
            ]
    assert len(seen["cached"]) == len(seen["plain"]) > 2
    for one, other in zip(seen["cached"], seen["plain"]):
        for a, b in zip(one, other):
            assert (a == b).all()
