# SPDX-License-Identifier: MIT
"""Every filter of Resize gives Pillow's pixels, whatever the sizes.

TSOCK_IMGLOAD names the program that loads ours (build/test/imgload).
"""
import os
import random
import struct
import subprocess
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
PIL = pytest.importorskip("PIL")

from PIL import Image  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
IMGLOAD = os.environ.get("TSOCK_IMGLOAD") or str(
    ROOT / "build" / "test" / "imgload")
PILLOW = int(PIL.__version__.split(".")[0])
FILTERS = {"nearest": Image.NEAREST, "box": Image.BOX,
           "bilinear": Image.BILINEAR, "hamming": Image.HAMMING,
           "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
SIZES = [(1, 1), (1, 2), (2, 1), (1, 97), (97, 1), (2, 2), (3, 5), (5, 3),
         (7, 8), (10, 10), (33, 17), (64, 64), (100, 31), (31, 100),
         (150, 40), (60, 71), (333, 97), (97, 333)]
# Some of them whole multiples and parts: filters with zeros inside have them
# right at source pixels there.
RESIZED = [(1, 1), (1, 9), (9, 1), (2, 3), (5, 5), (10, 20), (16, 16),
           (30, 30), (33, 17), (50, 50), (64, 48), (99, 51), (200, 10),
           (300, 291)]


def ours(recipe, paths, pillow=PILLOW):
    """Samples of the files."""
    lines = "".join(f"0 {i} {path}\n" for i, path in enumerate(paths))
    done = subprocess.run([IMGLOAD, recipe, "1", str(pillow)],
                          input=lines.encode(), capture_output=True,
                          check=False)
    assert done.returncode == 0, (recipe, done.stderr)
    shape = struct.unpack_from("3i", done.stdout)
    at = 12
    for path in paths:
        head = struct.unpack_from("8i", done.stdout, at)
        at += 32
        assert head[0] == 0, (path, done.stdout[at:at + head[6]])
        yield np.frombuffer(done.stdout, np.uint8, head[6], at).reshape(shape)
        at += head[6] + 8 * head[7]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Noise and hard edges, where filters that go below 0 have to be cut."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(9)
    paths = []
    for width, height in SIZES:
        noise = rng.integers(0, 256, (height, width, 3))
        edges = rng.integers(0, 2, (height, width, 3)) * 255
        for kind, a in (("noise", noise), ("edges", edges)):
            paths.append(folder / f"{width}x{height}-{kind}.png")
            Image.fromarray(a.astype(np.uint8)).save(paths[-1])
    return paths


def check(recipe, paths, theirs, pillow=PILLOW):
    for path, got in zip(paths, ours(recipe, paths, pillow)):
        with Image.open(path) as image:
            want = np.asarray(theirs(image.convert("RGB")))
        assert got.shape == want.shape, (recipe, path)
        differ = int((got != want).sum())
        assert not differ, f"{recipe}, {path.name}: {differ} bytes differ"


@pytest.mark.parametrize("name", FILTERS)
def test_resize_gives_the_pixels_of_pillow(pictures, name):
    for width, height in RESIZED:
        check(f"Resize(({height}, {width}), interpolation={name})", pictures,
              lambda image: image.resize((width, height), FILTERS[name]))


@pytest.mark.parametrize("name", FILTERS)
def test_pillow_12_resizes_from_left_to_right_first(pictures, name):
    """Pillow 13 would start with the height in most of these."""
    high = [path for path in pictures if path.name[:2] in ("31", "97", "60")]
    for width, height in RESIZED[:6]:
        check(f"Resize(({height}, {width}), interpolation={name})", high,
              lambda image: image.resize(
                  (width, image.height), FILTERS[name]).resize(
                      (width, height), FILTERS[name]), 12)


@pytest.mark.parametrize("name", FILTERS)
def test_random_sizes_give_the_pixels_of_pillow(pictures, name):
    rng = random.Random(name)
    for _ in range(40):
        width, height = rng.randrange(1, 700), rng.randrange(1, 700)
        check(f"Resize(({height}, {width}), interpolation={name})",
              rng.sample(pictures, 4),
              lambda image: image.resize((width, height), FILTERS[name]))


@pytest.mark.parametrize("name", FILTERS)
def test_a_window_of_a_resized_image_has_the_pixels_of_pillow(pictures, name):
    """Only that window is computed, from only what it needs."""
    rng = random.Random(name)
    large = [path for path in pictures if path.name[:2] in ("33", "97", "64")]
    for _ in range(20):
        width, height = rng.randrange(20, 500), rng.randrange(20, 500)
        w, h = rng.randrange(1, 21), rng.randrange(1, 21)
        left = round((width - w) / 2)
        top = round((height - h) / 2)
        check(f"Resize(({height}, {width}), interpolation={name}) "
              f"CenterCrop(({h}, {w}))", large,
              lambda image: image.resize(
                  (width, height), FILTERS[name]).crop(
                      (left, top, left + w, top + h)))


@pytest.mark.parametrize("name", FILTERS)
def test_random_crops_are_resized_as_by_pillow(pictures, name):
    large = [path for path in pictures if path.name[:2] in ("33", "97", "64")]
    recipe = f"RandomResizedCrop((40, 30), interpolation={name})"
    lines = "".join(f"{epoch} {i} {path}\n" for i, path in enumerate(large)
                    for epoch in range(20))
    out = subprocess.run([IMGLOAD, recipe, "1", str(PILLOW)],
                         input=lines.encode(), stdout=subprocess.PIPE,
                         check=True).stdout
    at = 12
    for path in large:
        with Image.open(path) as image:
            for _ in range(20):
                err, top, left, height, width, _, size, draws = \
                    struct.unpack_from("8i", out, at)
                assert not err
                got = np.frombuffer(out, np.uint8, size, at + 32)
                at += 32 + size + 8 * draws
                want = image.crop((left, top, left + width, top + height))
                want = np.asarray(want.resize((30, 40), FILTERS[name]))
                assert np.array_equal(got, want.ravel()), (path.name, name)
