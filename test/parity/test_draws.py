# SPDX-License-Identifier: MIT
"""What recipes draw is distributed as what torchvision and timm draw.

Each number is drawn N times by both, with fixed seeds, and compared by counts:
a chi-square test where there are few values, Kolmogorov and Smirnov's where
there are many.  The packages' own functions draw theirs; where these draw and
change pixels in one, what they would do to the pixels is noted instead.
"""
import collections
import itertools
import math
import random
import struct
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

from test_pixels import Recipe  # noqa: E402

N = 100_000
WIDTH, HEIGHT = 60, 40
AT_ONCE = 50  # lines, whose answers fit into a pipe


class Draws:
    """N samples' draws by a recipe, as columns."""

    def __init__(self, folder, recipe):
        path = folder / "grey.png"
        Image.new("L", (WIDTH, HEIGHT), 99).save(path)
        rows = []
        with Recipe(recipe, 11) as loader:
            for first in range(0, N, AT_ONCE):
                lines = [f"3 {first + k} {path}\n" for k in range(AT_ONCE)]
                loader.process.stdin.write("".join(lines).encode())
                loader.process.stdin.flush()
                rows += [self.answer(loader) for _ in lines]
        self.columns = np.array(rows).T

    @staticmethod
    def answer(loader):
        head = struct.unpack("8i", loader.process.stdout.read(32))
        assert not head[0]
        loader.process.stdout.read(head[6])
        return struct.unpack(
            f"{head[7]}d", loader.process.stdout.read(8 * head[7]))

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
    counts = [collections.Counter(x.tolist()) for x in (ours, theirs)]
    if len(counts[0]) <= 300 or len(counts[1]) <= 300:
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
    deviation = (done.sum() - N * p) / math.sqrt(N * p * (1 - p))
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
              for _ in range(N)]
    for mine, other, name in zip(with_sums(own.T), with_sums(theirs),
                                 BOX.split()):
        alike(mine, other, name)


def test_boxes_of_erasing_are_torchvisions(draws):
    own = draws("RandomErasing(0.7, (0.02, 0.5), (0.3, 3.3))").take(5)
    picture = torch.zeros(3, HEIGHT, WIDTH)
    theirs = [transforms.RandomErasing.get_params(
        picture, (0.02, 0.5), (0.3, 3.3), [0.0])[:4] for _ in range(N)]
    # One that finds no box gives all of the picture.
    theirs = [box for box in theirs if box[2] < HEIGHT and box[3] < WIDTH]
    share = len(theirs) / N * 0.7
    deviation = (own[0].sum() / N - share) / math.sqrt(share / N)
    assert abs(deviation) < 3.9
    for mine, other, name in zip(with_sums(own[1:, own[0] == 1].T),
                                 with_sums(theirs), BOX.split()):
        alike(mine, other, name)


def test_places_of_crops_are_torchvisions(draws):
    own = draws("RandomCrop((32, 50), padding=(1, 2, 3, 4))").take(2)
    theirs = [transforms.RandomCrop.get_params(
        Image.new("L", (WIDTH + 4, HEIGHT + 6)), (32, 50))[:2]
        for _ in range(N)]
    alike_columns(own, theirs, "top left")
    tuples_alike(own.T.tolist(), theirs, "both")


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
                 np.random.randint(0, 2, (N, 6)).tolist(), "six flips")


def test_angles_and_shears_are_torchvisions(draws):
    made = draws("RandomRotation((-20, 50)) RandomAffine(30, (0.2, 0.4), "
                 "(0.5, 2), (-5, 6, -7, 8))")
    turn = [transforms.RandomRotation.get_params([-20.0, 50.0])
            for _ in range(N)]
    alike(made.take(1)[0], turn, "degrees")
    theirs = []
    for _ in range(N):
        angle, move, scale, shear = transforms.RandomAffine.get_params(
            [-30.0, 30.0], [0.2, 0.4], [0.5, 2.0], [-5.0, 6.0, -7.0, 8.0],
            [WIDTH, HEIGHT])
        theirs.append((angle, *move, scale, *shear))
    alike_columns(made.take(6), theirs, "degrees x y scale shear-x shear-y")


def test_corners_of_perspectives_are_torchvisions(draws):
    own = draws("RandomPerspective(0.6, 1)").take(9)[1:]
    theirs = [sum(transforms.RandomPerspective.get_params(
        WIDTH, HEIGHT, 0.6)[1], []) for _ in range(N)]
    alike_columns(own, theirs, "x y x y x y x y")


def test_blurs_are_theirs(draws):
    made = draws("GaussianBlur(3, (0.3, 1.7)) PILGaussianBlur(0.4, (0.5, 1))")
    alike(made.take(1)[0],
          [transforms.GaussianBlur.get_params(0.3, 1.7) for _ in range(N)],
          "sigma")
    done, radius = made.take(2)
    is_binomial(done, 0.4)
    alike(radius[done == 1], [random.uniform(0.5, 1) for _ in range(N)],
          "radius")


def test_jitter_is_torchvisions(draws):
    own = draws("ColorJitter(0.4, (0.2, 3), 0.1, 0.3)").take(8)
    jitter = transforms.ColorJitter(0.4, (0.2, 3), 0.1, 0.3)
    theirs = [jitter.get_params(jitter.brightness, jitter.contrast,
                                jitter.saturation, jitter.hue)
              for _ in range(N)]
    orders = [order.tolist() for order, *_ in theirs]
    tuples_alike(own[:4].T.tolist(), orders, "order")
    alike_columns(own[4:], [factors for _, *factors in theirs],
                  "brightness contrast saturation hue")


def test_choices_and_orders_are_by_their_weights(draws):
    flips = ", ".join(["RandomHorizontalFlip(0.5)"] * 4)
    made = draws(f"RandomChoice([{flips}]) RandomChoice([{flips}], "
                 f"p=(1, 2, 0, 5)) RandomOrder([{flips}])")
    alike(made.take(5)[0], np.random.randint(0, 4, N), "choice")
    alike(made.take(5)[0], random.choices(range(4), (1, 2, 0, 5), k=N),
          "weighted choice")
    orders = list(itertools.permutations(range(4)))
    tuples_alike(made.take(8)[:4].T.tolist(), random.choices(orders, k=N),
                 "order")


# ---------------------------------------------------------------------------
# Policies

SPACE = ("Identity ShearX ShearY TranslateX TranslateY Rotate Brightness "
         "Color Contrast Sharpness Posterize Solarize AutoContrast "
         "Equalize").split()


def by_torchvision(policy, monkeypatch, n=N):
    """Of n pictures what a policy would have done: names, magnitudes."""
    noted = []

    def note(image, name, magnitude, **_):
        noted[-1].append((name, magnitude))
        return image

    monkeypatch.setattr(autoaugment, "_apply_op", note)
    for _ in range(n):
        noted.append([])
        policy(PICTURE)
    return noted


def magnitudes_alike(ours, theirs):
    """Pairs of a name and a magnitude: the names, and for each the other."""
    ours, theirs = list(ours), list(theirs)
    counts = [collections.Counter(name for name, _ in x)
              for x in (ours, theirs)]
    assert chi_square(*counts) < 3.9, counts
    by_name = [collections.defaultdict(list) for _ in range(2)]
    for kept, pairs in zip(by_name, (ours, theirs)):
        for name, magnitude in pairs:
            kept[name].append(round(float(magnitude), 5))
    assert set(by_name[0]) == set(by_name[1])
    for name, values in by_name[0].items():
        alike(values, by_name[1][name], name)


def pairs_of(own, names=SPACE):
    return [(names[int(k)], by) for k, by in own.T.tolist()]


def test_rand_augment_is_torchvisions(draws, monkeypatch):
    own = draws("RandAugment(2, 9)").take(4)
    noted = by_torchvision(transforms.RandAugment(2, 9), monkeypatch)
    for k in range(2):
        magnitudes_alike(pairs_of(own[2 * k:2 * k + 2]),
                         [steps[k] for steps in noted])


def test_trivial_augment_is_torchvisions(draws, monkeypatch):
    own = draws("TrivialAugmentWide()").take(2)
    noted = by_torchvision(transforms.TrivialAugmentWide(), monkeypatch)
    magnitudes_alike(pairs_of(own), [steps[0] for steps in noted])


@pytest.mark.parametrize("name", ["imagenet", "cifar10", "svhn"])
def test_auto_augment_is_torchvisions(draws, monkeypatch, name):
    policy = transforms.AutoAugment(transforms.AutoAugmentPolicy(name))
    own = draws(f"AutoAugment({name})").take(5)
    noted = by_torchvision(policy, monkeypatch, N // 5)  # it is slow
    ours = []
    for pair, *rest in own.T.tolist():
        ours.append([(step[0], rest[2 * k + 1])
                     for k, step in enumerate(policy.policies[int(pair)])
                     if rest[2 * k]])
    alike(own[0], np.random.randint(0, 25, N), "pair")
    tuples_alike([[name for name, _ in steps] for steps in ours],
                 [[name for name, _ in steps] for steps in noted], "names")
    magnitudes_alike(itertools.chain(*ours), itertools.chain(*noted))


TIMM = ("AutoContrast Equalize Invert Rotate Posterize Solarize SolarizeAdd "
        "Color Contrast Brightness Sharpness ShearX ShearY TranslateX "
        "TranslateY").split()


@pytest.mark.parametrize("config, recipe", [
    ("rand-m9-mstd0.5-inc1", "TimmRandAugment(m=9, mstd=0.5, inc=True)"),
    ("rand-m6-n1-p0.8-mstd101", "TimmRandAugment(m=6, n=1, p=0.8, mstd=101)"),
    ("rand-m12-n1-p1-mmax20-mstd2",
     "TimmRandAugment(m=12, n=1, p=1, mmax=20, mstd=2)")])
def test_timms_rand_augment_is_timms(draws, config, recipe):
    made = pytest.importorskip("timm.data.auto_augment")
    augment = made.rand_augment_transform(config, dict(img_mean=(1, 2, 3)))
    noted, layers = [], augment.num_layers

    def note(name):
        def noting(image, *by, resample, **_):
            noted.append((name, *by[:1]))
            return image
        return noting

    for name, op in zip(TIMM, augment.ops):
        op.aug_fn = note(name)
    for _ in range(N):
        augment(PICTURE)
    own = draws(recipe).take(3 * layers)
    ours = []
    for k in range(0, 3 * layers, 3):
        done = own[k] >= 0
        ours += pairs_of(own[k:k + 2, done], TIMM)
        # Bilinear and bicubic, both as likely.
        alike(own[k + 2, done], np.random.randint(1, 3, N), "filter")
    assert abs(len(ours) - len(noted)) < 3.9 * math.sqrt(len(noted))
    magnitudes_alike(ours, [(name, *(by or [0])) for name, *by in noted])


def test_timms_crop_is_timms(draws):
    data = pytest.importorskip("timm.data.transforms")
    own = draws("RandomResizedCropAndInterpolation(8)").take(5)
    alike(own[4], random.choices((0, 4), k=N), "filter")
    theirs = [data.RandomResizedCropAndInterpolation.get_params(
        PICTURE, (0.08, 1.0), (3 / 4, 4 / 3)) for _ in range(N)]
    for mine, other, name in zip(with_sums(own[:4].T), with_sums(theirs),
                                 BOX.split()):
        alike(mine, other, name)


def test_a_wrong_distribution_is_found():
    # So that these tests aren't blind.
    rng = np.random.default_rng(1)
    flips = rng.random(N)
    with pytest.raises(AssertionError):
        alike(flips < 0.5, rng.random(N) < 0.51, "chance")
    with pytest.raises(AssertionError):
        alike(flips, rng.random(N) * 1.03, "scale")
    with pytest.raises(AssertionError):
        alike(flips, rng.random(N) ** 1.05, "shape")
    with pytest.raises(AssertionError):
        alike(np.floor(flips * 20), np.floor(rng.random(N) * 20.3), "places")
