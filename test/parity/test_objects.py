# SPDX-License-Identifier: MIT
"""Samples are what torchvision's own objects make of the file, of v1 and v2.

test_recipes.py calls torchvision's functions; here the objects themselves run,
turned into recipes by tsock.recipe.text_of(): those that have nothing random,
and others, which are given the sample's draws in place of their own (given.py).
"""
import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("PIL")
torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from PIL import Image  # noqa: E402
from torchvision import transforms as v1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))

from given import (  # noqa: E402
    TIMM, Given, crop_of_v2, run, visible, whole, with_parameters)
from test_pixels import DATA, PILLOW, Recipe  # noqa: E402
from test_recipes import files, full  # noqa: E402, F401
from tsock.recipe import text_of  # noqa: E402
from tsock.replay import replay  # noqa: E402

pytestmark = pytest.mark.skipif(
    PILLOW < 13, reason="the order of passes is Pillow 13's")


def photos():
    """Of the sample set, where it is."""
    return sorted((DATA / "imagenet-sample").rglob("*.JPEG"))[::25]


PACKAGES = pytest.mark.parametrize("package", [v1, v2], ids=["v1", "v2"])


def made(text, package):
    modes = {mode.name: mode for mode in v1.InterpolationMode}
    return eval(text, {**vars(package), **modes})


def must_agree(transform, files, run, indices=1):
    """run(image, draws) makes what the recipe of transform makes."""
    end = v1.Resize((33, 47))
    with Recipe(text_of([transform, end])) as loader:
        for number, path in enumerate(files):
            image = Image.open(path).convert("RGB")
            for index in range(indices):
                err, _, got = loader(path, 1, 100 * number + index)
                assert not err, (image.size, got)
                want = np.asarray(end(run(image, loader.draws)))
                assert (want == got).all(), (image.size, loader.draws)


# What is random elsewhere is always the same.
FIXED = """
Resize(25)
Resize((70, 20), interpolation=BICUBIC)
Resize(25, max_size=31, interpolation=NEAREST)
CenterCrop((50, 20))
Pad((1, 2, 3, 4), fill=(9, 99, 199))
Pad((3, 5), padding_mode="edge")
Pad(4, fill=77)
RandomHorizontalFlip(1)
RandomVerticalFlip(1)
RandomRotation((33, 33), fill=(1, 2, 3))
RandomRotation((-70, -70), interpolation=BICUBIC, expand=True)
RandomRotation((10, 10), interpolation=BILINEAR, center=(4, 9), fill=200)
RandomAffine((20, 20), scale=(1.3, 1.3), shear=(10, 10, 5, 5), fill=9)
RandomAffine((4, 4), shear=(7, 7), interpolation=BILINEAR)
RandomAffine((5, 5), interpolation=BICUBIC, center=(1, 2), fill=(3, 2, 1))
ColorJitter(brightness=(1.4, 1.4))
ColorJitter(contrast=(0.3, 0.3))
ColorJitter(saturation=(2.5, 2.5))
ColorJitter(hue=(0.2, 0.2))
ColorJitter(hue=(-0.5, -0.5))
Grayscale(3)
RandomGrayscale(1)
RandomSolarize(128, 1)
RandomSolarize(77.5, 1)
RandomPosterize(3, 1)
RandomInvert(1)
RandomAutocontrast(1)
RandomEqualize(1)
RandomAdjustSharpness(1.8, 1)
RandomAdjustSharpness(0.2, 1)
RandomApply([RandomInvert(1), RandomPosterize(2, 1)], 1)
RandomChoice([RandomInvert(1)])
RandomChoice([RandomInvert(1), RandomPosterize(2, 1)], p=[0, 1])
RandomChoice([Compose([RandomInvert(1), RandomEqualize(1)])])
RandomOrder([RandomInvert(1)])
Compose([RandomInvert(1), Compose([RandomEqualize(1), Pad(3)])])
"""


@PACKAGES
@pytest.mark.parametrize("text", FIXED.split("\n")[1:-1])
def test_objects_without_chance_make_the_samples(files, text, package):
    if "max_size" in text:  # edges of 0 pixels are refused by both
        files = [p for p in files if min(Image.open(p).size) > 1]
    transform = made(text, package)
    must_agree(transform, files, lambda image, draws: transform(image))


# Those with chance: with the parameters that were drawn.


def solvable(files, text):
    """Corners of a line of pixels are on one line: torch refuses them."""
    thick = "Perspective" in text
    return [p for p in files if min(Image.open(p).size) > thick]


RANDOM = """
RandomResizedCrop(32)
RandomResizedCrop((20, 50), scale=(0.3, 1), ratio=(0.5, 2), interpolation=BICUBIC)
RandomCrop(32, padding=4, pad_if_needed=True)
RandomCrop((32, 70), padding=(1, 2, 3, 4), pad_if_needed=True, fill=(1, 2, 3))
RandomCrop(40, pad_if_needed=True, padding_mode="edge")
RandomRotation(180)
RandomRotation(30, expand=True, interpolation=BILINEAR, fill=9)
RandomAffine(20, (0.2, 0.1), (0.5, 2), 15)
RandomAffine(0, shear=(-30, 30, -10, 10), interpolation=BILINEAR, fill=(1, 2, 3))
RandomPerspective(0.5, 1)
RandomPerspective(0.3, 1, interpolation=NEAREST, fill=(1, 2, 3))
RandomPerspective(0.6, 1, interpolation=BICUBIC, fill=9)
ColorJitter(0.4, 0.4, 0.4, 0.1)
ColorJitter(brightness=(0, 3), hue=0.5)
"""


@pytest.mark.parametrize("text", RANDOM.split("\n")[1:-1])
def test_v1_makes_the_samples_of_what_was_drawn(files, text):
    transform = made(text, v1)

    def run(image, draws):
        return with_parameters(transform, image, draws)

    must_agree(transform, solvable(files, text), run, 3)


# v1 mirrors twice, at the border and at what is behind it.
TWICE = ('RandomCrop(40, padding=(3, 1), pad_if_needed=True, '
         'padding_mode="reflect")')


@pytest.mark.parametrize("text", [*RANDOM.split("\n")[1:-1], TWICE])
def test_v2_makes_the_samples_of_what_was_drawn(files, text):
    transform = made(text, v2)

    def run(image, draws):
        return with_parameters(transform, image, draws)

    must_agree(transform, solvable(files, text), run, 3)


POLICIES = """
RandAugment()
RandAugment(4, 25, interpolation=BILINEAR, fill=[1, 2, 3])
RandAugment(3, 17, interpolation=BICUBIC)
RandAugment(2, 3, num_magnitude_bins=10, fill=9)
TrivialAugmentWide()
TrivialAugmentWide(interpolation=BILINEAR)
TrivialAugmentWide(interpolation=BICUBIC, fill=[200, 2, 30])
TrivialAugmentWide(num_magnitude_bins=47, interpolation=BILINEAR)
AutoAugment()
AutoAugment(AutoAugmentPolicy("cifar10"), interpolation=BILINEAR)
AutoAugment(AutoAugmentPolicy("svhn"), interpolation=BICUBIC, fill=[9, 8, 7])
"""


@PACKAGES
@pytest.mark.parametrize("text", POLICIES.split("\n")[1:-1])
def test_policies_make_the_samples_of_what_was_drawn(files, text, package):
    """Whole objects, which find magnitudes themselves from what they draw."""
    transform = made(text, package)
    must_agree(transform, files,
               lambda image, draws: run(transform, image, draws)[0], 25)


@PACKAGES
@pytest.mark.parametrize("text", ["GaussianBlur(23)", "GaussianBlur(3, 1.5)",
                                  "GaussianBlur((9, 31), (0.3, 9.0))"])
def test_torchvisions_blur_is_within_1_of_the_samples(files, text, package):
    transform = made(text, package)
    differing = total = 0
    # torch mirrors no more than there is: a crop is larger than the kernel.
    crop = v1.CenterCrop((150, 170))
    with Recipe(text_of([crop, transform])) as loader:
        for number, path in enumerate([*files, *photos()]):
            image = crop(Image.open(path).convert("RGB"))
            for index in range(3):
                err, _, got = loader(path, 1, 100 * number + index)
                assert not err, (image.size, got)
                want = np.asarray(run(transform, image, loader.draws)[0])
                far = np.abs(want.astype(int) - got)
                assert far.max() <= 1, (image.size, loader.draws)
                differing += np.count_nonzero(far)
                total += far.size
    assert differing <= 5 + total * 5e-5


def test_a_border_that_v1_mirrors_twice_is_refused(files):
    with pytest.raises(ValueError, match="v1's RandomCrop .* isn't native"):
        text_of(made(TWICE, v1))
    # Its pixels are others indeed.
    image = Image.open(files[4]).convert("RGB")
    padding = dict(padding=3, pad_if_needed=True, padding_mode="reflect")
    crops = [p.RandomCrop(40 + 2 * 30, **padding) for p in (v1, v2)]
    draws = [0, 0]
    crops[0].get_params = lambda *_: (*draws, 100, 100)
    params = crop_of_v2(crops[1], image, draws)
    crops[1].make_params = lambda flat: params
    assert (np.asarray(crops[0](image)) != np.asarray(crops[1](image))).any()


# ---------------------------------------------------------------------------
# timm's own classes, which are given the draws in place of their own


@pytest.mark.parametrize("config", [
    "augmix-m3-w3", "augmix-m9-w5-d2-mstd1", "augmix-m3-w3-b1",
    "augmix-m8-w4-a0.2-b1"])
def test_timms_mix_makes_the_samples_of_what_was_drawn(
        files, monkeypatch, config):
    made = pytest.importorskip("timm.data.auto_augment")
    transform = made.augment_and_mix_transform(config)
    given = Given(made, (128, 128, 128), TIMM)
    width = transform.width

    def run(image, draws):
        each = (len(draws) - 1 - width) // width
        at = range(1 + width, len(draws), each)
        chains = [given(draws[k:k + each]) for k in at]
        depths = [len(chain) for chain in chains]
        monkeypatch.setattr(np.random, "dirichlet",
                            lambda _: np.array(draws[1:1 + width]))
        monkeypatch.setattr(np.random, "beta", lambda *_: draws[0])
        monkeypatch.setattr(np.random, "randint", lambda *_: depths.pop(0))
        monkeypatch.setattr(np.random, "choice",
                            lambda ops, depth, replace: chains.pop(0))
        if not visible(draws, 1 + width):
            return replay(image, draws, text)
        return transform(image)

    text = full(text_of([transform, v1.Resize((33, 47))]))
    text = text[:text.rindex(" Resize")]
    must_agree(transform, files, run, 5)


@pytest.mark.parametrize("config", [
    "v0", "v0r-mstd0.5", "original-mstd0.5", "originalr", "3a"])
def test_timms_policies_make_the_samples_of_what_was_drawn(files, config):
    made = pytest.importorskip("timm.data.auto_augment")
    transform = made.auto_augment_transform(config)
    given, seen = Given(made, (128, 128, 128), TIMM), 0

    def run(image, draws):
        nonlocal seen
        if not visible(draws, 1):
            return replay(image, draws, text)
        seen += 1
        policy = transform.policy[int(draws[0])]
        names = [op.name.replace("Increasing", "").replace("Original", "")
                 .replace("Rand", "") for op in policy]
        for k, name in zip((1, 4), names):
            assert draws[k] < 0 or TIMM[int(draws[k])] == name
        return made.AutoAugment([given(draws[1:])])(image)

    text = full(text_of([transform, v1.Resize((33, 47))]))
    text = text[:text.rindex(" Resize")]
    must_agree(transform, files, run, 8)
    assert seen > 50


@pytest.mark.parametrize("text", [
    "AugMix(severity=8)", "AugMix(5, 2, 3, 0.5, all_ops=False, fill=[1, 2, 3])",
    "AugMix(7, 5, interpolation=BICUBIC)"])
def test_torchvisions_mix_of_pillows_operations_makes_the_samples(
        files, monkeypatch, text):
    from torchvision.transforms import autoaugment
    from torchvision.transforms import functional as F

    transform, steps = made(text, v1), []
    names = ("Identity ShearX ShearY TranslateX TranslateY Rotate Brightness "
             "Color Contrast Sharpness Posterize Solarize AutoContrast "
             "Equalize").split()
    apply_op, width = autoaugment._apply_op, transform.mixture_width

    def of_pillow(batch, _, __, interpolation, fill):
        image = F.to_pil_image(batch[0])
        name, magnitude = steps.pop(0)
        return F.pil_to_tensor(apply_op(image, name, magnitude, interpolation,
                                        fill))[None]

    monkeypatch.setattr(autoaugment, "_apply_op", of_pillow)

    def run(image, draws):
        weights = [torch.tensor([[draws[0], 1]], dtype=torch.float32),
                   torch.tensor([draws[1:1 + width]], dtype=torch.float32)]
        transform._sample_dirichlet = lambda _: weights.pop(0)
        each = (len(draws) - 1 - width) // width // 2
        chains = [[(names[int(draws[k])], draws[k + 1])
                   for k in range(at, at + 2 * each, 2) if draws[k] >= 0]
                  for at in range(1 + width, len(draws), 2 * each)]
        depths = [len(chain) for chain in chains]
        randint = lambda *_, low=0, **__: torch.tensor(  # noqa: E731
            [depths.pop(0) if low else 0])
        monkeypatch.setattr(torch, "randint", randint)
        steps[:] = sum(chains, [])
        mixed = transform(image)
        assert not steps and not depths or transform.chain_depth > 0
        return mixed

    end = v1.Resize((33, 47))
    with Recipe("PIL" + recipe_of(text) + " Resize((33, 47))") as loader:
        for number, path in enumerate(files):
            image = Image.open(path).convert("RGB")
            for index in range(5):
                err, _, got = loader(path, 1, 100 * number + index)
                assert not err, (image.size, got)
                want = np.asarray(end(run(image, loader.draws)))
                assert (want == got).all(), (image.size, loader.draws)


def recipe_of(text):
    return text.replace("BICUBIC", "bicubic")


@pytest.mark.parametrize("mode", ["squash", "border", "center"])
@pytest.mark.parametrize("size", [64, (40, 70)])
def test_timms_evaluation_makes_the_samples(files, mode, size):
    data = pytest.importorskip("timm.data")
    transform = data.create_transform(
        (3, *size) if isinstance(size, tuple) else size, crop_mode=mode,
        crop_pct=0.9, interpolation="bicubic")
    steps = v1.Compose(transform.transforms[:2])
    # Without its last two, which make floats.
    files = [p for p in files if min(Image.open(p).size) > 3]
    must_agree(steps, files, lambda image, draws: steps(image))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("size", [(9, 400), (300, 20), (51, 51)])
def test_timms_crops_make_the_samples(files, mode, size):
    data = pytest.importorskip("timm.data.transforms")
    fill = 9 if mode != "constant" else (7, 88, 199)
    centre = data.CenterCropOrPad(size, fill, mode)
    must_agree(centre, files, lambda image, draws: centre(image))
    placed = data.RandomCropOrPad(size, fill, mode)

    def run(image, draws):
        placed.get_params = lambda *_: tuple(whole(draws))
        return placed(image)

    must_agree(placed, files, run, 3)
