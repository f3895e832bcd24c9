# SPDX-License-Identifier: MIT
"""A pack of each kind of data set: the samples are those of the source, in all
fields."""

import io
import os
import pickle
import resource
import signal
import struct
import subprocess
import tarfile
import wave

import numpy as np
import pytest

import tsock
from conftest import PRODUCER

Image = pytest.importorskip("PIL.Image")
PACK = os.path.join(os.path.dirname(PRODUCER), "tsock-pack")
COUNT = 11
numbers = iter(range(1000))

pytestmark = pytest.mark.usefixtures("place")


def encoded(i, kind="JPEG", size=(40, 30)):
    pixels = np.random.RandomState(i).randint(0, 255, size + (3,), "uint8")
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


# ---- data sets: each makes one in a folder, and says what it is ----


def imagefolder(at):
    for i in range(COUNT):
        kind = ("JPEG", "PNG")[i % 2]
        put(at / "d" / "ab"[i % 2] / ("%d.%s" % (i, kind)), encoded(i, kind))
    return at / "d", {}, {"image": "files"}


def imagenet(at):
    imagefolder(at)
    os.makedirs(at / "r")
    os.rename(at / "d", at / "r" / "train")
    put(at / "r" / "val" / "a" / "0.jpeg", encoded(0))
    put(at / "r" / "val" / "b" / "0.jpeg", encoded(1))
    return at / "r", {"split": "val", "dataset": "imagenet"}, {"image": "files"}


def images(at):
    for i in range(COUNT):
        put(at / "d" / ("%d.jpg" % i), encoded(i))
    rows = "".join("%d.jpg,%d,%.1f\n" % (i, i % 3, i / 2) for i in range(COUNT))
    put(at / "l.csv", b"path,label,score\n" + rows.encode())
    labels = "%s:fields=score" % (at / "l.csv")
    return (
        at / "d",
        {"labels": labels},
        {"fields": ("score",), "image": "files"},
    )


def masks(at):
    for i in range(COUNT):
        put(at / "d" / ("%d.jpg" % i), encoded(i))
        out = io.BytesIO()
        Image.fromarray(np.full((40, 30), i, "u1")).save(out, "PNG")
        put(at / "m" / ("%d.png" % i), out.getvalue())
    return (
        at / "d",
        {"masks": at / "m"},
        {"fields": ("mask",), "image": "files"},
    )


def webdataset(at):
    os.makedirs(at / "d")
    with tarfile.open(at / "d" / "0.tar", "w") as tar:
        for i in range(COUNT):
            for name, data in (("jpg", encoded(i)), ("cls", b"%d" % (i % 3))):
                info = tarfile.TarInfo("s%d.%s" % (i, name))
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return at / "d", {}, {"image": "files"}


def rows_of_a_table():
    for i in range(COUNT):
        yield {
            "label": "class %d" % (i % 4),
            "caption": "text %d" % i * (i % 3),
            "tokens": list(range(i)),
            "pose": np.float64([i, 1, 2]),
        }


OF_A_TABLE = ("label", "caption", "tokens", "tokens_length", "pose")


def table(at):
    rows = list(zip(range(COUNT), rows_of_a_table()))
    tsock.index(((encoded(i), row) for i, row in rows), at / "t")
    return at / "t", {}, {"fields": OF_A_TABLE, "image": "files"}


def table_without_images(at):
    tsock.index(
        (dict(row, key="k%d" % i) for i, row in enumerate(rows_of_a_table())),
        at / "t",
    )
    return at / "t", {}, {"fields": OF_A_TABLE + ("key",), "keys": True}


def boxes(at):
    tsock.index(
        (
            (
                encoded(i),
                {"boxes": np.float32([[1, 2, 9, 8]] * (i % 4)).reshape(-1, 4)},
            )
            for i in range(COUNT)
        ),
        at / "t",
    )
    return (
        at / "t",
        {},
        {
            "fields": ("boxes", "boxes_length"),
            "boxes": "boxes",
            "image": "files",
        },
    )


def several_images(at):
    tsock.index(
        (
            {"left": encoded(i), "right": encoded(i + 50, "PNG"), "label": i}
            for i in range(COUNT)
        ),
        at / "t",
        images=["left", "right"],
    )
    return at / "t", {}, {"fields": ("right",), "image": "files"}


def cifar100(at):
    data = {
        "data": np.random.default_rng(3).integers(0, 255, (COUNT, 3072), "u1"),
        "fine_labels": list(range(COUNT)),
        "coarse_labels": [i // 5 for i in range(COUNT)],
    }
    meta = {"fine_label_names": ["f%d" % k for k in range(100)]}
    for name, value in (("train", data), ("test", data), ("meta", meta)):
        put(at / "d" / name, pickle.dumps(value, 3))
    how = {"dataset": "cifar100", "split": "val"}
    return at / "d", how, {"fields": ("coarse_label",), "image": "pixels"}


def mnist(at):
    pixels = np.random.default_rng(3).integers(0, 255, (COUNT, 28, 28), "u1")
    for part in ("train", "t10k"):
        put(
            at / "d" / (part + "-images-idx3-ubyte"),
            struct.pack(">4I", 2051, COUNT, 28, 28) + pixels.tobytes(),
        )
        put(
            at / "d" / (part + "-labels-idx1-ubyte"),
            struct.pack(">2I", 2049, COUNT)
            + bytes(i % 10 for i in range(COUNT)),
        )
    return at / "d", {}, {"image": "pixels"}


def npy(at):
    rng = np.random.default_rng(3)
    os.makedirs(at / "d")
    np.save(
        at / "d" / "emb.npy", rng.standard_normal((COUNT, 3, 2)).astype("f4")
    )
    np.save(at / "d" / "files.npy", np.arange(COUNT, dtype="u2"))
    np.save(at / "d" / "labels.npy", np.arange(COUNT))
    return at / "d", {}, {"fields": ("emb", "files", "label")}


def npy_of_images(at):
    rng = np.random.default_rng(3)
    os.makedirs(at / "d")
    np.save(
        at / "d" / "images.npy", rng.integers(0, 255, (COUNT, 3, 20, 24), "u1")
    )
    np.save(at / "d" / "pose.npy", rng.standard_normal((COUNT, 2)))
    return at / "d", {}, {"fields": ("pose",), "image": "pixels"}


def records(at):
    put(at / "d.bin", np.arange(COUNT * 5, dtype="<i4").tobytes())
    schema = "label:int32,dense:int32[3],_:int32"
    return (
        at / "d.bin",
        {"dataset": "records", "schema": schema},
        {"fields": ("label", "dense")},
    )


def tokens(at, documents=None):
    made = np.random.default_rng(3).integers(4, 99, 8 * COUNT + 1).astype("u2")
    made[::5] = 3
    put(at / "d.bin", made.tobytes())
    how = {"dataset": "tokens", "schema": "uint16[8]"}
    if documents:
        how.update(documents=documents, end_token=3)
    fields = ("tokens",)
    if documents == "whole":
        fields += ("tokens_length",)
    elif documents:
        fields += ("document",)
    return at / "d.bin", how, {"fields": fields}


def tokens_marked(at):
    return tokens(at, "mark")


def tokens_whole(at):
    return tokens(at, "whole")


def tokens_packed(at):
    return tokens(at, "pack")


def audio(at):
    for i in range(COUNT):
        path = put(at / "d" / "ab"[i % 2] / ("%d.wav" % i), b"")
        with wave.open(str(path), "wb") as f:
            f.setparams((1, 2, 8000, 0, "NONE", ""))
            noise = np.random.RandomState(i).randint(-9999, 9999, 9000)
            f.writeframes(noise.astype("<i2").tobytes())
    return at / "d", {"dataset": "audio"}, {}


KINDS = [
    imagefolder,
    imagenet,
    images,
    masks,
    webdataset,
    table,
    table_without_images,
    boxes,
    several_images,
    cifar100,
    mnist,
    npy,
    npy_of_images,
    records,
    tokens,
    tokens_marked,
    tokens_whole,
    tokens_packed,
    audio,
]


# ---- what is read ----


def plain(value):
    return value.tolist() if hasattr(value, "tolist") else list(value)


def read(root, fields, **options):
    """An epoch, shuffled, and the classes' names."""
    loader = tsock.DataLoader(
        "s%d" % next(numbers),
        batch_size=4,
        root=str(root),
        fields=tuple(dict.fromkeys(("index",) + fields)),
        **dict(AS_STORED, **options)
    )
    with loader:
        batches = [
            {name: plain(value) for name, value in batch.items()}
            for batch in loader
        ]
        return batches, loader.dataset.classes


AS_STORED = dict(
    dtype="uint8",
    layout="hwc",
    framework="numpy",
    as_dict=True,
    no_cache=True,
    threads=1,
    seed=3,
    order="philox",
    epochs=1,
    exit_when_idle=0,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_pack_has_the_samples_of_its_source(kind, tmp_path):
    source, how, reading = kind(tmp_path)
    fields = reading.get("fields", ())
    both = {
        name: reading[name] for name in ("keys", "boxes") if name in reading
    }
    if kind is audio:
        fields += ("audio", "label")
        both["schema"] = "float32[1,500]"
    elif "image" in reading:
        fields += ("image", "label")
        if reading["image"] == "files":
            both["transform"] = "CenterCrop(24)"
    count = tsock.pack(source, tmp_path / "pack", **how)
    want, classes = read(source, fields, **dict(how, **both))
    if "masks" in how:
        both["masks"] = tmp_path / "pack"
    if reading.get("image") == "pixels" and "split" in how:
        both["split"] = how["split"]
    got, others = read(tmp_path / "pack", fields, **both)
    assert got == want
    assert others == classes
    assert count == sum(len(batch["index"]) for batch in want)


# ---- what can go wrong ----


def run_pack(*arguments, **options):
    return subprocess.run(
        [PACK, "--no-cache"] + [str(a) for a in arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options
    )


def small_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))


@pytest.mark.parametrize(
    "kind, file", [(images, "a shard"), (npy, "pack.table"), (audio, "a shard")]
)
def test_a_disk_that_is_full_is_named_and_the_pack_is_gone_on_with(
    kind, file, tmp_path
):
    source, how, _ = kind(tmp_path)
    options = [
        "--%s=%s" % (n, how[n]) for n in ("dataset", "labels") if n in how
    ]
    pack = tmp_path / "pack"
    done = run_pack(*options, source, pack, preexec_fn=small_files)
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said == "tsock-pack: write %s in %s.part: File too large" % (
        file,
        pack,
    )
    done = run_pack(*options, source, pack)
    assert done.returncode == 0 and os.path.isdir(pack)
    done = run_pack(*options, source, pack)
    assert done.returncode == 1
    assert "is a pack already: remove it, or choose another" in done.stderr


def test_a_sample_one_of_whose_images_is_bad_is_bad_in_the_pack_too(tmp_path):
    tsock.index(
        (
            {"left": encoded(i), "right": b"no" if i == 4 else encoded(i + 50)}
            for i in range(COUNT)
        ),
        tmp_path / "t",
        images=["left", "right"],
    )
    with pytest.warns(tsock.BadFilesWarning, match="1 of 11 samples"):
        tsock.pack(tmp_path / "t", tmp_path / "pack")
    reading = {"transform": "CenterCrop(24)", "allow_bad": 1.0}
    fields = ("image", "right")
    want, _ = read(tmp_path / "t", fields, **reading)
    got, _ = read(tmp_path / "pack", fields, **reading)
    assert got == want
    served = [i for batch in got for i in batch["index"]]
    assert 4 not in served and len(served) == COUNT


def test_options_that_mean_nothing_are_refused(tmp_path):
    source, _, _ = npy(tmp_path)
    for options, words in (
        (["--schema=uint8[2]"], "--schema means nothing to --dataset npy"),
        (["--documents=mark"], "--documents means nothing to --dataset npy"),
        (["--masks=" + str(tmp_path)], "--masks"),
        (["--end-token=1", "--begin-token=2"], "one of --end-token and"),
    ):
        done = run_pack("--dataset=npy", *options, source, tmp_path / "pack")
        assert done.returncode and words in done.stderr, done.stderr
        assert not os.path.exists(tmp_path / "pack")
