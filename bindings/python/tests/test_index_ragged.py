# SPDX-License-Identifier: MIT
"""Fields of several lengths, of tables: as lists went in, so they come out."""

import io
import json
import struct

import pytest

import tsock

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("place")

LENGTHS = [3, 0, 7, 1, 5, 5, 2, 9, 4, 1, 1]


def tokens(i):
    return [100 * i + k for k in range(LENGTHS[i])]


def boxes(i):
    return [[i + k / 4, k, 1.5, 2] for k in range(LENGTHS[i] % 4)]


def open_table(table, **options):
    return tsock.DataLoader(
        root=str(table),
        **dict(order="sequential", batch_size=4, exit_when_idle=5, **options)
    )


@pytest.fixture
def table(tmp_path):
    tsock.index(
        (
            {"tokens": tokens(i), "boxes": np.float32(boxes(i)), "n": i}
            for i in range(len(LENGTHS))
        ),
        tmp_path / "t",
    )
    return tmp_path / "t"


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_a_batch_is_as_long_as_its_longest_sample(table, framework):
    loader = open_table(
        table,
        framework=framework,
        fields=("tokens", "tokens_length", "boxes", "boxes_length", "n"),
    )
    seen = 0
    for many, n, some, m, number in loader:
        which = [int(i) for i in number]
        assert many.shape == (len(which), max(LENGTHS[i] for i in which))
        assert some.shape[1:] == (max(LENGTHS[i] % 4 for i in which), 4)
        for k, i in enumerate(which):
            assert int(n[k]) == LENGTHS[i] and int(m[k]) == LENGTHS[i] % 4
            assert many[k].tolist() == tokens(i) + [0] * (
                many.shape[1] - LENGTHS[i]
            )
            assert some[k, : int(m[k])].tolist() == boxes(i)
            assert not some[k, int(m[k]) :].any()
            seen += 1
    assert seen == len(LENGTHS)
    loader.close()


def test_lengths_need_not_be_asked_for(table):
    with_all = open_table(table)
    assert [len(batch) for batch in with_all] == [5, 5, 5]
    with_all.close()
    loader = open_table(table, fields=("tokens",))
    assert [b.shape[1] for (b,) in loader] == [7, 9, 4]
    loader.close()
    loader = open_table(table, fields=("tokens",), as_dict=True)
    assert [list(b) for b in loader] == [["tokens"]] * 3
    loader.close()


def test_a_subset_is_cut_to_its_own_longest(table):
    loader = open_table(table, fields=("tokens", "n"), subset=[0, 1, 3, 9, 10])
    got = list(loader)
    loader.close()
    assert [b.shape[1] for b, _ in got] == [3, 1]
    for b, n in got:
        for k, i in enumerate(n.tolist()):
            assert b[k, : LENGTHS[i]].tolist() == tokens(i)


def write_jsonl(folder):
    with open(folder / "a.jsonl", "w") as f:
        for i in range(len(LENGTHS)):
            row = {"ids": tokens(i), "text": "t%d" % i, "two": [i, 1]}
            f.write(json.dumps(row) + "\n")
    return folder / "a.jsonl"


def check_rows(table):
    loader = open_table(table, as_dict=True)
    i = 0
    for batch in loader:
        assert set(batch) == {"ids", "ids_length", "text", "two"}
        for k, n in enumerate(batch["ids_length"].tolist()):
            assert batch["ids"][k, :n].tolist() == tokens(i)
            assert batch["text"][k] == "t%d" % i
            assert batch["two"][k].tolist() == [i, 1]
            i += 1
    assert i == len(LENGTHS)
    loader.close()


def test_jsonl_without_images_is_all_its_columns(tmp_path):
    tsock.index(write_jsonl(tmp_path), tmp_path / "t", image=False)
    check_rows(tmp_path / "t")


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_arrow_and_parquet_have_lists_of_several_lengths(tmp_path, kind):
    pa = pytest.importorskip("pyarrow")
    with open(write_jsonl(tmp_path)) as f:
        whole = pa.Table.from_pylist([json.loads(line) for line in f])
    source = tmp_path / ("a." + kind)
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(whole, source)
    else:
        with pa.OSFile(str(source), "wb") as f:
            with pa.ipc.new_stream(f, whole.schema) as to:
                to.write_table(whole)
    tsock.index(source, tmp_path / "t", image=False)
    check_rows(tmp_path / "t")


def test_images_have_ragged_fields_beside_them(tmp_path):
    image = pytest.importorskip("PIL.Image")
    png = io.BytesIO()
    image.new("RGB", (8, 8), (9, 8, 7)).save(png, "PNG")
    tsock.index(
        (
            (png.getvalue(), {"label": i, "boxes": boxes(i)})
            for i in range(len(LENGTHS))
        ),
        tmp_path / "t",
    )
    loader = open_table(
        tmp_path / "t",
        fields=("image", "label", "boxes", "boxes_length"),
        transform="Resize((8, 8))",
        dtype="uint8",
    )
    for images, labels, some, n in loader:
        assert images[:, :, 0, 0].tolist() == [[9, 8, 7]] * len(labels)
        for k, i in enumerate(labels.tolist()):
            assert some[k, : int(n[k])].tolist() == boxes(i)
    loader.close()


def test_lists_of_one_length_stay_arrays_without_a_length(tmp_path):
    tsock.index(({"a": [i, 2]} for i in range(5)), tmp_path / "t")
    loader = open_table(tmp_path / "t", as_dict=True)
    assert [{k: v.tolist() for k, v in b.items()} for b in loader] == [
        {"a": [[0, 2], [1, 2], [2, 2], [3, 2]]},
        {"a": [[4, 2]]},
    ]
    loader.close()


@pytest.mark.parametrize(
    "rows, said",
    [
        ([[[1, 2]], [[1, 2, 3]]], r"has the shape \[1, 3\], those before"),
        ([[1, 2], 3], r"has the shape \[\], those before \[2\]"),
        ([3, []], r"has the shape \[0\], those before \[\]"),
        ([[1], [[2]]], r"has the shape \[1, 1\], those before \[1\]"),
    ],
)
def test_only_the_first_dimension_may_differ(tmp_path, rows, said):
    with pytest.raises(ValueError, match=said):
        tsock.index(({"a": row} for row in rows), tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


def test_a_row_without_an_image_among_others_is_refused(tmp_path):
    with pytest.raises(ValueError, match="row 1 has an image"):
        tsock.index([{"a": 1}, (b"x", {"a": 1})], tmp_path / "t")
    with pytest.raises(ValueError, match="row 1 has no image"):
        tsock.index([(b"x", {"a": 1}), {"a": 1}], tmp_path / "t")


def test_image_false_is_refused_where_samples_are_images(tmp_path):
    (tmp_path / "instances.json").write_text("{}")
    with pytest.raises(ValueError, match="image=False means nothing for coco"):
        tsock.index(tmp_path / "instances.json", tmp_path / "t", image=False)


def test_a_damaged_ragged_column_is_refused_by_name(table):
    data = bytearray(table.read_bytes())
    for k in range(struct.unpack_from("<I", data, 32)[0]):
        at = 64 + 128 * k
        if data[at : at + 7] == b"tokens\0":
            (offset,) = struct.unpack_from("<Q", data, at + 88)
            struct.pack_into("<Q", data, offset + 8, 1 << 40)
    table.write_bytes(data)
    with pytest.raises(tsock.Error, match="column tokens has a row that ends"):
        open_table(table)


# ---- other values than zeros behind the shorter ones ----


def test_a_pad_follows_shorter_rows(tmp_path):
    tsock.index(
        (
            {
                "tokens": tokens(i),
                "boxes": np.float32(boxes(i)),
                "half": np.float16(tokens(i)),
            }
            for i in range(len(LENGTHS))
        ),
        tmp_path / "t",
        pad={"tokens": -100, "half": 0.5},
    )
    loader = open_table(
        tmp_path / "t", fields=("tokens", "boxes", "half", "tokens_length")
    )
    i = 0
    for many, some, half, n in loader:
        for k, length in enumerate(n.tolist()):
            rest = many.shape[1] - length
            assert many[k].tolist() == tokens(i) + [-100] * rest
            assert half[k].tolist() == tokens(i) + [0.5] * rest
            assert not some[k, len(boxes(i)) :].any()
            i += 1
    assert i == len(LENGTHS)
    loader.close()


@pytest.mark.parametrize(
    "pad, said",
    [
        ({"x": 0}, "'x', which is no column of lists"),
        ({"n": 0}, "'n', which is no column of lists"),
        ({"text": 0}, "'text', which is no column of lists"),
        ({"a": 0.5}, "0.5 for the column 'a', whose values are int64"),
        ({"a": 1 << 64}, "for the column 'a', whose values are int64"),
        ({"b": -1}, "-1 for the column 'b', whose values are uint8"),
        ({"b": "x"}, "'x' for the column 'b', whose values are uint8"),
    ],
)
def test_a_pad_is_a_value_of_its_column(tmp_path, pad, said):
    rows = (
        {"a": [1] * k, "b": np.ones(k, "uint8"), "n": k, "text": "t"}
        for k in range(3)
    )
    with pytest.raises(ValueError, match=said):
        tsock.index(rows, tmp_path / "t", pad=pad)
    assert list(tmp_path.iterdir()) == []


# ---- packed to a length ----


def pack_by_hand(rows, length, split, pad):
    """Samples and their documents, in the plainest way."""
    samples = [([], [])]
    for row in rows:
        if not split and len(samples[-1][0]) + len(row) > length:
            samples.append(([], []))
        first = True
        for value in row:
            values, documents = samples[-1]
            if len(values) == length:
                samples.append(([], []))
                values, documents = samples[-1]
                first = True
            number = max(documents, default=-1) + first
            values.append(value)
            documents.append(number)
            first = False
    samples = [s for s in samples if s[0]]
    return [
        (
            values + [pad] * (length - len(values)),
            documents + [-1] * (length - len(documents)),
        )
        for values, documents in samples
    ]


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("length", [1, 2, 9, 10, 14, 100])
def test_rows_are_packed_in_their_order(tmp_path, length, split):
    rows = [tokens(i) for i in range(len(LENGTHS))]
    if not split and length < max(LENGTHS):
        with pytest.raises(ValueError, match="row 0 has 3 values|row 7 has 9"):
            tsock.index(
                ({"ids": r} for r in rows), tmp_path / "t", pack_to=length
            )
        return
    want = pack_by_hand(rows, length, split, -7)
    n = tsock.index(
        ({"ids": r, "twice": [[v, v] for v in r]} for r in rows),
        tmp_path / "t",
        pack_to=length,
        split_rows=split,
        pad={"ids": -7},
    )
    assert n == len(want)
    loader = open_table(tmp_path / "t", fields=("ids", "twice", "document"))
    got = [sample for batch in loader for sample in zip(*batch)]
    loader.close()
    assert [(a.tolist(), d.tolist()) for a, _, d in got] == want
    for ids, twice, document in got:
        ids[document < 0] = 0
        assert twice.tolist() == [[v, v] for v in ids.tolist()]
        assert document.dtype == torch.int32


def test_random_rows_are_packed_as_by_hand(tmp_path):
    rng = np.random.default_rng(5)
    for case in range(20):
        rows = [
            rng.integers(0, 1000, rng.integers(0, 12)).astype("uint16")
            for _ in range(rng.integers(1, 40))
        ] + [np.uint16([1])]
        length, split = int(rng.integers(12, 30)), bool(case % 2)
        table = tmp_path / ("t%d" % case)
        tsock.index(
            ({"ids": r} for r in rows),
            table,
            pack_to=length,
            split_rows=split,
        )
        want = pack_by_hand([r.tolist() for r in rows], length, split, 0)
        data = table.read_bytes()
        at = data.index(b"ids\0", 64)
        offset, size = struct.unpack_from("<QQ", data, at + 88)
        ids = np.frombuffer(data, "uint16", size // 2, offset)
        assert ids.reshape(-1, length).tolist() == [w[0] for w in want]


def test_jsonl_is_packed_from_a_shell(tmp_path):
    from tsock.index.__main__ import main

    with open(tmp_path / "a.jsonl", "w") as f:
        for i in range(len(LENGTHS)):
            f.write(json.dumps({"ids": tokens(i), "text": "t"}) + "\n")
    to = str(tmp_path / "t")
    options = "--no-image --fields ids --pack-to 16 --split-rows --pad ids=-1"
    assert main([str(tmp_path / "a.jsonl"), to] + options.split()) == 0
    rows = [tokens(i) for i in range(len(LENGTHS))]
    loader = open_table(to, fields=("ids",))
    got = [sample.tolist() for (batch,) in loader for sample in batch]
    loader.close()
    assert got == [s for s, _ in pack_by_hand(rows, 16, True, -1)]


@pytest.mark.parametrize(
    "row, options, said",
    [
        ({"a": [1], "n": 3}, {"pack_to": 4}, "the column 'n' has none"),
        ({"a": [1], "n": "x"}, {"pack_to": 4}, "the column 'n' has none"),
        (
            {"a": [1], "b": [1, 2]},
            {"pack_to": 4},
            "row 0 has 2 values in the column 'b' and 1 in 'a'",
        ),
        ({"document": [1]}, {"pack_to": 4}, "can't be called 'document'"),
        ({"a": []}, {"pack_to": 4}, "no value to pack"),
        ({"a": [1]}, {"pack_to": 0}, "pack_to=0"),
        ({"a": [1]}, {"pack_to": "4"}, "pack_to='4'"),
        ({"a": [1]}, {"split_rows": True}, "nothing without pack_to="),
        ((b"x", {"a": [1]}), {"pack_to": 4}, "samples without an image"),
    ],
)
def test_what_can_not_be_packed_is_said(tmp_path, row, options, said):
    with pytest.raises(ValueError, match=said):
        tsock.index([row, row], tmp_path / "t", **options)
    assert list(tmp_path.iterdir()) == []
