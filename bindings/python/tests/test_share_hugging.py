# SPDX-License-Identifier: MIT
"""tsock.share: Hugging Face's data sets with a column of images."""

import functools
import io
import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
hf = pytest.importorskip("datasets")
PIL = pytest.importorskip("PIL.Image")
from torch.utils.data import DataLoader, Subset  # noqa: E402
from torchvision import transforms as T  # noqa: E402

import tsock  # noqa: E402
from conftest import N  # noqa: E402
from tsock.sharing.look import look  # noqa: E402
from test_share import cache, shared  # noqa: E402,F401

EVAL = T.Compose([T.Resize(40), T.CenterCrop(32), T.ToTensor()])
TRAIN = T.Compose(
    [T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor()]
)


def transform_of(transform, image="image"):
    """As scripts of transformers have them."""

    def apply(examples):
        examples["pixel_values"] = [
            transform(one.convert("RGB")) for one in examples[image]
        ]
        return examples

    return apply


def without_image(examples):
    examples["pixel_values"] = [
        EVAL(image.convert("RGB")) for image in examples["image"]
    ]
    del examples["image"]
    return examples


def collate(examples):
    return {
        "pixel_values": torch.stack([one["pixel_values"] for one in examples]),
        "labels": torch.tensor([one["label"] for one in examples]),
    }


@pytest.fixture(scope="session")
def rows(images):
    """Rows of the folder's images, with their bytes."""
    made = {"image": [], "label": []}
    for k in range(3):
        for path in sorted((images / ("class%d" % k)).iterdir()):
            made["image"].append({"bytes": path.read_bytes(), "path": None})
            made["label"].append(k)
    return made


FEATURES = hf.Features(
    {"image": hf.Image(), "label": hf.ClassLabel(names=["a", "b", "c"])}
)


@pytest.fixture(scope="session")
def saved(rows, tmp_path_factory):
    """What save_to_disk() wrote."""
    folder = tmp_path_factory.mktemp("saved") / "shapes"
    data = hf.Dataset.from_dict(rows, features=FEATURES)
    hf.DatasetDict(
        {"train": data, "test": data.select(range(50))}
    ).save_to_disk(str(folder))
    return folder


@pytest.fixture
def data(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(hf.config, "HF_DATASETS_CACHE", str(tmp_path / "hf"))
    return hf.load_from_disk(str(saved))["train"]


def same(mine, its):
    """Are the batches of one epoch the same?"""
    count = 0
    for a, b in zip(mine, its, strict=True):
        assert isinstance(a, dict) and set(a) == set(b)
        assert all(torch.equal(a[key], b[key]) for key in b)
        assert all(a[key].dtype == b[key].dtype for key in b)
        count += len(b["pixel_values"])
    return count


@pytest.mark.parametrize("with_image", [True, False])
def test_a_saved_data_set_is_read_where_it_lies(
    data, shared, with_image, cache
):
    data.set_transform(transform_of(EVAL) if with_image else without_image)
    loader = DataLoader(data, 20, collate_fn=collate)
    mine = shared(loader)
    assert same(mine, loader) == N
    assert mine.classes == ["a", "b", "c"]
    assert not list(cache.rglob("*.data"))


def test_torch_s_own_collate_makes_a_dict(data, shared):
    data.set_transform(without_image)
    loader = DataLoader(data, 20)
    mine = shared(loader)
    assert set(next(iter(mine))) == {"pixel_values", "label"}
    assert same(mine, loader) == N


def test_a_training_loader_has_each_sample_once(data, shared):
    data = data.with_transform(transform_of(TRAIN))
    loader = DataLoader(data, 32, shuffle=True, collate_fn=collate)
    mine = shared(loader)
    labels = [int(i) for batch in mine for i in batch["labels"]]
    assert len(labels) == N and sorted(labels) == sorted(data["label"])
    assert labels != sorted(labels)


def test_what_was_shuffled_split_or_selected(data, shared):
    names = set()
    for part in (
        data.shuffle(seed=3),
        data.select(range(30, 130)),
        data.train_test_split(0.2, seed=1)["test"],
        data.train_test_split(0.2, seed=1)["train"],
        hf.concatenate_datasets([data, data.select([5, 4])]),
        data.shard(4, 1),
    ):
        part.set_transform(transform_of(EVAL))
        loader = DataLoader(part, 20, collate_fn=collate)
        mine = shared(loader)
        assert same(mine, loader) == len(part)
        names.add(mine.name)
    assert len(names) == 6
    part = data.shuffle(seed=3)
    part.set_transform(transform_of(EVAL))
    loader = DataLoader(Subset(part, [7, 3, 9]), 2, collate_fn=collate)
    assert same(shared(loader), loader) == 3


def test_a_large_split_shuffled_shares_the_whole_stream(data, shared):
    data.set_transform(transform_of(TRAIN))
    loaders = [
        shared(DataLoader(part, 20, shuffle=True, collate_fn=collate))
        for part in (data, data.train_test_split(0.2, seed=1)["train"])
    ]
    assert loaders[0].name == loaders[1].name
    count = sum(len(batch["labels"]) for batch in loaders[1])
    assert count == N - int(0.2 * N) - 1


def test_images_in_memory_and_in_files(rows, images, tmp_path, shared):
    paths = [str(path) for path in sorted(images.rglob("*.jpg"))]
    in_files = hf.Dataset.from_dict(
        {"image": paths, "label": rows["label"]}, features=FEATURES
    )
    in_memory = hf.Dataset.from_dict(rows, features=FEATURES)
    folder = hf.load_dataset(
        "imagefolder", data_dir=str(images), cache_dir=str(tmp_path / "cache")
    )["train"]
    some = in_memory.select([3, 1, 200])
    for part in (in_memory, in_files, folder, some):
        part.set_transform(transform_of(EVAL))
        loader = DataLoader(part, 20, collate_fn=collate)
        assert same(shared(loader), loader) == len(part)


def test_parquet_files(data, tmp_path, shared):
    data.to_parquet(str(tmp_path / "part.parquet"))
    read = hf.load_dataset(
        "parquet",
        data_files=str(tmp_path / "part.parquet"),
        cache_dir=str(tmp_path / "cache"),
    )["train"]
    read.set_transform(transform_of(EVAL))
    loader = DataLoader(read, 20, collate_fn=collate)
    assert same(shared(loader), loader) == N


def by_argument(transform, key, examples):
    return {
        key: [transform(one.convert("RGB")) for one in examples["image"]],
        "labels": examples["label"],
    }


def collate_labels(examples):
    return {
        "pixel_values": torch.stack([one["x"] for one in examples]),
        "labels": torch.tensor([one["labels"] for one in examples]),
    }


def test_a_partial_and_other_keys(data, shared):
    data.set_transform(functools.partial(by_argument, EVAL, "x"))
    loader = DataLoader(data, 20, collate_fn=collate_labels)
    assert same(shared(loader), loader) == N


# ---- what isn't native ----


def why(data, **more):
    plan = look(DataLoader(data, 8, **more))
    assert not plan.native
    return plan.why


def flipped(examples):
    if random.random() < 0.5:
        random.random()
    return transform_of(EVAL)(examples)


def doubled(examples):
    examples["pixel_values"] = [
        2 * EVAL(image.convert("RGB")) for image in examples["image"]
    ]
    return examples


def relabelled(examples):
    examples = transform_of(EVAL)(examples)
    examples["label"] = [label + 1 for label in examples["label"]]
    return examples


def either(examples):
    return transform_of(TRAIN if "train" in examples else EVAL)(examples)


@pytest.mark.parametrize(
    "function, said",
    [
        (flipped, "does more than its transform"),
        (doubled, "does more than its transform"),
        (relabelled, "changes the labels"),
        (either, "in which are 2 transforms"),
        (lambda examples: examples, "in which are no transforms"),
    ],
)
def test_functions_that_do_more_are_python_s(data, function, said):
    data.set_transform(function)
    state = random.getstate()
    assert said in why(data, collate_fn=collate)
    assert random.getstate() == state


def test_arrays_of_whole_images_are_python_s(data):
    assert "arrays of whole images" in why(data.with_format("torch"))
    assert "images of Pillow" in why(data)
    assert "no images" in why(data.remove_columns("image"))
    assert "no labels" in why(data.remove_columns("label"))


def test_images_that_exif_turns_are_python_s(rows, cache):
    image = PIL.open(io.BytesIO(rows["image"][7]["bytes"]))
    exif = PIL.Exif()
    for turn in (1, 6):
        exif[0x0112] = turn
        to = io.BytesIO()
        image.save(to, "JPEG", exif=exif)
        those = [dict(one) for one in rows["image"]]
        those[7]["bytes"] = to.getvalue()
        data = hf.Dataset.from_dict(
            {"image": those, "label": rows["label"]}, features=FEATURES
        )
        data.set_transform(transform_of(EVAL))
        plan = look(DataLoader(data, 8, collate_fn=collate))
        assert plan.native == (turn == 1)
    assert "1 images that EXIF turns" in plan.why


def test_an_own_collate_fn_with_more_is_python_s(data):
    data = data.add_column("number", list(range(N)))
    data.set_transform(without_image)
    assert "something else" in why(data)
    plan = look(DataLoader(data, 8, collate_fn=collate))
    assert plan.native


def test_the_table_names_the_data_set(data, capsys):
    data.set_transform(transform_of(TRAIN))
    tsock.explain(DataLoader(data, 20, shuffle=True, collate_fn=collate))
    said = capsys.readouterr().out
    assert "makes a native stream" in said and "RandomResizedCrop" in said
