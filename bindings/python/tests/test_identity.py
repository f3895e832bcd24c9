# SPDX-License-Identifier: MIT
"""A stream that is another one than a loader describes is refused."""

import os
import re
import subprocess

import pytest

import tsock
from conftest import BUILD, N, SIZE, until
from test_attach import INDEX, indices, pid_of
from test_attach import start  # noqa: F401 - a fixture
from tsock import attach, identity, options, producer

pytest.importorskip("numpy")


def test_another_stream_of_that_name_is_refused_with_what_differs(
    start, serve, images
):
    serve("--seed", 7, "--preset", "eval")
    until(tsock.streams)
    with pytest.raises(tsock.OtherStream) as caught:
        start(seed=8)
    lines = str(caught.value).split("\n")
    assert lines[0] == (
        "stream 'toy' runs (process %d) and is another one:" % pid_of()
    )
    assert [line.split() for line in lines[1:-1]] == [
        "order is sequential, and philox is the default".split(),
        "seed is 7, and 8 was asked for".split(),
        ["segments"] + "is 64, and 1 is the default".split(),
        (
            "transform is Resize(size=256, interpolation=bilinear, "
            "max_size=None, antialias=True) CenterCrop(size=(32, 32)), and "
            "RandomResizedCrop(size=(32, 32), scale=(0.08, 1), ratio=(0.75, "
            "1.3333333333333333), interpolation=bilinear, antialias=True) "
            "RandomHorizontalFlip(p=0.5) was asked for"
        ).split(),
    ]
    # The stream goes on, and can be read by its name alone.
    with tsock.DataLoader("toy", batch_size=48, **INDEX) as loader:
        assert sorted(indices(loader)) == list(range(N))


READS = """
import signal, tsock
batches = iter(tsock.DataLoader("toy", 16, framework="numpy"))
next(batches)
print("reads", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("idle", [(), ("--exit-when-idle", 600)])
def test_who_reads_another_stream_and_when_it_ends_is_said(
    start, serve, script, idle
):
    serve("--seed", 7, *idle)
    until(tsock.streams)

    def said():
        with pytest.raises(tsock.OtherStream) as caught:
            start(seed=8)
        return str(caught.value).split("\n")[-1]

    end = "600 s after the last loader" if idle else "when its producer is"
    assert said().startswith("Nobody reads it now; it ends " + end)
    assert ", or at once by tsock.stop('toy').  Ask for " in said()
    batches = iter(tsock.DataLoader("toy", 16))
    next(batches)
    assert said().startswith(
        "This process (an earlier loader, which close() ends) reads it now; "
    )
    del batches
    others = [script(READS) for _ in range(2)]
    for other in others:
        assert other.stdout.readline() == "reads\n"
    pids = sorted(other.pid for other in others)
    for pid in pids:
        assert "rocess %d (script" % pid in said()
    assert " and process %d" % pids[1] in said()
    assert ", or at once by tsock.stop('toy', force=True).  Ask " in said()


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        dict(preset="eval", size=24),
        dict(split="val"),
        dict(split="train", seed=3, segments=5),
        dict(order="torch", pillow=11, on_error="raise"),
        dict(order="sequential", segments=7),
        dict(preset="eval", resize=40, shard=(1, 2), pillow=14),
        dict(fast=True),
        dict(transform="Resize(40) CenterCrop(24)"),
        dict(keys=True),
    ]
    + [
        dict(preset=word)
        for word in options.words_of("preset")
        if word not in ("train", "eval")
    ],
)
def test_what_is_described_is_what_runs(serve, images, tmp_path, chosen):
    root = tmp_path / "tree"
    root.mkdir()
    for split in ("train", "val"):
        (root / split).symlink_to(images)
    given = dict(chosen, root=root if "split" in chosen else images)
    if "transform" not in given:
        given.setdefault("size", SIZE)
    want = attach.wanted("toy", dict(given, dataset="imagefolder"))
    words = []
    for key, value in want._options.items():
        if key not in ("root", "dataset"):
            words.append("--" + key.replace("_", "-"))
            words += [value] if value else []
    serve(*words, root=given["root"])
    loader = tsock.DataLoader("toy", batch_size=1, **INDEX)
    text = tsock._ffi.lib.tsock_identity(handle_of(loader))
    own = identity.parse(text.decode())
    assert want.differences(own) == []
    # And each line of it counts.
    described = values(**want._options)
    assert len(described) > 10
    for key in described:
        other = dict(own)
        other[key] = "another"
        assert len(want.differences(other)) == 1, key
    loader.close()


def values(**checked):
    return producer.describe(producer.find_program(), checked)[1]


def guess(root):
    return values(root=str(root))["dataset"][0]


def handle_of(loader):
    return loader._pool.first.handle


def test_the_folder_tells_the_format(tmp_path, images):
    assert guess(tmp_path) == "imagefolder"
    for split in ("train", "val"):
        (tmp_path / split).symlink_to(images)
    assert guess(tmp_path) == "imagenet"
    own = values(root=str(tmp_path))
    assert own["root"] == [os.path.realpath(images)]
    # One tree, whichever of the two it was called by.
    own = {key: its[-1] for key, its in own.items()}
    assert own["dataset"] == "imagefolder"
    want = attach.wanted("toy", dict(root=str(tmp_path)))
    assert want.differences(own) == []
    given = attach.wanted("toy", dict(root=tmp_path, dataset="imagenet"))
    assert len(given.differences(own)) == 1
    # By whatever path.
    (tmp_path / "other").symlink_to(images)
    own["root"] = str(tmp_path / "other")
    assert want.differences(own) == []
    own["root"] = str(tmp_path)
    assert len(want.differences(own)) == 1


def test_every_format_is_told_by_some_folder(tmp_path):
    for name in (
        "imagefolder/a",
        "imagenet/train",
        "imagenet/val",
        "packed",
        "webdataset",
        "cifar10/cifar-10-batches-py",
        "cifar100",
        "imagenet32",
        "imagenet64",
        "mnist/raw",
        "npy",
        "audio/a",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "cifar100" / "fine_label_names.txt").touch()
    (tmp_path / "imagenet32" / "train_data_batch_1").touch()
    (tmp_path / "mnist" / "raw" / "train-images-idx3-ubyte").touch()
    (tmp_path / "imagenet64" / "train_data_batch_1.npz").touch()
    head = b"{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }\n"
    (tmp_path / "npy" / "a.npy").write_bytes(
        b"\x93NUMPY\1\0" + bytes([len(head), 0]) + head + bytes(4)
    )
    (tmp_path / "audio" / "a" / "0.wav").touch()
    (tmp_path / "packed" / "pack.index").touch()
    (tmp_path / "webdataset" / "0.TAR").touch()
    (tmp_path / "table").write_bytes(b"tsocktbl")
    formats = sorted(os.listdir(tmp_path))
    # Images without classes are asked for, by name or by masks=, and what
    # says nothing of itself by schema=; Python indexes Arrow and Parquet.
    others = ["images", "records", "tokens", "arrow", "parquet"]
    assert sorted(formats + others) == sorted(options.words_of("dataset"))
    # Of audio a schema says how long a sample is.
    schema = "float32[1,9]"
    assert values(root=tmp_path / "audio", schema=schema)["dataset"] == ["audio"]
    formats.remove("audio")
    for name in formats:
        assert guess(tmp_path / name) == name
        if name != "table":  # which is a file
            assert guess(str(tmp_path / name) + "/") == name
    assert guess(tmp_path / "webdataset" / "{0..3}.tar") == "webdataset"
    # One tar file among images, or beside a folder, makes no WebDataset.
    (tmp_path / "webdataset" / "0.jpg").touch()
    assert guess(tmp_path / "webdataset") == "imagefolder"
    (tmp_path / "webdataset" / "0.jpg").unlink()
    (tmp_path / "webdataset" / "a").mkdir()
    assert guess(tmp_path / "webdataset") == "imagefolder"
    assert set(options.IMAGE_FOLDERS) < set(formats)


def test_a_folder_is_that_of_a_pack_below_it(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "pack.index").touch()
    found = values(root=str(tmp_path), dataset="imagenet")
    assert found["dataset"] == ["packed"]


def test_a_program_that_refuses_the_options_is_quoted(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="--size 9999: a whole number from"):
        tsock.DataLoader(None, 8, root=tmp_path, size=9999)
    for end, text in (
        ("exit 3", "silent --describe ended with status 3: it said nothing"),
        ("echo tsock-producer: too late >&2; exit 1", "status 1: too late"),
    ):
        program = tmp_path / "silent"
        program.write_text("#!/bin/sh\n%s\n" % end)
        program.chmod(0o700)
        monkeypatch.setenv("TSOCK_PRODUCER", str(program))
        with pytest.raises(tsock.Error, match=text):
            tsock.DataLoader(None, 8, root=tmp_path)


def test_splits_are_found_by_their_usual_names(tmp_path, images, start):
    for name in ("training", "valid"):
        (tmp_path / name).symlink_to(images)
    assert guess(tmp_path) == "imagenet"
    for split in ("train", "val"):
        given = dict(root=tmp_path, split=split, no_cache=True)
        with tsock.DataLoader(
            None, 8, size=32, exit_when_idle=0.1, **given
        ) as loader:
            # The loader has compared the running stream with its options.
            assert len(loader.dataset.samples) == len(loader.dataset)
    # Where two may be meant, neither is taken.
    (tmp_path / "test").symlink_to(images)
    with pytest.raises(tsock.NoProducer, match="val, but valid and test"):
        tsock.DataLoader("two", 8, root=tmp_path, split="val", no_cache=True)


def test_an_address_is_no_folder_of_this_machine():
    """The sentence names the page that says how to mount it."""
    for root, how in (
        ("s3://bucket/data", "mount-s3"),
        ("gs://bucket/data", "gcsfuse"),
        ("hf://datasets/cifar10", "hf download"),
        ("https://host/x.tar", "rclone mount"),
        ("pipe:cat x", ""),
    ):
        said = "%r: files of this machine alone are read.*%s.*(%s)" % (
            root,
            how,
            re.escape("docs/operate/object-stores.md"),
        )
        for key in "root", "dataset", "select", "masks":
            given = {"root": "/", key: root}
            with pytest.raises(ValueError, match=key + " " + said):
                tsock.DataLoader("far", 8, **given)
    with pytest.raises(ValueError, match="data set 's3://b/x': files of this"):
        tsock.DataLoader("s3://b/x", 8)
    with pytest.raises(ValueError, match="tsock.index: 's3://b/x.csv': files"):
        tsock.index("s3://b/x.csv", "t")


def test_a_program_that_does_not_say_what_it_serves_is_refused(start):
    program = os.path.join(BUILD, "examples", "serve")
    with subprocess.Popen([program, "toy", "0"]) as process:
        try:
            until(lambda: tsock.streams())
            with pytest.raises(tsock.OtherStream, match="doesn't say which"):
                tsock.DataLoader(
                    "toy", root="/", fields="index", dtype="uint8"
                )
        finally:
            process.terminate()


def test_so_is_a_loader_of_somebody_elses():
    want = attach.wanted("toy", dict(root="/"))
    with pytest.raises(tsock.OtherStream, match="process 3. that doesn't say"):
        want.compare({"loader": "DataLoader", "batch": "8"}, 3)
