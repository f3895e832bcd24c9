# SPDX-License-Identifier: MIT
"""Masks are, byte for byte, what torchvision's v2 makes of a tv_tensors.Mask
with the draws of its image: tsock.replay() makes both again.
"""
import itertools
import struct
import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("PIL")
pytest.importorskip("torchvision")

from PIL import Image  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings" / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_pixels import PILLOW, Recipe, photo  # noqa: E402
from test_recipes import SIZES, full  # noqa: E402
from tsock.replay import replay  # noqa: E402

pytestmark = pytest.mark.skipif(
    PILLOW < 13, reason="the order of passes is Pillow 13's")

END = " Resize((33, 47))"
STEPS = [
    "Resize(25)",
    "Resize(30, max_size=50)",
    "Resize(size=None, max_size=300)",
    "Resize((7, 301), interpolation=nearest)",
    "RandomResize(9, 90)",
    "RandomResizedCrop(32)",
    "RandomResizedCrop((20, 50), scale=(0.3, 1), ratio=(0.5, 2))",
    "RandomResizedCropAndInterpolation(30)",
    "CenterCrop((50, 20))",
    "CenterCropOrPad((50, 20), mask_fill=255)",
    "CenterCropOrPad(64, fill=7)",
    "CenterCropOrPad((31, 70), padding_mode=reflect)",
    "RandomCropOrPad((50, 120), fill=3)",
    "RandomCropOrPad(45, padding_mode=symmetric)",
    "RandomCropOrPad((20, 99), padding_mode=edge)",
    "ResizeKeepRatio(900, interpolation=random) CenterCropOrPad(224)",
    "Pad(7)",
    "Pad((1, 2, 3, 4), fill=(9, 99, 199))",
    "Pad((1, 2, 3, 4), fill=9)",
    "Pad(5, fill=(9, 99, 199), mask_fill=255)",
    "Pad((3, 300), padding_mode=edge)",
    "Pad(11, padding_mode=reflect)",
    "Pad((1, 200), padding_mode=symmetric)",
    "RandomCrop(32, padding=4, pad_if_needed=True, mask_fill=255)",
    "RandomCrop((32, 70), pad_if_needed=True, fill=3)",
    "RandomCrop(40, padding=(3, 1), pad_if_needed=True, padding_mode=reflect)",
    "RandomCrop(32, pad_if_needed=True, padding_mode=edge)",
    "Pad(3, fill=7) RandomCrop(50, pad_if_needed=True, mask_fill=255) "
    "Pad((9, 1), mask_fill=8) Resize((41, 77)) Pad((1, 9), mask_fill=4)",
    "RandomRotation(180)",
    "RandomRotation((90, 90))",
    "RandomRotation((180, 180)) RandomRotation((0, 0))",
    "RandomRotation(30, center=(3, 4), mask_fill=255)",
    "RandomAffine(20, (0.2, 0.1), (0.5, 2), 15, fill=9)",
    "RandomAffine(0, shear=(-30, 30, -10, 10), center=(1, 2))",
    "Pad(3, mask_fill=5) RandomAffine(45) RandomHorizontalFlip(1) "
    "RandomRotation(45, mask_fill=255) RandomCrop(40, pad_if_needed=True)",
    "RandomHorizontalFlip()",
    "RandomVerticalFlip()",
    "ColorJitter(0.4, 0.4, 0.4, 0.1) RandomErasing(1) PILGaussianBlur(1)",
    "RandomApply([ColorJitter(0.4), RandomHorizontalFlip(1)], 0.5)",
    "RandomChoice([Pad(3, mask_fill=1), CenterCrop(20), RandomInvert(1)])",
    "RandomOrder([RandomVerticalFlip(1), Resize(9), Pad((2, 1), mask_fill=5)])",
]


class Masked(Recipe):
    """Samples with masks; the mask of PATH is PATH.mask."""

    def __init__(self, text):
        super().__init__(text, 7, "masks")

    def load(self, path, epoch=0, index=0):
        loaded = super().load(path, epoch, index)
        self.error, length = struct.unpack(
            "2i", self.process.stdout.read(8))
        self.mask = self.process.stdout.read(length)
        return loaded


def write_pair(rng, path, width, height, mode="L", **options):
    Image.fromarray(photo(rng, width, height, 3)).save(path)
    most = 2 if mode == "1" else 256
    numbers = rng.integers(0, most, (height, width), dtype=np.uint8)
    mask = Image.fromarray(numbers * 255 if mode == "1" else numbers)
    if mode == "P":
        mask.putpalette(rng.integers(0, 256, 768, dtype=np.uint8).tobytes())
    elif mode == "1":
        mask = mask.convert("1")
    mask.save(f"{path}.mask", "PNG", **options)
    return path


@pytest.fixture(scope="session")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("masks")
    rng = np.random.default_rng(5)
    modes = itertools.cycle("LPL")
    return [write_pair(rng, folder / f"{k}.png", *size, next(modes))
            for k, size in enumerate(SIZES)]


def must_agree(text, pairs, indices, apart=0):
    """apart: values of a mask that may differ."""
    transform = full(text)
    with Masked(text) as loader:
        for number, path in enumerate(pairs):
            image = Image.open(path).convert("RGB")
            mask = Image.open(f"{path}.mask")
            for index in range(indices):
                err, _, got = loader(path, 1, 100 * number + index)
                assert not err and not loader.error, (got, loader.mask)
                want, numbers = replay(
                    image, loader.draws, transform, mask=mask)
                where = text, image.size, loader.draws
                assert got.tobytes() == want.tobytes(), where
                numbers = numbers.numpy().tobytes()
                assert len(loader.mask) == len(numbers), where
                differ = sum(a != b for a, b in zip(loader.mask, numbers))
                assert differ <= apart, where


@pytest.mark.parametrize("step", STEPS)
def test_each_operation_does_to_masks_what_v2_does(pairs, step):
    must_agree(step + END, pairs, 6)


@pytest.mark.parametrize("step", [
    "RandomPerspective(p=1)", "RandomPerspective(0.8, p=0.7, mask_fill=255)"])
def test_perspectives_do_to_masks_what_v2s_do(pairs, step):
    # torchvision's solver fails for pictures of one row or column.  torch
    # multiplies matrices with other roundings on some processors, which
    # decides between two pixels that are equally near.
    must_agree(step + END, pairs[4:], 10, apart=4)


@pytest.mark.parametrize("recipe", [
    "RandomResize(260, 1040) RandomHorizontalFlip() "
    "RandomCrop(480, pad_if_needed=True, mask_fill=255)",
    "Resize(520) CenterCrop(520)"])
def test_the_references_of_segmentation_are_v2s(pairs, recipe):
    # A file of one column has a long edge of 40,000.
    must_agree(recipe, pairs[3:], 8)


def test_masks_are_resized_to_any_size_as_torch_does(pairs, tmp_path):
    rng = np.random.default_rng(6)
    path = write_pair(rng, tmp_path / "wide.png", 1031, 2)
    for width in (*range(1, 40), 255, 256, 257, 515, 516, 1030, 2061, 4096):
        must_agree(f"Resize((3, {width}))", [path], 1)


@pytest.mark.parametrize("mode, bits", [
    ("L", 8), ("P", 8), ("P", 4), ("P", 2), ("P", 1), ("1", 1)])
def test_masks_have_the_numbers_that_pillow_opens(tmp_path, mode, bits):
    rng = np.random.default_rng(7)
    path = write_pair(rng, tmp_path / "a.png", 37, 23, "1" if mode == "1" else "L")
    if mode == "P":
        numbers = rng.integers(0, 2**bits, (23, 37), dtype=np.uint8)
        mask = Image.fromarray(numbers)
        mask.putpalette(rng.integers(0, 256, 3 * 2**bits, dtype=np.uint8).tobytes())
        mask.save(f"{path}.mask", "PNG", bits=bits)
    mask = Image.open(f"{path}.mask")
    assert mask.mode == mode
    with Masked("CenterCrop((23, 37))") as loader:
        loader(path)
    assert not loader.error, loader.mask
    assert loader.mask == np.array(mask).astype(np.uint8).tobytes()


@pytest.mark.parametrize("mode, says", [
    ("RGB", "of colours"), ("RGBA", "of colours"), ("LA", "with transparency"),
    ("I;16", "16 bits")])
def test_a_mask_of_another_kind_is_refused_by_name(tmp_path, mode, says):
    path = write_pair(np.random.default_rng(8), tmp_path / "a.png", 9, 7)
    Image.new(mode, (9, 7)).save(f"{path}.mask", "PNG")
    with Masked("CenterCrop(5)") as loader:
        loader(path)
    assert loader.error and says in loader.mask.decode()


def test_a_mask_of_another_size_no_png_or_a_damaged_one_is_refused(tmp_path):
    rng = np.random.default_rng(9)
    path = write_pair(rng, tmp_path / "a.png", 90, 70)
    mask = Path(f"{path}.mask")
    good = mask.read_bytes()
    with Masked("CenterCrop(5)") as loader:
        for bytes_, says in [
                (b"", "no PNG"), (b"\xff\xd8" + good, "no PNG"),
                (good[:30], "cut short"), (good[:len(good) // 2], "bad PNG"),
                (good, "")]:
            mask.write_bytes(bytes_)
            loader(path)
            assert bool(loader.error) == bool(says), says
            assert not says or says in loader.mask.decode()
        Image.new("L", (70, 90)).save(mask, "PNG")
        loader(path)
        assert loader.error
        assert loader.mask == b"it is 70 x 90 pixels, and its image 90 x 70"


def test_interlaced_masks_are_read(tmp_path):
    """Pillow writes none: this one is two pixels in two passes."""
    import zlib

    def chunk(name, data):
        body = name + data
        return (struct.pack(">I", len(data)) + body +
                struct.pack(">I", zlib.crc32(body)))

    path = write_pair(np.random.default_rng(1), tmp_path / "a.png", 2, 1)
    Path(f"{path}.mask").write_bytes(
        b"\x89PNG\r\n\x1a\n" +
        chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 8, 0, 0, 0, 1)) +
        chunk(b"IDAT", zlib.compress(b"\0\x11" + b"\0\xff")) +
        chunk(b"IEND", b""))
    with Masked("CenterCrop((1, 2))") as loader:
        loader(path)
    assert not loader.error and loader.mask == b"\x11\xff"
