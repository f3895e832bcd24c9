# SPDX-License-Identifier: MIT
"""loader.dataset: torchvision's ImageFolder, when it is looked at."""

import collections
import os
import pickle
import shutil

import pytest

import tsock
from conftest import N, running, until

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


def test_targets_are_used_as_a_list(serve):
    np = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")
    serve()
    dataset = tsock.DataLoader("toy", 48).dataset
    targets, want = dataset.targets, sorted(i % 3 for i in range(N))
    assert targets == want and want == targets and not targets != want
    assert targets != want[:-1] and targets != want[:-1] + [7]
    assert list(targets) == want and len(targets) == N
    assert collections.Counter(targets) == collections.Counter(want)
    assert np.array(targets).dtype == np.array(want).dtype
    assert np.bincount(targets).tolist() == np.bincount(want).tolist()
    assert torch.tensor(targets).equal(torch.tensor(want))
    for part in (slice(5), slice(-9, None, 2), slice(None, None, -3), slice(9, 2)):
        assert targets[part] == want[part] and type(targets[part]) is list
        assert dataset.samples[part] == list(dataset.samples)[part]
    assert targets[-1] == 2 and targets + [7] == want + [7]
    assert [7] + targets == [7] + want and targets.copy() == want
    assert targets.index(1) == want.index(1) and targets.count(2) == want.count(2)
    assert max(targets) == 2 and 2 in targets and 3 not in targets
    weights = [1 / targets.count(label) for label in targets[::50]]
    assert torch.utils.data.WeightedRandomSampler(weights, 4)
    assert pickle.loads(pickle.dumps(targets)) == want
    with pytest.raises(IndexError):
        targets[N]
    with pytest.raises(TypeError):
        targets[0] = 1
    path, label = dataset.samples[N - 1]
    assert (path, label) in dataset.samples
    assert dataset.keys[N - 1] == os.path.relpath(path, dataset.root)


def test_they_come_from_the_producer_and_from_the_next_one(serve, monkeypatch):
    serve().stop()
    monkeypatch.setattr(tsock.dataset, "scan", None)  # nobody scans
    first = serve()
    dataset = tsock.DataLoader("toy", 48).dataset
    again = pickle.loads(pickle.dumps(dataset))
    assert len(dataset.targets) == N
    first.kill()
    assert dataset.targets[-1] == 2
    serve()
    until(lambda: "toy" in running(), what="the next producer")
    assert again.targets == dataset.targets and again.samples[0][1] == 0


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


def test_a_folder_that_changes_stays_what_the_stream_has(
    serve, tmp_path, images
):
    root = tmp_path / "data"
    shutil.copytree(images, root)
    producer = serve(root=root)
    dataset = tsock.DataLoader("toy", 48).dataset
    path = dataset.root + "/class0/000.jpg"
    os.unlink(path)
    assert dataset.samples[0] == (path, 0) and len(dataset.targets) == N
    with pytest.raises(FileNotFoundError):
        dataset[0]
    # Memory that was mapped stays; another process finds no producer, and the
    # folder isn't the stream's any more.
    kept, again = dataset.targets, pickle.loads(pickle.dumps(dataset))
    producer.stop()
    assert kept[-1] == 2 and dataset.samples[1][0].endswith("class0/003.jpg")
    with pytest.raises(RuntimeError, match="%d files.*%d by now" % (N, N - 1)):
        again.targets
    shutil.rmtree(root)
    with pytest.raises(FileNotFoundError, match="can't be read from here"):
        again.samples
    assert len(again) == N


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
