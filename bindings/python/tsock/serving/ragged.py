# SPDX-License-Identifier: MIT
"""Batches of any shapes, each packed into one slot of a ring of batches.

A slot is a field "batch" of bytes, whose layout include/tsock/ragged.h
describes.
"""

from __future__ import annotations

import ctypes
import json
import math
import struct
from typing import Any, Callable, Optional, Sequence

from .. import _ffi, errors
from . import arrays, nest
from .arrays import Memory
from .fixed import BadBatch
from .nest import Path, name_of

FIELD = "batch"
MAGIC = b"tsockpk1"
DTYPES = tuple(arrays.SIZES)  # enum tsock_ragged_dtype
_HEAD = struct.Struct("<8sIIQ")
_LEAF = struct.Struct("<IIQQ8Q")
_ALIGN = 64
_PAGE = 4096
HEADROOM = 4  # times the first batch


def _align(n: int, unit: int = _ALIGN) -> int:
    return -(-n // unit) * unit


class Packed(Memory):
    """A batch, which copies itself as one row."""

    __slots__ = ("_head", "_leaves", "_offsets")

    def __init__(self, batch: Any) -> None:
        leaves: list[Memory] = []

        def add(path: Path, value: Any) -> Optional[int]:
            name = name_of(path)
            if isinstance(value, (bytes, bytearray)):
                data = bytes(value)
                # A nest's leaf of bytes: told from an array by its number.
                leaves.append(arrays.of_bytes(data, "uint8", (len(data),)))
                return -len(leaves)
            found = arrays.of(value, name)
            if found is None:
                return None
            if len(found.shape) > 8:
                raise BadBatch("%s has more than 8 dimensions" % name)
            leaves.append(found)
            return len(leaves) - 1

        shape = nest.take_apart(batch, add)
        text = json.dumps(shape, separators=(",", ":")).encode()
        at = _align(_HEAD.size + len(leaves) * _LEAF.size + len(text))
        self._offsets = []
        for leaf in leaves:
            self._offsets.append(at)
            at = _align(at + leaf.bytes)
        head = [_HEAD.pack(MAGIC, len(leaves), len(text), at)]
        for leaf, offset in zip(leaves, self._offsets):
            shape8 = leaf.shape + (0,) * (8 - len(leaf.shape))
            head.append(
                _LEAF.pack(
                    DTYPES.index(leaf.dtype),
                    len(leaf.shape),
                    offset,
                    leaf.bytes,
                    *shape8
                )
            )
        self._head = b"".join(head) + text
        self._leaves = leaves
        super().__init__("uint8", (1, at), None, batch)

    def copy(self, to: int, first: int, count: int, row_bytes: int) -> int:
        size = len(self._head)
        ctypes.memmove(to, self._head, size)
        for leaf, offset in zip(self._leaves, self._offsets):
            size += leaf.copy_all(to + offset)
        return size


class RaggedSchema:
    """The one field of a ring of batches."""

    batch_size = 1

    def __init__(self, first: Any, capacity: Optional[int]) -> None:
        need = Packed(first).bytes
        if capacity is None:
            capacity = HEADROOM * need
        elif capacity < need:
            raise _too_large(need, capacity)
        self.row_bytes = _align(capacity, _PAGE)

    def as_json(self) -> dict[str, Any]:
        return {"ragged": 1}

    def fields(self) -> list[_ffi.Field]:
        field = _ffi.Field(name=FIELD.encode(), dtype=1, ndim=1)
        field.shape[0] = self.row_bytes
        return [field]

    def read(self, batch: Any) -> tuple[int, list[Memory]]:
        packed = Packed(batch)
        if packed.bytes > self.row_bytes:
            raise _too_large(packed.bytes, self.row_bytes)
        return 1, [packed]


def _too_large(need: int, capacity: int) -> BadBatch:
    return BadBatch(
        "a batch takes %d bytes packed, and a slot has %d: serve it with "
        "batch_bytes=%d or more" % (need, capacity, need)
    )


# ---- at a consumer -------------------------------------------------------


class Reader:
    """Makes batches of slots.

    view(bytes, dtype, shape) is part of a slot's tensor as another tensor;
    data(tensor, begin, end) are bytes of one, by default all of them.
    """

    def __init__(
        self,
        view: Callable[[Any, str, tuple[int, ...]], Any],
        data: Callable[..., bytes],
    ) -> None:
        self._view = view
        self._data = data
        self._text = b""
        self._make: nest.Maker = lambda leaves: None

    def read(self, slot: Any) -> Any:
        """A batch of the slot's tensor, whose memory it shares."""
        room = int(slot.shape[0])
        magic, count, text_bytes, total = _HEAD.unpack(
            self._data(slot, 0, _HEAD.size)
        )
        start = _HEAD.size + count * _LEAF.size
        if magic != MAGIC or total > room or start + text_bytes > total:
            raise errors.Unreadable(
                "a slot holds no packed batch, or a newer one"
            )
        begin = start + text_bytes
        head = self._data(slot, _HEAD.size, begin)
        leaves = [
            self._leaf(
                slot, begin, total, _LEAF.unpack_from(head, i * _LEAF.size)
            )
            for i in range(count)
        ]
        text = head[start - _HEAD.size :]
        if text != self._text:
            self._make = _maker(text)
            self._text = text
        return self._make(_Leaves(leaves, self._data))

    def _leaf(
        self, slot: Any, begin: int, total: int, entry: Sequence[int]
    ) -> Any:
        code, ndim, offset, size = entry[:4]
        if code >= len(DTYPES) or ndim > 8:
            raise errors.Unreadable("a packed batch has an odd dtype or shape")
        dtype, shape = DTYPES[code], tuple(entry[4 : 4 + ndim])
        if math.prod(shape) * arrays.SIZES[dtype] != size:
            raise errors.Unreadable("a packed batch has an odd dtype or shape")
        if offset < begin or offset % _ALIGN or offset + size > total:
            raise errors.Unreadable(
                "a packed batch has an array at an odd place"
            )
        try:
            return self._view(slot[offset : offset + size], dtype, shape)
        except (OverflowError, RuntimeError, TypeError, ValueError) as e:
            raise errors.Unreadable(
                "a packed batch has an array of dtype %s and shape %s, which "
                "can't be made here: %s" % (dtype, shape, e)
            ) from e


def _maker(text: bytes) -> nest.Maker:
    try:
        read = json.loads(text)
    except (RecursionError, ValueError) as e:
        raise errors.Unreadable("a batch's nest can't be read: %s" % e) from e
    return nest.maker(read)


class _Leaves(Sequence[Any]):
    """Leaves by number; from -1 downwards they are bytes objects."""

    def __init__(
        self, leaves: list[Any], data: Callable[[Any], bytes]
    ) -> None:
        self._leaves = leaves
        self._data = data
        self._bytes: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._leaves)

    def __getitem__(self, number: Any) -> Any:
        place = -1 - number if number < 0 else number
        if place >= len(self._leaves):
            raise errors.Unreadable(
                "a packed batch has %d arrays, and its nest has number %d"
                % (len(self._leaves), place)
            )
        leaf = self._leaves[place]
        if number >= 0:
            return leaf
        # Copied once, however often the nest names it.
        if place not in self._bytes:
            self._bytes[place] = self._data(leaf)
        return self._bytes[place]
