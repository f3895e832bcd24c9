# SPDX-License-Identifier: MIT
"""boxes=: bounding boxes get the geometry of their image."""

import json
import shutil
import struct

import pytest

import tsock

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")
pytest.importorskip("torchvision")

pytestmark = pytest.mark.usefixtures("place")

RAW = dict(dtype="uint8", layout="hwc", wait=60)
N = 23
ANY = "CenterCrop((40, 48))"
# Exact ones move boxes by sums and products alone; the sums of warps are in
# an order of torch's BLAS.
EXACT = [
    ANY,
    "Resize((30, 50))",
    "RandomResizedCrop((24, 32)) RandomHorizontalFlip()",
    "RandomVerticalFlip(1.0) RandomHorizontalFlip(1.0) " + ANY,
    "Pad((3, 5)) RandomCrop((40, 48), pad_if_needed=True)",
    "RandomCrop(64, padding=7, pad_if_needed=True)",
    "RandomResize(30, 60) ColorJitter(0.4) RandomErasing(0.5) " + ANY,
    "RandomChoice(RandomHorizontalFlip(1.0), RandomVerticalFlip(1.0)) " + ANY,
    "CenterCropOrPad(50) RandomCropOrPad(32)",
]
WARPED = [
    "RandomRotation(30) " + ANY,
    "RandomRotation((180, 180)) " + ANY,
    "RandomRotation(90, center=(5, 9)) " + ANY,
    "RandomAffine(20, translate=(0.2, 0.1), scale=(0.5, 1.5), shear=10) "
    + ANY,
    "RandomPerspective(0.4, 1.0) " + ANY,
]


def its_boxes(i):
    """Boxes of image i; some lie at its edges, and beyond them."""
    rng = np.random.default_rng(i)
    first = rng.uniform(-8, 60, (i % 7, 2))
    size = rng.uniform(0, 40, (i % 7, 2))
    return np.concatenate([first, first + size], 1).astype(np.float32)


def its_image(i):
    rng = np.random.default_rng(100 + i)
    width, height = map(int, rng.integers(20, 90, 2))
    return Image.fromarray(
        rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("boxes")
    rows = []
    for i in range(N):
        path = folder / ("%02d.png" % i)
        its_image(i).save(path)
        boxes = its_boxes(i)
        fields = dict(
            boxes=boxes,
            names=np.arange(len(boxes)) * 100 + i,
            corners=np.stack([boxes[:, :2], boxes[:, 2:]], 1),
            tokens=np.arange(i % 3, dtype=np.int32),
            label=i,
        )
        rows.append((path, fields))
    tsock.index(rows, folder / "t", pad={"names": -1})
    return folder


def loader(data, transform, **more):
    given = dict(
        root=data / "t",
        boxes="boxes,names,corners",
        transform=transform,
        fields=("image", "boxes", "names", "corners", "label"),
        as_dict=True,
        batch_size=5,
        seed=3,
        **RAW,
    )
    return tsock.DataLoader(**{**given, **more})


def check(batch, k, transform, close):
    i = int(batch["label"][k])
    draws = batch["draws"][k].tolist() if "draws" in batch else []
    image, boxes, kept = tsock.replay(
        its_image(i), draws, transform, boxes=its_boxes(i)
    )
    n = int(batch["boxes_length"][k])
    assert (np.asarray(image) == batch["image"][k].numpy()).all()
    assert n == len(boxes) == int(kept.sum())
    assert int(batch["names_length"][k]) == n
    got = batch["boxes"][k]
    if close:
        assert torch.allclose(
            got[:n], boxes.as_subclass(torch.Tensor), 0, 1e-3
        )
    else:
        assert torch.equal(got[:n], boxes.as_subclass(torch.Tensor))
    assert not got[n:].any()
    rows = kept.nonzero()[:, 0].numpy()
    assert batch["names"][k, :n].tolist() == (rows * 100 + i).tolist()
    assert (batch["names"][k, n:] == -1).all()
    before = its_boxes(i)[rows].reshape(-1, 2, 2)
    assert (batch["corners"][k, :n].numpy() == before).all()
    return i, len(kept) - n


@pytest.mark.parametrize("transform", EXACT + WARPED)
def test_boxes_are_moved_as_torchvisions_v2_does(data, transform):
    fields = ["image", "label", "boxes", "boxes_length"]
    fields += ["names", "names_length", "corners"]
    seen, lost = set(), 0
    with loader(
        data, transform, fields=tuple(fields + draw(transform))
    ) as made:
        for _ in range(3):
            for batch in made:
                for k in range(len(batch["label"])):
                    i, gone = check(
                        batch, k, made.transform, transform in WARPED
                    )
                    seen.add(i)
                    lost += gone
    assert seen == set(range(N)) and lost


def draw(transform):
    return ["draws"] if "Random" in transform or "Color" in transform else []


def test_without_boxes_the_values_stay_as_they_are(data):
    with loader(data, "RandomResizedCrop(24)", boxes=None) as made:
        for batch in made:
            for k, i in enumerate(batch["label"].tolist()):
                n = i % 7
                assert (batch["boxes"][k, :n].numpy() == its_boxes(i)).all()


def test_boxes_are_a_part_of_the_streams_identity(data):
    with loader(data, ANY, name="one") as made:
        with pytest.raises(tsock.OtherStream, match="boxes"):
            loader(data, ANY, name="one", boxes="boxes")
        assert made.dataset


@pytest.mark.parametrize(
    "boxes, transform, why",
    [
        ("box", ANY, "the table has no column box beside the label"),
        ("tokens", ANY, "the items of the column tokens are no boxes"),
        ("corners", ANY, "the items of the column corners are no boxes"),
        ("label", ANY, "no column label beside the label"),
        ("boxes,tokens", ANY, "row 3 has 3 boxes in the column boxes, and 0"),
        ("boxes,names,names", ANY, "the column names is named twice"),
        ("boxes,", ANY, "the table has no column  beside"),
        ("boxes", "RandomRotation(9, expand=True) " + ANY, "with expand=True"),
        ("boxes", "Pad(3, padding_mode='reflect') " + ANY, "padding_mode"),
        (
            "boxes",
            "RandAugment() " + ANY,
            "RandAugment can't be done to boxes",
        ),
        ("boxes", "Views(%s; %s)" % (ANY, ANY), "2 views of each image"),
    ],
)
def test_what_cant_be_boxes_is_refused_by_name(data, boxes, transform, why):
    with pytest.raises((tsock.Error, ValueError)) as e:
        loader(data, transform, boxes=boxes)
    assert why in str(e.value), e.value


def test_a_data_set_without_columns_has_no_boxes(tmp_path):
    (tmp_path / "a").mkdir()
    its_image(1).save(tmp_path / "a" / "1.png")
    with pytest.raises(tsock.Error, match="boxes are those of a table"):
        tsock.DataLoader(root=tmp_path, boxes="boxes", transform=ANY, wait=60)


def coco(folder, boxes):
    return {
        "images": [
            {"id": 7 + i, "file_name": "%02d.png" % i} for i in range(N)
        ],
        "categories": [{"id": 9, "name": "b"}, {"id": 4, "name": "a"}],
        "annotations": [
            {
                "image_id": 7 + i,
                "category_id": (4, 9)[k % 2],
                "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]],
                "iscrowd": int(k == 2),
            }
            for i in range(N)
            for k, box in enumerate(boxes(i).tolist())
        ],
    }


def test_cocos_boxes_are_fields(data, tmp_path):
    (tmp_path / "c.json").write_text(json.dumps(coco(data, its_boxes)))
    tsock.index(tmp_path / "c.json", tmp_path / "t", root=data, boxes=True)
    with tsock.DataLoader(
        root=tmp_path / "t",
        boxes="boxes,box_labels",
        transform=ANY,
        batch_size=N,
        order="sequential",
        fields=("image", "boxes", "box_labels", "boxes_length", "image_id"),
        **RAW,
    ) as made:
        _, boxes, labels, lengths, ids = next(iter(made))
    assert ids.tolist() == [7 + i for i in range(N)]
    for i in range(N):
        single = [k for k in range(i % 7) if k != 2]
        _, want, kept = tsock.replay(
            its_image(i), [], made.transform, boxes=its_boxes(i)[single]
        )
        n = int(lengths[i])
        assert n == len(want)
        assert torch.allclose(boxes[i, :n], want.as_subclass(torch.Tensor))
        names = [single[k] % 2 for k in kept.nonzero()[:, 0]]
        assert labels[i, :n].tolist() == names


def test_one_box_in_each_image_is_a_ragged_column_where_that_is_said(tmp_path):
    its_image(1).save(tmp_path / "1.png")
    row = (tmp_path / "1.png", {"boxes": [[1.0, 2.0, 9.0, 8.0]]})
    tsock.index([row, row], tmp_path / "fixed")
    with pytest.raises(tsock.Error, match="column boxes isn't ragged"):
        loader(tmp_path, ANY, root=tmp_path / "fixed", boxes="boxes")
    tsock.index([row, row], tmp_path / "t", ragged=["boxes"])
    with loader(
        tmp_path, "Resize((64, 64))", boxes="boxes", fields=("boxes",)
    ) as made:
        assert next(iter(made))["boxes"].shape == (2, 1, 4)


def test_a_table_that_is_written_over_keeps_boxes_and_labels_alike(data):
    table = data / "written"
    shutil.copy(data / "t", table)
    with loader(
        data,
        "Resize((64, 64))",
        root=table,
        ring=8,
        batch_size=2,
        boxes="boxes,names",
        fields=("boxes", "boxes_length", "names", "names_length"),
    ) as made:
        next(iter(made))
        with open(table, "r+b") as f:
            head = f.read(64 + 128 * 9)
            at = head.index(b"names\0") + 88
            f.seek(*struct.unpack_from("<Q", head, at))
            f.write(bytes(8 * (N + 1)))  # no row has any
        # What was made before is read first.
        rows = 1
        while rows:
            rows = 0
            for batch in made:
                assert torch.equal(batch["boxes_length"], batch["names_length"])
                rows += int(batch["names_length"].sum())


def test_a_pack_of_the_table_has_the_same_boxes(data, tmp_path):
    tsock.pack(data / "t", tmp_path / "pack")
    fields = ("boxes", "boxes_length", "names", "names_length", "index")

    def samples(**more):
        transform = "RandomResizedCrop(40) RandomHorizontalFlip()"
        seen = {}
        with loader(data, transform, fields=fields, **more) as made:
            for batch in made:
                for row in zip(*(batch[name] for name in fields)):
                    boxes, n, names, _, index = row
                    seen[int(index)] = boxes[:n].tolist(), names[:n].tolist()
        return seen

    assert samples() == samples(root=tmp_path / "pack")
