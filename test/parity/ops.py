# SPDX-License-Identifier: MIT
"""Our operations as a process, and pictures to compare them on.

TSOCK_OPSDUMP names the program that has our operations (build/test/opsdump).
Every level of vector instructions that this processor has is compared.
"""
import os
import subprocess
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
PIL = pytest.importorskip("PIL")
pytest.importorskip("torchvision")

from PIL import Image  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
OPSDUMP = os.environ.get("TSOCK_OPSDUMP") or str(
    ROOT / "build" / "test" / "opsdump")
if int(PIL.__version__.split(".")[0]) < 13:
    pytest.skip("the bytes are those of Pillow 13", allow_module_level=True)

SIZES = [(1, 1), (1, 7), (9, 1), (3, 5), (32, 32), (224, 224), (333, 97)]


class Dump:
    """Ours, as a process that answers picture by picture."""

    def __init__(self, level):
        self.process = subprocess.Popen(
            [OPSDUMP, str(level)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:  # of what was still to be written
            pass
        self.process.stdout.close()
        return self.process.wait()

    def __call__(self, name, image, *numbers):
        a = np.asarray(image)
        channels = 1 if a.ndim == 2 else a.shape[2]
        line = " ".join([name, *(repr(float(v)) for v in (
            a.shape[1], a.shape[0], channels, *numbers))])
        try:
            self.process.stdin.write(line.encode() + b"\n" + a.tobytes())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        head = self.process.stdout.readline()
        assert head, f"opsdump died of {line}"
        width, height, channels = map(int, head.split())
        got = np.frombuffer(self.process.stdout.read(
            width * height * channels), np.uint8)
        shape = (height, width, 3) if channels == 3 else (height, width)
        return got.reshape(shape)


@pytest.fixture(scope="module", params=[0, 1, 2],
                ids=["plain C", "level 1", "level 2"])
def ours(request):
    dump = Dump(request.param)
    try:
        dump("flip", Image.new("L", (1, 1)), 0, 0)
    except AssertionError:
        assert dump.close() == 77
        pytest.skip("this processor lacks the level")
    yield dump
    assert dump.close() == 0


def pictures(seed, sizes=SIZES):
    """Noise, smooth colours and hard edges, in colour and in grey."""
    rng = np.random.default_rng(seed)
    for width, height in sizes:
        y, x = np.mgrid[0:height, 0:width]
        smooth = np.stack([x * 255 / width, y * 255 / height,
                           127 + 127 * np.sin(x / 5 + y / 9)], 2)
        noise = rng.integers(0, 256, (height, width, 3))
        edges = rng.integers(0, 2, (height, width, 3)) * 255
        for a in (smooth, noise, edges):
            yield Image.fromarray(a.astype(np.uint8))
        yield Image.fromarray(noise[:, :, 0].astype(np.uint8))


def same(got, want, what=""):
    want = np.asarray(want)
    assert got.shape == want.shape, what
    if not np.array_equal(got, want):
        differing = np.flatnonzero(got != want)
        pytest.fail(f"{what}: {len(differing)} of {want.size} bytes differ, "
                    f"the first at {differing[0]}")
