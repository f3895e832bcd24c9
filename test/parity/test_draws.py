# SPDX-License-Identifier: MIT
"""What recipes draw is distributed as what torchvision and timm draw.

Each number is drawn many times by both, with fixed seeds, and compared by
counts: a chi-square test where there are few values, Kolmogorov and Smirnov's
where there are many.  The packages' own functions draw theirs; where these
draw and change pixels in one, what they would do to the pixels is noted
instead.

A package takes far longer for a draw than a recipe does: theirs are
TSOCK_DRAWS, ours as many and no fewer than OURS.  `test/run.sh draws` draws a
million of each.
"""
import array
import collections
import itertools
import math
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from PIL import Image  # noqa: E402
from torchvision import transforms  # noqa: E402
from torchvision.transforms import autoaugment  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_pixels import IMGLOAD, Recipe  # noqa: E402

RECIPEDRAWS = Path(IMGLOAD).with_name("recipedraws")

THEIRS = int(os.environ.get("TSOCK_DRAWS", 10_000))
OURS = max(THEIRS, 40_000)
LOADED = 100  # samples whose draws are also compared with those of an image
WIDTH, HEIGHT = 60, 40
SEED, EPOCH = 11, 3


class Draws:
    """OURS samples' draws by a recipe, as columns."""

    def __init__(self, folder, recipe):
        made = subprocess.run(
            [RECIPEDRAWS, recipe, *map(str, (SEED, EPOCH, WIDTH, HEIGHT,
                                             OURS))],
            stdout=subprocess.PIPE, check=True).stdout
        rows = np.frombuffer(made).reshape(OURS, -1)
        self.are_those_of_images(folder, recipe, rows[:LOADED])
        self.columns = np.ascontiguousarray(rows.T)

    @staticmethod
    def are_those_of_images(folder, recipe, rows):
        path = folder / "grey.png"
        Image.new("L", (WIDTH, HEIGHT), 99).save(path)
        with Recipe(recipe, SEED) as loader:
            for index, row in enumerate(rows):
                assert not loader.load(path, EPOCH, index)[0]
                assert loader.draws == tuple(row)

    def take(self, n):
        """The next columns."""
        taken, self.columns = self.columns[:n], self.columns[n:]
        return taken


@pytest.fixture
def draws(tmp_path):
    torch.manual_seed(5)
    random.seed(6)
    np.random.seed(7)
    return lambda recipe: Draws(tmp_path, recipe + " CenterCrop(8)")


def chi_square(ours, theirs):
    """How many standard deviations two counts of the same things are apart."""
    sizes = sum(ours.values()), sum(theirs.values())
    total, bins, rest = 0.0, 0, [0, 0]
    for key in sorted({*ours, *theirs}):
        pair = [ours[key], theirs[key]]
        # What is rare is counted together.
        if sum(pair) < 40:
            rest = [rest[0] + pair[0], rest[1] + pair[1]]
            continue
        total, bins = total + term(pair, sizes), bins + 1
    if sum(rest) >= 40:
        total, bins = total + term(rest, sizes), bins + 1
    if bins < 2:
        return 0.0
    # Wilson and Hilferty's normal approximation.
    k = bins - 1
    return ((total / k) ** (1 / 3) - 1 + 2 / (9 * k)) / math.sqrt(2 / (9 * k))


def term(pair, sizes):
    share = sum(pair) / sum(sizes)
    return sum((n - share * of) ** 2 / (share * of)
               for n, of in zip(pair, sizes))


def smirnov(ours, theirs):
    """The largest difference of two distributions beside what is usual."""
    both = np.sort(np.concatenate([ours, theirs]))
    parts = [np.searchsorted(np.sort(x), both, side="right") / len(x)
             for x in (ours, theirs)]
    n, m = len(ours), len(theirs)
    return np.abs(parts[0] - parts[1]).max() * math.sqrt(n * m / (n + m))


def alike(ours, theirs, what):
    """Neither is refused at one in some ten thousand."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    assert len(ours) and len(theirs), what
    counts = [np.unique(x, return_counts=True) for x in (ours, theirs)]
    if min(len(values) for values, _ in counts) <= 300:
        counts = [collections.Counter(dict(zip(values.tolist(), n.tolist())))
                  for values, n in counts]
        assert chi_square(*counts) < 3.9, (what, *map(dict, counts))
    else:
        assert smirnov(ours, theirs) < 2.3, what


def alike_columns(ours, theirs, names):
    for mine, other, name in zip(ours, np.array(theirs).T, names.split()):
        alike(mine, other, name)


def tuples_alike(ours, theirs, what):
    counts = [collections.Counter(map(tuple, x)) for x in (ours, theirs)]
    assert chi_square(*counts) < 3.9, what


def is_binomial(done, p):
    n = len(done)
    deviation = (done.sum() - n * p) / math.sqrt(n * p * (1 - p))
    assert abs(deviation) < 3.9
    assert set(done.tolist()) == {0, 1}


def with_sums(boxes):
    """top, left, height, width, and what depends on two of them."""
    top, left, height, width = np.array(boxes, float).T
    return [top, left, height, width, height * width,
            np.log(width / height), top / (HEIGHT + 1 - height),
            left / (WIDTH + 1 - width)]


BOX = "top left height width area ratio above beside"
PICTURE = Image.new("RGB", (WIDTH, HEIGHT))


@pytest.mark.parametrize("scale, ratio", [
    ((0.08, 1.0), (3 / 4, 4 / 3)), ((0.4, 0.5), (0.2, 1.1)),
    ((0.9, 1.0), (4.0, 5.0))])
def test_boxes_of_crops_are_torchvisions(draws, scale, ratio):
    own = draws(f"RandomResizedCrop(8, {scale}, {ratio})").take(4)
    theirs = [transforms.RandomResizedCrop.get_params(PICTURE, scale, ratio)
              for _ in range(THEIRS)]
    for mine, other, name in zip(with_sums(own.T), with_sums(theirs),
                                 BOX.split()):
        alike(mine, other, name)


def test_boxes_of_erasing_are_torchvisions(draws):
    own = draws("RandomErasing(0.7, (0.02, 0.5), (0.3, 3.3))").take(5)
    picture = torch.zeros(3, HEIGHT, WIDTH)
    theirs = [transforms.RandomErasing.get_params(
        picture, (0.02, 0.5), (0.3, 3.3), [0.0])[:4] for _ in range(THEIRS)]
    # One that finds no box gives all of the picture.
    theirs = [box for box in theirs if box[2] < HEIGHT and box[3] < WIDTH]
    done = np.arange(THEIRS) < len(theirs)
    alike(own[0], done & (np.random.random(THEIRS) < 0.7), "done")
    for mine, other, name in zip(with_sums(own[1:, own[0] == 1].T),
                                 with_sums(theirs), BOX.split()):
        alike(mine, other, name)


def test_places_of_crops_are_torchvisions(draws):
    own = draws("RandomCrop((32, 50), padding=(1, 2, 3, 4))").take(2)
    theirs = [transforms.RandomCrop.get_params(
        Image.new("L", (WIDTH + 4, HEIGHT + 6)), (32, 50))[:2]
        for _ in range(THEIRS)]
    alike_columns(own, theirs, "top left")
    tuples_alike(own.T.tolist(), theirs, "both")


def test_short_edges_are_torchvisions(draws):
    v2 = pytest.importorskip("torchvision.transforms.v2")
    own = draws("RandomResize(26, 104) CenterCrop(9)").take(1)
    resize = v2.RandomResize(26, 104)
    alike(own[0], [resize.make_params([])["size"][0] for _ in range(THEIRS)],
          "size")


def test_chances_are_those_that_were_asked_for(draws):
    names = ("RandomHorizontalFlip", "RandomVerticalFlip", "RandomGrayscale",
             "RandomInvert", "RandomAutocontrast", "RandomEqualize")
    chances = (0.5, 0.3, 0.1, 0.8, 0.999, 0.001)
    made = draws("".join(f"{name}({p})" for name, p in zip(names, chances))
                 + "RandomSolarize(9, 0.25) RandomPosterize(3, 0.4) "
                 "RandomAdjustSharpness(2, 0.6) RandomApply([RandomInvert(0.5)"
                 "], 0.2)")
    for p in (*chances, 0.25, 0.4, 0.6):
        is_binomial(made.take(1)[0], p)
    apply, inner = made.take(2)
    is_binomial(apply, 0.2)
    # What isn't done draws nothing.
    assert not inner[apply == 0].any()
    assert abs(inner[apply == 1].mean() - 0.5) < 0.02


def test_operations_are_independent(draws):
    flip = "RandomHorizontalFlip()"
    own = draws(flip * 6).take(6)
    tuples_alike(own.T.tolist(),
                 np.random.randint(0, 2, (OURS, 6)).tolist(), "six flips")


def test_angles_and_shears_are_torchvisions(draws):
    made = draws("RandomRotation((-20, 50)) RandomAffine(30, (0.2, 0.4), "
                 "(0.5, 2), (-5, 6, -7, 8))")
    turn = [transforms.RandomRotation.get_params([-20.0, 50.0])
            for _ in range(THEIRS)]
    alike(made.take(1)[0], turn, "degrees")
    theirs = []
    for _ in range(THEIRS):
        angle, move, scale, shear = transforms.RandomAffine.get_params(
            [-30.0, 30.0], [0.2, 0.4], [0.5, 2.0], [-5.0, 6.0, -7.0, 8.0],
            [WIDTH, HEIGHT])
        theirs.append((angle, *move, scale, *shear))
    alike_columns(made.take(6), theirs, "degrees x y scale shear-x shear-y")


def test_corners_of_perspectives_are_torchvisions(draws):
    own = draws("RandomPerspective(0.6, 1)").take(9)[1:]
    theirs = [sum(transforms.RandomPerspective.get_params(
        WIDTH, HEIGHT, 0.6)[1], []) for _ in range(THEIRS)]
    alike_columns(own, theirs, "x y x y x y x y")


def test_blurs_are_theirs(draws):
    made = draws("GaussianBlur(3, (0.3, 1.7)) PILGaussianBlur(0.4, (0.5, 1))")
    alike(made.take(1)[0],
          [transforms.GaussianBlur.get_params(0.3, 1.7)
           for _ in range(THEIRS)], "sigma")
    done, radius = made.take(2)
    is_binomial(done, 0.4)
    alike(radius[done == 1], [random.uniform(0.5, 1) for _ in range(OURS)],
          "radius")


def test_jitter_is_torchvisions(draws):
    own = draws("ColorJitter(0.4, (0.2, 3), 0.1, 0.3)").take(8)
    jitter = transforms.ColorJitter(0.4, (0.2, 3), 0.1, 0.3)
    theirs = [jitter.get_params(jitter.brightness, jitter.contrast,
                                jitter.saturation, jitter.hue)
              for _ in range(THEIRS)]
    orders = [order.tolist() for order, *_ in theirs]
    tuples_alike(own[:4].T.tolist(), orders, "order")
    alike_columns(own[4:], [factors for _, *factors in theirs],
                  "brightness contrast saturation hue")


def test_choices_and_orders_are_by_their_weights(draws):
    flips = ", ".join(["RandomHorizontalFlip(0.5)"] * 4)
    made = draws(f"RandomChoice([{flips}]) RandomChoice([{flips}], "
                 f"p=(1, 2, 0, 5)) RandomOrder([{flips}])")
    alike(made.take(5)[0], np.random.randint(0, 4, OURS), "choice")
    alike(made.take(5)[0], random.choices(range(4), (1, 2, 0, 5), k=OURS),
          "weighted choice")
    orders = list(itertools.permutations(range(4)))
    tuples_alike(made.take(8)[:4].T.tolist(), random.choices(orders, k=OURS),
                 "order")


# ---------------------------------------------------------------------------
# Policies

SPACE = ("Identity ShearX ShearY TranslateX TranslateY Rotate Brightness "
         "Color Contrast Sharpness Posterize Solarize AutoContrast "
         "Equalize").split()
NAMES = [*SPACE, "Invert"]


def by_torchvision(policy, monkeypatch, most):
    """What a policy would have done to THEIRS pictures, `most` steps to each:
    arrays of places in NAMES, -1 where there is no step, and of magnitudes.
    """
    noted = array.array("d")

    def note(image, name, magnitude, **_):
        noted.extend((NAMES.index(name), magnitude))
        return image

    monkeypatch.setattr(autoaugment, "_apply_op", note)
    for k in range(1, THEIRS + 1):
        policy(PICTURE)
        noted.extend((-1, 0) * (k * most - len(noted) // 2))
    return np.array(noted).reshape(THEIRS, most, 2).transpose(2, 0, 1)


def magnitudes_alike(ours, theirs):
    """Both are names, by number, and a magnitude of each."""
    both = ours, theirs
    counts = [collections.Counter(names.tolist()) for names, _ in both]
    assert chi_square(*counts) < 3.9, counts
    assert set(counts[0]) == set(counts[1])
    for name in counts[0]:
        alike(*(np.round(by[names == name], 5) for names, by in both), name)


def test_rand_augment_is_torchvisions(draws, monkeypatch):
    own = draws("RandAugment(2, 9)").take(4)
    names, by = by_torchvision(transforms.RandAugment(2, 9), monkeypatch, 2)
    for k in range(2):
        magnitudes_alike(own[2 * k:2 * k + 2], (names[:, k], by[:, k]))


def test_trivial_augment_is_torchvisions(draws, monkeypatch):
    own = draws("TrivialAugmentWide()").take(2)
    noted = by_torchvision(transforms.TrivialAugmentWide(), monkeypatch, 1)
    magnitudes_alike(own, noted[:, :, 0])


@pytest.mark.parametrize("name", ["imagenet", "cifar10", "svhn"])
def test_auto_augment_is_torchvisions(draws, monkeypatch, name):
    policy = transforms.AutoAugment(transforms.AutoAugmentPolicy(name))
    pair, *steps = draws(f"AutoAugment({name})").take(5)
    names, by = by_torchvision(policy, monkeypatch, 2)
    # The pairs' names, and -1 for what isn't done, which goes to the end.
    pairs = np.array([[NAMES.index(step[0]) for step in both]
                      for both in policy.policies])
    done = np.array(steps[::2]).T == 1
    ours = np.where(done, pairs[pair.astype(int)], -1)
    order = np.argsort(~done, axis=1, kind="stable")
    ours = np.take_along_axis(ours, order, 1)
    alike(pair, np.random.randint(0, 25, OURS), "pair")
    tuples_alike(ours.tolist(), names.tolist(), "names")
    strengths = np.take_along_axis(np.array(steps[1::2]).T, order, 1)
    magnitudes_alike((ours[ours >= 0], strengths[ours >= 0]),
                     (names[names >= 0], by[names >= 0]))


TIMM = ("AutoContrast Equalize Invert Rotate Posterize Solarize SolarizeAdd "
        "Color Contrast Brightness Sharpness ShearX ShearY TranslateX "
        "TranslateY Desaturate GaussianBlurRand").split()


@pytest.mark.parametrize("config, recipe", [
    ("rand-m9-mstd0.5-inc1", "TimmRandAugment(m=9, mstd=0.5, inc=True)"),
    ("rand-m6-n1-p0.8-mstd101", "TimmRandAugment(m=6, n=1, p=0.8, mstd=101)"),
    ("rand-m12-n1-p1-mmax20-mstd2",
     "TimmRandAugment(m=12, n=1, p=1, mmax=20, mstd=2)")])
def test_timms_rand_augment_is_timms(draws, config, recipe):
    made = pytest.importorskip("timm.data.auto_augment")
    augment = made.rand_augment_transform(config, dict(img_mean=(1, 2, 3)))
    noted, layers = array.array("d"), augment.num_layers

    def note(name):
        def noting(image, *by, resample, **_):
            noted.extend((TIMM.index(name), *(by[:1] or [0])))
            return image
        return noting

    for name, op in zip(TIMM, augment.ops):
        op.aug_fn = note(name)
    for _ in range(THEIRS):
        augment(PICTURE)
    noted = np.array(noted).reshape(-1, 2).T
    names, by, filters = draws(recipe).take(3 * layers).reshape(
        layers, 3, OURS).transpose(1, 0, 2)
    done = names >= 0
    alike(done.ravel(), np.arange(THEIRS * layers) < noted.shape[1], "done")
    # Bilinear and bicubic, both as likely.
    for k in range(layers):
        alike(filters[k, done[k]], random.choices((0, 4), k=OURS), "filter")
    magnitudes_alike((names[done], by[done]), noted)


# ---------------------------------------------------------------------------
# Mixes


def is_mixed(own, width, theirs):
    """The mix's weight, and those of the chains: each, and what is largest."""
    theirs = np.array(theirs).T
    for k in range(1 + width):
        alike(own[k], theirs[k], k)
    alike(own[1:1 + width].max(axis=0), theirs[1:].max(axis=0), "largest")


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1, 3])
def test_weights_of_timms_mix_are_timms(draws, alpha):
    own = draws(f"TimmAugMix(w=4, d=1, a={alpha})").take(5)
    theirs = np.column_stack((np.random.beta(alpha, alpha, OURS),
                              np.random.dirichlet([alpha] * 4, OURS)))
    is_mixed(own, 4, np.float32(theirs))


@pytest.mark.parametrize("alpha", [0.3, 1, 2])
def test_weights_of_torchvisions_mix_are_torchvisions(draws, alpha):
    own = draws(f"PILAugMix(mixture_width=3, alpha={alpha})").take(4)
    m = torch._sample_dirichlet(torch.full((OURS, 2), float(alpha)))
    shares = torch._sample_dirichlet(torch.full((OURS, 3), float(alpha)))
    theirs = torch.cat([m[:, :1], shares * m[:, 1:]], 1)
    # torch's smallest numbers aren't below some 1e-38.
    is_mixed(np.maximum(own, 1e-30), 3, np.maximum(theirs.numpy(), 1e-30))
    assert np.abs(own.sum(axis=0) - 1).max() < 1e-6


def by_timm(augment, ops, most):
    """As by_torchvision(), with places in TIMM: what ops would have done."""
    noted = array.array("d")

    def note(name):
        def noting(image, *by, resample, **_):
            if name == "GaussianBlurRand":
                by = [random.uniform(0.1, 2.0 * by[0])]
            noted.extend((TIMM.index(name), *(by[:1] or [0])))
            return image
        return noting

    for op in ops:
        op.aug_fn = note(re.sub("Increasing|Original$|Rel$", "", op.name))
    picture = Image.new("RGB", (1, 1))
    for k in range(1, THEIRS + 1):
        augment(picture)
        noted.extend((-1, 0) * (k * most - len(noted) // 2))
    return np.array(noted).reshape(THEIRS, most, 2).transpose(2, 0, 1)


def test_chains_of_timms_mix_are_timms(draws):
    made = pytest.importorskip("timm.data.auto_augment")
    augment = made.augment_and_mix_transform(
        "augmix-m7-w2", dict(translate_pct=0.3, img_mean=(1, 2, 3)))
    theirs = by_timm(augment, augment.ops, 6)
    names, by, filters = draws("TimmAugMix(m=7, w=2)").take(3 + 2 * 9)[
        3:].reshape(6, 3, OURS).transpose(1, 0, 2)
    done = names >= 0
    alike(done.sum(axis=0), (theirs[0] >= 0).sum(axis=1), "operations")
    # What isn't done has nothing behind it in its chain.
    assert not (done[[1, 2, 4, 5]] & ~done[[0, 1, 3, 4]]).any()
    alike(filters[done], random.choices((0, 4), k=OURS), "filter")
    magnitudes_alike((names[done], by[done]), theirs[:, theirs[0] >= 0])


@pytest.mark.parametrize("severity, every", [(3, True), (8, False)])
def test_chains_of_torchvisions_mix_are_torchvisions(
        draws, monkeypatch, severity, every):
    mix = transforms.AugMix(severity, 1, all_ops=every)
    theirs = by_torchvision(mix, monkeypatch, 3)
    names, by = draws(f"PILAugMix({severity}, 1, all_ops={every})").take(8)[
        2:].reshape(3, 2, OURS).transpose(1, 0, 2)
    done = names >= 0
    alike(done.sum(axis=0), (theirs[0] >= 0).sum(axis=1), "operations")
    magnitudes_alike((names[done], by[done]), theirs[:, theirs[0] >= 0])


@pytest.mark.parametrize("config, recipe", [
    ("v0", "v0"), ("v0r-mstd0.5", "v0r, mstd=0.5"),
    ("original-mstd1", "original, mstd=1"), ("originalr", "originalr"),
    ("3a-mstd3", "3a, mstd=3")])
def test_timms_auto_augment_is_timms(draws, config, recipe):
    made = pytest.importorskip("timm.data.auto_augment")
    augment = made.auto_augment_transform(config, dict(img_mean=(1, 2, 3)))
    theirs = by_timm(augment, itertools.chain(*augment.policy), 2)
    pair, *rest = draws(f"TimmAutoAugment({recipe})").take(7)
    names, by, _ = np.array(rest).reshape(2, 3, OURS).transpose(1, 0, 2)
    alike(pair, np.random.randint(0, len(augment.policy), OURS), "pair")
    # What isn't done goes to the end.
    order = np.argsort(names < 0, axis=0, kind="stable")
    tuples_alike(np.take_along_axis(names, order, 0).T.tolist(),
                 theirs[0].tolist(), "names")
    done = names >= 0
    magnitudes_alike((names[done], by[done]), theirs[:, theirs[0] >= 0])


def test_timms_crop_is_timms(draws):
    data = pytest.importorskip("timm.data.transforms")
    own = draws("RandomResizedCropAndInterpolation(8)").take(5)
    alike(own[4], random.choices((0, 4), k=OURS), "filter")
    theirs = [data.RandomResizedCropAndInterpolation.get_params(
        PICTURE, (0.08, 1.0), (3 / 4, 4 / 3)) for _ in range(THEIRS)]
    for mine, other, name in zip(with_sums(own[:4].T), with_sums(theirs),
                                 BOX.split()):
        alike(mine, other, name)


def test_timms_sizes_and_places_are_timms(draws):
    data = pytest.importorskip("timm.data.transforms")
    how = dict(longest=0.3, random_scale_prob=0.5, random_aspect_prob=0.7,
               random_scale_range=(0.6, 1.3), random_scale_area=True,
               random_aspect_range=(0.7, 1.6))
    said = ", ".join(f"{key}={value}" for key, value in how.items())
    own = draws(f"ResizeKeepRatio((300, 200), interpolation=random, {said}) "
                "CenterCropOrPad(8)").take(3)
    alike(own[2], random.choices((0, 4), k=OURS), "filter")
    theirs = [data.ResizeKeepRatio.get_params(PICTURE, (300, 200), **how)
              for _ in range(THEIRS)]
    alike_columns(own[:2], theirs, "height width")
    alike(own[0] / own[1], np.divide(*np.array(theirs).T), "aspect")


def test_places_of_timms_crops_are_timms(draws):
    data = pytest.importorskip("timm.data.transforms")
    own = draws("RandomCropOrPad((32, 70))").take(2)
    theirs = [data.RandomCropOrPad.get_params(PICTURE, (32, 70))
              for _ in range(THEIRS)]
    alike_columns(own, theirs, "top left")
    assert own[1].min() == -10 and own[1].max() == 0


def test_a_wrong_distribution_is_found():
    # So that these tests aren't blind.
    rng = np.random.default_rng(1)
    flips = rng.random(OURS)
    with pytest.raises(AssertionError):
        alike(flips < 0.5, rng.random(THEIRS) < 0.535, "chance")
    with pytest.raises(AssertionError):
        alike(flips, rng.random(THEIRS) * 1.05, "scale")
    with pytest.raises(AssertionError):
        alike(flips, rng.random(THEIRS) ** 1.12, "shape")
    with pytest.raises(AssertionError):
        alike(np.floor(flips * 20), np.floor(rng.random(THEIRS) * 20.3),
              "places")
