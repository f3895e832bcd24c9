# SPDX-License-Identifier: MIT
"""Samples are, pixel for pixel, what Pillow and torchvision make of the file.

TSOCK_IMGLOAD names the program that loads ours (build/test/imgload).  Files
of every kind are generated; the folders imagenet-sample and jpeg-hostile under
TSOCK_TEST_DATA (../shared/data) are used where they are.
"""
import io
import math
import os
import random
import struct
import subprocess
import warnings
from fractions import Fraction
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
PIL = pytest.importorskip("PIL")
pytest.importorskip("torchvision")

from PIL import Image  # noqa: E402
from torchvision import transforms  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
IMGLOAD = os.environ.get("TSOCK_IMGLOAD") or str(
    ROOT / "build" / "test" / "imgload")
DATA = Path(os.environ.get("TSOCK_TEST_DATA") or ROOT.parent / "shared/data")
PILLOW = int(PIL.__version__.split(".")[0])

warnings.simplefilter("ignore", Image.DecompressionBombWarning)


class Recipe:
    """Ours, as a process that answers line by line."""

    def __init__(self, recipe, seed=7, *more):
        self.process = subprocess.Popen(
            [IMGLOAD, recipe, str(seed), str(PILLOW), *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        head = self.process.stdout.read(12)
        assert len(head) == 12, f"imgload refused {recipe}"
        self.shape = struct.unpack("3i", head)
        self.size = self.shape[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait() == 0

    def __call__(self, path, epoch=0, index=0):
        err, box, rest = self.load(path, epoch, index)
        if err:
            return err, box, rest.decode()
        return 0, box, np.frombuffer(rest, np.uint8).reshape(self.shape)

    def load(self, path, epoch=0, index=0):
        """The bytes of all views."""
        self.process.stdin.write(f"{epoch} {index} {path}\n".encode())
        self.process.stdin.flush()
        head = self.process.stdout.read(32)
        assert len(head) == 32, f"imgload died on {path}"
        err, *box, length, ndraws = struct.unpack("8i", head)
        rest = self.process.stdout.read(length)
        self.draws = struct.unpack(f"{ndraws}d",
                                   self.process.stdout.read(8 * ndraws))
        return err, box, rest


class Loader(Recipe):
    """A preset's samples."""

    def __init__(self, preset, size=224, resize=256, seed=7, *more):
        recipe = (f"Resize({resize}) CenterCrop({size})" if preset == "eval"
                  else f"RandomResizedCrop({size}) RandomHorizontalFlip()")
        super().__init__(recipe, seed, *more)


def pil_train(image, box, size):
    top, left, height, width, flip = box
    image = image.crop((left, top, left + width, top + height))
    image = image.resize((size, size), Image.BILINEAR)
    return image.transpose(Image.FLIP_LEFT_RIGHT) if flip else image


def pil_eval(image, size, resize):
    return transforms.Compose([transforms.Resize(resize),
                               transforms.CenterCrop(size)])(image)


def check(loader, preset, path, resize, epoch=0, index=0):
    """Compare one file; what Pillow can't load may go either way."""
    try:
        image = Image.open(path).convert("RGB")
    except Exception:
        image = None
    err, box, got = loader(path, epoch, index)
    if image is None or err:
        return image, err, got
    if preset == "train":
        want = pil_train(image, box, loader.size)
    else:
        want = pil_eval(image, loader.size, resize)
    differ = int((np.asarray(want) != got).any(axis=2).sum())
    assert differ == 0, f"{path} {image.size} {box}: {differ} pixels differ"
    return image, err, got


def photo(rng, width, height, channels):
    total = np.zeros((height, width, channels))
    for cell in (4, 9, 31, 90):
        shape = (max(1, height // cell) + 2, max(1, width // cell) + 2)
        for c in range(channels):
            grid = Image.fromarray(rng.normal(0, 1, shape).astype(np.float32))
            grid = grid.resize((width, height), Image.BICUBIC)
            total[:, :, c] += np.asarray(grid) * cell ** 0.6 * 6
    total += rng.normal(0, 4, total.shape)
    return np.clip(total + 128, 0, 255).astype(np.uint8)


def jpegs(rng, width, height):
    rgb = Image.fromarray(photo(rng, width, height, 3))
    cmyk = Image.fromarray(photo(rng, width, height, 4), "CMYK")
    exif = Image.Exif()
    exif[0x112] = 6
    for subsampling in (0, 1, 2):
        for progressive in (False, True):
            yield rgb, dict(subsampling=subsampling, progressive=progressive,
                            quality=int(rng.integers(30, 97)))
    yield rgb, dict(restart_marker_blocks=3)
    yield rgb, dict(keep_rgb=True)
    yield rgb, dict(exif=exif)
    yield rgb, dict(icc_profile=bytes(200000))
    yield rgb.convert("L"), {}
    yield rgb.convert("L"), dict(progressive=True)
    yield cmyk, {}
    yield cmyk, dict(progressive=True)


def pngs(rng, width, height):
    rgb = Image.fromarray(photo(rng, width, height, 3))
    yield rgb, {}
    yield rgb, dict(transparency=(1, 2, 3))
    yield rgb.convert("L"), {}
    yield rgb.convert("L"), dict(transparency=100)
    yield rgb.convert("1"), {}
    yield rgb.convert("LA"), {}
    yield Image.fromarray(photo(rng, width, height, 4), "RGBA"), {}
    for colours in (2, 3, 16, 200):
        yield rgb.quantize(colours), {}
        yield rgb.quantize(colours), dict(transparency=0)


SIZES = [(1, 1), (1, 2), (2, 1), (1, 17), (17, 1), (3, 5), (7, 8), (8, 8),
         (9, 16), (15, 17), (16, 16), (31, 33), (33, 16), (64, 48), (100, 75),
         (257, 129), (320, 240), (500, 375), (375, 500)]
LONG = [(65500, 8), (8, 65500), (65500, 1), (1, 65500), (3000, 2), (2, 3000),
        (20000, 20), (2500, 2500)]


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(1)
    paths = []
    for width, height in SIZES:
        for kind, make in (("JPEG", jpegs), ("PNG", pngs)):
            for image, options in make(rng, width, height):
                path = folder / f"{len(paths)}-{width}x{height}.{kind}"
                image.save(path, kind, **options)
                paths.append(path)
    return paths


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    rng = np.random.default_rng(2)
    paths = []
    for width, height in LONG:
        image = Image.fromarray(photo(rng, width, height, 3))
        for kind, options in (("JPEG", {}), ("PNG", {}),
                              ("JPEG", dict(progressive=True, subsampling=2))):
            path = folder / f"{len(paths)}-{width}x{height}.{kind}"
            image.save(path, kind, **options)
            paths.append(path)
    return paths


def must_agree(loader, preset, paths, resize=256, epochs=1):
    for index, path in enumerate(paths):
        for epoch in range(epochs):
            image, err, got = check(loader, preset, path, resize, epoch, index)
            assert image is not None
            assert not err, f"{path}: {got}"


@pytest.mark.parametrize("size, epochs", [(224, 2), (32, 2), (97, 1), (1, 1)])
def test_train_equals_pillow_on_every_kind(generated, size, epochs):
    # By an index where there are later epochs than the one that makes it.
    more = ["index"] if epochs > 1 else []
    with Loader("train", size, 256, 7, *more) as loader:
        must_agree(loader, "train", generated, epochs=epochs)


@pytest.mark.parametrize("size, resize", [(224, 256), (300, 256), (64, 37),
                                          (7, 500), (160, 160)])
def test_eval_equals_torchvision_on_every_kind(generated, size, resize):
    with Loader("eval", size, resize) as loader:
        must_agree(loader, "eval", generated, resize)


def test_long_thin_and_large_files_equal_pillow(long):
    with Loader("train") as loader:
        must_agree(loader, "train", long, epochs=2)
    # Pillow computes the whole resized image, which must fit into memory.
    fits = [p for p in long if "65500" not in p.name]
    with Loader("eval", 24, 30) as loader:
        must_agree(loader, "eval", fits, 30)


def test_real_photos_equal_pillow():
    folder = DATA / "imagenet-sample"
    if not folder.is_dir():
        pytest.skip("no imagenet-sample")
    paths = sorted(p for p in folder.rglob("*") if p.is_file())
    # The first epoch makes an index, by which the others read.
    with Loader("train", 224, 256, 7, "index") as loader:
        must_agree(loader, "train", paths, epochs=3)
    with Loader("eval") as loader:
        must_agree(loader, "eval", paths)


def pil_draft(path, box, size, filt):
    """A sample of train from Pillow's draft mode; None if that isn't ours.

    Like ours it decodes 1/2, 1/4 or 1/8 of an image; but it interpolates
    chroma that is narrow even then.
    """
    top, left, height, width, flip = box
    shrink = 8
    while shrink > 1 and min(width, height) < shrink * size:
        shrink //= 2
    image = Image.open(path)
    narrow = {layer[1:3] for layer in getattr(image, "layer", [])}
    if shrink == 1 or not narrow <= {(1, 1), (2, 2)}:
        return None
    image.draft(image.mode, [edge // shrink for edge in image.size])
    end = (left + width, top + height)
    whole = (left // shrink, top // shrink, *(-(-x // shrink) for x in end))
    part = [x / shrink - whole[i % 2]
            for i, x in enumerate((left, top, *end))]
    image = image.crop(whole).convert("RGB")
    image = image.resize((size, size), filt, box=part)
    return image.transpose(Image.FLIP_LEFT_RIGHT) if flip else image


@pytest.mark.parametrize("size, name", [
    (40, "bilinear"), (17, "bilinear"), (40, "box"), (17, "hamming"),
    (40, "bicubic"), (17, "lanczos")])
def test_fast_samples_equal_pillows_draft_mode(generated, size, name):
    # Real photos too, where they are.
    paths = [p for p in generated if p.suffix == ".JPEG"]
    paths += sorted((DATA / "imagenet-sample").rglob("*.JPEG"))[:80]
    seen = 0
    recipe = (f"RandomResizedCrop({size}, interpolation={name}) "
              "RandomHorizontalFlip()")
    with Recipe(recipe, 7, "fast") as loader:
        for index, path in enumerate(paths):
            err, box, got = loader(path, 1, index)
            assert not err, f"{path}: {got}"
            want = pil_draft(path, box, size, getattr(Image, name.upper()))
            if want is None:
                continue
            differ = int((np.asarray(want) != got).any(axis=2).sum())
            assert differ == 0, f"{path} {box}: {differ} pixels differ"
            seen += 1
    assert seen > 20


def test_fast_samples_without_a_filter_have_pixels_of_the_image(tmp_path):
    path = tmp_path / "nearest.jpg"
    image = Image.fromarray(photo(np.random.default_rng(8), 300, 200, 3))
    image.save(path, subsampling=0, quality=90)
    want = Image.open(path).resize((20, 30), Image.NEAREST)
    with Recipe("Resize((30, 20), interpolation=nearest)", 7, "fast") as loader:
        err, _, got = loader(path)
    assert not err, got
    assert np.array_equal(got, np.asarray(want))


# What Pillow's newer libjpeg decodes and ours declines, by name.
DECLINED = ("lossless", "12 bits")


def agree_or_decline(paths, sizes):
    """Pixels as Pillow's, or an error where Pillow has one or by name.

    Where only Pillow fails the damage lies below the crop, behind the last
    row, or is nothing but a missing end marker.
    """
    seen = 0
    for preset, size, resize in sizes:
        with Loader(preset, size, resize) as loader:
            for index, path in enumerate(paths):
                image, err, got = check(loader, preset, path, resize, 1, index)
                seen += image is not None and not err
                if err and image is not None:
                    assert any(name in got for name in DECLINED), (path, got)
    assert seen


def test_hostile_files_equal_pillow_or_are_declined():
    folder = DATA / "jpeg-hostile"
    if not folder.is_dir():
        pytest.skip("no jpeg-hostile")
    paths = sorted(p for p in folder.iterdir() if p.is_file())
    agree_or_decline(paths, [("train", 224, 256), ("eval", 64, 64)])


def test_damage_that_pillow_tolerates_gives_its_pixels(generated, tmp_path):
    rng = random.Random(4)
    whole = [p for p in generated
             if p.suffix == ".JPEG" and p.stat().st_size > 3000]
    paths = []
    for i in range(300):
        data = bytearray(rng.choice(whole).read_bytes())
        start = data.find(b"\xff\xda") + 14
        for _ in range(rng.choice([1, 1, 2, 5])):
            data[rng.randrange(start, len(data) - 2)] = rng.randrange(256)
        paths.append(tmp_path / f"{i}.JPEG")
        paths[-1].write_bytes(data)
    agree_or_decline(paths, [("train", 224, 256), ("eval", 64, 64)])


def test_truncated_where_pillow_says_so_and_the_crop_needs_it(tmp_path):
    """The eval crop of a square file is all of it."""
    rng = np.random.default_rng(3)
    image = Image.fromarray(photo(rng, 96, 96, 3))
    path = tmp_path / "cut"
    with Loader("eval", 96, 96) as loader:
        for kind, options in (("JPEG", {}), ("PNG", {}),
                              ("JPEG", dict(progressive=True))):
            out = io.BytesIO()
            image.save(out, kind, **options)
            data = out.getvalue()
            for keep in range(0, len(data) - 40, len(data) // 60):
                path.write_bytes(data[:keep])
                with pytest.raises(Exception):
                    Image.open(path).convert("RGB")
                assert loader(path)[0], (kind, options, keep, len(data))


def philox(seed, counter):
    """Philox4x32-10, from its paper."""
    a, b, c, d = counter
    k0, k1 = seed & 0xffffffff, seed >> 32
    for _ in range(10):
        p, q = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = ((q >> 32) ^ b ^ k0, q & 0xffffffff,
                      (p >> 32) ^ d ^ k1, p & 0xffffffff)
        k0, k1 = (k0 + 0x9E3779B9) & 0xffffffff, (k1 + 0xBB67AE85) & 0xffffffff
    return a, b, c, d


def uniform(word, low, high):
    """torch's float32 uniform_: one rounding of low + u * (high - low)."""
    low, high = np.float32(low), np.float32(high)
    exact = (Fraction(word & 0xffffff, 1 << 24) * Fraction(float(high - low))
             + Fraction(float(low)))
    return float(np.float32(float(exact)))


def torchvision_box(width, height, seed, epoch, index):
    """RandomResizedCrop.get_params and the flip, for our uniform numbers."""
    def words(op, attempt):
        return philox(seed, (index & 0xffffffff, index >> 32, epoch,
                             op << 16 | attempt))

    flip = int(uniform(words(0xa002, 0)[0], 0, 1) < 0.5)
    log_ratio = [float(np.float32(math.log(np.float32(r))))
                 for r in (3 / 4, 4 / 3)]
    for attempt in range(10):
        area, ratio, top, left = words(0xa001, attempt)
        area = height * width * uniform(area, 0.08, 1.0)
        ratio = float(np.float32(math.exp(uniform(ratio, *log_ratio))))
        w = int(round(math.sqrt(area * ratio)))
        h = int(round(math.sqrt(area / ratio)))
        if 0 < w <= width and 0 < h <= height:
            return [top % (height - h + 1), left % (width - w + 1), h, w, flip]
    w, h = width, height
    if width / height < 3 / 4:
        h = int(round(w / (3 / 4)))
    elif width / height > 4 / 3:
        w = int(round(h * (4 / 3)))
    return [(height - h) // 2, (width - w) // 2, h, w, flip]


def test_boxes_are_torchvisions_for_the_documented_numbers(tmp_path):
    rng = random.Random(1)
    path = tmp_path / "flat.PNG"
    for width, height in ((500, 375), (33, 77), (1, 1), (5, 90), (640, 480)):
        Image.new("L", (width, height)).save(path)
        seed = rng.getrandbits(64)
        with Loader("train", 4, seed=seed) as loader:
            for _ in range(200):
                epoch, index = rng.getrandbits(32), rng.getrandbits(40)
                err, box, _ = loader(path, epoch, index)
                assert not err
                assert box == torchvision_box(width, height, seed, epoch,
                                              index)
