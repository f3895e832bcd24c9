# SPDX-License-Identifier: MIT
"""What Pillow refuses of damaged JPEG files is refused, however it is decoded;
unless the damage lies below the crop's last row, or is but a missing end.

TSOCK_DAMAGE=N makes N times as many damaged files, 20 every marker.
"""
import io
import os
import random

import pytest

np = pytest.importorskip("numpy")
PIL = pytest.importorskip("PIL")
pytest.importorskip("torchvision")

from PIL import Image, ImageFile, features  # noqa: E402

import damage  # noqa: E402
from test_pixels import Loader, pil_train  # noqa: E402

MORE = int(os.environ.get("TSOCK_DAMAGE") or 1)
SIZE = 96
WAYS = ("", "stock", "index", "packed", "fast,index", "fast,packed")
# Markers that Pillow's libjpeg passes over, in the data or behind them, and
# some that it doesn't.
KNOWN = [1, 0xc0, 0xc4, 0xc5, 0xc8, 0xcc, *range(0xd0, 0xe1), 0xee, 0xf0, 0xfe]


def numbers(seed, n):
    if MORE >= 20:
        return range(1, 255)
    rng = random.Random(seed)
    return sorted({*rng.sample(KNOWN, min(len(KNOWN), n * MORE)),
                   *(rng.randrange(1, 255) for _ in range(n * MORE))})


def pillow(data):
    """Pillow's pixels, or None where it refuses the file."""
    try:
        return Image.open(io.BytesIO(data)).convert("RGB")
    except Exception:
        return None


def forgiving(data):
    """What libjpeg makes of it; None: nothing."""
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        return pillow(data)
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False


def damaged(kind, whole):
    """(name, bytes) of what is tried of a kind."""
    seed = damage.KINDS.index(kind)
    yield "nothing", whole
    if kind in ("4:2:0", "restart rows"):
        yield from damage.markers(whole, range(1, 255), ("middle",))
    yield from damage.markers(whole, numbers(seed, 3))
    yield from damage.twice(whole, seed, 12 * MORE)
    yield from damage.cuts(whole, seed, 4 * MORE)
    yield from damage.bursts(whole, seed, 12 * MORE)
    yield from damage.sectors(whole, seed, 8 * MORE)
    yield from damage.flips(whole, seed, 12 * MORE)
    yield from damage.headers(whole, seed, 20 * MORE)


class Ways:
    """Every way to decode, each a process of ours."""

    def __init__(self, preset, size):
        self.loaders = {way: Loader(preset, size, size, 7, *([way] if way
                                                             else []))
                        for way in WAYS}

    def __enter__(self):
        return self

    def __exit__(self, *what):
        for loader in self.loaders.values():
            loader.__exit__(*what)

    def __call__(self, path, epoch, file):
        """The answer of all that are to be alike; fast ones have their own.

        Shrunk, the crop's last row may lie some rows further down.
        """
        answers = {way: loader(path, epoch, file)
                   for way, loader in self.loaders.items()}
        for way, (err, box, got) in answers.items():
            like = answers["fast,index" if "fast" in way else ""]
            assert bool(err) == bool(like[0]), (way, got, like)
            if not err:
                assert box == like[1] and np.array_equal(got, like[2]), way
        return answers[""]


def same(image, got):
    return np.array_equal(np.asarray(image), got)


def judges_alike(kind, data, whole, name, answer):
    """The verdict on a whole image, and its pixels."""
    err, _, got = answer
    image = pillow(data)
    if image is None:
        if not err:
            # Nothing of it is missing but its end.
            assert name.startswith("cut") and same(pillow(whole), got), name
        return True
    assert not err, (name, got)
    # The image may have another size now: the crop isn't all of it.
    if image.size != (SIZE, SIZE):
        return False
    # Libraries of different versions smooth such files differently.
    if "progressive" in kind and not same(image, got):
        assert features.version_feature("libjpeg_turbo") >= "3", name
        return False
    assert same(image, got), name
    return False


@pytest.mark.parametrize("kind", damage.KINDS)
def test_whole_images_are_refused_where_pillow_refuses(kind, tmp_path):
    whole = damage.jpeg(kind, SIZE)
    path = tmp_path / "x"
    seen = [0, 0]
    with Ways("eval", SIZE) as ours:
        for file, (name, data) in enumerate(damaged(kind, whole)):
            path.write_bytes(data)
            # By the index, once it has been made.
            ours.loaders["index"](path, 0, file)
            answer = ours(path, 0, file)
            seen[judges_alike(kind, data, whole, name, answer)] += 1
    assert min(seen) > 10, seen


def first_difference(a, b):
    rows = (np.asarray(a) != np.asarray(b)).any(axis=(1, 2))
    return int(rows.argmax()) if rows.any() else len(rows)


def crops_are_judged(ours, path, file, data, whole):
    """Several crops of a damaged file; returns how many were refused."""
    refused = pillow(data) is None
    image = forgiving(data)
    original = pillow(whole)
    # Down to here nothing is damaged; of so many rows more, not all is.
    good = first_difference(image, original) if image else 0
    count = 0
    for epoch in range(3):
        path.write_bytes(whole)
        _, box, clean = ours.loaders[""](path, epoch, file)
        path.write_bytes(data)
        err, again, got = ours(path, epoch, file)
        bottom = box[0] + box[2]
        count += bool(err)
        if err:
            assert refused, got
            # The next row of MCUs may be read, too, and the next 1,024 bytes.
            near = 34 + 16 + 1040 * image.height // len(whole)
            assert bottom > good - near, (bottom, good, got)
            continue
        assert again == box
        assert same(pil_train(image, box, 32), got), (bottom, good)
        assert not refused or same(Image.fromarray(clean), got), (bottom, good)
    return count


@pytest.mark.parametrize(
    "kind", [k for k in damage.KINDS if "progressive" not in k])
def test_crops_are_refused_only_for_damage_above_their_end(kind, tmp_path):
    # Pillow reads no file by arithmetic coding of more than 64 KiB.
    size = 112 if "arithmetic" in kind else 256
    whole = damage.jpeg(kind, size)
    rng = random.Random(5)
    path = tmp_path / "x"
    refused = tries = 0
    with Ways("train", 32) as ours:
        for file in range(12 * MORE):
            start = damage.segments(whole)[-1]
            at = rng.randrange(start, len(whole) - 2)
            new = rng.choice((b"\xff\x41", b"\xff\xc5", b"\xff" * 512,
                              rng.randbytes(512)))[:len(whole) - 2 - at]
            data = damage.replaced(whole, at, new)
            refused += crops_are_judged(ours, path, file, data, whole)
            tries += 3
    assert 3 < refused < tries - 3, (refused, tries)
