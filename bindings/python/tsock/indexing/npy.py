# SPDX-License-Identifier: MIT
"""The arrays of .npy files, which numpy isn't needed for."""

from __future__ import annotations

import ast
import struct
import sys
from array import array
from typing import Any

from .column import DTYPES, Array

_MAGIC = b"\x93NUMPY"
_CODES = {
    "u1": "uint8",
    "i1": "int8",
    "b1": "bool",
    "i2": "int16",
    "u2": "uint16",
    "i4": "int32",
    "u4": "uint32",
    "i8": "int64",
    "u8": "uint64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
}
_TRUNCATED = "is truncated"


def _head(data: bytes) -> tuple[dict[str, Any], int]:
    """The dictionary at the beginning, and where the values begin."""
    if data[:6] != _MAGIC[: len(data)]:
        raise ValueError("is not an array that NumPy's save() wrote")
    if len(data) < 12:
        raise ValueError(_TRUNCATED)
    first, form = (10, "<H") if data[6] == 1 else (12, "<I")
    end = first + struct.unpack_from(form, data, 8)[0]
    if not 1 <= data[6] <= 3:
        raise ValueError("is of a version of .npy that isn't known")
    if end > len(data):
        raise ValueError(_TRUNCATED)
    try:
        head = ast.literal_eval(data[first:end].decode("utf-8").strip())
        return dict(head), end
    except (ValueError, SyntaxError, TypeError, RecursionError):
        raise ValueError("is damaged: its head is no dictionary") from None


def _dtype(descr: Any) -> str:
    code = descr if isinstance(descr, str) else ""
    name = _CODES.get(code[1:]) if code[:1] in tuple("<|=") else None
    if name is None:
        raise ValueError(
            "has values of dtype %s, which aren't served: convert them by "
            "astype() to a number of 1 to 8 bytes in this machine's byte order"
            % (descr,)
        )
    return name


def _shape(head: dict[str, Any]) -> list[int]:
    shape = head.get("shape")
    if not isinstance(shape, tuple) or not all(
        type(n) is int and n >= 0 for n in shape
    ):
        raise ValueError("is damaged: its shape isn't one of an array")
    if head.get("fortran_order") and len(shape) > 1:
        raise ValueError(
            "lies in Fortran's order: save np.ascontiguousarray() of it"
        )
    return list(shape)


def read(data: bytes) -> Array:
    """The array that a file's bytes are; ValueError: "is ..." or "has ..."."""
    head, at = _head(data)
    dtype, shape = _dtype(head.get("descr")), _shape(head)
    n = 1
    for one in shape:
        n *= one
    code = DTYPES[dtype][0]
    size = 2 if dtype == "float16" else array(code).itemsize
    if n * size > len(data) - at:
        raise ValueError(
            "%s: its values are %d bytes, and it has %d"
            % (_TRUNCATED, n * size, len(data) - at)
        )
    if dtype == "float16":
        return Array(
            array(code, struct.unpack_from("<%de" % n, data, at)), dtype, shape
        )
    values = array(code)
    values.frombytes(data[at : at + n * size])
    if sys.byteorder == "big":
        values.byteswap()
    return Array(values, dtype, shape)
