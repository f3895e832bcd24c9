# SPDX-License-Identifier: MIT
"""Ragged batches of the C functions and of this package are the same bytes."""

import ctypes
import json
import os
import re

import pytest

from conftest import CHECKOUT
from tsock import _ffi
from tsock.serving import ragged

numpy = pytest.importorskip("numpy")

BATCHES = [
    [numpy.arange(6.0).reshape(2, 3)],
    {
        "ids": numpy.arange(21, dtype="int32").reshape(3, 7),
        "mask": numpy.ones((3, 7), "bool"),
        "n": (3, None, "text"),
        "none": numpy.zeros((4, 0, 2), "complex64"),
    },
    numpy.array(7, "uint16"),
    (b"\0ab", {1: [numpy.ones((1, 2, 1, 2, 1, 2, 1, 2), "int8")]}),
    "a constant",
]


def memory(room):
    """room bytes at a multiple of 64, and what keeps them."""
    raw = numpy.zeros(room + 64, "uint8")
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + room]


def packed(batch):
    made = ragged.Packed(batch)
    slot = memory(made.bytes)
    made.copy(slot.ctypes.data, 0, 1, made.bytes)
    return slot


def nest_of(slot):
    text = ctypes.c_void_p()
    size, count = ctypes.c_uint32(), ctypes.c_uint32()
    code = _ffi.lib.tsock_ragged_nest(
        slot.ctypes.data,
        len(slot),
        ctypes.byref(text),
        ctypes.byref(size),
        ctypes.byref(count),
    )
    assert code == 0, _ffi.lib.tsock_errmsg()
    return ctypes.string_at(text.value, size.value), count.value


def found_by_c(slot):
    """The nest and the arrays that C finds in a slot."""
    text, count = nest_of(slot)
    arrays = (_ffi.RaggedArray * max(count, 1))()
    code = _ffi.lib.tsock_ragged_read(
        slot.ctypes.data, len(slot), text, arrays, count
    )
    assert code == 0, _ffi.lib.tsock_errmsg()
    return text, list(arrays)[:count]


@pytest.mark.parametrize("batch", BATCHES)
def test_c_finds_what_this_package_packs(batch):
    slot = packed(batch)
    text, arrays = found_by_c(slot)
    leaves = ragged.Packed(batch)._leaves
    assert json.loads(text)
    assert len(arrays) == len(leaves)
    for array, leaf in zip(arrays, leaves):
        assert ragged.DTYPES[array.dtype] == leaf.dtype
        assert tuple(array.shape[: array.ndim]) == leaf.shape
        assert array.bytes == leaf.bytes
        wanted = ctypes.string_at(leaf.address, leaf.bytes)
        assert ctypes.string_at(array.data, array.bytes) == wanted


@pytest.mark.parametrize("batch", BATCHES)
def test_c_writes_the_bytes_that_this_package_packs(batch):
    slot = packed(batch)
    text, arrays = found_by_c(slot)
    count = len(arrays)
    mine = (_ffi.RaggedArray * max(count, 1))()
    for to, array in zip(mine, arrays):
        to.dtype, to.ndim, to.shape = array.dtype, array.ndim, array.shape
    write = _ffi.lib.tsock_ragged_write
    size = _ffi.lib.tsock_ragged_bytes(text, mine, count)
    assert size == len(slot)
    again = memory(size)
    assert write(again.ctypes.data, size, text, mine, count) == 0
    for to, array in zip(mine, arrays):
        ctypes.memmove(to.data, array.data, array.bytes)
    assert (again == slot).all()


def test_dtypes_have_the_headers_numbers():
    with open(os.path.join(CHECKOUT, "include", "tsock", "ragged.h")) as f:
        found = re.findall(r"\bTSOCK_RAGGED_([A-Z]+)(\d*) = (\d+),", f.read())
    kinds = {
        "BOOL": "bool",
        "U": "uint",
        "I": "int",
        "F": "float",
        "BF": "bfloat",
        "C": "complex",
    }
    names = [kinds[letters] + bits for letters, bits, _ in found]
    assert [int(number) for _, _, number in found] == list(range(len(found)))
    assert tuple(names) == ragged.DTYPES
