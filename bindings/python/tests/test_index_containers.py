# SPDX-License-Identifier: MIT
"""Tables of compressed MDS shards and of LMDB files, as their own libraries
write them."""

import bz2
import gzip
import io
import json
import os
import shutil
import struct
from collections import namedtuple

import pytest

import pictures
import tsock
from pictures import AS_IT_IS, Image, N, check_images, np, png

pytestmark = pytest.mark.usefixtures("place")


def read(table, *fields):
    return pictures.read(table, "label", *fields)


# ---- MDS ----


def zstd(data):
    library = pytest.importorskip("zstandard")
    return library.ZstdCompressor().compress(data)


PACK = {"zstd": zstd, "gz": gzip.compress, "bz2": bz2.compress}


def shard_of(which):
    at, samples = 4 + 4 * (len(which) + 1), []
    offsets = [at]
    for i in which:
        image = png(i)
        samples.append(
            struct.pack("<I", len(image)) + image + struct.pack("<q", i % 3)
        )
        offsets.append(offsets[-1] + len(samples[-1]))
    head = struct.pack("<%dI" % (len(which) + 2), len(which), *offsets)
    return head + b"".join(samples)


def write_mds(folder, way):
    """By StreamingDataset's description of the format; two shards."""
    folder.mkdir()
    shards = []
    for k, which in enumerate([range(12), range(12, N)]):
        name, data = "shard.%05d.mds" % k, shard_of(which)
        packed = PACK[way](data)
        (folder / (name + "." + way)).write_bytes(packed)
        shards.append(
            {
                "column_names": ["image", "label"],
                "column_encodings": ["png", "int"],
                "column_sizes": [None, 8],
                "compression": way + ":3",
                "format": "mds",
                "raw_data": {"basename": name, "bytes": len(data)},
                "samples": len(which),
                "zip_data": {
                    "basename": name + "." + way,
                    "bytes": len(packed),
                },
            }
        )
    (folder / "index.json").write_text(
        json.dumps({"version": 2, "shards": shards})
    )


@pytest.mark.parametrize("way", PACK)
def test_compressed_shards_are_unpacked_once(tmp_path, way, capfd):
    write_mds(tmp_path / "mds", way)
    tsock.index(tmp_path / "mds", tmp_path / "t", progress=True)
    said = capfd.readouterr().err
    assert "unpacking 2 shards" in said and "t.shards" in said
    images, labels = read(tmp_path / "t")
    check_images(images)
    assert labels == [i % 3 for i in range(N)]
    stamps = [os.stat(p).st_ino for p in (tmp_path / "t.shards").iterdir()]
    tsock.index(tmp_path / "mds", tmp_path / "t", progress=True)
    assert "unpacking" not in capfd.readouterr().err
    assert stamps == [
        os.stat(p).st_ino for p in (tmp_path / "t.shards").iterdir()
    ]


def test_shards_that_its_library_compresses_are_unpacked(tmp_path):
    streaming = pytest.importorskip("streaming")
    pytest.importorskip("zstandard")
    columns = {"image": "bytes", "label": "int"}
    with streaming.MDSWriter(
        out=str(tmp_path / "mds"),
        columns=columns,
        compression="zstd:7",
        size_limit=20000,
    ) as out:
        for i in range(N):
            out.write({"image": png(i), "label": i % 3})
    tsock.index(tmp_path / "mds", tmp_path / "t")
    images, labels = read(tmp_path / "t")
    check_images(images)
    assert labels == [i % 3 for i in range(N)]


@pytest.mark.parametrize(
    "what, said",
    [
        ("damaged", "can't be unpacked: Not a gzipped"),
        ("short", "unpacks to [0-9]+ bytes, and index.json says"),
        ("unknown", "compressed by br, of which"),
        ("missing", "isn't there, nor is it compressed"),
        ("no room", "needs [0-9]+ bytes for unpacked shards"),
    ],
)
def test_what_can_not_be_unpacked_is_said(tmp_path, monkeypatch, what, said):
    write_mds(tmp_path / "mds", "gz")
    first = tmp_path / "mds" / "shard.00000.mds.gz"
    index = tmp_path / "mds" / "index.json"
    if what == "damaged":
        first.write_bytes(b"x" * 100)
    elif what == "short":
        first.write_bytes(gzip.compress(b"some"))
    elif what == "unknown":
        index.write_text(index.read_text().replace("gz:3", "br:3"))
    elif what == "missing":
        first.unlink()
    else:
        usage = namedtuple("usage", "free")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1000))
    with pytest.raises((ValueError, OSError), match=said):
        tsock.index(tmp_path / "mds", tmp_path / "t")
    assert not list(tmp_path.glob("t.shards/*"))


# ---- LMDB ----


def lmdb_of(folder, values):
    """By its library; the file."""
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(folder), map_size=1 << 26) as env:
        with env.begin(write=True) as txn:
            for key, value in values.items():
                txn.put(key, value)
    return folder / "data.mdb"


def small_png(i):
    """One that LMDB keeps within a page, beside others."""
    to = io.BytesIO()
    flat = np.full((30, 40, 3), i, np.uint8)
    Image.fromarray(flat).save(to, "PNG")
    return to.getvalue()


@pytest.mark.parametrize("by", ["folder", "file"])
def test_values_of_lmdb_are_served_where_they_lie(tmp_path, by):
    values = {b"%08d" % i: png(i) for i in reversed(range(N))}
    path = lmdb_of(tmp_path / "set", {**values, b"__len__": b"20"})
    source = tmp_path / "set" if by == "folder" else path
    assert tsock.index(source, tmp_path / "t") == N
    images, labels = read(tmp_path / "t")
    check_images(images)
    assert set(labels) == {-1}
    assert not (tmp_path / "t.data").exists()
    # The keys are the samples' names.
    (tmp_path / "few").write_text("00000007\n00000003\n")
    loader = tsock.DataLoader(
        "few",
        root=str(tmp_path / "t"),
        select=str(tmp_path / "few"),
        **AS_IT_IS
    )
    check_images(np.concatenate([images for images, _ in loader]), [7, 3])
    loader.close()


def test_small_values_of_lmdb_lie_in_the_file_too(tmp_path):
    lmdb_of(tmp_path / "set", {b"%d" % i: small_png(i) for i in range(9)})
    tsock.index(tmp_path / "set", tmp_path / "t")
    images = read(tmp_path / "t")[0]
    assert [int(image[0, 0, 0]) for image in images] == list(range(9))
    assert len(small_png(0)) < 1000
    assert not (tmp_path / "t.data").exists()


def test_a_value_that_is_not_found_in_the_file_is_copied(
    tmp_path, monkeypatch
):
    from tsock.indexing import lmdb

    path = lmdb_of(tmp_path / "set", {b"%02d" % i: png(i) for i in range(N)})
    real = lmdb._Places.find
    found = []

    def sometimes(places, value):
        found.append(real(places, value))
        return found[-1] if len(found) % 2 else None

    monkeypatch.setattr(lmdb._Places, "find", sometimes)
    tsock.index(path, tmp_path / "t")
    assert None not in found
    check_images(read(tmp_path / "t")[0])
    assert (tmp_path / "t.data").exists()


def datum(image, label, encoded=1):
    """Caffe's, with an image of more than 127 bytes."""
    length, size = b"", len(image)
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return (
        b"\x08\x03\x22"
        + length
        + bytes([size])
        + image
        + bytes([0x28, label, 0x38, encoded])
    )


def test_caffes_datum_has_an_image_and_a_label(tmp_path):
    lmdb_of(
        tmp_path / "set",
        {b"%02d" % i: datum(png(i), i % 3) for i in range(N)},
    )
    tsock.index(tmp_path / "set", tmp_path / "t")
    images, labels = read(tmp_path / "t")
    check_images(images)
    assert labels == [i % 3 for i in range(N)]
    assert not (tmp_path / "t.data").exists()


@pytest.mark.parametrize(
    "value", [b"\x80\x04\x95pickled", datum(b"\0" * 200, 1, 0), b""]
)
def test_values_that_are_no_images_are_said(tmp_path, value):
    lmdb_of(tmp_path / "set", {b"a": value})
    with pytest.raises(ValueError, match="value of b'a' is no image file"):
        tsock.index(tmp_path / "set", tmp_path / "t")
    assert {p.name for p in tmp_path.iterdir()} == {"set"}
