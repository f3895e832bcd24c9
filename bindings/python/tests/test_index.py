# SPDX-License-Identifier: MIT
"""tsock.index(): tables of data sets in other formats, and what they serve.

Each sample has to be the image that the format's own library gives.
"""

import json
import os
import struct
import subprocess
import sys
import zlib

import pytest

import tsock
from conftest import PRODUCER
from pictures import AS_IT_IS, N, check_images, np, png, read

pytestmark = pytest.mark.usefixtures("place")

BREEDS = ["beagle", "akita", "corgi"]


@pytest.fixture
def images(tmp_path):
    """N PNG files below tmp_path/images, called by their numbers."""
    (tmp_path / "images").mkdir()
    for i in range(N):
        (tmp_path / "images" / ("%d.png" % i)).write_bytes(png(i))
    return tmp_path


def breeds(labels):
    return [read.classes[label] for label in labels]


def write_csv(folder, rows, header="path,breed,kilos,note"):
    lines = [header] + [",".join(map(str, row)) for row in rows]
    (folder / "dogs.csv").write_text("\n".join(lines) + "\n")
    return folder / "dogs.csv"


def test_a_csv_names_files_classes_numbers_and_text(images):
    rows = [
        ("images/%d.png" % i, BREEDS[i % 3], i / 4, '"a, %d é"' % i)
        for i in range(N)
    ]
    source = write_csv(images, rows)
    n = tsock.index(
        source, images / "dogs.table", label="breed", fields=("kilos", "note")
    )
    assert n == N
    got, label, kilos, note = read(
        images / "dogs.table", "label", "kilos", "note"
    )
    check_images(got)
    assert read.classes == sorted(BREEDS)
    assert breeds(label) == [BREEDS[i % 3] for i in range(N)]
    assert kilos == [i / 4 for i in range(N)]
    assert note == ["a, %d é" % i for i in range(N)]


def test_the_program_writes_tables_too(images):
    source = write_csv(images, [("images/3.png", "corgi", 1, "x")])
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tsock.index",
            source,
            images / "t",
            "--label",
            "breed",
        ],
        cwd=os.path.dirname(os.path.dirname(tsock.__file__)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert not done.returncode and done.stdout.endswith("t: 1 samples\n")
    got, label = read(images / "t", "label")
    check_images(got, [3])
    assert breeds(label) == ["corgi"]


def test_a_table_of_jsonl_has_lists_as_fields(images):
    with open(images / "a.jsonl", "w") as f:
        for i in range(N):
            row = {"file_name": "images/%d.png" % i, "tags": [i % 2, 1, 0]}
            f.write(json.dumps(row) + "\n\n")
    tsock.index(images / "a.jsonl", images / "t", label="tags")
    got, label = read(images / "t", "label")
    check_images(got)
    assert [list(v) for v in label] == [[i % 2, 1, 0] for i in range(N)]


def test_samples_may_be_paths_and_bytes_without_any_label(images):
    some = [(str(images / "images" / ("%d.png" % i)), None) for i in range(9)]
    some += [(png(i), None) for i in range(9, N)]
    tsock.index(iter(some), images / "t")
    got, label = read(images / "t", "label")
    check_images(got)
    assert set(label) == {-1}


def test_samples_may_be_parts_of_files(images):
    whole = b"".join(png(i) for i in range(N))
    (images / "all").write_bytes(whole)
    samples, at = [], 0
    for i in range(N):
        samples.append(((images / "all", at, len(png(i))), i))
        at += len(png(i))
    tsock.index(samples, images / "t")
    got, label = read(images / "t", "label")
    check_images(got)
    assert label == list(range(N))
    with pytest.raises(ValueError, match="row 0: an image of 0 bytes"):
        tsock.index([((images / "all", 5, 0), 1)], images / "t")


def test_numbers_that_are_no_classes_stay_as_they_are(images):
    some = [
        (png(i), {"label": -7 * i, "pose": np.eye(2) * i}) for i in range(5)
    ]
    tsock.index(some, images / "t")
    got, label, pose = read(images / "t", "label", "pose")
    assert label == [-7 * i for i in range(5)]
    assert all((pose[i] == np.eye(2) * i).all() for i in range(5))


def test_cocos_categories_are_several_labels(images):
    coco = {
        "images": [
            {"id": 100 + i, "file_name": "%d.png" % i} for i in range(N)
        ],
        "categories": [{"id": 7, "name": "b"}, {"id": 3, "name": "a"}],
        "annotations": [
            {"image_id": 100 + i, "category_id": c}
            for i in range(N)
            for c in ([3, 7], [7], [])[i % 3]
        ],
    }
    (images / "instances.json").write_text(json.dumps(coco))
    tsock.index(
        images / "instances.json", images / "t", root=images / "images"
    )
    got, label, number = read(images / "t", "label", "image_id")
    check_images(got)
    assert [list(v) for v in label] == [
        [[1, 1], [0, 1], [0, 0]][i % 3] for i in range(N)
    ]
    assert number == [100 + i for i in range(N)]


@pytest.fixture(scope="module")
def datasets():
    """Hugging Face's library, whose progress bars leave a thread."""
    library = pytest.importorskip("datasets")
    pytest.importorskip("tqdm").tqdm.monitor_interval = 0
    library.disable_progress_bars()
    return library


@pytest.fixture
def hugging(datasets, tmp_path):
    """A data set of Hugging Face's library."""
    features = datasets.Features(
        image=datasets.Image(),
        label=datasets.ClassLabel(names=BREEDS),
        caption=datasets.Value("string"),
    )
    rows = {
        "image": [{"bytes": png(i), "path": None} for i in range(N)],
        "label": [i % 3 for i in range(N)],
        "caption": ["dog %d" % i for i in range(N)],
    }
    return datasets.Dataset.from_dict(rows, features=features)


def check_hugging(table):
    got, label, caption = read(table, "label", "caption")
    check_images(got)
    assert read.classes == BREEDS
    assert list(label) == [i % 3 for i in range(N)]
    assert caption == ["dog %d" % i for i in range(N)]


def test_arrow_files_are_served_where_they_lie(hugging, tmp_path):
    hugging.save_to_disk(tmp_path / "set", num_shards=3)
    tsock.index(tmp_path / "set", tmp_path / "t", fields=["caption"])
    check_hugging(tmp_path / "t")
    assert not (tmp_path / "t.data").exists()


@pytest.mark.parametrize("compression", ["NONE", "SNAPPY"])
def test_parquet_is_served_where_it_is_not_compressed(
    hugging, tmp_path, compression
):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    pyarrow.write_table(
        hugging.data.table,
        tmp_path / "train.parquet",
        row_group_size=6,
        compression=compression,
        use_dictionary=False,
    )
    tsock.index(tmp_path / "train.parquet", tmp_path / "t", fields=["caption"])
    check_hugging(tmp_path / "t")
    assert (tmp_path / "t.data").exists() == (compression == "SNAPPY")


def test_images_of_hugging_face_may_lie_in_files(images, datasets):
    rows = {"image": ["%s/images/%d.png" % (images, i) for i in range(N)]}
    features = datasets.Features(image=datasets.Image())
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(
        images / "set"
    )
    tsock.index(images / "set", images / "t")
    check_images(read(images / "t")[0])


def write_mds(folder):
    """By StreamingDataset's description of the format."""
    folder.mkdir()
    at, samples = 4 + 4 * (N + 1), []
    offsets = [at]
    for i in range(N):
        name = b"dog %d" % i
        sizes = struct.pack("<II", len(png(i)), len(name))
        samples.append(sizes + png(i) + struct.pack("<q", i % 3) + name)
        offsets.append(offsets[-1] + len(samples[-1]))
    data = struct.pack("<%dI" % (N + 2), N, *offsets) + b"".join(samples)
    (folder / "shard.00000.mds").write_bytes(data)
    shard = {
        "column_names": ["image", "label", "name"],
        "column_encodings": ["png", "int", "str"],
        "column_sizes": [None, 8, None],
        "compression": None,
        "format": "mds",
        "raw_data": {"basename": "shard.00000.mds", "bytes": len(data)},
        "samples": N,
        "zip_data": None,
    }
    (folder / "index.json").write_text(
        json.dumps({"version": 2, "shards": [shard]})
    )


def write_mds_by_its_library(folder):
    streaming = pytest.importorskip("streaming")
    columns = {"image": "png", "label": "int", "name": "str"}
    with streaming.MDSWriter(
        out=str(folder), columns=columns, size_limit=20000
    ) as out:
        for i in range(N):
            out.write(
                {
                    "image": Image.fromarray(pixels(i)),
                    "label": i % 3,
                    "name": "dog %d" % i,
                }
            )


@pytest.mark.parametrize("write", [write_mds, write_mds_by_its_library])
def test_mds_shards_are_served_where_they_lie(tmp_path, write):
    write(tmp_path / "mds")
    tsock.index(tmp_path / "mds", tmp_path / "t", fields=["name"])
    got, label, name = read(tmp_path / "t", "label", "name")
    check_images(got)
    assert list(label) == [i % 3 for i in range(N)]
    assert name == ["dog %d" % i for i in range(N)]


def protobuf(number, data):
    length, head = len(data), [number << 3 | 2]
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes(head + [length]) + data


def feature(name, which, data):
    inner = protobuf(1, data) if which != 3 else b"\x08" + data
    return protobuf(
        1, protobuf(1, name.encode()) + protobuf(2, protobuf(which, inner))
    )


def write_tfrecord(path, which):
    """By the descriptions of TFRecord and tf.train.Example; the checksums,
    which nobody here looks at, are zeros."""
    with open(path, "wb") as f:
        for i in which:
            example = protobuf(
                1,
                feature("image/class/label", 3, bytes([i % 3 + 1]))
                + feature("image/class/text", 1, BREEDS[i % 3].encode())
                + feature("image/encoded", 1, png(i)),
            )
            f.write(struct.pack("<QI", len(example), 0) + example + bytes(4))


def test_tfrecords_are_served_where_they_lie(tmp_path):
    (tmp_path / "set").mkdir()
    write_tfrecord(tmp_path / "set" / "train-00000-of-00002", range(12))
    write_tfrecord(tmp_path / "set" / "train-00001-of-00002", range(12, N))
    tsock.index(tmp_path / "set", tmp_path / "t", fields=["image/class/text"])
    got, label, text = read(tmp_path / "t", "label", "image/class/text")
    check_images(got)
    assert list(label) == [i % 3 + 1 for i in range(N)]
    assert text == [BREEDS[i % 3] for i in range(N)]


def test_tfrecords_are_read_as_tfs_own_reader_writes_them(tmp_path):
    writer = pytest.importorskip("tfrecord.writer")
    out = writer.TFRecordWriter(str(tmp_path / "a.tfrecord"))
    for i in range(N):
        out.write({"image/encoded": (png(i), "byte"), "label": (-i, "int")})
    out.close()
    tsock.index(tmp_path / "a.tfrecord", tmp_path / "t")
    got, label = read(tmp_path / "t", "label")
    check_images(got)
    assert list(label) == [-i for i in range(N)]


def test_a_subset_a_selection_and_shuffling_keep_rows_together(images):
    some = [(png(i), {"label": i, "name": "n%d" % i}) for i in range(N)]
    tsock.index(some, images / "t")
    got, label, name = read(
        images / "t", "label", "name", order="philox", batch_size=3
    )
    assert sorted(label) == list(range(N)) and list(label) != list(range(N))
    check_images(got, label)
    assert name == ["n%d" % i for i in label]


def test_a_subset_of_a_table_has_its_rows_alone(images):
    """Of one that was shuffled, and of a selection's numbers."""
    tsock.index([(png(i), i) for i in range(N)], images / "t")
    wanted = [1, 4, 5, 9, 16]
    got, label = read(images / "t", "label", subset=wanted, order="philox")
    check_images(got, label)
    assert sorted(label) == wanted and len(got) == 5
    source = write_csv(
        images, [("images/%d.png" % i, "x", i, "-") for i in range(N)]
    )
    tsock.index(source, images / "named", label="kilos")
    (images / "few").write_text("images/7.png\nimages/2.png\nimages/9.png\n")
    got, label = read(
        images / "named", "label", subset=[0, 2], select=str(images / "few")
    )
    check_images(got, label)
    assert label == [7, 9]


@pytest.mark.parametrize("images", [False, True])
def test_samples_without_names_are_called_by_number(tmp_path, images):
    rows = ({"n": 10 * i} for i in range(N))
    if images:  # which lie in one file
        rows = ((png(row["n"] // 10), row) for row in rows)
    tsock.index(rows, tmp_path / "t")
    (tmp_path / "some").write_text("7\n3\n11\n")
    more = dict(AS_IT_IS) if images else dict(order="sequential")
    for options in (
        dict(keys=True),
        dict(keys=True, select=tmp_path / "some"),
    ):
        with tsock.DataLoader(
            name="some" if "select" in options else "all",
            root=str(tmp_path / "t"),
            **{**more, "batch_size": N, "fields": ("n", "key")},
            **options,
        ) as loader:
            ((n, keys),) = list(loader)
        assert keys == ["%d" % (k // 10) for k in n.tolist()]
        wanted = [70, 30, 110] if "select" in options else range(0, 10 * N, 10)
        assert n.tolist() == list(wanted)


def test_a_selection_is_by_keys(images):
    source = write_csv(
        images, [("images/%d.png" % i, "x", i, "-") for i in range(N)]
    )
    tsock.index(source, images / "t", label="kilos")
    (images / "few").write_text("images/7.png\nimages/2.png\n")
    got, label = read(images / "t", "label", select=str(images / "few"))
    check_images(got, label)
    assert sorted(label) == [2, 7]


# ---- writers of others ----


def by_c(folder, files, labels):
    words = [word for pair in zip(map(str, labels), files) for word in pair]
    program = os.path.join(
        os.path.dirname(PRODUCER), "../examples/write_table"
    )
    subprocess.run([program, folder / "t"] + words, check=True)


def by_the_documents(folder, files, labels):
    """As docs/reference/table.md has it."""
    top = os.path.join(os.path.dirname(tsock.__file__), "../../..")
    with open(os.path.join(top, "docs/reference/table.md")) as f:
        code = f.read().split("```python\n")[1].split("```")[0]
    names = {}
    exec(code, names)
    ranges = [(0, 0, i) for i in range(len(files))]
    names["write"](folder / "t", files, ranges, labels)


@pytest.mark.parametrize("write", [by_c, by_the_documents])
def test_a_table_of_another_writer_is_served(images, write):
    write(images, ["images/%d.png" % i for i in range(5)], [9, 8, 7, 6, -5])
    got, label = read(images / "t", "label")
    check_images(got, range(5))
    assert list(label) == [9, 8, 7, 6, -5]


# ---- what can't be indexed ----


@pytest.mark.parametrize(
    "rows, options, said",
    [
        ([("images/0.png", "x", 1)], {}, "another number of columns"),
        ([("images/0.png", "x", 1, 2)], {"label": "race"}, "no column 'race'"),
        ([("images/0.png", "x", 1, 2)], {"image": "file"}, "no column 'file'"),
        ([], {}, "has no rows"),
        ([("none.png", "x", 1, 2)], {}, "none.png"),
    ],
)
def test_what_is_wrong_in_a_csv_is_said(images, rows, options, said):
    source = write_csv(images, rows)
    with pytest.raises((ValueError, OSError), match=said):
        tsock.index(source, images / "t", **options)
    assert not (images / "t").exists()
    assert not list(images.glob("t.*"))


@pytest.mark.parametrize(
    "samples, said",
    [
        ([], "no sample"),
        ([("a.png",)], "isn't a pair"),
        ([(b"x", 1), (b"x", "a")], "is a text, those before are numbers"),
        ([(b"x", "a"), (b"x", 1)], "is no text"),
        ([(b"x", [[1]]), (b"x", [[1, 2]])], r"has the shape \[1, 2\]"),
        ([(b"x", [[1], [1, 2]])], "several shapes"),
        ([(b"x", {"a": 1}), (b"x", {"b": 1})], "has the fields"),
        ([(b"x", {"index": 1})], "can't be called 'index'"),
        ([(b"x", {"label": object()})], "neither a number"),
        ([(b"x", 1 << 64)], "64 bits"),
        ([(b"", 1)], "no bytes"),
    ],
)
def test_what_is_wrong_in_samples_is_said(tmp_path, samples, said):
    with pytest.raises(ValueError, match=said):
        tsock.index(samples, tmp_path / "t")
    assert not list(tmp_path.iterdir())


def test_what_is_no_data_set_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="isn't there"):
        tsock.index(tmp_path / "none", tmp_path / "t")
    (tmp_path / "a.xyz").write_text("")
    with pytest.raises(ValueError, match="pass kind="):
        tsock.index(tmp_path / "a.xyz", tmp_path / "t")
    with pytest.raises(ValueError, match="none of samples"):
        tsock.index(tmp_path / "a.xyz", tmp_path / "t", kind="xyz")
    write_tfrecord(tmp_path / "a.tfrecord", range(2))
    with open(tmp_path / "a.tfrecord", "r+b") as f:
        f.truncate(os.path.getsize(tmp_path / "a.tfrecord") - 5)
    with pytest.raises(ValueError, match="ends within a record"):
        tsock.index(tmp_path / "a.tfrecord", tmp_path / "t")


# ---- what the producer says of tables ----


def test_a_label_may_stand_behind_as_many_fields_as_there_may_be(tmp_path):
    names = ["f%d" % k for k in range(8)]
    some = [
        (png(i), {**dict.fromkeys(names, i), "label": -i}) for i in range(3)
    ]
    tsock.index(some, tmp_path / "t")
    got, label, last = read(tmp_path / "t", "label", "f7")
    assert list(label) == [0, -1, -2] and list(last) == [0, 1, 2]
    some = [
        (png(i), {**fields, "f8": i}) for i, (_, fields) in enumerate(some)
    ]
    tsock.index(some, tmp_path / "u")
    assert "more than 8 columns" in run(tmp_path / "u")[1]


def test_a_field_called_as_a_view_is_refused(tmp_path):
    tsock.index([(png(i), {"image2": i}) for i in range(3)], tmp_path / "t")
    two = "--transform", "Resize((24, 24))", "--views", "2"
    assert run(tmp_path / "t")[0] == 0
    assert "two fields called image2" in run(tmp_path / "t", *two)[1]


def test_a_failure_leaves_no_open_file(tmp_path):
    import gc
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with pytest.raises(ValueError, match="no bytes"):
            tsock.index([(b"x", 1), (b"", 1)], tmp_path / "t")
        gc.collect()
    assert not list(tmp_path.iterdir())


def run(root, *more):
    done = subprocess.run(
        [PRODUCER, "--root", root, "--dry-run", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def test_a_file_that_has_changed_since_makes_a_table_stale(images):
    source = write_csv(
        images, [("images/%d.png" % i, "x", i, "-") for i in range(N)]
    )
    tsock.index(source, images / "t")
    assert run(images / "t")[0] == 0
    (images / "images" / "4.png").write_bytes(png(4) + b"x")
    code, said = run(images / "t")
    assert code == 66
    assert "images/4.png has changed since the table" in said
    assert "write the table again" in said
    (images / "images" / "4.png").unlink()
    assert "which can't be opened" in run(images / "t")[1]


def damage(table, at, data, whole=True):
    """Other bytes there, and a checksum that fits (whole), or the old one."""
    raw = bytearray(table.read_bytes())
    raw[at : at + len(data)] = data
    if whole:
        raw[36:40] = bytes(4)
        (columns,) = struct.unpack_from("<I", raw, 32)
        crc = zlib.crc32(raw[: 64 + 128 * columns])
        raw[36:40] = struct.pack("<I", crc)
    table.write_bytes(raw)


@pytest.mark.parametrize(
    "at, data, said",
    [
        (0, b"x", "is no table"),
        (8, b"\2", "table of version 2"),
        (24, b"\7", "it has"),
        (32, b"\xff", "are no list"),
        (64 + 88, struct.pack("<Q", 1 << 40), "lies outside of the file"),
        (64 + 88, struct.pack("<Q", 3), "lies outside of the file"),
        (64 + 96, struct.pack("<Q", 1 << 40), "lies outside of the file"),
        (64 + 80, struct.pack("<Q", 1 << 60), "not the bytes of its rows"),
        (64 + 48, b"\7", "of a kind that is not known"),
        (64, b"\0", "a column has no name"),
        (64, b"x", "has the column xmage of images"),
        (16, b"\1", "values, and the table"),
    ],
)
def test_a_damaged_table_is_said_to_be_one(images, at, data, said):
    tsock.index([(png(i), i) for i in range(3)], images / "t")
    damage(images / "t", at, data)
    code, text = run(images / "t", "--dataset", "table")
    assert code in (66, 71) and said in text, text


def test_a_checksum_finds_what_nothing_else_does(images):
    tsock.index([(png(i), i) for i in range(3)], images / "t")
    damage(images / "t", 64 + 124, b"\1", whole=False)
    assert "checksum" in run(images / "t")[1]


def test_a_row_beyond_its_file_is_a_bad_one(images):
    tsock.index([(png(i), i) for i in range(N)], images / "t")
    raw = (images / "t").read_bytes()
    at = struct.unpack_from("<Q", raw, 64 + 88)[0]
    # Row 2's offset.
    damage(images / "t", at + 32, struct.pack("<Q", 1 << 40), whole=False)
    got, label = read(images / "t", "label", allow_bad=0.5)
    assert len(got) == N and 2 not in label
    check_images(got, label)
