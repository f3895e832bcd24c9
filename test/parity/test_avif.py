# SPDX-License-Identifier: MIT
"""AVIF files: samples of ours are what Pillow and torchvision make of them."""
import io
import subprocess

import pytest

pytest.importorskip("torchvision")

from PIL import Image, features  # noqa: E402
from test_pixels import (IMGLOAD, SIZES, Loader, check, must_agree,  # noqa: E402
                         np, photo)

PRODUCER = IMGLOAD.rsplit("/", 2)[0] + "/bin/tsock-producer"

if "avif" not in features.modules or not features.check("avif"):
    pytest.skip("this Pillow reads no AVIF; 11.3 and later do",
                allow_module_level=True)
if "libavif none" in subprocess.run([PRODUCER, "--version"], check=True,
                                    capture_output=True, text=True).stdout:
    pytest.skip("a build without libavif", allow_module_level=True)


def avifs(rng, width, height):
    rgb = Image.fromarray(photo(rng, width, height, 3))
    rgba = Image.fromarray(photo(rng, width, height, 4), "RGBA")
    fast = dict(speed=10, max_threads=1)
    for subsampling in ("4:2:0", "4:2:2", "4:4:4", "4:0:0"):
        for levels in ("full", "limited"):
            yield rgb, dict(fast, subsampling=subsampling, range=levels)
    yield rgb, dict(fast, quality=20)
    yield rgb, dict(fast, quality=100, subsampling="4:4:4")
    yield rgb, dict(fast, icc_profile=bytes(3000))
    yield rgba, fast
    yield rgba, dict(fast, alpha_premultiplied=True)
    yield rgba, dict(fast, subsampling="4:4:4", range="limited")
    yield rgb, dict(fast, save_all=True, append_images=[
        Image.fromarray(photo(rng, width, height, 3))])


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("avif")
    rng = np.random.default_rng(11)
    paths = []
    for width, height in SIZES:
        for image, options in avifs(rng, width, height):
            paths.append(folder / f"{len(paths)}-{width}x{height}.avif")
            image.save(paths[-1], "AVIF", **options)
    return paths


@pytest.mark.parametrize("size, epochs", [(224, 2), (1, 1)])
def test_train_equals_pillow_on_every_kind(generated, size, epochs):
    with Loader("train", size, 256) as loader:
        must_agree(loader, "train", generated, epochs=epochs)


@pytest.mark.parametrize("size, resize", [(224, 256), (7, 500)])
def test_eval_equals_torchvision_on_every_kind(generated, size, resize):
    with Loader("eval", size, resize) as loader:
        must_agree(loader, "eval", generated, resize)


def test_images_that_are_said_to_be_turned_stay_as_they_are(tmp_path):
    """As Pillow's convert(), which turns nothing."""
    image = Image.fromarray(photo(np.random.default_rng(12), 90, 60, 3))
    exif = Image.Exif()
    exif[0x112] = 6
    paths = []
    for orientation in range(1, 9):
        exif[0x112] = orientation
        paths.append(tmp_path / f"{orientation}.avif")
        image.save(paths[-1], "AVIF", exif=exif.tobytes(), speed=10)
    with Loader("eval", 60, 60) as loader:
        must_agree(loader, "eval", paths, 60)


def test_cut_and_damaged_files_equal_pillow(tmp_path):
    """But for damage that only one of two versions of dav1d finds."""
    rng = np.random.default_rng(14)
    path = tmp_path / "damaged"
    seen = [0, 0]
    with Loader("eval", 96, 96) as loader:
        for image, options in avifs(rng, 96, 96):
            out = io.BytesIO()
            image.save(out, "AVIF", **options)
            data = out.getvalue()
            for keep in range(0, len(data), len(data) // 9):
                path.write_bytes(data[:keep])
                assert loader(path)[0], (keep, len(data))
            for _ in range(12):
                spoilt = bytearray(data)
                # Behind the boxes of the head, in what is coded.
                spoilt[rng.integers(data.index(b"mdat") + 4,
                                    len(data))] = rng.integers(256)
                path.write_bytes(spoilt)
                image, err, _ = check(loader, "eval", path, 96)
                assert image is None or not err
                seen[bool(err)] += 1
    assert min(seen) > 4
