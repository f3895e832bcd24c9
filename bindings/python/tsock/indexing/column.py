# SPDX-License-Identifier: MIT
"""The values of a table's column, as they are collected."""

from __future__ import annotations

import os
import struct
from array import array
from typing import Any, Optional, Union

# What NumPy, PyTorch and Arrow call them: the letter of the array that holds
# them here, and their number in tsock/common.h.
DTYPES = {
    "uint8": ("B", 1),
    "int32": ("i", 2),
    "int64": ("q", 3),
    "float16": ("f", 4),
    "float32": ("f", 6),
    "float64": ("d", 7),
    "int8": ("b", 8),
    "int16": ("h", 9),
    "uint16": ("H", 10),
    "uint32": ("I", 11),
    "uint64": ("Q", 12),
    "bool": ("B", 13),
}
RESERVED = "image files files.stamp classes key index box draws".split()
MAX_NAME = 31  # bytes of a field's name


class Typed:
    """A number, or a list of numbers, that says its dtype."""

    def __init__(self, value: Any, dtype: str) -> None:
        self.value, self.dtype = value, dtype


class Array:
    """The values of an array of this dtype and shape, behind one another, in
    an array of DTYPES' letter."""

    def __init__(
        self, values: "array[Any]", dtype: str, shape: list[int]
    ) -> None:
        self.values, self.dtype, self.shape = values, dtype, shape


def _dtype(value: Any) -> str:
    """The dtype of an array or a typed number; "": it says none to keep."""
    name = str(getattr(value, "dtype", "")).replace("torch.", "")
    return name if name in DTYPES else ""


def _has_bytes(value: Any) -> bool:
    """Is it an array of NumPy, or as good?"""
    return hasattr(value, "tobytes") and hasattr(value, "astype")


def _as_array(value: Any, dtype: str) -> Array:
    code = DTYPES[dtype][0]
    if dtype == "float16":
        value = value.astype("float32")
    values = array(code)
    values.frombytes(value.tobytes())
    return Array(values, dtype, list(value.shape))


def _numbers(value: Any) -> Optional[list[Any]]:
    """The numbers of a sequence or an array; None: it is neither."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return list(value)
    return None


def _flatten(value: Any, shape: list[int], depth: int = 0) -> list[Any]:
    numbers = _numbers(value)
    if numbers is None:
        return [value]
    if depth == len(shape):
        shape.append(len(numbers))
    if shape[depth] != len(numbers):
        raise ValueError("is of several shapes")
    flat = []
    for one in numbers:
        flat += _flatten(one, shape, depth + 1)
    return flat


def check_name(name: str) -> None:
    """A ValueError, if no field of a stream can be called so."""
    if not name or len(os.fsencode(name)) > MAX_NAME:
        raise ValueError(
            "a column can't be called %r: a name has 1 to %d bytes"
            % (name, MAX_NAME)
        )
    if name in RESERVED:
        raise ValueError(
            "a column can't be called %r: streams have a field, or tables "
            "a column, of that name" % name
        )


class Column:
    """The values of a field: text, or numbers of one shape but for its first
    dimension."""

    def __init__(self, name: str) -> None:
        check_name(name)
        self.name = name
        self.count = 0
        self.texts: Optional[list[bytes]] = None
        self.shape: Optional[list[int]] = None
        self.starts = array("Q", [0])  # of rows, if they have a dimension
        self.is_ragged = False
        self.dtype = ""  # that of all values so far; "": int64 or float32
        self.exact = False  # values of another dtype are refused
        self.values: array[Any] = array("q")

    def _wrong(self, what: str) -> ValueError:
        return ValueError(
            "column %r, row %d: the value %s" % (self.name, self.count, what)
        )

    def add(self, value: Any) -> None:
        dtype = _dtype(value)
        if isinstance(value, Typed):
            value = value.value
        elif hasattr(value, "item") and not getattr(value, "shape", ()):
            value = value.item()
        if isinstance(value, Array):
            self._add_array(value, exact=True)
        elif dtype and _has_bytes(value):
            self._add_array(_as_array(value, dtype))
        elif isinstance(value, str):
            self._add_text(value)
        else:
            self._add_numbers(value, dtype)
        self.count += 1

    def _add_text(self, value: str) -> None:
        if self.texts is None:
            if self.count:
                raise self._wrong("is a text, those before are numbers")
            self.texts = []
        if "\0" in value:
            raise self._wrong("has a zero in it")
        self.texts.append(value.encode("utf-8", "surrogateescape"))

    def _keep(self, dtype: str) -> None:
        """Values of this dtype follow: keep it, if all before had it."""
        if not self.values:
            self.dtype = dtype
            self.values = array(DTYPES[dtype or "int64"][0])
        elif self.exact and dtype != self.dtype:
            raise self._wrong(
                "is %s, those before are %s" % (dtype, self.dtype)
            )
        elif self.dtype and dtype != self.dtype:
            self.dtype, was = "", self.values.tolist()
            whole = self.values.typecode not in "fd"
            self.values = array("q" if whole else "f", was)

    def _add_numbers(self, value: Any, dtype: str) -> None:
        if self.texts is not None:
            raise self._wrong("is no text, as those before are")
        shape: list[int] = []
        try:
            flat = _flatten(value, shape)
        except ValueError as e:
            raise self._wrong(str(e)) from None
        if not all(isinstance(one, (bool, int, float)) for one in flat):
            raise self._wrong(
                "is neither a number nor text nor an array of numbers: %.60r"
                % (value,)
            )
        self._check_shape(shape)
        if not shape and self.name == "label":
            dtype = ""  # int64 and float32 are what losses take
        try:
            if flat:
                self._keep(dtype)
            whole = not self.dtype and self.values.typecode == "q"
            if whole and any(isinstance(one, float) for one in flat):
                self.values = array("f", self.values)
            self.values.extend(flat)
        except OverflowError:
            raise self._wrong("doesn't fit 64 bits") from None
        if shape:
            self.starts.append(self.starts[-1] + shape[0])

    def _add_array(self, value: Array, exact: bool = False) -> None:
        if self.texts is not None:
            raise self._wrong("is no text, as those before are")
        self._check_shape(value.shape)
        self.exact = self.exact or exact
        self._append(value.values, value.dtype)
        if value.shape:
            self.starts.append(self.starts[-1] + value.shape[0])

    def _append(self, values: "array[Any]", dtype: str) -> None:
        """Values of this dtype behind those here."""
        if not values:
            return
        self._keep(dtype)
        whole = not self.dtype and self.values.typecode == "q"
        if whole and values.typecode in "fd":
            self.values = array("f", self.values)
        try:
            if self.values.typecode == values.typecode:
                self.values.extend(values)
            else:
                self.values.extend(values.tolist())
        except OverflowError:
            raise self._wrong("doesn't fit 64 bits") from None

    def _check_shape(self, shape: list[int]) -> None:
        was = self.shape
        if len(shape) > 4 or 0 in shape[1:]:
            raise self._wrong("has the shape %s" % (shape,))
        if was is None or (shape and was == [0] and shape[0]):
            # Rows of no values don't say which shape values have.
            self.is_ragged = was is not None or shape == [0]
            self.shape = shape
        elif was and shape and shape != was:
            if shape[0] and shape[1:] != was[1:]:
                raise self._wrong(
                    "has the shape %s, those before %s" % (shape, was)
                )
            self.is_ragged = True
        elif shape != was:
            raise self._wrong(
                "has the shape %s, those before %s" % (shape, was)
            )

    # ---- columns of several tables ----

    def extend(self, more: Column) -> None:
        """The values of another column of this name behind those here."""
        if more.texts is not None:
            if self.texts is None and self.count:
                raise self._wrong("is a text, those before are numbers")
            self.texts = (self.texts or []) + more.texts
        else:
            self._extend_numbers(more)
        self.count += more.count

    def _extend_numbers(self, more: Column) -> None:
        if self.texts is not None:
            raise self._wrong("is no text, as those before are")
        self._check_shape(list(more.shape or []))
        self.is_ragged = self.is_ragged or more.is_ragged
        self.exact = self.exact or more.exact
        self._append(more.values, more.dtype)
        base = self.starts[-1]
        self.starts.extend(base + start for start in more.starts[1:])

    def called(self) -> str:
        """The dtype of the numbers."""
        return (
            self.dtype or {"q": "int64", "f": "float32"}[self.values.typecode]
        )

    def encode(self, value: Union[int, float]) -> bytes:
        """A value of the column's dtype."""
        name = self.called()
        code = "e" if name == "float16" else DTYPES[name][0]
        try:
            return struct.pack("<" + code, value)
        except (struct.error, OverflowError, TypeError):
            raise ValueError(
                "pad= has %r for the column %r, whose values are %s"
                % (value, self.name, name)
            ) from None

    def row_bytes(self) -> int:
        """The bytes of the longest row."""
        if self.texts is not None:
            return 1 + max(map(len, self.texts), default=0)
        rows = zip(self.starts, self.starts[1:])
        items = max((end - begin for begin, end in rows), default=1)
        for n in (self.shape or [0])[1:]:
            items *= n
        return items * self.values.itemsize
