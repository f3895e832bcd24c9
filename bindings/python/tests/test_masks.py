# SPDX-License-Identifier: MIT
"""masks=: samples of an image and a mask."""

import io
import shutil
import subprocess
import tarfile

import pytest

import tsock
from conftest import PRODUCER

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")
pytest.importorskip("torchvision")

RAW = dict(dtype="uint8", layout="hwc", wait=60)
N = 24
RECIPE = (
    "RandomResizedCrop((24, 32)) RandomHorizontalFlip() ColorJitter(0.4) "
    "RandomCrop(28, pad_if_needed=True, mask_fill=255)"
)

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def data(tmp_path):
    """Images at any depth below `images`, masks with their names in `masks`."""
    rng = np.random.default_rng(3)
    for i in range(N):
        width, height = map(int, rng.integers(20, 90, 2))
        for top in ("images", "masks"):
            (tmp_path / top / ("", "a", "a/b")[i % 3]).mkdir(
                parents=True, exist_ok=True
            )
        name = ("p%02d", "a/p%02d", "a/b/p.%02d")[i % 3] % i
        colours = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(colours).save(tmp_path / "images" / (name + ".png"))
        numbers = Image.fromarray(
            rng.integers(0, 21, (height, width), dtype=np.uint8)
        )
        if i % 2:
            numbers.putpalette(list(range(255, -1, -1)) * 3)
        numbers.save(tmp_path / "masks" / (name + ".png"))
    return tmp_path


@pytest.fixture
def loader(data):
    """Makes loaders of the data, whose producers end with the test."""
    names = []

    def make(**more):
        names.append("%s-%d" % (data.name, len(names)))
        return make_loader(data, name=names[-1], **more)

    yield make
    for name in names:
        try:
            tsock.stop(name)
        except tsock.NoProducer:
            pass


def make_loader(data, **more):
    given = dict(
        batch_size=5,
        root=data / "images",
        masks=data / "masks",
        transform=RECIPE,
        fields=("image", "mask", "index", "draws"),
        **RAW,
    )
    return tsock.DataLoader(**{**given, **more})


def must_replay(made, data):
    """All samples of an epoch, made again; their indices."""
    seen = []
    for images, masks, indices, draws in made:
        assert masks.dtype == torch.uint8
        assert masks.shape[1:] == (28, 28)
        for image, mask, index, drawn in zip(images, masks, indices, draws):
            path, label = made.dataset.samples[index]
            assert label == -1
            file = data / "masks" / path[len(str(data / "images")) + 1 :]
            want, numbers = tsock.replay(
                Image.open(path).convert("RGB"),
                drawn,
                made.transform,
                mask=Image.open(file),
            )
            assert (np.asarray(want) == image.numpy()).all()
            assert (numbers == mask).all()
            seen.append(int(index))
    return seen


def test_a_sample_has_its_masks_numbers_with_its_images_geometry(data, loader):
    with loader() as made:
        assert sorted(must_replay(made, data)) == list(range(N))
        assert made.classes == []
        assert must_replay(made, data)  # another epoch, other draws


def test_with_masks_a_batch_is_images_and_masks(data, loader):
    with loader(fields=None, dtype="float32", layout="chw") as made:
        images, masks = next(iter(made))
    assert images.shape == (5, 3, 28, 28) and images.dtype == torch.float32
    assert masks.shape == (5, 28, 28) and masks.dtype == torch.uint8


def test_masks_come_with_images_that_are_kept_in_memory(data, loader):
    with loader(cache="100M") as made:
        for _ in range(3):
            assert sorted(must_replay(made, data)) == list(range(N))


def test_class_folders_have_labels_beside_masks(data, loader):
    images, masks = data / "images", data / "masks"
    for top in (images, masks):
        (top / "zebra").mkdir()
        shutil.copy(top / "p00.png", top / "zebra")
    with loader(
        dataset="imagefolder", fields=("label", "mask", "index")
    ) as made:
        assert made.classes == ["a", "zebra"]
        for labels, _, indices in made:
            want = [made.dataset.targets[i] for i in indices]
            assert labels.tolist() == want


def test_without_classes_labels_are_minus_one(data, loader):
    with loader(masks=None, dataset="images", fields="label") as made:
        assert len(made.dataset) == N
        for (labels,) in made:
            assert (labels == -1).all()


def test_an_image_whose_mask_is_no_good_is_a_bad_file(data, loader):
    masks = data / "masks"
    (masks / "p00.png").unlink()
    (masks / "p03.png").write_bytes(b"GIF89a" + bytes(90))
    Image.new("RGB", (30, 30)).save(masks / "p06.png")
    Image.new("L", (7, 7)).save(masks / "p09.png")
    with open(masks / "a" / "p04.png", "ab") as f:
        f.truncate(1 << 40)  # sparse, and more than memory has
    good = (masks / "a" / "p01.png").read_bytes()
    (masks / "a" / "p01.png").write_bytes(good[: len(good) // 2])
    bad = {"p00", "p03", "p06", "p09", "a/p01", "a/p04"}
    with pytest.raises(tsock.Error, match="its mask"):
        loader()
    with loader(allow_bad=0.9) as made:
        names = [
            path[len(str(data / "images")) + 1 : -4]
            for path, _ in made.dataset.samples
        ]
        seen = {names[i] for i in must_replay(made, data)}
    assert seen == set(names) - bad


def run(*args):
    return subprocess.run(
        [PRODUCER, "--no-cache", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_dry_run_names_both_files(data):
    (data / "masks" / "p00.png").unlink()
    done = run(
        "--dry-run", "--root", data / "images", "--masks", data / "masks"
    )
    assert "p00.png: its mask %s/masks/p00.png: No such" % data in (
        done.stdout + done.stderr
    )


@pytest.mark.parametrize(
    "more, says",
    [
        (["--masks", "{data}"], "that of p00.png would be {data}/p00.png: No"),
        (["--masks", "{data}/none"], "open the folder of masks {data}/none"),
        (["--transform", "RandAugment() CenterCrop(9)"], "RandAugment can't"),
        (["--preset", "simclr"], "2 views"),
        (["--dataset", "webdataset"], "{data}/images"),
    ],
)
def test_what_masks_cant_be_is_said_at_the_start(data, more, says):
    root, masks = data / "images", data / "masks"
    more = [word.format(data=data) for word in more]
    done = run("--dry-run", "--root", root, "--masks", masks, *more)
    assert done.returncode and says.format(data=data) in done.stderr


def test_a_split_is_that_folder_of_images_and_of_masks(data, loader):
    for top in ("images", "masks"):
        for split in ("train", "val"):
            shutil.copytree(data / top, data / "both" / top / split)
    for split in ("train", "val"):
        with loader(
            root=data / "both" / "images",
            masks=data / "both" / "masks",
            split=split,
        ) as made:
            assert made.dataset.root == str(data / "both" / "images" / split)
            assert len(made.dataset) == N
            next(iter(made))


def test_an_image_that_is_added_comes_with_its_mask(data, loader):
    with loader(grows=True, fields=("mask", "index")) as made:
        next(iter(made))
        for top in ("masks", "images"):  # the image last
            shutil.copy(data / top / "p00.png", data / top / "z.new.png")
        while len(made.dataset) == N:
            seen = [int(i) for _, indices in made for i in indices]
        seen = [int(i) for _, indices in made for i in indices]
        assert sorted(seen) == list(range(N + 1))


def test_a_loader_without_masks_doesnt_read_a_stream_that_has_them(
    data, loader
):
    with loader() as made:
        next(iter(made))
        with pytest.raises(tsock.OtherStream, match="masks"):
            make_loader(data, name=made.name, masks=None, dataset="images")


def test_cityscapes_names_its_masks_differently(tmp_path, loader):
    rng = np.random.default_rng(1)
    for k in range(4):
        for top in ("images", "masks"):
            (tmp_path / "city" / top / "ulm").mkdir(
                parents=True, exist_ok=True
            )
        image = rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)
        mask = rng.integers(0, 34, (20, 30), dtype=np.uint8)
        name = "ulm_%06d" % k
        Image.fromarray(image).save(
            tmp_path / "city" / "images" / "ulm" / (name + "_leftImg8bit.png")
        )
        Image.fromarray(mask).save(
            tmp_path
            / "city"
            / "masks"
            / "ulm"
            / (name + "_gtFine_labelIds.png")
        )
    seen = 0
    for images, masks, index in loader(
        root=tmp_path / "city" / "images",
        masks=tmp_path / "city" / "masks",
        transform="CenterCrop((20, 30))",
        fields=("image", "mask", "index"),
    ):
        for mask, i in zip(masks, index):
            file = "ulm_%06d_gtFine_labelIds.png" % int(i)
            want = np.array(
                Image.open(tmp_path / "city" / "masks" / "ulm" / file)
            )
            assert np.array_equal(np.asarray(mask), want)
            seen += 1
    assert seen == 4


def test_vocs_lists_select_images_without_their_extension(data, loader):
    (data / "train.txt").write_text("p00\na/p01\n")
    batches = list(
        loader(
            transform="CenterCrop(20)",
            select=str(data / "train.txt"),
            keys=True,
            fields=("key", "mask"),
            order="sequential",
        )
    )
    assert [k for keys, _ in batches for k in keys] == [
        "p00.png",
        "a/p01.png",
    ]


# ---- in tar files ----


def put(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


@pytest.fixture
def tars(data):
    """The images and masks, in the order of the folder's samples, in tar files."""
    files = sorted(
        (data / "images").rglob("*.png"),
        key=lambda p: (p.parent.as_posix(), p.name),
    )
    (data / "tars").mkdir()
    for first in range(0, N, 9):
        name = data / "tars" / ("s-%d.tar" % (first // 9))
        with tarfile.open(name, "w") as tar:
            for i, file in enumerate(files[first : first + 9], first):
                mask = data / "masks" / file.relative_to(data / "images")
                # Before or behind its image.
                both = [
                    ("%06d.png" % i, file.read_bytes()),
                    ("%06d.seg.png" % i, mask.read_bytes()),
                ]
                for member in both[:: -1 if i % 2 else 1]:
                    put(tar, *member)
    return data


def test_masks_in_tar_files_give_the_folders_samples(tars, loader):
    folder = list(loader())
    shards = loader(root=tars / "tars", masks=tars / "tars")
    assert shards.dataset.classes == ["."] or len(shards.dataset) == N
    for want, got in zip(folder, shards):
        for a, b in zip(want, got):
            assert a.numpy().tobytes() == b.numpy().tobytes()


def test_masks_may_lie_in_other_tar_files_and_some_may_be_missing(tars, loader):
    """A sample without a mask is a bad file, which is named with its mask."""
    (tars / "others").mkdir()
    for name in sorted((tars / "tars").iterdir()):
        with tarfile.open(name) as tar, tarfile.open(
            tars / "others" / name.name, "w"
        ) as to:
            for m in tar.getmembers():
                if m.name.endswith(".seg.png") and m.name != "000004.seg.png":
                    put(to, m.name, tar.extractfile(m).read())
    made = loader(root=tars / "tars", masks=tars / "others", allow_bad=0.1)
    seen = [int(i) for batch in made for i in batch[2]]
    assert 4 not in seen and len(seen) == N
    assert made.bad == 1
    said = said_by(tars / "tars", tars / "others", "--allow-bad", "0.1")
    assert "s-0.tar: 000004.seg.png: No such file or directory" in said


def said_by(root, masks, *more):
    return subprocess.run(
        [PRODUCER, "--root", root, "--masks", masks, "--size", "8", "--no-cache",
         "--dry-run", *more],
        capture_output=True,
        text=True,
    ).stderr


def test_what_is_wrong_with_masks_in_tar_files_is_said(tars):
    root = tars / "tars"
    none = tars / "none"
    none.mkdir()
    assert "can't open s-0.tar in the folder of masks" in said_by(root, none)
    for name in root.iterdir():
        with tarfile.open(none / name.name, "w") as tar:
            put(tar, "000001.txt", b"no mask")
    assert "no image of" in said_by(root, none)
    with tarfile.open(none / "s-0.tar", "w") as tar:
        for _ in range(2):
            put(tar, "000001.seg.png", b"a mask")
    assert "s-0.tar: 000001.seg.png is there twice" in said_by(root, none)
