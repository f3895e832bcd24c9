# SPDX-License-Identifier: MIT
"""WebP files: samples of ours are what Pillow and torchvision make of them."""
import io
import subprocess

import pytest

pytest.importorskip("torchvision")

from PIL import Image, features  # noqa: E402
from test_pixels import (IMGLOAD, SIZES, Loader, check, must_agree,  # noqa: E402
                         np, photo)

PRODUCER = IMGLOAD.rsplit("/", 2)[0] + "/bin/tsock-producer"

if not features.check("webp"):
    pytest.skip("Pillow has no WebP", allow_module_level=True)
if "libwebp none" in subprocess.run([PRODUCER, "--version"], check=True,
                                    capture_output=True, text=True).stdout:
    pytest.skip("a build without libwebp", allow_module_level=True)


def holes(rng, width, height):
    """Colours with an alpha channel, and colours where it is 0."""
    pixels = photo(rng, width, height, 4)
    pixels[..., 3][pixels[..., 3] < 110] = 0
    return Image.fromarray(pixels, "RGBA")


def webps(rng, width, height):
    rgb = Image.fromarray(photo(rng, width, height, 3))
    rgba = holes(rng, width, height)
    for quality in (5, 60, 100):
        yield rgb, dict(quality=quality, method=0)
    yield rgb, dict(quality=75, method=6)
    yield rgb, dict(icc_profile=bytes(3000), exif=Image.Exif())
    yield rgb, dict(lossless=True)
    yield rgb.convert("L"), {}
    yield rgb.quantize(7), dict(lossless=True)
    yield rgba, {}
    yield rgba, dict(quality=30, alpha_quality=20)
    yield rgba, dict(lossless=True, exact=True)
    yield rgba, dict(lossless=True, exact=False)
    yield rgb, dict(save_all=True, append_images=[
        Image.fromarray(photo(rng, width, height, 3))])
    yield rgba, dict(save_all=True, lossless=True, append_images=[
        holes(rng, width, height)])


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("webp")
    rng = np.random.default_rng(11)
    paths = []
    for width, height in SIZES:
        for image, options in webps(rng, width, height):
            paths.append(folder / f"{len(paths)}-{width}x{height}.webp")
            image.save(paths[-1], "WEBP", **options)
    return paths


@pytest.mark.parametrize("size, epochs", [(224, 2), (32, 2), (1, 1)])
def test_train_equals_pillow_on_every_kind(generated, size, epochs):
    with Loader("train", size, 256) as loader:
        must_agree(loader, "train", generated, epochs=epochs)


@pytest.mark.parametrize("size, resize", [(224, 256), (64, 37), (7, 500)])
def test_eval_equals_torchvision_on_every_kind(generated, size, resize):
    with Loader("eval", size, resize) as loader:
        must_agree(loader, "eval", generated, resize)


def test_long_files_equal_pillow(tmp_path):
    rng = np.random.default_rng(12)
    paths = []
    for width, height in [(16383, 3), (3, 16383), (3000, 2), (2000, 1500)]:
        image = Image.fromarray(photo(rng, width, height, 3))
        for options in ({}, dict(lossless=True)):
            paths.append(tmp_path / f"{len(paths)}.webp")
            image.save(paths[-1], "WEBP", **options)
    with Loader("train") as loader:
        must_agree(loader, "train", paths, epochs=2)


def files_of(rng):
    for image, options in webps(rng, 96, 96):
        out = io.BytesIO()
        image.save(out, "WEBP", **options)
        yield out.getvalue()


def opens(path):
    try:
        Image.open(path).convert("RGB")
    except Exception:
        return False
    return True


def test_truncated_where_pillow_says_so(tmp_path):
    path = tmp_path / "cut"
    with Loader("train", 16) as loader:
        for data in files_of(np.random.default_rng(13)):
            for keep in range(0, len(data), len(data) // 40):
                path.write_bytes(data[:keep])
                assert not opens(path)
                assert loader(path)[0], (keep, len(data))


def test_damaged_files_equal_pillow(tmp_path):
    """Where only Pillow fails the damage lies below the crop."""
    rng = np.random.default_rng(14)
    path = tmp_path / "damaged"
    files = [data for _ in range(3) for data in files_of(rng)]
    seen = [0, 0]
    with Loader("eval", 96, 96) as loader:
        for data in files:
            for _ in range(20):
                spoilt = bytearray(data)
                for _ in range(rng.integers(1, 4)):
                    spoilt[rng.integers(len(data))] = rng.integers(256)
                path.write_bytes(spoilt)
                image, err, _ = check(loader, "eval", path, 96)
                # The crop is all of the image.
                assert (image is None) == bool(err)
                seen[bool(err)] += 1
    assert min(seen) > 20
