# SPDX-License-Identifier: MIT
"""Tensors in which a loader gathers samples for batches of its own."""

from __future__ import annotations

import ctypes
import importlib
import math
import mmap
import weakref
from typing import Any

from . import _ffi
from .about import About
from .gpu import DTYPES
from .source import Source

_lib = _ffi.lib

_INDEX = "index"
# By its dtype, int32 or int64: what is below 0 becomes too large.
_INDEX_TYPES: dict[int, Any] = {2: ctypes.c_uint32, 3: ctypes.c_uint64}
MOST_FREE = 3  # batches' memory that is kept


def index_of(about: About) -> tuple[int, Any]:
    """The place of the field "index", and its type in C."""
    names = [f.name.decode("utf-8", "replace") for f in about.fields]
    if _INDEX in names:
        i = names.index(_INDEX)
        field = about.fields[i]
        if not field.ndim and field.dtype in _INDEX_TYPES:
            return i, _INDEX_TYPES[field.dtype]
    raise ValueError(
        "subset needs a field 'index', of int64, that says which sample of "
        "the data set each one is: stream %r has %s"
        % (about.name, ", ".join(names))
    )


class Buffer:
    """A batch of the loader's own, to be filled."""

    def __init__(self, maker: BufferMaker, count: int) -> None:
        self.count = count
        self.filled = 0
        self.tensors, self.addresses = maker.make(count)

    def first(self, count: int) -> list[Any]:
        return [tensor[:count] for tensor in self.tensors]


class Pages:
    """The memory of batches that nobody holds any more, to be filled again.

    Getting new pages from the kernel takes eight times as long as copying.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[mmap.mmap]] = {}
        self._types: dict[int, Any] = {}

    def take(self, size: int) -> Any:
        """Memory of that size, taken back when its last tensor is gone."""
        free = self._free.setdefault(size, [])
        try:
            memory = free.pop()
        except IndexError:
            # Private: what a forked child has of it stays as it was.
            memory = mmap.mmap(
                -1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            )
        if size not in self._types:
            # A class of one's own, whose objects can have weak references.
            self._types[size] = type("Lent", (ctypes.c_char * size,), {})
        lent = self._types[size].from_buffer(memory)
        weakref.finalize(lent, _give_back, free, memory).atexit = False
        return lent


def _give_back(free: list[mmap.mmap], memory: mmap.mmap) -> None:
    if len(free) < MOST_FREE:
        free.append(memory)


class BufferMaker:
    """Makes buffers for the fields of a source."""

    def __init__(self, source: Source, pages: Pages) -> None:
        self._source = source
        self._pages = pages
        self.index = index_of(source.about)
        about = source.about
        found = about.find(about.with_lengths(source.fields))
        self.places = [i for i, _ in found]
        self._kinds = [
            (tuple(f.shape[: f.ndim]), DTYPES[f.dtype]) for _, f in found
        ]
        self.sizes = [
            math.prod(f.shape[: f.ndim]) * _lib.tsock_dtype_size(f.dtype)
            for _, f in found
        ]
        self._torch = source.tensors.torch
        self._numpy: Any = None
        if self._torch is None:
            self._numpy = importlib.import_module("numpy")

    def make(self, count: int) -> tuple[list[Any], list[int]]:
        """A tensor for count samples of each field, and its address."""
        if self._torch is not None and self._source.pin_memory():
            made = [
                self._torch.empty(
                    (count, *shape),
                    dtype=getattr(self._torch, dtype),
                    pin_memory=True,  # torch has these used again itself
                )
                for shape, dtype in self._kinds
            ]
            return made, [tensor.data_ptr() for tensor in made]
        made, addresses = [], []
        for (shape, dtype), size in zip(self._kinds, self.sizes):
            lent = self._pages.take(size * self._source.batch_size)
            addresses.append(ctypes.addressof(lent))
            made.append(self._tensor(lent, (count, *shape), dtype))
        return made, addresses

    def _tensor(self, lent: Any, shape: tuple[int, ...], dtype: str) -> Any:
        n = math.prod(shape)
        if self._torch is None:
            return self._numpy.frombuffer(lent, dtype, n).reshape(shape)
        kind = getattr(self._torch, dtype)
        return self._torch.frombuffer(lent, dtype=kind, count=n).view(shape)

    def copies(self, tensors: list[Any]) -> list[Any]:
        if self._torch is None:
            return [array.copy() for array in tensors]
        return [tensor.clone() for tensor in tensors]
