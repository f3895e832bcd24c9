# SPDX-License-Identifier: MIT
"""Values of a table come out in the dtype in which they went in."""

import numpy as np
import pytest

import tsock

pytestmark = pytest.mark.usefixtures("place")

NAMES = (
    "uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 float32 "
    "float64 bool"
).split()


def serve(rows, tmp_path):
    """The batches of 4 that a table of these rows gives, as dicts."""
    tsock.index(iter(rows), tmp_path / "t")
    with tsock.DataLoader(
        root=str(tmp_path / "t"),
        framework="numpy",
        order="sequential",
        batch_size=4,
        exit_when_idle=5,
        as_dict=True,
    ) as loader:
        return [{k: np.array(v) for k, v in b.items()} for b in loader]


def value(name, i):
    if name == "bool":
        return np.array([i % 2, 1, 0], bool)
    kind = np.dtype(name)
    if kind.kind == "f":
        return np.array([i / 3, -i, np.finfo(kind).max], kind)
    info = np.iinfo(kind)
    return np.array([i, info.min, info.max], kind)


@pytest.mark.parametrize("name", NAMES)
def test_an_array_keeps_its_dtype(name, tmp_path):
    wanted = [value(name, i) for i in range(4)]
    rows = [
        {"a": a, "one": a[0], "b": a[: 1 + i % 2]}
        for i, a in enumerate(wanted)
    ]
    (batch,) = serve(rows, tmp_path)
    for field in ("a", "one", "b"):
        assert batch[field].dtype == np.dtype(name)
    assert batch["a"].tobytes() == np.stack(wanted).tobytes()
    assert batch["one"].tobytes() == np.stack(wanted)[:, 0].tobytes()
    for k, a in enumerate(wanted):
        n = batch["b_length"][k]
        assert n == 1 + k % 2
        assert batch["b"][k, :n].tobytes() == a[:n].tobytes()


def test_values_of_several_dtypes_are_int64_or_float32(tmp_path):
    kinds = [np.uint8, np.int16, int, np.int32]
    rows = [
        {
            "n": kinds[i](i),
            "x": i / 4 if i % 2 else np.float64(i / 4),
            "e": np.zeros(0) if i == 0 else np.array([i] * i, np.int16),
        }
        for i in range(4)
    ]
    (batch,) = serve(rows, tmp_path)
    assert batch["n"].dtype == np.int64 and list(batch["n"]) == [0, 1, 2, 3]
    assert batch["x"].dtype == np.float32
    assert list(batch["x"]) == [0, 0.25, 0.5, 0.75]
    # An array of no values says no dtype.
    assert batch["e"].dtype == np.int16


def test_labels_that_are_a_number_are_int64(tmp_path):
    rows = [{"label": np.uint8(i), "x": np.float16(i)} for i in range(4)]
    (batch,) = serve(rows, tmp_path)
    assert batch["label"].dtype == np.int64
    assert list(batch["label"]) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_integers_of_arrow_keep_their_dtype(kind, tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(
        {
            "ids": pa.array([[1, 2], [3], [], [4]], pa.list_(pa.uint16())),
            "n": pa.array([1, 2, 3, 4], pa.int8()),
            "x": pa.array([1.5, 2, 3, 4], pa.float64()),
        }
    )
    path = str(tmp_path / ("a." + kind))
    if kind == "arrow":
        with pa.ipc.new_stream(path, table.schema) as out:
            out.write_table(table)
    else:
        __import__("pyarrow.parquet")
        pa.parquet.write_table(table, path)
    with pytest.raises(ValueError, match="image=False if samples have none"):
        tsock.index(path, tmp_path / "t")
    tsock.index(path, tmp_path / "t", image=False)
    with tsock.DataLoader(
        root=str(tmp_path / "t"),
        framework="numpy",
        order="sequential",
        batch_size=4,
        exit_when_idle=5,
        as_dict=True,
    ) as loader:
        (batch,) = list(loader)
        assert batch["ids"].dtype == np.uint16
        assert batch["ids"].tolist() == [[1, 2], [3, 0], [0, 0], [4, 0]]
        assert batch["n"].dtype == np.int8
        assert batch["x"].dtype == np.float32
