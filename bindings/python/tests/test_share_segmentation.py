# SPDX-License-Identifier: MIT
"""tsock.share: torchvision's data sets of images with masks."""

import random

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
PIL = pytest.importorskip("PIL.Image")
from torch.utils.data import DataLoader, Subset, default_collate  # noqa: E402
from torchvision import datasets, tv_tensors  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

import tsock  # noqa: E402
from tsock.sharing.look import look  # noqa: E402
from test_share import cache, shared  # noqa: E402,F401

wrap = datasets.wrap_dataset_for_transforms_v2

TYPES = {
    tv_tensors.Image: torch.float32,
    tv_tensors.Mask: torch.int64,
    "others": None,
}
EVAL = v2.Compose(
    [
        v2.Resize((36, 36)),
        v2.CenterCrop(32),
        v2.ToImage(),
        v2.ToDtype(TYPES, scale=True),
        v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
)
BYTES = v2.Compose(
    [v2.CenterCrop(32), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
)
TRAIN = v2.Compose(
    [
        v2.RandomResizedCrop((32, 32)),
        v2.RandomHorizontalFlip(),
        v2.ToImage(),
        v2.ToDtype(TYPES, scale=True),
    ]
)
N = 30


def save(rng, image, mask, i, palette=True):
    height, width = 40 + i % 9, 50 + i % 7
    pixels = rng.integers(0, 255, (height, width, 3), dtype=np.uint8)
    PIL.fromarray(pixels).save(image)
    made = PIL.fromarray(rng.integers(0, 21, (height, width), dtype=np.uint8))
    if palette:
        made.putpalette([k for j in range(256) for k in (j, 255 - j, 7)])
    made.save(mask)


@pytest.fixture(scope="session")
def voc(tmp_path_factory):
    """Pascal VOC, two thirds of whose images have masks."""
    root = tmp_path_factory.mktemp("voc")
    base = root / "VOCdevkit" / "VOC2012"
    for name in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (base / name).mkdir(parents=True)
    rng, names = np.random.default_rng(1), []
    for i in range(3 * N // 2):
        name = "2007_%06d" % i
        mask = base / "SegmentationClass" / (name + ".png")
        save(rng, base / "JPEGImages" / (name + ".jpg"), mask, i)
        if i % 3 == 1:
            mask.unlink()
        else:
            names.append(name)
    lists = base / "ImageSets" / "Segmentation"
    (lists / "train.txt").write_text("\n".join(names[::-1]) + "\n")
    return root


@pytest.fixture(scope="session")
def cityscapes(tmp_path_factory):
    root = tmp_path_factory.mktemp("cityscapes")
    rng = np.random.default_rng(2)
    for i in range(N):
        city = "city%d" % (i % 3)
        image, mask = root / "leftImg8bit" / "val", root / "gtFine" / "val"
        for folder in (image, mask):
            (folder / city).mkdir(parents=True, exist_ok=True)
        name = "%s_%06d" % (city, i)
        save(
            rng,
            image / city / (name + "_leftImg8bit.png"),
            mask / city / (name + "_gtFine_labelIds.png"),
            i,
            palette=False,
        )
    return root


def close(mine, its):
    """The same images, but for the last bit of a float?"""
    assert mine.dtype == its.dtype and mine.shape == its.shape
    return torch.allclose(mine, its, rtol=0, atol=1e-6)


def same(mine, its):
    count = 0
    for (x, y), (u, v) in zip(mine, its, strict=True):
        assert close(x, u)
        assert y.dtype == v.dtype and torch.equal(y, v)
        count += len(x)
    return count


def voc_of(root, transforms, **more):
    return datasets.VOCSegmentation(root, transforms=transforms, **more)


@pytest.mark.parametrize("transforms", [EVAL, BYTES])
def test_an_evaluation_loader_has_the_script_s_batches(voc, shared, transforms):
    loader = DataLoader(wrap(voc_of(voc, transforms)), 4)
    mine = shared(loader)
    assert len(mine) == len(loader)
    assert same(mine, loader) == N
    assert next(iter(mine))[1].shape == (4, 1, 32, 32)


def test_cityscapes_has_its_samples_in_the_script_s_order(cityscapes, shared):
    data = datasets.Cityscapes(
        cityscapes, "val", target_type="semantic", transforms=EVAL
    )
    loader = DataLoader(wrap(data), 4)
    assert same(shared(loader), loader) == N


def squeezed(samples):
    images, masks = default_collate(samples)
    return {"masks": masks.squeeze(1).long(), "pixel_values": images}


def test_a_collate_fn_may_change_the_masks_shape_and_dtype(voc, shared):
    loader = DataLoader(wrap(voc_of(voc, BYTES)), 4, collate_fn=squeezed)
    for mine, its in zip(shared(loader), loader, strict=True):
        assert set(mine) == set(its)
        assert all(close(mine[key], its[key]) for key in its)
    assert its["masks"].shape[1:] == (32, 32)


def joint(image, mask):
    return TRAIN(image, tv_tensors.Mask(mask))


class Joint:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image, mask):
        image, mask = self.transforms(image, tv_tensors.Mask(mask))
        return image, mask[0].long()


def test_a_function_may_make_the_mask_of_the_image(voc, shared):
    loader = DataLoader(voc_of(voc, Joint(EVAL)), 4)
    assert same(shared(loader), loader) == N
    plan = look(DataLoader(voc_of(voc, joint), 4, shuffle=True))
    assert plan.native, plan.why


def test_a_training_loader_has_each_sample_once(voc, shared):
    loader = DataLoader(wrap(voc_of(voc, TRAIN)), 4, shuffle=True)
    mine = shared(loader, fields=("image", "mask", "index"))
    seen = []
    for images, masks, index in mine:
        assert images.shape[1:] == (3, 32, 32)
        assert masks.shape[1:] == (1, 32, 32) and masks.dtype == torch.int64
        seen += index.tolist()
    assert sorted(seen) == list(range(N)) and seen != sorted(seen)


def test_a_part_of_the_data_set(voc, shared):
    data = wrap(voc_of(voc, EVAL))
    loader = DataLoader(Subset(data, range(5, 25)), 4)
    assert same(shared(loader), loader) == 20


def test_masks_are_numpy_s_where_batches_are(voc, shared):
    loader = DataLoader(wrap(voc_of(voc, EVAL)), 4)
    _, mask = next(iter(shared(loader, framework="numpy")))
    assert mask.dtype == np.int64 and mask.shape == (4, 1, 32, 32)


# ---- what isn't native ----


def why(data):
    state = random.getstate(), torch.get_rng_state()
    plan = look(DataLoader(data, 4))
    assert random.getstate() == state[0]
    assert torch.equal(torch.get_rng_state(), state[1])
    assert not plan.native
    return plan.why


class Own:
    def __call__(self, image, mask):
        return torch.zeros(3, 8, 8), torch.zeros(8, 8)


def test_other_transforms_are_python_s(voc):
    assert "aren't tv_tensors.Mask" in why(voc_of(voc, EVAL))
    assert "aren't one Compose" in why(voc_of(voc, Own()))
    assert "no transforms" in why(wrap(voc_of(voc, None)))
    both = datasets.VOCSegmentation(voc, transform=EVAL, target_transform=EVAL)
    assert "each by itself" in why(both)
    policy = v2.Compose(
        [
            v2.Resize((32, 32)),
            v2.AutoAugment(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
        ]
    )
    assert "recipe" in why(wrap(voc_of(voc, policy)))


def test_other_targets_are_python_s(cityscapes, images):
    data = datasets.Cityscapes(cityscapes, "val", transforms=EVAL)
    assert "other targets" in why(data)
    assert "wraps a" in why(wrap(datasets.ImageFolder(images, EVAL)))


def test_masks_that_differ_are_an_error(voc, shared, monkeypatch):
    text = "Resize((36, 36)) CenterCrop(32) ToImage() ToDtype(float32, True)"
    monkeypatch.setattr(
        "tsock.recipe.text_of", lambda t: "" if isinstance(t, list) else text
    )
    flipped = v2.Compose(
        [
            v2.Resize((36, 36)),
            v2.CenterCrop(32),
            v2.Lambda(lambda mask: mask.flip(-1), tv_tensors.Mask),
            v2.ToImage(),
            v2.ToDtype(TYPES, scale=True),
        ]
    )
    with pytest.raises(tsock.Error, match="another mask in the script"):
        shared(DataLoader(wrap(voc_of(voc, flipped)), 4))
