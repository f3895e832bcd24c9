# SPDX-License-Identifier: MIT
"""transform=: torchvision's objects as recipes, and what their ends say."""

import collections
import importlib
import re
import subprocess

import pytest

import tsock
import tsock.recipe as recipe
from conftest import PRODUCER
from tsock.recipe import Ends, ends_of, text_of

# Not the function of that name.
replaying = importlib.import_module("tsock.replay")

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from torchvision import transforms as v1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
GREY = ((0.5,) * 3, (0.2,) * 3)
ANY = dict(framework="numpy", wait=60)


def full_of(*options):
    """The recipe's text in full, of what these options say."""
    done = subprocess.run(
        [PRODUCER, "--describe", "--dataset", "imagefolder", "--root", "/none"]
        + list(options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert not done.returncode, (options, done.stderr)
    return re.search("^transform=(.*)$", done.stdout, re.M)[1]


def full(text):
    """The recipe's text as the program reads it."""
    return full_of("--transform", text)


def refusal(text):
    """What tsock-producer says of a text that it doesn't take."""
    done = subprocess.run(
        [PRODUCER, "--describe", "--dataset", "imagefolder", "--root", "/none"]
        + ["--transform", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 2 and not done.stdout, text
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


# Written as in torchvision's own words: each of v1 and v2, and by hand.
ALIKE = """
Resize(256)
Resize((30, 50), interpolation=BICUBIC)
Resize(30, max_size=41)
RandomResizedCrop(176, scale=(0.25, 1.0), ratio=(0.7, 1.5))
RandomResizedCrop((288, 512), interpolation=LANCZOS)
CenterCrop((32, 48))
RandomCrop(32, padding=4)
RandomCrop(32, padding=(1, 2), fill=(1, 2, 3), padding_mode="constant")
RandomCrop((32, 40), pad_if_needed=True, padding_mode="reflect")
RandomCrop(32, padding=(1, 2, 3, 4))
Pad((1, 2, 3, 4), fill=7)
Pad(2, padding_mode="symmetric")
RandomHorizontalFlip(0.25)
RandomVerticalFlip()
RandomRotation(30)
RandomRotation((-10, 45), expand=True, center=(3, 4), fill=9)
RandomAffine(15)
RandomAffine((1, 2), translate=(0.1, 0.2), scale=(0.9, 1.1), shear=10)
RandomAffine(3, shear=(1, 2, 3, 4), interpolation=BILINEAR, center=(5, 6))
RandomPerspective(0.3, p=0.7, fill=(1, 2, 3))
GaussianBlur(23)
GaussianBlur((5, 9), sigma=(0.3, 1.7))
ColorJitter(0.4, 0.4, 0.4)
ColorJitter(brightness=(0.2, 3.0), hue=0.1)
Grayscale(3)
Grayscale()
RandomGrayscale(0.2)
RandomSolarize(128, p=0.2)
RandomPosterize(3)
RandomInvert(0.1)
RandomAutocontrast()
RandomEqualize(0.9)
RandomAdjustSharpness(1.7)
RandAugment()
RandAugment(3, 12, 21, interpolation=BILINEAR, fill=[1, 2, 3])
TrivialAugmentWide()
TrivialAugmentWide(interpolation=BICUBIC, fill=[4, 5, 6])
AutoAugment()
RandomApply([ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8)
RandomChoice([RandomInvert(1), RandomPosterize(2)])
RandomChoice([RandomInvert(1), RandomPosterize(2)], p=[0.25, 0.75])
RandomOrder([RandomInvert(1), RandomPosterize(2), Pad(3)])
"""


def made(text, package):
    """That transform of torchvision's."""
    modes = {mode.name: mode for mode in v1.InterpolationMode}
    return eval(text, {**vars(package), **modes})


@pytest.mark.parametrize("text", ALIKE.split("\n")[1:-1])
def test_an_object_is_the_recipe_that_one_would_write(text):
    for package in (v1, v2):
        whole = text_of([made(text, package), package.CenterCrop(32)])
        assert full(whole) == full(text + " CenterCrop(32)")


@pytest.mark.parametrize("text", ALIKE.split("\n")[1:-1])
def test_all_arguments_of_an_object_are_written(text):
    # Otherwise one that torchvision has and the text leaves out would be
    # tsock-producer's default.
    name = text.partition("(")[0]
    for package in (v1, v2):
        written = text_of(made(text, package))
        wanted = full(text + " CenterCrop(32)").split(" CenterCrop")[0]
        if name not in ("RandomChoice", "RandomOrder", "RandomApply"):
            assert re.findall(r"(\w+)=", written) == re.findall(
                r"(\w+)=", wanted
            )


# What torchvision refuses, too: when it is made, or with an image.
WRONG = """
ColorJitter(-0.1)
ColorJitter(contrast=-1)
ColorJitter(saturation=(1.2, 0.8))
ColorJitter(brightness=(-1, 0.8))
ColorJitter(hue=0.6)
ColorJitter(hue=-0.1)
ColorJitter(hue=(-0.6, 0.1))
RandomRotation(-10)
RandomRotation((1, 2, 3))
RandomRotation(30, fill=(1, 2))
RandomRotation(30, interpolation=LANCZOS)
RandomAffine(-5)
RandomAffine(5, translate=(1.5, 0))
RandomAffine(5, translate=(-0.5, 0))
RandomAffine(5, translate=0.5)
RandomAffine(5, scale=(0, 1))
RandomAffine(5, scale=(-1, 1))
RandomAffine(5, shear=-5)
RandomAffine(5, shear=(1, 2, 3))
RandomAffine(5, fill=(1, 2))
RandomPerspective(1.5)
RandomPerspective(-0.5)
RandomPerspective(0.5, 2)
GaussianBlur(4)
GaussianBlur(0)
GaussianBlur((3, 4))
GaussianBlur(3, -1.0)
GaussianBlur(3, (2, 1))
GaussianBlur(3, (-1, 1))
RandomErasing(1.5)
RandomErasing(0.5, (-0.1, 0.3))
RandomErasing(0.5, (0.3, 2))
RandomErasing(1, value=(1, 2))
RandomHorizontalFlip(1.1)
RandomVerticalFlip(-0.1)
RandomGrayscale(2)
RandomInvert(2)
RandomEqualize(2)
RandomAutocontrast(-1)
RandomSolarize(128, 1.5)
RandomPosterize(2, 1.5)
RandomPosterize(-1, 1)
RandomAdjustSharpness(2, 1.5)
Grayscale(2)
Pad((1, 2, 3))
Pad(2, padding_mode="mirror")
Pad(2, fill=(1, 2))
RandomCrop((1, 2, 3))
RandomCrop(8, padding=(1, 2, 3))
CenterCrop((1, 2, 3))
CenterCrop(-8)
Resize((1, 2, 3))
Resize((10, 20), max_size=30)
Resize(30, max_size=20)
Resize(0)
RandomResizedCrop(8, scale=(-2, -1))
RandomResizedCrop(8, ratio=(-1, 1))
RandomResizedCrop((8, 8, 8))
RandomChoice([RandomInvert(1), Pad(2)], p=(1, 2, 3))
RandomApply([RandomInvert(1)], p=1.5)
RandAugment(-1)
RandAugment(20, 31)
RandAugment(20, 9, 0)
AutoAugment("imagenet21k")
RandomResize(20, 10)
"""


@pytest.mark.parametrize("text", WRONG.split("\n")[1:-1])
def test_torchvisions_limits_of_arguments_are_the_producers(text):
    image = pytest.importorskip("PIL.Image").new("RGB", (60, 40))
    for package in (v1, v2):
        try:
            transform = made(text, package)
            if text.startswith("RandomErasing"):
                image = torch.zeros(3, 40, 60)
            for _ in range(30):
                transform(image)
        except Exception:
            break
    else:
        pytest.fail("torchvision takes it")
    # Its name, or the argument's value, is marked.
    said = refusal(text.replace('"', "'") + " CenterCrop(8)")
    assert re.search(r" >>[^ ]+<< ", said), said


@pytest.mark.parametrize("name", ["FiveCrop", "TenCrop"])
def test_crops_that_make_many_samples_of_one_are_refused_by_name(name):
    said = refusal("Resize(40) %s(32) ToTensor()" % name)
    assert "%s isn't native" % name in said and "tsock.serve" in said
    assert ">>%s<<" % name in said
    for package in (v1, v2):
        with pytest.raises(ValueError, match="transform: %s isn't na" % name):
            text_of([package.Resize(40), getattr(package, name)(32)])


def test_a_producer_reads_its_recipe_from_a_file(place, images, tmp_path):
    recipe = tmp_path / "recipe"
    text = "RandomResizedCrop(24)\n  RandomHorizontalFlip()\n\nRandAugment()\n"
    recipe.write_text(text)
    assert full("@%s" % recipe) == full(text)
    with tsock.Producer(name="toy", root=images, transform="@%s" % recipe):
        with tsock.DataLoader("toy", 16, **ANY) as loader:
            assert loader.transform == full(text)
    recipe.write_text("RandomResizedCrop(24) Flip()")
    assert ">>Flip<<" in refusal("@%s" % recipe)
    recipe.write_bytes(b"RandomResizedCrop(24)\0")
    assert "that is no recipe" in refusal("@%s" % recipe)


def test_a_file_without_a_recipe_is_named(tmp_path):
    for name, why in (("none", "can't open it"), ("", "can't read it")):
        done = subprocess.run(
            [PRODUCER, "--describe", "--dataset", "imagefolder", "--root"]
            + ["/none", "--transform", "@%s" % (tmp_path / name)],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert done.returncode and why in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["train", "timm-rand", "simclr"])
def test_a_dry_run_shows_the_recipe_with_all_arguments(images, name):
    said = subprocess.run(
        [PRODUCER, "--dry-run", "--quiet", "--no-cache", "--dataset"]
        + ["imagefolder", "--root", images, "--preset", name, "--size", "32"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    wanted = full_of("--preset", name, "--size", "32")
    assert "=" in wanted and wanted in " ".join(said.split())
    assert re.search(r"(?m)^cost +[\d,]+ us for an image", said)


def test_help_lists_each_preset_with_its_recipe():
    said = subprocess.run(
        [PRODUCER, "--transform", "help"], stdout=subprocess.PIPE, text=True
    ).stdout.partition("\nPresets")[2]
    texts = dict(re.findall(r"(?m)^  (\S+)\n      (.*)$", said))
    assert sorted(texts) == sorted(tsock.options.words_of("preset"))
    for name, text in texts.items():
        text = text.replace("RESIZE", "40").replace("SIZE", "32")
        options = ["--size", "32"] if "SIZE" in texts[name] else []
        options += ["--resize", "40"] if "RESIZE" in texts[name] else []
        assert full(text) == full_of("--preset", name, *options), name


def test_segmentations_reference_is_its_preset():
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    # references/segmentation/presets.py, with base_size 520, crop_size 480.
    fill = collections.defaultdict(lambda: 0, {tv_tensors.Mask: 255})
    text = text_of([
        v2.RandomResize(min_size=260, max_size=1040),
        v2.RandomHorizontalFlip(0.5),
        v2.RandomCrop(480, pad_if_needed=True, fill=fill),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ])
    assert full(text) == full_of("--preset", "segmentation")


def test_a_fill_for_masks_is_the_operations_mask_fill():
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    fill = collections.defaultdict(lambda: 0, {tv_tensors.Mask: 255})
    text = text_of(v2.RandomCrop(480, pad_if_needed=True, fill=fill))
    assert "fill=0, " in text and text.endswith("mask_fill=255)")
    fill = {tv_tensors.Image: (1, 2, 3), "others": 9}
    text = text_of(v2.Pad(4, fill=fill))
    assert "fill=(1, 2, 3), " in text and text.endswith("mask_fill=9)")
    assert text_of(v2.Pad(4, fill=7)).endswith("mask_fill=None)")


def operations():
    """By name the arguments that tsock-producer says it has."""
    said = subprocess.run(
        [PRODUCER, "--transform", "help"], stdout=subprocess.PIPE, text=True
    ).stdout.partition("Of audio")[0]
    lines = re.findall(r"(?m)^  (\w+)\((.*)\)$", said)
    return {
        name: re.findall(r"(?:^|, )(\w+)(?=,|=|$)", re.sub(r"\([^)]*\)", "", args))
        for name, args in lines
    }


def test_every_operation_of_torchvisions_is_made_of_its_objects():
    found = operations()
    assert len(found) > 30
    containers = ("RandomApply", "RandomChoice", "RandomOrder")
    for name, args in found.items():
        if name in containers or not (hasattr(v1, name) or hasattr(v2, name)):
            continue
        assert name in recipe.CLASSES, name
        assert set(recipe.CLASSES[name].split()) <= set(args), name


def test_every_operation_is_replayed():
    ends = recipe._END.pattern + "ToImage PILToTensor ToPureTensor"
    for name in operations():
        if name not in ends and name != "Views":
            assert name in replaying._DRAWS, name


def test_numbers_are_not_rounded_as_v1s_print_does():
    crop = v1.RandomResizedCrop(32, ratio=(2 / 3, 4 / 3))
    assert "0.6667" in str(crop)
    assert "ratio=(0.6666666666666666, 1.3333333333333333)" in text_of(crop)


def test_lists_of_all_kinds_are_one_after_the_other():
    steps = [v1.Resize(40), v2.CenterCrop(32)]
    wanted = full("Resize(40) CenterCrop(32)")
    for transform in (
        steps,
        v1.Compose(steps),
        v2.Compose(steps),
        torch.nn.Sequential(*steps),
        v1.Compose([v1.Compose(steps[:1]), [v2.Identity(), steps[1]]]),
    ):
        assert full(text_of(transform)) == wanted
    assert text_of("@FILE") == "@FILE"


class GaussianBlur:
    """As programs of SimCLR and MoCo have it."""

    def __call__(self, image):
        return image


def test_a_text_may_stand_in_a_transforms_place():
    steps = [v2.RandomResizedCrop(32), GaussianBlur(), v2.ToImage()]
    with pytest.raises(ValueError) as e:
        text_of(v1.Compose(steps))
    assert str(e.value) == (
        "transform: GaussianBlur of %s isn't native, but a text may stand in "
        "its place, such as 'PILGaussianBlur(0.5, (0.1, 2))'" % __name__
    )
    steps[1] = "PILGaussianBlur(0.5, (0.1, 2))"
    wanted = full("RandomResizedCrop(32) PILGaussianBlur()")
    for compose in (v1.Compose, v2.Compose, list):
        assert full(text_of(compose(steps))) == wanted
    choice = v1.RandomChoice(["RandomInvert(1) RandomEqualize(1)", v1.Pad(2)])
    assert full(text_of([choice, v1.CenterCrop(8)])) == full(
        "RandomChoice([RandomApply([RandomInvert(1) RandomEqualize(1)], 1), "
        "Pad(2)]) CenterCrop(8)"
    )


def test_a_list_among_choices_is_one_choice():
    both = v2.Compose([v2.Pad(3), v2.RandomInvert(1)])
    choice = v2.RandomChoice([both, v2.Identity()])
    assert full(text_of([choice, v2.CenterCrop(32)])) == full(
        "RandomChoice([RandomApply([Pad(3) RandomInvert(1)], 1), "
        "RandomHorizontalFlip(0)]) CenterCrop(32)"
    )


def test_weights_bring_their_recipe():
    models = pytest.importorskip("torchvision.models")
    weights = models.ResNet50_Weights.IMAGENET1K_V2.transforms()
    assert full(text_of(weights)) == full("Resize(232) CenterCrop(224)")
    assert ends_of(text_of(weights)) == Ends("float32", (MEAN, STD))


TIMM_CROP = "RandomResizedCropAndInterpolation(32, interpolation=random) "


@pytest.mark.parametrize(
    "keywords, text",
    [
        (dict(color_jitter=0.3), "ColorJitter(0.3, 0.3, 0.3)"),
        (
            dict(auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25),
            "TimmRandAugment(m=9, mstd=0.5, inc=True) ToTensor() "
            "Normalize(%r, %r) RandomErasing(0.25, (0.02, 1/3), "
            "(0.3, 1/0.3))" % (MEAN, STD),
        ),
        (
            dict(auto_augment="rand-m7-n3-p0.7-mmax20-mstd101"),
            "TimmRandAugment(m=7, n=3, p=0.7, mstd=101, mmax=20)",
        ),
        (
            dict(auto_augment="original-mstd0.5"),
            "TimmAutoAugment(original, mstd=0.5)",
        ),
        (dict(auto_augment="v0"), "TimmAutoAugment(v0)"),
        (dict(auto_augment="v0r-mstd1"), "TimmAutoAugment(v0r, mstd=1)"),
        (dict(auto_augment="originalr"), "TimmAutoAugment(originalr)"),
        (
            dict(auto_augment="3a"),
            "TimmAutoAugment(3a) ColorJitter(0.4, 0.4, 0.4)",
        ),
        (dict(auto_augment="augmix-m3-w3"), "TimmAugMix(m=3, w=3)"),
        (
            dict(auto_augment="augmix-m5-w4-d2-a0.5-b1-mstd0.5"),
            "TimmAugMix(5, 4, 2, 0.5, True, mstd=0.5)",
        ),
        (
            dict(grayscale_prob=0.2, gaussian_blur_prob=0.1, color_jitter=None),
            "RandomGrayscale(0.2) RandomApply([GaussianBlur(23)], 0.1)",
        ),
    ],
)
def test_timms_recipes_are_read(keywords, text):
    data = pytest.importorskip("timm.data")
    train = data.create_transform(
        32, is_training=True, interpolation="random", **keywords
    )
    assert full(text_of(train)) == full(
        TIMM_CROP + "RandomHorizontalFlip() " + text
    )
    assert ends_of(text_of(train)) == Ends("float32", (MEAN, STD))


@pytest.mark.parametrize(
    "keywords, text",
    [
        (dict(crop_mode="squash"), "Resize((256, 256)) CenterCrop(224)"),
        (
            dict(crop_mode="border", crop_pct=1.0, interpolation="random"),
            "ResizeKeepRatio(224, longest=1, interpolation=random) "
            "CenterCropOrPad(224, fill=(124, 116, 104))",
        ),
        (
            dict(input_size=(3, 200, 300), interpolation="bicubic"),
            "ResizeKeepRatio((228, 342), interpolation=bicubic) "
            "CenterCrop((200, 300))",
        ),
    ],
)
def test_timms_ways_to_crop_are_read(keywords, text):
    data = pytest.importorskip("timm.data")
    made = data.create_transform(**{"input_size": 224, **keywords})
    assert full(text_of(made)) == full(text)
    assert ends_of(text_of(made)) == Ends("float32", (MEAN, STD))


@pytest.mark.parametrize(
    "mode, crop", [("rkrc", "CenterCropOrPad"), ("rkrr", "RandomCropOrPad")]
)
def test_timms_ways_to_crop_in_training_are_read(mode, crop):
    data = pytest.importorskip("timm.data")
    made = data.create_transform(
        32, is_training=True, train_crop_mode=mode, interpolation="random",
        hflip=0, color_jitter=None,
    )
    assert full(text_of(made)) == full(
        "ResizeKeepRatio(32, interpolation=random, random_scale_prob=0.5, "
        "random_scale_range=(0.8, 1), random_scale_area=True, "
        "random_aspect_prob=0.5, random_aspect_range=(0.9, 1/0.9)) "
        "%s(32, padding_mode=reflect)" % crop
    )


def test_timms_other_recipes_are_read_or_named():
    data = pytest.importorskip("timm.data")
    tested = data.create_transform(224, interpolation="bicubic")
    assert full(text_of(tested)) == full("Resize(256, bicubic) CenterCrop(224)")
    prefetched = data.create_transform(
        32, is_training=True, use_prefetcher=True, color_jitter=None, hflip=0,
        interpolation="lanczos",
    )
    assert full(text_of(prefetched)) == full(
        TIMM_CROP.replace("random", "lanczos")
    )
    assert ends_of(text_of(prefetched)) == Ends()
    one = data.create_transform(
        32, is_training=True, auto_augment="rand-m9", interpolation="bicubic"
    )
    assert "interpolation=bicubic, fill=(124, 116, 104)" in text_of(one)
    for aa in ("rand-m9-t3a", "rand-m9-tweights"):
        with pytest.raises(ValueError, match="Augment.* isn't native"):
            text_of(
                data.create_transform(32, is_training=True, auto_augment=aa)
            )
    for mode, value in (("rand", "color"), ("pixel", "random"), ("const", "(124, 116, 104)")):
        text = text_of(
            data.create_transform(
                32, is_training=True, re_prob=0.1, re_mode=mode
            )
        )
        assert "value=%s" % value in full(text)
        noisy = "noise=(123.675, 116.28, 103.53, 58.395, 57.12, 57.375)"
        assert (noisy in full(text)) == (mode != "const")
    with pytest.raises(ValueError, match="RandomErasing with mode='pixel' and"):
        text_of(
            data.create_transform(
                32, is_training=True, re_prob=0.1, re_mode="pixel", re_count=3
            )
        )


def test_timms_policies_are_told_from_others_of_their_classes():
    made = pytest.importorskip("timm.data.auto_augment")
    # Without create_transform() there are other defaults.
    mix = made.augment_and_mix_transform("augmix-m4")
    assert full(text_of([mix, v1.CenterCrop(8)])) == full(
        "TimmAugMix(4, translate_pct=0.45, fill=(128, 128, 128)) CenterCrop(8)"
    )
    with pytest.raises(ValueError, match="AugMix with other operations"):
        text_of(made.AugMixAugment(mix.ops[1:]))
    auto = made.auto_augment_transform("original")
    assert "policy=original, mstd=0," in text_of(auto)
    auto.policy[7][1].prob = 0.9
    with pytest.raises(ValueError, match="AutoAugment with another policy"):
        text_of(auto)
    far = made.auto_augment_transform("v0", dict(translate_pct=0.3))
    with pytest.raises(ValueError, match="AutoAugment with another policy"):
        text_of(far)


def test_torchvisions_aug_mix_is_refused_with_what_may_stand_for_it():
    for package in (v1, v2):
        with pytest.raises(ValueError) as e:
            text_of(package.AugMix(severity=5, chain_depth=2, fill=[1, 2, 3]))
        said = re.search("AugMix isn't native, .* such as '(.*)'", str(e.value))
        assert full(said[1] + " CenterCrop(8)") == full(
            "PILAugMix(5, 3, 2, 1.0, fill=(1, 2, 3)) CenterCrop(8)"
        )


class Mine(torch.nn.Module):
    pass


def mine(image):
    return image


@pytest.mark.parametrize(
    "transform, name",
    [
        (v1.Lambda(mine), "Lambda"),
        (mine, "mine"),
        (Mine(), "Mine of "),
        (v2.RandomPhotometricDistort(), "RandomPhotometricDistort"),
        (v1.RandomApply([v1.Lambda(mine)]), "Lambda"),
    ],
)
def test_what_is_not_native_is_named_with_the_way_out(transform, name):
    with pytest.raises(ValueError) as e:
        text_of([v1.CenterCrop(32), transform])
    assert str(e.value).startswith("transform: " + name)
    assert "isn't native; serve the loader from Python" in str(e.value)


@pytest.mark.parametrize("transform", [3, [3], object(), {"a": v1.Pad(1)}])
def test_what_is_no_transform_is_refused(transform):
    with pytest.raises(TypeError, match="no transform; it is a recipe's text"):
        text_of(transform)


@pytest.mark.parametrize(
    "text, ends",
    [
        ("CenterCrop(32)", Ends()),
        ("CenterCrop(32) PILToTensor()", Ends()),
        ("CenterCrop(32) ToImage() ToDtype(torch.uint8, scale=True)", Ends()),
        ("CenterCrop(32) ToTensor", Ends("float32", ())),
        ("CenterCrop(32) transforms.ToTensor()", Ends("float32", ())),
        ("ToImage() ToDtype(torch.float16, True)", Ends("float16", ())),
        ("ToDtype(scale=True)", Ends("float32", ())),
        ("ToDtype(dtype='bfloat16')", Ends("bfloat16", ())),
        ("ConvertImageDtype(half)", Ends("float16", ())),
        (
            "ToTensor() Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))",
            Ends("float32", (MEAN, STD)),
        ),
        (
            "ToTensor() Normalize(std=[0.229 0.224,0.225], mean=0.5)",
            Ends("float32", ((0.5,) * 3, STD)),
        ),
        ("Normalize(mean=(1/2), std=.5)", Ends("float32", ((0.5,) * 3,) * 2)),
        ("Normalize(", Ends()),
        ("CenterCrop(8) Grayscale", Ends(None, ())),
        ("Grayscale(num_output_channels=1) RandomGrayscale(3)", Ends(None, ())),
        ("Grayscale(1) Grayscale(3) CenterCrop(8)", Ends()),
        ("Grayscale(1) ToDtype(float16)", Ends("float16", ())),
        ("Grayscale(1) Normalize([.5], [.2])", Ends("float32", GREY)),
        ("Normalize()", Ends()),
        (None, Ends()),
        ("@/nowhere/at/all", Ends()),
    ],
)
def test_ends_say_dtype_and_normalization(text, ends):
    assert ends_of(text) == ends


def test_ends_of_a_file_count(tmp_path):
    (tmp_path / "recipe").write_text("CenterCrop(32)\nToTensor()\n")
    assert ends_of("@%s" % (tmp_path / "recipe")) == Ends("float32", ())


def pixels(root, transform, **more):
    """Batches of a loader with that recipe, and what its dtype is."""
    with tsock.DataLoader(
        "toy", 16, root=root, transform=transform, order="sequential",
        no_cache=True, **ANY, **more
    ) as loader:
        return np.concatenate([x for x, _ in loader]), loader.normalize


def test_a_compose_is_trained_with_as_torchvision_does(place, images):
    image = pytest.importorskip("PIL.Image")
    compose = v1.Compose(
        [v1.Resize(40), v1.CenterCrop(32), v1.ToTensor()]
        + [v1.Normalize(MEAN, STD)]
    )
    got, told = pixels(images, compose)
    assert got.dtype == np.float32 and told == (MEAN, STD)
    paths = sorted(images.glob("*/*.jpg"))
    assert len(got) == len(paths)
    for sample, path in zip(got, paths):
        want = compose(image.open(path).convert("RGB")).numpy()
        assert np.abs(sample - want).max() < 1e-6


@pytest.mark.parametrize("package", [v1, v2])
def test_noise_is_erased_with_behind_normalize(place, images, package):
    erase = package.RandomErasing(1, (0.5, 0.9), value="random")
    steps = [v2.CenterCrop(32), v2.ToTensor()]
    got, _ = pixels(images, steps + [v2.Normalize((0.5,), (0.25,)), erase])
    # Most of each image is noise of mean 0 and deviation 1, up to 2 of it.
    assert abs(got.mean()) < 0.3 and 0.6 < got.std() < 1.2
    assert got.min() == -2 and got.max() == 2
    with pytest.raises((ValueError, tsock.Error), match="behind Normalize"):
        pixels(images, [v2.CenterCrop(32), erase])


def test_who_says_nothing_gets_what_the_end_says(place, images):
    steps = [v2.Resize(40), v2.CenterCrop(32)]
    # Without an end, as with presets.
    assert pixels(images, steps)[1] == "imagenet"
    got, told = pixels(images, steps + [v2.ToTensor()])
    assert told is None and got.min() >= 0 and 0.9 < got.max() <= 1
    half = steps + [v2.ToImage(), v2.ToDtype(torch.float16, scale=True)]
    assert pixels(images, half)[0].dtype == np.float16


def test_torchvisions_first_recipe_is_a_preset(place, images):
    # references/classification/presets.py, without options.
    compose = v1.Compose(
        [v1.RandomResizedCrop(32), v1.RandomHorizontalFlip(), v1.ToTensor()]
        + [v1.Normalize(MEAN, STD)]
    )
    made = []
    for name, keywords in (
        ("train", dict(preset="train", size=32)),
        ("torchvision", dict(preset="torchvision", size=32)),
        ("compose", dict(transform=compose)),
    ):
        with tsock.DataLoader(
            name, 16, root=images, seed=3, order="sequential", no_cache=True,
            **keywords, **ANY
        ) as loader:
            batches = np.concatenate([x for x, _ in loader])
            made.append((loader.transform, batches.tobytes()))
            assert batches.dtype == np.float32
    assert made[0] == made[1] == made[2]


def test_torchvisions_newer_recipe_erases_with_the_mean(place, images):
    image = pytest.importorskip("PIL.Image")
    ends = v1.Compose([v1.ToTensor(), v1.Normalize(MEAN, STD)])
    half = 0.5001 / 255 / np.array(STD)
    erased = 0
    with tsock.DataLoader(
        "toy", 16, root=images, preset="torchvision-v2", size=32,
        no_cache=True, fields=("index", "image", "draws"), **ANY
    ) as loader:
        paths = loader.dataset.samples
        for batch in loader:
            for index, got, draws in zip(*batch):
                # As torchvision has it: erased behind Normalize, with 0.
                done, top, left, height, width = map(int, draws[-5:])
                erased += done
                box = np.zeros((32, 32), bool)
                box[top : top + height, left : left + width] = done
                file = image.open(paths[index][0]).convert("RGB")
                kept = (*draws[:-5], 0, 0, 0, 0, 0)
                want = ends(tsock.replay(file, kept, loader.transform)).numpy()
                assert np.abs(got - want)[:, ~box].max() < 1e-6
                assert (np.abs(got)[:, box] <= half[:, None]).all()
    assert 5 < erased < 50  # a tenth of 203


def test_what_is_said_counts_more_than_the_end(place, images):
    steps = [v2.Resize(40), v2.CenterCrop(32), v2.ToTensor()]
    steps += [v2.Normalize(MEAN, STD)]
    got, told = pixels(images, steps, dtype="uint8")
    assert got.dtype == np.uint8 and told is None
    assert pixels(images, steps, normalize=None)[1] is None
    got, told = pixels(images, steps, dtype="float16")
    assert got.dtype == np.float16 and told == (MEAN, STD)


MNIST = ("Resize((28, 28)) Grayscale(1) ToTensor() "
         "Normalize((0.1307,), (0.3081,))")


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("layout", ["chw", "hwc"])
def test_one_channel_is_a_dimension_of_one(place, images, dtype, layout):
    image = pytest.importorskip("PIL.Image")
    compose = v1.Compose(
        [v1.Resize((28, 28)), v1.Grayscale(), v1.ToTensor()]
        + [v1.Normalize((0.1307,), (0.3081,))] * (dtype != "uint8")
    )
    got, told = pixels(images, MNIST, dtype=dtype, layout=layout)
    assert got.dtype == np.dtype(dtype)
    assert told == (None if dtype == "uint8" else ((0.1307,) * 3, (0.3081,) * 3))
    for sample, path in zip(got, sorted(images.glob("*/*.jpg"))):
        want = compose(image.open(path).convert("RGB"))
        if dtype == "uint8":
            want = (want * 255).round()
        want = want.to(getattr(torch, dtype)).numpy()
        want = want if layout == "chw" else want.transpose(1, 2, 0)
        assert sample.shape == want.shape and (sample == want).all()


def test_one_channel_is_not_normalized_with_three_means(place, images):
    grey = "CenterCrop(24) Grayscale()"
    # Without an end: from 0 to 1, not ImageNet's three means.
    got, told = pixels(images, grey)
    assert told is None and got.shape[1:] == (1, 24, 24)
    assert got.min() >= 0 and 0.9 < got.max() <= 1
    with pytest.raises(
        (ValueError, tsock.Error), match="'image' have one channel"
    ):
        pixels(images, grey, normalize="imagenet")
    assert pixels(images, grey, normalize=((0.5,), (0.5,)))[0].min() < 0


def test_rgb_behind_one_channel_makes_three_of_it():
    steps = [v2.Grayscale(1), v2.RGB(), v2.CenterCrop(8)]
    assert text_of(steps).endswith("Grayscale(3) CenterCrop(size=(8, 8))")
    assert "Grayscale" not in text_of(steps[1:])


def test_a_loader_with_a_compose_is_pickled_by_its_text(place, images):
    pickle = pytest.importorskip("pickle")
    steps = [v1.Lambda(mine)]
    steps[0] = v1.CenterCrop(32)
    with tsock.DataLoader(
        "toy", 16, root=images, transform=steps, **ANY
    ) as loader, pickle.loads(pickle.dumps(loader)) as other:
        assert other.transform == loader.transform == "CenterCrop(size=(32, 32))"


def test_a_producer_takes_a_compose_too(place, images):
    transform = v2.Compose([v2.RandomResizedCrop(24), v2.ToImage()])
    with tsock.Producer(name="toy", root=images, transform=transform):
        with tsock.DataLoader("toy", 16, **ANY) as loader:
            assert loader.transform.startswith("RandomResizedCrop(size=(24, 24)")
            assert next(iter(loader))[0].shape == (16, 3, 24, 24)


def test_a_program_s_own_refusal_names_the_place(place, images):
    with pytest.raises((ValueError, tsock.Error), match="antialias=False"):
        tsock.DataLoader(
            "toy", root=images,
            transform=v1.RandomResizedCrop(24, antialias=False), **ANY
        )
