# SPDX-License-Identifier: MIT
"""Samples of tar files are what the webdataset package makes of them."""

import glob
import io
import json
import tarfile

import pytest

import tsock

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")
wds = pytest.importorskip("webdataset", reason="no package webdataset")

pytestmark = pytest.mark.usefixtures("place")

N = 30
RAW = dict(dtype="uint8", layout="hwc", wait=60)


def _put(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def _coded(pixels, kind):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


@pytest.fixture
def shards(tmp_path):
    """Images of every kind without loss, with all that may lie beside them."""
    kinds = [("png", "PNG"), ("bmp", "BMP"), ("ppm", "PPM"), ("tif", "TIFF")]
    rng = np.random.default_rng(8)
    for first in range(0, N, 10):
        with tarfile.open(tmp_path / ("s-%d.tar" % first), "w") as tar:
            for i in range(first, first + 10):
                key = "a/%03d" % i
                ext, kind = kinds[i % len(kinds)]
                shape = (12 + i % 5, 16)
                _put(tar, key + ".cls", b"%d" % (i % 7))
                _put(tar, "%s.%s" % (key, ext), _coded(
                    rng.integers(0, 256, (*shape, 3), dtype=np.uint8), kind))
                _put(tar, key + ".json",
                     json.dumps({"meta": {"area": i * 1.5}}).encode())
                _put(tar, key + ".seg.png", _coded(
                    rng.integers(0, 21, shape, dtype=np.uint8), "PNG"))
                _put(tar, key + ".txt", ("caption \u00e9 %d" % i).encode())
    return tmp_path


def _library(folder):
    """What the package decodes, with its own handlers but for masks."""
    numbers = wds.handle_extension(
        "seg.png", lambda data: np.array(Image.open(io.BytesIO(data)))
    )
    return list(
        wds.WebDataset(sorted(glob.glob("%s/*.tar" % folder)), shardshuffle=False)
        .decode(numbers, "rgb8")
    )


def test_images_fields_and_masks_equal_the_librarys(shards):
    with tsock.DataLoader(
        "wds", 8, root=shards, dataset="webdataset", order="sequential",
        labels="%s:label=.cls,fields=.txt+.json.meta.area" % shards,
        masks=shards, keys=True, threads=1, no_cache=True, exit_when_idle=5,
        transform="CenterCrop((12, 16))",
        fields=("image", "label", "txt", "area", "mask", "key"), **RAW
    ) as loader:
        samples = [s for batch in loader for s in zip(*batch)]
    want = _library(shards)
    assert len(samples) == len(want) == N
    for (image, label, txt, area, mask, key), w in zip(samples, want):
        pixels = next(w[e] for e in ("png", "bmp", "ppm", "tif") if e in w)
        top = round((pixels.shape[0] - 12) / 2)
        assert key == w["__key__"]
        assert np.array_equal(image.numpy(), pixels[top : top + 12])
        assert np.array_equal(mask.numpy(), w["seg.png"][top : top + 12])
        assert int(label) == w["cls"]
        assert txt == w["txt"]
        assert float(area) == w["json"]["meta"]["area"]
