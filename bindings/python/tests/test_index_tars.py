# SPDX-License-Identifier: MIT
"""Tables of WebDataset's tar files, by Energon's and webshart's indexes."""

import io
import json
import logging
import os
import sqlite3
import tarfile

import pytest

import tsock
from pictures import AS_IT_IS, N, pixels, png

pytestmark = pytest.mark.usefixtures("place")

HALF = 12


def write_tars(folder, long=""):
    """Two tar files; the members of each: name, offset and size."""
    folder.mkdir()
    members = {}
    for k, which in enumerate([range(HALF), range(HALF, N)]):
        name = "shard-%d.tar" % k
        with tarfile.open(folder / name, "w") as tar:
            for i in which:
                key = "%s%05d" % (long, i)
                for ending, data in (
                    ("png", png(i)),
                    ("cls", b"%d" % (i % 3)),
                    ("txt", b"dog %d" % i),
                ):
                    info = tarfile.TarInfo("%s.%s" % (key, ending))
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        with tarfile.open(folder / name) as tar:
            members[name] = [(m.name, m.offset_data, m.size) for m in tar]
    return members


def webshart(folder, members, filesize=True):
    for name, some in members.items():
        about = {
            "files": {n: {"offset": at, "length": m} for n, at, m in some}
        }
        if filesize:
            about["filesize"] = os.path.getsize(folder / name)
        (folder / name).with_suffix(".json").write_text(json.dumps(about))


def energon(folder, members):
    """By the description of its tables."""
    (folder / ".nv-meta").mkdir()
    info = "energon_version: 7\nshard_counts:\n" + "".join(
        "  %s: %d\n" % (name, len(some) // 3) for name, some in members.items()
    )
    (folder / ".nv-meta" / ".info.yaml").write_text(info)
    db = sqlite3.connect(folder / ".nv-meta" / "index.sqlite")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(
        "CREATE TABLE samples (tar_file_id INTEGER, sample_key TEXT, "
        "sample_index INTEGER, byte_offset INTEGER, byte_size INTEGER)"
    )
    db.execute(
        "CREATE TABLE sample_parts (tar_file_id INTEGER, sample_index "
        "INTEGER, part_name TEXT, content_byte_offset INTEGER, "
        "content_byte_size INTEGER)"
    )
    for k, some in enumerate(members.values()):
        for j, (name, at, size) in enumerate(some):
            key, _, part = name.partition(".")
            if j % 3 == 0:
                db.execute(
                    "INSERT INTO samples VALUES (?, ?, ?, 0, 0)",
                    (k, key, j // 3),
                )
            db.execute(
                "INSERT INTO sample_parts VALUES (?, ?, ?, ?, ?)",
                (k, j // 3, part, at, size),
            )
    db.commit()
    db.close()


@pytest.fixture
def scans(monkeypatch):
    """The tar files that are scanned."""
    from tsock.indexing import tars

    real, seen = tars._scan, []

    def scan(path):
        seen.append(os.path.basename(path))
        return real(path)

    monkeypatch.setattr(tars, "_scan", scan)
    return seen


def check(table, long=""):
    loader = tsock.DataLoader(
        root=str(table), fields=("image", "label", "txt"), **AS_IT_IS
    )
    batches = list(loader)
    loader.close()
    images, labels, texts = (
        sum((list(batch[k]) for batch in batches), []) for k in range(3)
    )
    assert len(images) == N
    for i, image in enumerate(images):
        assert (image == pixels(i)).all(), i
    assert labels == [i % 3 for i in range(N)]
    assert texts == ["dog %d" % i for i in range(N)]


@pytest.mark.parametrize("write", [webshart, energon])
@pytest.mark.parametrize("long", ["", "a" * 60 + "/" + "b" * 60])
def test_an_index_is_used_in_place_of_a_scan(tmp_path, scans, write, long):
    write(tmp_path / "d", write_tars(tmp_path / "d", long))
    assert tsock.index(tmp_path / "d", tmp_path / "t", fields=["txt"]) == N
    assert scans == []
    check(tmp_path / "t")


def test_tar_files_without_an_index_are_scanned(tmp_path, scans):
    write_tars(tmp_path / "d")
    with pytest.raises(ValueError, match="tar files need no table"):
        tsock.index(tmp_path / "d", tmp_path / "t")
    tsock.index(
        tmp_path / "d", tmp_path / "t", kind="webdataset", fields=["txt"]
    )
    assert scans == ["shard-0.tar", "shard-1.tar"]
    check(tmp_path / "t")


@pytest.mark.parametrize(
    "write, what, said",
    [
        (webshart, "size", "it is of a file of"),
        (webshart, "offsets", "isn't where it says"),
        (webshart, "damaged", "doesn't fit"),
        (energon, "older", "it is older than the file"),
        (energon, "offsets", "isn't where it says"),
        (energon, "unknown", "it doesn't know the file"),
        (energon, "damaged", "doesn't fit"),
    ],
)
def test_an_index_that_does_not_fit_is_said_and_not_used(
    tmp_path, scans, caplog, write, what, said
):
    folder = tmp_path / "d"
    members = write_tars(folder)
    if what == "offsets":
        for some in members.values():
            some[0] = (some[0][0], some[0][1] + 512, some[0][2])
    write(folder, members)
    index = folder / "shard-0.json"
    if write is energon:
        index = folder / ".nv-meta" / "index.sqlite"
    if what == "size":
        text = index.read_text().replace('"filesize": ', '"filesize": 9')
        index.write_text(text)
    elif what == "older":
        os.utime(index, ns=(1, 1))
    elif what == "unknown":
        info = folder / ".nv-meta" / ".info.yaml"
        info.write_text(info.read_text().replace("shard-0", "shard-7"))
    elif what == "damaged":
        index.write_bytes(b"\0" * 5000)
    with caplog.at_level(logging.WARNING, "tsock"):
        tsock.index(folder, tmp_path / "t", fields=["txt"])
    assert "shard-0.tar" in scans
    text = caplog.text
    assert said in text and "the file is scanned instead" in text
    check(tmp_path / "t")


def test_a_part_that_a_sample_lacks_is_said(tmp_path):
    write_tars(tmp_path / "d")
    with pytest.raises(ValueError, match="00000 has no .json"):
        tsock.index(
            tmp_path / "d", tmp_path / "t", kind="webdataset", fields=["json"]
        )


# ---- arrays beside the images ----

np = pytest.importorskip("numpy")

DTYPES = "uint8 int32 int64 float16 float32 float64".split()


def save(value):
    to = io.BytesIO()
    np.save(to, value)
    return to.getvalue()


def embedding(i, dtype="float32"):
    return (np.arange(6).reshape(2, 3) + i).astype(dtype)


def write_arrays(folder, array=embedding, images=True):
    """Two tar files of samples KEY.png, KEY.cls, KEY.emb.npy and KEY.npy."""
    folder.mkdir()
    for k, which in enumerate([range(HALF), range(HALF, N)]):
        with tarfile.open(folder / ("shard-%d.tar" % k), "w") as tar:
            for i in which:
                parts = {
                    "png": png(i) if images else None,
                    "emb.npy": save(array(i)),
                    "npy": save(np.float64(i / 4)),
                    "cls": b"%d" % (i % 3),
                }
                for ending, data in parts.items():
                    if data is None:
                        continue
                    info = tarfile.TarInfo("%05d.%s" % (i, ending))
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    return folder


def read(fields=("emb", "npy", "label"), **options):
    loader = tsock.DataLoader(
        **{**AS_IT_IS, "fields": fields, "framework": "numpy", **options}
    )
    batches = list(loader)
    loader.close()
    return [
        np.concatenate([b[k] for b in batches]) for k in range(len(fields))
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", ["labels", "index"])
def test_arrays_are_fields(tmp_path, way, dtype):
    write_arrays(tmp_path / "d", lambda i: embedding(i, dtype))
    if way == "index":
        tsock.index(
            tmp_path / "d",
            tmp_path / "t",
            kind="webdataset",
            fields=["emb.npy", ".npy"],
        )
        got = read(root=str(tmp_path / "t"))
    else:
        folder = str(tmp_path / "d")
        got = read(
            root=folder, labels=folder + ":label=.cls,fields=.emb.npy+.npy"
        )
    emb, more, label = got
    assert emb.dtype == dtype and emb.shape == (N, 2, 3)
    assert (emb == [embedding(i, dtype) for i in range(N)]).all()
    assert more.dtype == np.float64 and more.shape == (N,)
    assert (more == np.arange(N) / 4).all()
    assert (label == np.arange(N) % 3).all()


def test_samples_of_arrays_need_no_image(tmp_path):
    write_arrays(tmp_path / "d", images=False)
    tsock.index(
        tmp_path / "d",
        tmp_path / "t",
        kind="webdataset",
        image=False,
        fields=["emb.npy"],
    )
    loader = tsock.DataLoader(
        root=str(tmp_path / "t"),
        order="sequential",
        framework="numpy",
        batch_size=N,
        fields=("emb", "label"),
        exit_when_idle=5,
    )
    emb, label = next(iter(loader))
    assert (emb == [embedding(i) for i in range(N)]).all()
    assert (label == np.arange(N) % 3).all()
    loader.close()


def test_arrays_of_several_lengths_are_a_ragged_field(tmp_path):
    write_arrays(tmp_path / "d", lambda i: np.full((i % 3, 2), i, "int32"))
    tsock.index(
        tmp_path / "d", tmp_path / "t", kind="webdataset", fields=["emb.npy"]
    )
    emb, n = read(
        ("emb", "emb_length"), root=str(tmp_path / "t"), batch_size=N
    )
    assert emb.shape == (N, 2, 2) and (n == np.arange(N) % 3).all()
    for i in range(N):
        assert (emb[i, : i % 3] == i).all() and not emb[i, i % 3 :].any()


BAD = [
    (b"\0" + save(embedding(5))[1:], "is not an array that NumPy's save"),
    (save(embedding(5))[:-1], "is truncated"),
    (save(embedding(5))[:30], "is truncated"),
    (save(np.asfortranarray(embedding(5))), "Fortran's order"),
    (save(np.array([["x"] * 3] * 2, object)), r"dtype \|O"),
    (save(embedding(5).astype(">f4")), "dtype >f4"),
    (save(embedding(5).astype("float64")), "float64"),
    (save(embedding(5)[:, :2]), "2, 2"),
    (save(embedding(5)).replace(b"descr", b"des(r"), "descr|dtype None"),
    (
        save(embedding(5)).replace(b"'shape': (", b"'shape': {"),
        "damaged|shape",
    ),
]


@pytest.mark.parametrize("data, said", BAD)
@pytest.mark.parametrize("way", ["labels", "index"])
def test_what_is_no_array_names_tar_file_and_member(
    tmp_path, monkeypatch, way, data, said
):
    real = save
    monkeypatch.setitem(
        globals(),
        "save",
        lambda v: data if np.shape(v) and v[0, 0] == 5 else real(v),
    )
    folder = str(write_arrays(tmp_path / "d"))
    with pytest.raises((ValueError, tsock.Error), match=said) as caught:
        if way == "index":
            tsock.index(
                folder, tmp_path / "t", kind="webdataset", fields=["emb.npy"]
            )
        else:
            read(root=folder, labels=folder + ":fields=.emb.npy")
    assert "shard-0.tar: 00005" in str(caught.value)
    assert not (tmp_path / "t").exists()


def test_tar_files_of_several_dtypes_are_refused(tmp_path):
    write_arrays(
        tmp_path / "d",
        lambda i: embedding(i, "float32" if i < HALF else "float16"),
    )
    with pytest.raises(ValueError, match="shard-1.tar.* is float16, those"):
        tsock.index(
            tmp_path / "d",
            tmp_path / "t",
            kind="webdataset",
            fields=["emb.npy"],
        )
