# SPDX-License-Identifier: MIT
"""Tar shards give the bytes of the folder that they were made of."""

import io
import itertools
import json
import tarfile

import pytest

import tsock
from conftest import N, RAW

pytest.importorskip("torch")
pytest.importorskip("PIL")

FORMATS = {
    "ustar": tarfile.USTAR_FORMAT,
    "gnu": tarfile.GNU_FORMAT,
    "pax": tarfile.PAX_FORMAT,
}


def _add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


@pytest.fixture(scope="session", params=sorted(FORMATS))
def shards(request, images, tmp_path_factory):
    """The folder of images as tar files of 60 samples each."""
    folder = tmp_path_factory.mktemp("shards")
    files = sorted(images.glob("*/*.jpg"))
    for first in range(0, N, 60):
        shard = folder / ("images-%03d.tar" % (first // 60))
        with tarfile.open(shard, "w", format=FORMATS[request.param]) as tar:
            for i, file in enumerate(files[first : first + 60], first):
                # Names that no header has room for, unless by an extension.
                key = "%s/%06d" % ("long-%s" % request.param * 9, i)
                if request.param != "ustar":
                    key = "%s/%s-%06d" % ("a" * 150, "b" * 120, i)
                label = int(file.parent.name[-1])
                _add(tar, key + ".jpg", file.read_bytes())
                if i % 2:
                    _add(tar, key + ".cls", b"%d" % label)
                else:
                    text = {"size": [1, 2], "label": label}
                    _add(tar, key + ".json", json.dumps(text).encode())
    return folder


def _same(a, b):
    for x, y in itertools.zip_longest(a, b):
        for p, q in zip(x, y):
            assert p.numpy().tobytes() == q.numpy().tobytes()


def test_shards_give_the_folders_bytes(serve, shards, images):
    fields = ("image", "label", "index", "box")
    serve("--epochs", 2)
    serve("--epochs", 2, "--dataset", "webdataset", name="tars", root=shards)
    folder = tsock.DataLoader("toy", 48, fields=fields, **RAW)
    tars = tsock.DataLoader("tars", 48, fields=fields, wait=60, **RAW)
    assert tars.dataset.targets == folder.dataset.targets
    _same([b for _ in range(2) for b in folder], [b for _ in range(2) for b in tars])
    assert tars.dataset.classes == ["0", "1", "2"]


def test_keys_are_those_of_webdataset(serve, shards):
    serve("--keys", "--dataset", "webdataset", root=shards)
    with tsock.DataLoader("toy", 48, fields=("key", "index"), **RAW) as loader:
        seen = 0
        for keys, index in loader:
            seen += len(keys)
            for key, i in zip(keys, index.tolist()):
                folder, _, name = key.rpartition("/")
                assert folder and name.endswith("%06d" % i)
                assert loader.dataset.keys[i] == key
    assert seen == N


def test_a_loader_finds_shards_by_a_pattern(shards, place):
    root = str(shards / "images-{000..001}.tar")
    loader = tsock.DataLoader(
        "some", 40, root=root, size=32, threads=1, no_cache=True,
        exit_when_idle=10, preset="eval", fields=("index",), **RAW
    )
    assert [int(i) for (index,) in loader for i in index] == list(range(120))
    # Others of the same pattern join, those of another one are refused.
    again = tsock.DataLoader(
        "some", 40, root=root, size=32, preset="eval", fields=("index",), **RAW
    )
    next(iter(again))
    with pytest.raises(tsock.OtherStream, match="root"):
        tsock.DataLoader(
            "some", 40, root=str(shards / "images-{000..002}.tar"), size=32,
            preset="eval", dataset="webdataset",
        )
    again.close()
    loader.close()
