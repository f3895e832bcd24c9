# SPDX-License-Identifier: MIT
"""Batches of fixed shapes as samples: each leaf is a field, each row a sample.

The first batch decides the fields.  What C has no dtype for, or more than four
dimensions of, is a field of bytes that consumers view as what it is.  A string
is a field of bytes, too: UTF-8, zeros, and its length in the last four.
"""

from __future__ import annotations

import math
from array import array
from typing import Any, Optional, Sequence, Union

from .. import _ffi
from . import arrays, nest
from .arrays import Memory
from .nest import Path, name_of

_NATIVE = {
    "uint8": 1,
    "int32": 2,
    "int64": 3,
    "float16": 4,
    "bfloat16": 5,
    "float32": 6,
}
MOST_FIELDS = 16
MOST_NAME = 31  # bytes
LENGTH = 4  # bytes of a string's length

ADVICE = "serve it with ragged=True, which allows any shapes"


class BadBatch(ValueError):
    """A batch that can't be served as the first one promised."""


def _kind_of(values: Union[list[Any], tuple[Any, ...]]) -> Optional[str]:
    """What a list holds, if each is of one kind: "str", "int", ..."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1:
        name = kinds.pop().__name__
        if name == "bool_":  # numpy's before 2.0, which is "bool", too
            return "bool"
        if name in ("str", "bytes", "bool", "int", "float"):
            return name
    return None


def _is_column(value: Any, rows: int) -> bool:
    """Is that a list with a string or a number for each row?"""
    return (
        isinstance(value, (list, tuple))
        and not hasattr(value, "_fields")
        and len(value) == rows > 0
        and _kind_of(value) is not None
    )


def count(batch: Any) -> int:
    """How many samples a batch has."""
    columns = None
    for path, value in nest.walk(batch):
        if arrays.is_array(value):
            shape = arrays.shape_of(value)
            if shape:
                return int(shape[0])
        elif columns is None and isinstance(value, (list, tuple)):
            if value and _kind_of(value) and not hasattr(value, "_fields"):
                columns = len(value)
    if columns is None:
        raise BadBatch(
            "a batch has neither tensors nor lists of strings or numbers: "
            "it is of type %s" % type(batch).__qualname__
        )
    return columns


class Spec:
    """A field: what a leaf of the batches is."""

    def __init__(
        self, name: str, kind: str, dtype: str, shape: Sequence[int],
        is_tuple: bool = False,
    ) -> None:
        self.name = name
        self.kind = kind  # "array", or what a list holds
        self.dtype = dtype  # of an array; its samples' shape
        self.shape = tuple(shape)
        self.is_tuple = is_tuple

    def as_json(self) -> list[Any]:
        return [
            self.name, self.kind, self.dtype, list(self.shape), self.is_tuple
        ]

    @property
    def row_bytes(self) -> int:
        total = arrays.SIZES[self.dtype]
        for n in self.shape:
            total *= n
        return total

    @property
    def is_native(self) -> bool:
        """Does C know the dtype, and so many dimensions?"""
        return self.dtype in _NATIVE and len(self.shape) <= _ffi.MAX_DIMS

    def field(self) -> _ffi.Field:
        made = _ffi.Field()
        made.name = self.name.encode()
        if self.is_native:
            made.dtype = _NATIVE[self.dtype]
            shape: Sequence[int] = self.shape
        else:
            made.dtype = _NATIVE["uint8"]
            shape = (self.row_bytes,)
        made.ndim = len(shape)
        for i, n in enumerate(shape):
            made.shape[i] = n
        return made


# What a list holds, and how one of them is stored; strings are bytes.
_LISTS = {"int": "int64", "float": "float64", "bool": "bool"}
_STRINGS = ("str", "bytes")
_MOST_DIMS = 64  # of an array: torch's, and numpy's
_MOST_ELEMENTS = 1 << 58  # of a sample: their bytes fit C's integers


def spec_of(said: Any) -> Spec:
    """The field that another process describes; ValueError if it is invalid."""
    name, kind, dtype, shape, is_tuple = said
    if (
        type(name) is str
        and type(kind) is str
        and type(dtype) is str
        and type(shape) is list
        and type(is_tuple) is bool
        and 1 <= len(name.encode()) <= MOST_NAME
        and len(shape) < _MOST_DIMS
        and all(type(n) is int and n >= 1 for n in shape)
        and dtype in arrays.SIZES
        and math.prod(shape) < _MOST_ELEMENTS
        and _can_be(kind, dtype, shape)
    ):
        return Spec(name, kind, dtype, shape, is_tuple)
    raise ValueError("it has the odd field %.200r" % (said,))


def _can_be(kind: str, dtype: str, shape: list[int]) -> bool:
    if kind in _LISTS:
        return dtype == _LISTS[kind] and not shape
    if kind in _STRINGS:
        return dtype == "uint8" and len(shape) == 1 and shape[0] >= LENGTH
    return kind == "array"


def _short_names(names: list[str]) -> list[str]:
    """Names that C can hold, each another one."""
    made: list[str] = []
    for name in names:
        name = name.replace("\0", "")
        short, n = name, 1
        while len(short.encode()) > MOST_NAME or not short or short in made:
            n += 1
            tail = "~%d" % n
            cut = name.encode()[: MOST_NAME - len(tail)]
            short = cut.decode("utf-8", "ignore") + tail
        made.append(short)
    return made


class FixedSchema:
    """The fields of a loader's batches, and their bytes."""

    def __init__(self, first: Any, string_bytes: int) -> None:
        self._string_bytes = string_bytes
        self.batch_size = rows = count(first)
        if not rows:
            raise BadBatch("the first batch has no samples")
        self._paths: list[Path] = []
        self.specs: list[Spec] = []

        def add(path: Path, value: Any) -> Optional[int]:
            spec = self._spec(path, value, rows)
            if spec is None:
                return None
            self._paths.append(path)
            self.specs.append(spec)
            return len(self.specs) - 1

        self.nest = nest.take_apart(first, add)
        if len(self.specs) > MOST_FIELDS:
            raise BadBatch(
                "a batch has %d tensors and lists, and a stream has at most "
                "%d fields: stack some of them, or %s"
                % (len(self.specs), MOST_FIELDS, ADVICE)
            )
        names = _short_names([spec.name for spec in self.specs])
        for spec, name in zip(self.specs, names):
            spec.name = name
        self.row_bytes = sum(spec.row_bytes for spec in self.specs)

    def as_json(self) -> dict[str, Any]:
        return {
            "nest": self.nest,
            "fields": [spec.as_json() for spec in self.specs],
        }

    def fields(self) -> list[_ffi.Field]:
        return [spec.field() for spec in self.specs]

    # ---- the first batch ----

    def _spec(self, path: Path, value: Any, rows: int) -> Optional[Spec]:
        name = name_of(path)
        found = arrays.of(value, name, stays=True)
        if found is not None:
            _check_rows(name, found.shape, rows)
            if not found.bytes:
                raise BadBatch(
                    "%s has the shape %s, with no elements; %s"
                    % (name, found.shape, ADVICE)
                )
            return Spec(name, "array", found.dtype, found.shape[1:])
        if not _is_column(value, rows):
            return None
        kind = _kind_of(value) or ""
        made = isinstance(value, tuple)
        if kind in _STRINGS:
            shape = (self._string_bytes + LENGTH,)
            return Spec(name, kind, "uint8", shape, made)
        return Spec(name, kind, _LISTS[kind], (), made)

    # ---- every batch ----

    def read(self, batch: Any) -> tuple[int, list[Memory]]:
        """How many samples a batch has, and the memory of each field."""
        rows = count(batch)
        found: list[Memory] = []

        def add(path: Path, value: Any) -> Optional[int]:
            n = len(found)
            if n < len(self.specs) and path == self._paths[n]:
                made = self._leaf(self.specs[n], path, value, rows)
            elif arrays.is_array(value) or _is_column(value, rows):
                raise BadBatch(
                    "%s wasn't in the first batch, or was something else; %s"
                    % (name_of(path), ADVICE)
                )
            else:
                return None
            found.append(made)
            return n

        if not rows:
            return 0, []
        shape = nest.take_apart(batch, add)
        if shape != self.nest:
            raise BadBatch(
                "a batch is %s, and the first one was %s: what is the same "
                "for all samples of a batch has to stay what it was; make it "
                "a value for each sample, or %s"
                % (nest.shown(shape), nest.shown(self.nest), ADVICE)
            )
        return rows, found

    def _leaf(self, spec: Spec, path: Path, value: Any, rows: int) -> Memory:
        name = name_of(path)
        if spec.kind != "array":
            return self._column(spec, name, value, rows)
        found = arrays.of(value, name, stays=True)
        if found is None:
            raise BadBatch(
                "%s is a %s, and was a tensor or an array in the first batch"
                % (name, type(value).__qualname__)
            )
        _check_rows(name, found.shape, rows)
        if found.shape[1:] != spec.shape:
            raise BadBatch(
                "%s has samples of shape %s, and those of the first batch "
                "had %s; %s"
                % (name, found.shape[1:], spec.shape, ADVICE)
            )
        if found.dtype != spec.dtype:
            raise BadBatch(
                "%s is %s, and was %s in the first batch"
                % (name, found.dtype, spec.dtype)
            )
        return found

    def _column(self, spec: Spec, name: str, value: Any, rows: int) -> Memory:
        if (
            not isinstance(value, (list, tuple))
            or len(value) != rows
            or _kind_of(value) != spec.kind
        ):
            raise BadBatch(
                "%s was a list of one %s for each sample in the first batch, "
                "and isn't one of %d now; %s"
                % (name, spec.kind, rows, ADVICE)
            )
        shape = (rows,) + spec.shape
        if spec.kind in _STRINGS:
            return arrays.of_bytes(
                b"".join([self._string(name, v) for v in value]),
                "uint8",
                shape,
            )
        if spec.kind == "bool":
            data = bytes([bool(v) for v in value])
            return arrays.of_bytes(data, "bool", shape)
        try:
            numbers = array("q" if spec.kind == "int" else "d", value)
        except OverflowError:
            raise BadBatch(
                "%s has a number that 64 bits can't hold" % name
            ) from None
        return arrays.of_bytes(numbers.tobytes(), spec.dtype, shape)

    def _string(self, name: str, value: Union[str, bytes]) -> bytes:
        data = value
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogatepass")
        if len(data) > self._string_bytes:
            raise BadBatch(
                "%s has a string of %d bytes, %.40r..., and there is room for "
                "%d: serve it with string_bytes=%d or more"
                % (name, len(data), value, self._string_bytes, len(data))
            )
        return data.ljust(self._string_bytes, b"\0") + len(data).to_bytes(
            LENGTH, "little"
        )


def _check_rows(name: str, shape: tuple[int, ...], rows: int) -> None:
    if not shape:
        raise BadBatch(
            "%s is one number for the whole batch: make it one for each "
            "sample, or %s" % (name, ADVICE)
        )
    if shape[0] != rows:
        raise BadBatch(
            "%s has %d rows, in a batch of %d samples; %s"
            % (name, shape[0], rows, ADVICE)
        )
