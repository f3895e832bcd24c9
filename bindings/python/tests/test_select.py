# SPDX-License-Identifier: MIT
"""select=: the samples that a file names, and their weights."""

import os
import subprocess

import pytest

import tsock
from conftest import BUILD, N, RAW

pytest.importorskip("torch")
pytest.importorskip("PIL")

FIELDS = ("image", "label", "index", "weight")


@pytest.fixture
def files(images):
    """As the producer numbers them."""
    return sorted(images.glob("*/*.jpg"))


@pytest.fixture
def chosen(files, images, tmp_path):
    """A file of 40 samples, the last first; each second has a weight."""
    path = tmp_path / "chosen"
    names = [str(f.relative_to(images)) for f in files[100:60:-1]]
    path.write_text(
        "".join(
            "%s%s\n" % (name, "\t%g" % (i / 8) if i % 2 else "")
            for i, name in enumerate(names)
        )
    )
    return path


def test_batches_are_of_the_selection(serve, chosen, files):
    serve("--select", str(chosen), "--order", "sequential")
    loader = tsock.DataLoader("toy", 16, fields=FIELDS, **RAW)
    assert len(loader) == 3
    assert len(loader.dataset) == 40
    assert len(loader.classes) == 3
    seen, weights = [], []
    for _, label, index, weight in loader:
        assert str(weight.dtype) == "torch.float32"
        weights += weight.tolist()
        seen += zip(index.tolist(), label.tolist())
    samples = loader.dataset.samples
    assert [path for path, _ in samples] == [str(f) for f in files[100:60:-1]]
    assert seen == [(i, label) for i, (_, label) in enumerate(samples)]
    assert weights == [i / 8 if i % 2 else 1 for i in range(40)]
    assert loader.dataset.targets == [
        int(f.parent.name[-1]) for f in files[100:60:-1]
    ]


def test_weights_need_a_selection(serve):
    serve()
    with pytest.raises(ValueError, match="weight"):
        iter(tsock.DataLoader("toy", 16, fields=("weight",)))


def test_keys_are_strings(serve, chosen, files, images):
    """Keys of a batch, of a subset, and in a dict; with a weight before them."""
    serve("--select", str(chosen), "--keys", "--order", "sequential")
    want = [str(f.relative_to(images)) for f in files[100:60:-1]]
    fields = ("key", "index", "weight")
    with tsock.DataLoader("toy", 16, fields=fields, **RAW) as loader:
        found = []
        for key, index, _ in loader:
            assert [want[i] for i in index.tolist()] == key
            found += key
    assert found == want
    more = dict(fields=fields, as_dict={"key": "__key__"}, **RAW)
    odd = range(1, 40, 2)
    with tsock.DataLoader("toy", 7, subset=odd, **more) as loader:
        found = [key for batch in loader for key in batch["__key__"]]
    assert found == [want[i] for i in odd]


def test_keys_have_to_be_asked_for(serve, images):
    serve()
    with pytest.raises(ValueError, match="--keys gives it"):
        tsock.DataLoader("toy", 16, fields=("image", "key"))
    same = dict(dataset="imagefolder", root=images, size=32)
    with pytest.raises(tsock.OtherStream, match="keys"):
        tsock.DataLoader("toy", 16, keys=True, **same)


def test_keys_beside_channels_last(serve, images):
    """A loader that doesn't ask for keys reads the stream all the same."""
    serve("--keys", "--order", "sequential")
    fields = ("image", "key")
    with tsock.DataLoader(
        "toy", 16, fields=fields, memory_format="channels_last"
    ) as loader:
        image, key = next(iter(loader))
    assert tuple(image.shape) == (16, 3, 32, 32)
    assert key == sorted(
        str(f.relative_to(images)) for f in images.glob("*/*.jpg")
    )[:16]
    same = dict(dataset="imagefolder", root=images, size=32)
    tsock.DataLoader("toy", 16, order="sequential", **same).close()


def test_the_sampler_knows_the_order(serve, chosen):
    serve("--select", str(chosen))
    loader = tsock.DataLoader("toy", 16, fields=("index",), **RAW)
    order = list(loader.sampler)
    assert sorted(order) == list(range(40))
    assert [int(i) for (index,) in loader for i in index] == order


def test_another_selection_is_another_stream(serve, chosen, images, tmp_path):
    serve("--select", str(chosen))
    other = tmp_path / "other"
    other.write_text("class0/000.jpg\n")
    same = dict(dataset="imagefolder", root=images, size=32)
    tsock.DataLoader("toy", 16, select=chosen, **same)
    for select in (other, None):
        with pytest.raises(tsock.OtherStream, match="select"):
            tsock.DataLoader("toy", 16, select=select, **same)


def test_a_loader_starts_a_selection(place, chosen, images, monkeypatch):
    monkeypatch.chdir(chosen.parent)
    loader = tsock.DataLoader(
        "mine",
        16,
        dataset="imagefolder",
        root=images,
        select=chosen.name,
        size=32,
        no_cache=True,
        fields=FIELDS,
    )
    with loader:
        assert sum(len(batch[0]) for batch in loader) == 40 < N


def test_samples_are_the_streams_whatever_the_list_says_now(serve, chosen):
    serve("--select", str(chosen))
    loader = tsock.DataLoader("toy", 16)
    wanted = len(chosen.read_text().splitlines())
    chosen.write_text("class0/nothing.jpg 2\n")
    samples = loader.dataset.samples
    assert len(samples) == wanted
    assert not any("nothing" in path for path, _ in samples)


def test_a_pack_has_its_sources_names(serve, chosen, images, tmp_path):
    pack = os.path.join(BUILD, "bin", "tsock-pack")
    packed = tmp_path / "packed"
    subprocess.run(
        [pack, "--dataset", "imagefolder", images, packed],
        check=True,
        capture_output=True,
    )
    options = ("--select", str(chosen), "--order", "sequential", "--keys")
    serve(*options)
    serve(*options, name="packed", root=packed)
    loaders = [
        tsock.DataLoader(name, 16, fields=FIELDS + ("key",), **RAW)
        for name in ("toy", "packed")
    ]
    batches = 0
    for a, b in zip(*loaders):
        batches += 1
        assert a.pop() == b.pop()
        for x, y in zip(a, b):
            assert x.numpy().tobytes() == y.numpy().tobytes()
    assert batches == 3
