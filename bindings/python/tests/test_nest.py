# SPDX-License-Identifier: MIT
"""Batches taken apart and made again, without any stream."""

import collections
import ctypes
import json

import pytest

from tsock.serving import arrays, fixed, nest, ragged

numpy = pytest.importorskip("numpy")

Pair = collections.namedtuple("Pair", "left right")


def again(batch):
    """A batch made of its nest, after a journey as JSON."""
    leaves = []

    def find(path, value):
        if not isinstance(value, numpy.ndarray):
            return None
        leaves.append(value)
        return len(leaves) - 1

    text = json.dumps(nest.take_apart(batch, find))
    return nest.maker(json.loads(text))(leaves)


@pytest.mark.parametrize(
    "batch",
    [
        3,
        "text \ud800 \0",
        [1, (2.5, None), []],
        {"a": {7: True, None: ()}, 1.5: ["x"]},
        Pair(1, {"b": Pair([], "c")}),
        numpy.int16(9),
    ],
)
def test_nests_are_made_again(batch):
    made = again(batch)
    assert made == batch
    if type(batch).__name__ != "int16":
        assert type(made).__name__ == type(batch).__name__


def test_leaves_are_put_where_they_were():
    x, y = numpy.zeros(3), numpy.ones(2)
    made = again({"x": [x], "y": (y, x)})
    assert made["x"][0] is x and made["y"][0] is y and made["y"][1] is x


@pytest.mark.parametrize(
    "odd",
    [
        [],
        7,
        ["z", 3],
        ["c", [1]],
        ["d", [["k"]]],
        ["n", "class", ["x"], []],
        ["n", "P", ["a b; import os"], []],
    ],
)
def test_what_is_no_nest_is_refused(odd):
    with pytest.raises(ValueError):
        nest.maker(odd)


def test_a_nest_without_an_end_is_refused():
    deep = ["c", 1]
    for _ in range(200):
        deep = ["l", [deep]]
    with pytest.raises(ValueError, match="deep"):
        nest.maker(deep)


def copied(leaf, first, count):
    size = leaf.bytes // leaf.shape[0]
    room = ctypes.create_string_buffer(count * size)
    leaf.copy(ctypes.addressof(room), first, count, size)
    return room.raw


@pytest.mark.parametrize(
    "array",
    [
        numpy.arange(60).reshape(10, 2, 3),
        numpy.arange(60).reshape(6, 10).T,
        numpy.arange(60)[::6],
        numpy.arange(10).astype(">i4"),
        numpy.asfortranarray(numpy.arange(60.0).reshape(10, 6)),
    ],
)
def test_rows_are_copied_whatever_the_strides(array):
    leaf = arrays.of(array, "x")
    assert leaf.shape == array.shape
    right = array.astype(array.dtype.newbyteorder("="))
    assert copied(leaf, 0, 10) == right.tobytes()
    assert copied(leaf, 3, 4) == right[3:7].tobytes()


def test_what_is_no_array_has_no_memory():
    for value in (3, "x", [1], None, numpy.float32(3), numpy.ndarray):
        assert arrays.of(value, "x") is None
        assert not arrays.is_array(value)


def test_names_fit_and_are_each_their_own():
    batch = {
        "a" * 40: numpy.zeros(2),
        "a" * 39 + "b": numpy.zeros(2),
        "ä" * 20: numpy.zeros(2),
        "": numpy.zeros(2),
    }
    names = [spec.name for spec in fixed.FixedSchema(batch, 8).specs]
    assert len(set(names)) == 4
    assert all(0 < len(name.encode()) <= 31 for name in names)


def packed_bytes(batch):
    made = ragged.Packed(batch)
    room = numpy.zeros(made.bytes, "uint8")
    made.copy(room.ctypes.data, 0, 1, made.bytes)
    return room


def reader():
    return ragged.Reader(
        lambda t, dtype, shape: t.view(dtype).reshape(shape),
        lambda t, begin=0, end=None: t[begin:end].tobytes(),
    )


def test_packed_batches_are_read_in_place():
    batch = {"x": numpy.arange(6.0).reshape(2, 3), "b": b"\0ab", "n": [1, "z"]}
    slot = packed_bytes(batch)
    made = reader().read(slot)
    assert (made["x"] == batch["x"]).all()
    assert (made["b"], made["n"]) == (b"\0ab", [1, "z"])
    assert numpy.shares_memory(made["x"], slot)


def test_a_slot_that_holds_nonsense_is_refused():
    slot = packed_bytes({"x": numpy.arange(6.0), "y": [1, 2, 3]})
    read = reader().read
    read(slot)
    for at in list(range(24)) + list(range(24, 64, 4)):
        bad = slot.copy()
        bad[at] ^= 0xFF
        try:
            read(bad)
        except (ValueError, RecursionError):
            continue
        assert at >= 24  # an offset inside may be another one
    with pytest.raises(ValueError):
        read(numpy.zeros(4096, "uint8"))


@pytest.mark.parametrize("number", [1, -2])
def test_a_nest_with_more_arrays_than_the_batch_is_refused(number):
    slot = packed_bytes([numpy.arange(3.0)])
    text, other = b'["f",0]', b'["f",%d]' % number
    slot = numpy.frombuffer(slot.tobytes().replace(text, other), "uint8")
    slot = slot[: len(slot) // 64 * 64].copy()
    slot[12] += len(other) - len(text)
    with pytest.raises(ValueError, match="has 1 arrays.*has number 1"):
        reader().read(slot)


@pytest.mark.parametrize("offset", [0, 64, 129, 8])
def test_an_array_at_an_odd_place_is_refused(offset):
    slot = packed_bytes([numpy.arange(3.0)])
    assert reader().read(slot)[0].tolist() == [0, 1, 2]
    slot[32:40].view("uint64")[0] = offset
    with pytest.raises(ValueError, match="at an odd place"):
        reader().read(slot)
