# SPDX-License-Identifier: MIT
"""loader.dataset: torchvision's ImageFolder, when it is looked at."""

import os
import pickle
import shutil

import pytest

import tsock
from conftest import N

pytest.importorskip("numpy")
INDEX = dict(fields=("label", "index"), dtype="uint8")


def test_it_is_image_folder(serve, images):
    datasets = pytest.importorskip("torchvision.datasets")
    serve()
    theirs = datasets.ImageFolder(str(images))
    ours = tsock.DataLoader("toy", 48).dataset
    assert ours.root == os.path.realpath(images)
    assert len(ours) == len(theirs) == N
    assert ours.classes == theirs.classes
    assert ours.class_to_idx == theirs.class_to_idx
    assert ours.samples == ours.imgs == theirs.samples
    assert ours.targets == theirs.targets
    for i in (0, 100, -1):
        image, label = ours[i]
        assert label == theirs[i][1]
        assert image.tobytes() == theirs[i][0].tobytes()
    with pytest.raises(IndexError):
        ours[N]


def test_its_transforms_are_applied(serve):
    pytest.importorskip("PIL")
    serve()
    dataset = tsock.DataLoader("toy", 48).dataset
    assert dataset.transform is None and dataset.target_transform is None
    # A loader's batches aren't made of dataset[i]: that is said.
    with pytest.warns(UserWarning, match="dataset.transform .* no batch"):
        dataset.transform = lambda image: image.size
    with pytest.warns(UserWarning, match="dataset.target_transform"):
        dataset.target_transform = lambda label: -label
    assert dataset[202] == ((40 + 202 % 13, 40 + 202 % 7), -dataset.targets[-1]) or (
        dataset[202][1] == -2
    )


def test_its_index_is_the_field_index(serve):
    serve()
    loader = tsock.DataLoader("toy", 48, **INDEX)
    targets = loader.dataset.targets
    for labels, index in loader:
        assert [targets[int(i)] for i in index] == labels.tolist()


def test_subsets_and_torchs_own_loader_read_it(serve):
    torch = pytest.importorskip("torch")
    pytest.importorskip("PIL")
    serve()
    dataset = tsock.DataLoader("toy", 48).dataset
    subset = torch.utils.data.Subset(dataset, [5, 7])
    assert len(subset) == 2 and subset[1][1] == dataset.targets[7]
    with pytest.warns(UserWarning):
        dataset.transform = lambda image: torch.tensor(image.size)
    theirs = torch.utils.data.DataLoader(dataset, batch_size=100)
    assert sum(len(labels) for _, labels in theirs) == N


def test_it_can_be_pickled_and_outlives_the_loader(serve):
    serve()
    with tsock.DataLoader("toy", 48) as loader:
        dataset = loader.dataset
    again = pickle.loads(pickle.dumps(dataset))
    assert again.targets == dataset.targets and len(again) == N


def test_folders_are_visited_in_torchvisions_order(serve, tmp_path, images):
    datasets = pytest.importorskip("torchvision.datasets")
    files = sorted(p for p in images.rglob("*.jpg"))
    root = tmp_path / "odd"
    names = ["b/x.jpg", "b/a/y.JPG", "b/a-/z.jpeg", "b/A/u.jpg", "a b/1.jpg"]
    names += ["ä/2.jpg", "Z/10.jpg", "Z/9.jpg", "Z/sub/1.jpg", "Z/.hid/3.jpg"]
    for name, file in zip(names, files):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, root / name)
    (root / "Z" / "readme.txt").write_text("no image")
    serve(root=root)
    loader = tsock.DataLoader("toy", 4, **INDEX)
    assert loader.dataset.samples == datasets.ImageFolder(str(root)).samples
    for labels, index in loader:
        for label, i in zip(labels, index):
            assert loader.dataset.targets[int(i)] == int(label)


def test_a_folder_that_has_changed_is_an_error(serve, tmp_path, images):
    root = tmp_path / "data"
    shutil.copytree(images, root)
    serve(root=root)
    loader = tsock.DataLoader("toy", 48)
    os.unlink(loader.dataset.root + "/class0/000.jpg")
    with pytest.raises(RuntimeError, match="%d files.*%d by now" % (N, N - 1)):
        loader.dataset.targets
    shutil.rmtree(root)
    with pytest.raises(FileNotFoundError, match="can't be read from here"):
        loader.dataset.samples
    assert len(loader.dataset) == N


def test_a_stream_without_files_has_none():
    from tsock.dataset import Dataset

    dataset = Dataset(10, ["a"], {}, "mine")
    assert len(dataset) == 10
    assert not hasattr(dataset, "targets") and not hasattr(dataset, "root")
    with pytest.raises(AttributeError, match="'mine'"):
        dataset[0]


def test_without_pillow_the_images_say_so(serve, monkeypatch):
    serve()
    dataset = tsock.DataLoader("toy", 48).dataset
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    assert len(dataset.targets) == N
    with pytest.raises(ImportError, match="Pillow"):
        dataset[0]


def test_a_file_can_be_decoded_as_by_image_folder(serve):
    pytest.importorskip("PIL")
    serve()
    dataset = tsock.DataLoader("toy", 48).dataset
    path, label = dataset.samples[7]
    assert dataset.loader(path).tobytes() == dataset[7][0].tobytes()


@pytest.mark.parametrize("index", [slice(2), "7", 7.0, None])
def test_only_an_index_is_an_index(serve, index):
    serve()
    with pytest.raises(TypeError, match="as an integer"):
        tsock.DataLoader("toy", 48).dataset[index]
