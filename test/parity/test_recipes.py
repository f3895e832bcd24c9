# SPDX-License-Identifier: MIT
"""Samples of any recipe are, byte for byte, what torchvision makes of the file
with the draws of the sample: tsock.replay() makes them again.
"""
import re
import subprocess
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

from test_pixels import IMGLOAD, PILLOW, Recipe, photo  # noqa: E402
from tsock.replay import replay  # noqa: E402
from tsock.replay_noise import noise  # noqa: E402

SIZES = [(1, 1), (1, 37), (41, 1), (3, 5), (40, 30), (97, 333), (224, 224)]
# As JPEG, and in grey; others are PNG in colours.
KINDS = [("JPEG", "RGB", (333, 97)), ("JPEG", "L", (51, 64)),
         ("JPEG", "RGB", (1, 1)), ("PNG", "L", (29, 17)), ("PNG", "L", (1, 9))]

# Each begins with a picture of the file's own size, and ends with one size.
END = " Resize((33, 47))"
STEPS = [
    *(f"Resize(25, interpolation={f})" for f in
      ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")),
    *(f"RandomResizedCrop(32, interpolation={f})" for f in
      ("nearest", "box", "hamming", "bicubic", "lanczos")),
    "Resize(30)",
    "Resize(30, max_size=50)",
    "Resize(size=None, max_size=300)",
    "RandomResize(7, 70)",
    "RandomResizedCrop(32)",
    "RandomResizedCrop((20, 50), scale=(0.3, 1), ratio=(0.5, 2))",
    "CenterCrop((50, 20))",
    "CenterCropOrPad((50, 20), fill=(9, 99, 199))",
    "CenterCropOrPad(64, fill=7)",
    "CenterCropOrPad((31, 70), padding_mode=reflect)",
    "RandomCropOrPad((50, 120), fill=(1, 2, 3))",
    "RandomCropOrPad(45, padding_mode=symmetric)",
    "RandomCropOrPad((20, 99), padding_mode=edge)",
    "Pad(7)",
    "Pad((1, 2, 3, 4), fill=(9, 99, 199))",
    "Pad((3, 300), padding_mode=edge)",
    "Pad(11, padding_mode=reflect)",
    "Pad((1, 200), padding_mode=symmetric)",
    "RandomCrop(32, padding=4, pad_if_needed=True)",
    "RandomCrop((32, 70), pad_if_needed=True, fill=(1, 2, 3))",
    "RandomCrop(40, padding=(3, 1), pad_if_needed=True, padding_mode=reflect)",
    "RandomCrop(32, pad_if_needed=True, padding_mode=edge)",
    "RandomHorizontalFlip()",
    "RandomVerticalFlip()",
    "RandomRotation(180)",
    "RandomRotation((90, 90))",
    "RandomRotation(30, interpolation=bilinear, fill=(255, 0, 9))",
    "RandomRotation(30, interpolation=bicubic, center=(3, 4))",
    "RandomRotation(90, expand=True, interpolation=bilinear)",
    "RandomAffine(20, (0.2, 0.1), (0.5, 2), 15)",
    "RandomAffine(0, shear=(-30, 30, -10, 10), interpolation=bilinear)",
    "RandomAffine((5, 9), fill=7, interpolation=bicubic, center=(1, 2))",
    "PILGaussianBlur(p=0.8)",
    "PILGaussianBlur(1, (3, 40))",
    "ColorJitter(0.4, 0.4, 0.4, 0.1)",
    "ColorJitter(brightness=(0, 3), hue=0.5)",
    "ColorJitter(contrast=(0.5, 0.5), saturation=(2, 9))",
    "Grayscale(3)",
    "Grayscale(1) RandomInvert() Grayscale(3)",
    "RandomGrayscale(0.5)",
    "RandomSolarize(128)",
    "RandomSolarize(77.5, p=1)",
    "RandomPosterize(2)",
    "RandomPosterize(1, 1)",
    "RandomInvert()",
    "RandomAutocontrast(1)",
    "RandomEqualize(1)",
    "RandomAdjustSharpness(2, 1)",
    "RandomAdjustSharpness(0.3, 1)",
    "RandomErasing(0.9)",
    "RandomErasing(1, value=(1, 300, -7))",
    "RandomErasing(1, value=random, noise=(124, 58))",
    "RandomErasing(1, value=random, noise=(124, 116, 104, 58, 0.2, 999))",
    "RandomErasing(0.9, value=color, noise=(124, 116, 104, 58, 57, 57.4))",
    "RandAugment()",
    "RandAugment(4, 25, interpolation=bilinear, fill=(1, 2, 3))",
    "RandAugment(3, 17, interpolation=bicubic)",
    "TrivialAugmentWide()",
    "TrivialAugmentWide(interpolation=bicubic)",
    "RandomResizedCropAndInterpolation(30)",
    "ResizeKeepRatio((33, 47), 1, random) CenterCropOrPad((33, 47))",
    "ResizeKeepRatio(900, 0.5, lanczos)",
    *(f"ResizeKeepRatio((70, 20), 0.3, {f}) CenterCropOrPad(40)" for f in
      ("nearest", "box", "bilinear", "hamming", "bicubic")),
    "ResizeKeepRatio(400, random_scale_prob=0.5, random_scale_range=(0.5, 1), "
    "random_scale_area=True, random_aspect_prob=1) RandomCropOrPad(300, "
    "padding_mode=reflect)",
    "RandomResizedCropAndInterpolation((20, 40), interpolation=lanczos)",
    "TimmRandAugment()",
    "TimmRandAugment(m=9, mstd=0.5, inc=True)",
    "TimmRandAugment(n=4, p=1, mstd=101, fill=7, interpolation=bicubic)",
    "TimmRandAugment(n=3, p=1, mstd=101, interpolation=bilinear)",
    "TimmRandAugment(n=3, p=1, m=7, fill=200, interpolation=nearest)",
    "TimmAutoAugment()",
    "TimmAutoAugment(v0, mstd=0.5, interpolation=nearest)",
    "TimmAutoAugment(v0r, mstd=None, fill=(1, 2, 3))",
    "TimmAutoAugment(originalr, mstd=3, interpolation=bilinear)",
    "TimmAutoAugment(3a)",
    "TimmAutoAugment(3a, mstd=2)",
    "TimmAugMix()",
    "TimmAugMix(m=5, w=4, d=2, mstd=0.5, fill=7)",
    "TimmAugMix(m=10, w=1, d=1, a=0.1, translate_pct=0.45)",
    "TimmAugMix(m=9, w=10, d=10, interpolation=nearest)",
    "TimmAugMix(b=True)",
    "TimmAugMix(m=7, w=5, a=0.001, b=True, interpolation=bicubic)",
    "TimmAugMix(w=2, d=3, a=20, b=True)",
    "PILAugMix()",
    "PILAugMix(10, 5, all_ops=False, fill=(1, 2, 3))",
    "PILAugMix(1, 1, 1, 0.01, interpolation=nearest)",
    "PILAugMix(9, 10, 10, 30, interpolation=bicubic)",
    "AutoAugment()",
    "AutoAugment(cifar10, interpolation=bilinear)",
    "AutoAugment(svhn, fill=128)",
    "AutoAugment(svhn, interpolation=bicubic, fill=(9, 8, 7))",
    "AutoAugment(cifar10, interpolation=bicubic)",
    "RandomApply([ColorJitter(0.4), RandomHorizontalFlip(1)], 0.5)",
    "RandomChoice([Pad(3), CenterCrop(20), RandomInvert(1)])",
    "RandomChoice([RandomEqualize(1), RandomPosterize(3, 1)], p=(1, 3))",
    "RandomOrder([RandomRotation(45), RandomSolarize(99), Pad(2)])",
]

# What people train with.
RECIPES = [
    # torchvision's references: both, and the options of the newer one.
    "RandomResizedCrop(224, antialias=True) RandomHorizontalFlip() "
    "TrivialAugmentWide(interpolation=bilinear) RandomErasing(0.1)",
    "RandomResizedCrop(176, interpolation=bilinear) RandomHorizontalFlip(0.5) "
    "AutoAugment(imagenet, interpolation=bilinear)",
    "RandomResizedCrop(96) RandomHorizontalFlip() RandAugment(2, 9, "
    "interpolation=bilinear)",
    "Resize(232, antialias=True) CenterCrop(224)",
    # timm's, which chooses a filter for each crop.
    "RandomChoice([RandomResizedCrop(96), RandomResizedCrop(96, "
    "interpolation=bicubic)]) RandomHorizontalFlip() ColorJitter(0.4, 0.4, 0.4)",
    # SimCLR, BYOL's second view.
    "RandomResizedCrop(96) RandomHorizontalFlip() RandomApply([ColorJitter("
    "0.8, 0.8, 0.8, 0.2)], p=0.8) RandomGrayscale(0.2) PILGaussianBlur(0.5)",
    "RandomResizedCrop(96) RandomHorizontalFlip() RandomApply([ColorJitter("
    "0.4, 0.4, 0.2, 0.1)], p=0.8) RandomGrayscale(0.2) PILGaussianBlur(0.1) "
    "RandomSolarize(128, p=0.2)",
    # timm's default, DeiT and ResNet strikes back.
    "RandomResizedCropAndInterpolation(224) RandomHorizontalFlip() "
    "ColorJitter(0.4, 0.4, 0.4)",
    "RandomResizedCropAndInterpolation(224) RandomHorizontalFlip() "
    "TimmRandAugment(m=9, mstd=0.5, inc=True) RandomErasing(0.25)",
    "RandomResizedCropAndInterpolation(160, interpolation=bicubic) "
    "RandomHorizontalFlip() TimmRandAugment(m=7, mstd=0.5, inc=True)",
    # AugMix as its authors' programs and timm's have it.
    "RandomResizedCrop(224) RandomHorizontalFlip() PILAugMix()",
    "RandomResizedCropAndInterpolation(224) RandomHorizontalFlip() "
    "TimmAugMix(m=3, w=3) RandomErasing(0.25)",
    "RandomResizedCropAndInterpolation(224) ToTensor() Normalize((0.485, "
    "0.456, 0.406), (0.229, 0.224, 0.225)) RandomErasing(0.6, value=random)",
    "Resize((28, 28)) Grayscale(1) ToTensor() Normalize((0.1307,), (0.3081,)) "
    "RandomErasing(value=color)",
    # DeiT III.
    "RandomResizedCropAndInterpolation(224, interpolation=bicubic) "
    "RandomHorizontalFlip() TimmAutoAugment(3a) ColorJitter(0.3, 0.3, 0.3)",
    # CIFAR.
    "RandomCrop(32, padding=4, pad_if_needed=True) RandomHorizontalFlip() "
    "AutoAugment(cifar10)",
]


# Several images of a file: SimCLR's two views, DINO's global and local ones.
VIEWS = [
    "Views([RandomResizedCrop(96) RandomHorizontalFlip() ColorJitter(0.4)], "
    "[RandomResizedCrop(96) RandomHorizontalFlip() ColorJitter(0.4)])",
    "Views([RandomResizedCrop(112, (0.4, 1), interpolation=bicubic)], "
    "[RandomResizedCrop(112, (0.4, 1), interpolation=bicubic) "
    "PILGaussianBlur(0.1) RandomSolarize(128, 0.2)], " +
    ", ".join(3 * ["[RandomResizedCrop(48, (0.05, 0.4)) "
                   "RandomHorizontalFlip() RandomGrayscale(0.5)]"]) + ")",
    "Views([Resize(20) CenterCrop(16)], [RandomVerticalFlip() "
    "RandomCrop(9, pad_if_needed=True)], [Pad(1) RandomInvert() "
    "Resize((5, 7))])",
    "Views([CenterCrop(3)])",
    "Views([RandomResizedCrop(33) Grayscale(1)], [RandomResizedCrop(20)])",
]


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder, rng, paths = tmp_path_factory.mktemp("recipes"), np.random.default_rng(5), []
    kinds = [("PNG", "RGB", size) for size in SIZES] + KINDS
    for k, (kind, mode, (width, height)) in enumerate(kinds):
        image = Image.fromarray(photo(rng, width, height, 3))
        path = folder / f"{k}.{kind}"
        image.convert(mode).save(path, kind)
        paths.append(path)
    return paths


def full(text):
    """The recipe's text with all arguments."""
    program = Path(IMGLOAD).parents[1] / "bin" / "tsock-producer"
    said = subprocess.run(
        [program, "--describe", "--dataset", "imagefolder", "--root", "/none",
         "--transform", text],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.search("^transform=(.*)$", said, re.M)[1]


@pytest.mark.skipif(PILLOW < 13, reason="the order of passes is Pillow 13's")
@pytest.mark.parametrize("views", VIEWS)
def test_views_are_each_torchvisions(files, views):
    transform = full(views)
    with Recipe(views) as loader:
        for number, path in enumerate(files):
            image = Image.open(path).convert("RGB")
            for index in range(10):
                err, _, got = loader.load(path, 2, index)
                assert not err, got
                want = b"".join(
                    made.tobytes()
                    for made in replay(image, loader.draws, transform))
                assert got == want, (image.size, index)


def must_agree(text, files, indices):
    transform, differ = full(text), []
    with Recipe(text) as loader:
        for number, path in enumerate(files):
            image = Image.open(path).convert("RGB")
            for index in range(indices):
                err, _, got = loader(path, 1, 100 * number + index)
                assert not err, (text, image.size, got)
                want = np.asarray(replay(image, loader.draws, transform))
                want = want.reshape(want.shape[:2] + (-1,))
                if want.shape != got.shape or (want != got).any():
                    differ.append((image.size, loader.draws))
    assert not differ, (text, len(differ), differ[:3])


@pytest.mark.skipif(PILLOW < 13, reason="the order of passes is Pillow 13's")
@pytest.mark.parametrize("step", STEPS)
def test_each_operation_is_torchvisions(files, step):
    must_agree(step + END, files, 6)
    # And on what isn't decoded any more, but a picture.
    must_agree("RandomInvert(0) " + step + END, files, 2)


# Recipes for images of one channel: those without a colour of three numbers.
GREY = [step for step in STEPS if not re.search(
    r"(fill|value)=\(|noise=.*, .*, |Timm(RandAugment|AutoAugment|AugMix)\((?!.*fill)", step)]
GREY += [re.sub(r"fill=\(.*?\)", "fill=99", step) for step in STEPS
         if "fill=(" in step]
GREY += ["RandomErasing(1, value=-7)",
         "RandomErasing(1, value=color, noise=(200, 99))",
         "TimmRandAugment(n=3, fill=124)",
         "TimmAutoAugment(3a, fill=124)", "TimmAugMix(fill=1)", "Grayscale(1)",
         "TimmAugMix(b=True, fill=1)", "Grayscale()"]


@pytest.mark.skipif(PILLOW < 13, reason="the order of passes is Pillow 13's")
@pytest.mark.parametrize("step", GREY)
def test_each_operation_on_one_channel_is_torchvisions(files, step):
    must_agree("Grayscale(1) " + step + END, files, 4)
    must_agree(step + END + " Grayscale()", files, 2)


def test_noise_is_torchs_normalized_and_rounded_to_bytes():
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    ours = noise(77, (124, 116, 104, 58, 57, 250), 400, 500, 3)
    for k, (mean, std) in enumerate([(124, 58), (116, 57), (104, 250)]):
        theirs = torch.empty(200000).normal_() * std + mean
        theirs = theirs.round().clamp(0, 255).numpy()
        steps = [np.histogram(x, np.arange(257))[0].cumsum() / 200000
                 for x in (ours[..., k], theirs)]
        assert np.abs(steps[0] - steps[1]).max() < 0.006


@pytest.mark.skipif(PILLOW < 13, reason="the order of passes is Pillow 13's")
@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_that_people_use_are_torchvisions(files, recipe):
    must_agree(recipe, files, 20)
