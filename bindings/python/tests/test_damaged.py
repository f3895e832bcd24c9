# SPDX-License-Identifier: MIT
"""JPEG files that Pillow refuses are bad, and counted, however they are read."""

import io
import os
import re
import subprocess

import pytest

import tsock
from conftest import PRODUCER, RAW

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")

EDGE = 96
# By libjpeg and without it; some files have a marker in their data, some 512
# bytes as of an erased page, and every fourth is whole.
WRITTEN = [
    dict(subsampling=2),
    dict(subsampling=0),
    dict(optimize=True),
    dict(restart_marker_rows=1),
    dict(progressive=True),
]
DAMAGE = [b"\xff\xc5", b"\xff" * 512, b"\xff\xe5\x00\x04", b""]


def _file(i):
    y, x = np.mgrid[0:EDGE, 0:EDGE]
    pixels = np.stack([x * 2 + i, y * 2, (x * y + i) % 251], -1)
    out = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(
        out, "JPEG", quality=90, **WRITTEN[i % len(WRITTEN)]
    )
    data = bytearray(out.getvalue())
    new = DAMAGE[i % len(DAMAGE)]
    # In the last of many scans, or the middle of one.
    at = data.rfind(b"\xff\xda") + 14
    at += (len(data) - at) * 4 // 10
    new = new[: len(data) - 2 - at]
    data[at:at + len(new)] = new
    return bytes(data)


def _pillow(data):
    try:
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    except OSError:
        return None


@pytest.fixture
def damaged(tmp_path):
    root = tmp_path / "damaged"
    files = [_file(i) for i in range(40)]
    (root / "a").mkdir(parents=True)
    for i, data in enumerate(files):
        (root / "a" / ("%02d.jpg" % i)).write_bytes(data)
    return root, [_pillow(data) for data in files]


def _epochs(serve, root, *options):
    """Two epochs' samples, by index, and what the producer says at its end."""
    served = serve(
        "--preset", "eval", "--size", EDGE, "--resize", EDGE, "--epochs", 2,
        *options, root=root
    )
    loader = tsock.DataLoader(
        "toy", 8, fields=("image", "index"), wait=60, **RAW
    )
    seen = [
        (int(i), np.asarray(image).copy())
        for _ in range(2)
        for images, index in loader
        for i, image in zip(index, images)
    ]
    served.ended()
    return seen, served.log.read_text()


@pytest.mark.parametrize(
    "options",
    [[], ["--no-index"], ["--cache", "64M"], ["--fast"], None],
    ids=["index", "no index", "cache", "fast", "packed"],
)
def test_what_pillow_refuses_is_bad(serve, damaged, tmp_path, options):
    root, want = damaged
    good = {i for i, pixels in enumerate(want) if pixels is not None}
    bad = len(want) - len(good)
    assert 12 < bad < 28
    if options is None:
        pack = os.path.join(os.path.dirname(PRODUCER), "tsock-pack")
        done = subprocess.run(
            [pack, "--no-cache", "--dataset", "imagefolder", str(root),
             str(tmp_path / "pack")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            check=True,
        )
        assert " %d bad" % bad in done.stdout, done.stdout
        assert "bad file a/00.jpg: " in done.stderr, done.stderr
        root, options = tmp_path / "pack", []
    seen, log = _epochs(serve, root, *options)
    assert {i for i, _ in seen} == good
    assert re.search(r"\b%d bad files" % bad, log), log
    if options != ["--fast"]:
        for i, pixels in seen:
            assert np.array_equal(pixels, want[i]), i


def test_damage_ends_a_stream_that_is_to_raise(serve, damaged):
    root, _ = damaged
    with pytest.raises(tsock.StreamFailed, match="a/00.jpg"):
        _epochs(serve, root, "--on-error", "raise")
