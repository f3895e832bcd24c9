# SPDX-License-Identifier: MIT
"""tsock.mix: the bits and the draws of torchvision.transforms.v2."""

import collections
import threading

import pytest

import tsock
from tsock import mix

torch = pytest.importorskip("torch")

B, C, H, W = 6, 3, 20, 29


@pytest.fixture(scope="module")
def v2():
    return pytest.importorskip("torchvision.transforms.v2")


def images(dtype=torch.float32, shape=(B, C, H, W)):
    drawn = torch.randint(0, 256, shape, generator=seeded(1))
    return drawn.to(dtype) if dtype is torch.uint8 else (drawn / 255).to(dtype)


def labels():
    return torch.tensor([3, 0, 4, 4, 1, 2])


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def same(mine, theirs):
    """To the last bit."""
    assert mine.dtype is theirs.dtype and mine.shape == theirs.shape
    as_bytes = [t.contiguous().view(torch.uint8) for t in (mine, theirs)]
    assert torch.equal(*as_bytes)


def both(make_mine, theirs, run, seeds=range(12)):
    """Both give the same, by torch's generator and by one of their own.

    Each goes on with its numbers, so that as many have to be drawn.
    """
    for seed in seeds:
        torch.manual_seed(seed)
        wanted = [run(theirs) for _ in range(3)]
        after = torch.rand(1)
        torch.manual_seed(seed)
        usual = [run(make_mine(generator=None)) for _ in range(3)]
        assert torch.equal(after, torch.rand(1))
        own = seeded(seed)
        mine = make_mine(generator=own)
        given = [run(mine) for _ in range(3)]
        assert torch.equal(after, torch.rand(1, generator=own))
        for got in (usual, given):
            for a, b in zip(got, wanted):
                for x, y in zip(a, b):
                    same(x, y)


MIXING = ["MixUp", "CutMix"]
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("alpha", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("name", MIXING)
def test_mixing_is_torchvisions(v2, name, alpha, inplace):
    both(
        lambda **k: getattr(mix, name)(
            alpha=alpha, num_classes=5, inplace=inplace, **k
        ),
        getattr(v2, name)(alpha=alpha, num_classes=5),
        lambda f: f(images(), labels()),
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", MIXING)
def test_mixing_of_other_dtypes_and_layouts(v2, name, dtype):
    def run(f):
        x = images(dtype).contiguous(memory_format=torch.channels_last)
        return f(x, torch.eye(5, dtype=dtype)[labels()])

    both(getattr(mix, name), getattr(v2, name)(), run, range(3))


def test_cutmix_of_bytes(v2):
    both(
        lambda **k: mix.CutMix(num_classes=5, **k),
        v2.CutMix(num_classes=5),
        lambda f: f(images(torch.uint8), labels()),
    )


ERASING = [
    {},
    {"p": 1.0},
    {"p": 1, "value": "random"},
    {"p": 1, "value": (0.25, 0.5, 0.75)},
    {"p": 1, "value": 7, "scale": (0.5, 1.0), "ratio": (0.2, 0.3)},
    {"p": 1, "scale": (1.0, 1.0)},
]


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
@pytest.mark.parametrize("keywords", ERASING)
def test_erasing_is_torchvisions(v2, keywords, dtype, inplace):
    both(
        lambda **k: mix.RandomErasing(inplace=inplace, **keywords, **k),
        v2.RandomErasing(**keywords),
        lambda f: [f(images(dtype)), f(images(dtype)[0])],
        range(6),
    )


@pytest.mark.parametrize("keywords", ERASING)
def test_erasing_each_is_torchvisions_image_by_image(v2, keywords):
    theirs = v2.RandomErasing(**keywords)
    both(
        lambda **k: mix.RandomErasing(each=True, **keywords, **k),
        lambda x: torch.stack([theirs(image) for image in x]),
        lambda f: [f(images())],
        range(6),
    )


# ---- without torchvision ----


Named = collections.namedtuple("Named", "pixels label path")


def test_batches_keep_their_nest():
    made = mix.MixUp(num_classes=5, generator=seeded(3))
    x, y = made(images(), labels())
    assert y.shape == (B, 5) and torch.allclose(y.sum(1), torch.ones(B))
    for batch, at in (
        ([images(), labels(), "more"], (0, 1, 2)),
        ((images(), labels(), "more"), (0, 1, 2)),
        ({"image": images(), "Labels": labels(), 7: "more"},
         ("image", "Labels", 7)),
        ({"pixel_values": images(), "class_label": labels(), "x": "more"},
         ("pixel_values", "class_label", "x")),
    ):
        got = mix.MixUp(num_classes=5, generator=seeded(3))(batch)
        assert type(got) is type(batch) and got[at[2]] == "more"
        assert torch.equal(got[at[0]], x) and torch.equal(got[at[1]], y)
        erased = mix.RandomErasing(1)(batch)
        assert type(erased) is type(batch) and erased[at[1]] is batch[at[1]]
    got = made(Named(images(), labels(), "p"))
    assert type(got) is Named and got.path == "p" and got.label.ndim == 2


OURS = [
    lambda **k: mix.MixUp(num_classes=5, **k),
    lambda **k: mix.CutMix(num_classes=5, **k),
    lambda **k: mix.RandomErasing(1.0, **k),
    lambda **k: mix.RandomErasing(1.0, each=True, value="random", **k),
]


@pytest.mark.parametrize("make", OURS)
def test_nothing_is_written_into_a_batch_unless_asked(make):
    for seed in range(10):
        x, y = images(), labels()
        got = make(generator=seeded(seed))(x, y)[0]
        assert torch.equal(x, images()) and torch.equal(y, labels())
        assert not torch.equal(got, x)
        there = make(generator=seeded(seed), inplace=True)(x, y)[0]
        assert there.data_ptr() == x.data_ptr() and torch.equal(there, got)
        assert torch.equal(y, labels())


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("make", OURS)
def test_other_consumers_see_what_was_served(served, make, inplace):
    served([[images(), labels()]] * 2, epochs=1, min_consumers=2)
    first = iter(tsock.DataLoader("mine", B, framework="torch"))
    second = tsock.DataLoader("mine", B, framework="torch")
    other = iter(second)
    # Both have to be there before anything is made.
    got = []
    thread = threading.Thread(target=lambda: got.append(next(first)))
    thread.start()
    mine = next(other)
    thread.join()
    mixed = make(generator=seeded(2), inplace=inplace)(mine)
    assert not torch.equal(mixed[0], images())
    assert torch.equal(got[0][0], images()) and torch.equal(
        next(first)[0], images()
    )


@pytest.mark.parametrize(
    "make, batch, text",
    [
        (lambda: mix.MixUp(alpha=0), None, "alpha 0"),
        (lambda: mix.MixUp(), (images(), labels()), "give num_classes"),
        (
            lambda: mix.CutMix(num_classes=4),
            (images(), torch.eye(5)[labels()]),
            "5 classes, and num_classes is 4",
        ),
        (
            lambda: mix.MixUp(num_classes=5),
            (images(torch.uint8), labels()),
            "needs a floating point dtype",
        ),
        (
            lambda: mix.MixUp(num_classes=5),
            (images()[0], labels()),
            r"\[batch, channels, height, width\]",
        ),
        (
            lambda: mix.MixUp(num_classes=5),
            (images(), labels()[:4]),
            "6 images and 4 labels",
        ),
        (
            lambda: mix.MixUp(num_classes=5),
            {"image": images(), "x": labels()},
            "no labels: its keys are 'image', 'x'",
        ),
        (lambda: mix.MixUp(num_classes=5), images(), "given a Tensor"),
        (lambda: mix.RandomErasing(2), None, "p 2"),
        (lambda: mix.RandomErasing(scale=(0.5, 0.1)), None, "scale"),
        (lambda: mix.RandomErasing(ratio=(0, 1)), None, "ratio"),
        (lambda: mix.RandomErasing(value="noise"), None, "'noise'"),
        (
            lambda: mix.RandomErasing(value=(1, 2)),
            images(),
            "2 numbers, and images have 3",
        ),
        (
            lambda: mix.RandomErasing(each=True),
            images()[0],
            r"\[batch, channels",
        ),
    ],
)
def test_what_can_not_be(make, batch, text):
    with pytest.raises((TypeError, ValueError), match=text):
        made = make()
        made(*batch) if isinstance(batch, tuple) else made(batch)


def test_two_jobs_make_something_else_of_the_same_batch():
    a, b = (
        mix.MixUp(num_classes=5, generator=seeded(s))(images(), labels())[0]
        for s in (1, 2)
    )
    assert not torch.equal(a, b)
