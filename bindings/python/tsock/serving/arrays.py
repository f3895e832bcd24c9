# SPDX-License-Identifier: MIT
"""The memory of a tensor or an array, to be copied from once.

Copies run without the interpreter's lock.  Where an array isn't contiguous
numpy copies it, straight to its place, too.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import sys
from typing import Any, Optional

# By the names that numpy and torch share: bytes of one element.
SIZES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}


class Memory:
    """An array's bytes."""

    __slots__ = ("dtype", "shape", "bytes", "address", "_array", "_keep")

    def __init__(
        self,
        dtype: str,
        shape: tuple[int, ...],
        address: Optional[int],
        keep: Any,
        array: Any = None,
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.bytes = math.prod(shape) * SIZES[dtype]
        self.address = address  # None: not contiguous, see _array
        self._array = array
        self._keep = keep  # whose memory it is

    def copy(self, to: int, first: int, count: int, row_bytes: int) -> int:
        """Copy rows first .. first+count-1 to an address; how many bytes."""
        size = count * row_bytes
        if self.address is not None:
            ctypes.memmove(to, self.address + first * row_bytes, size)
            return size
        numpy = sys.modules["numpy"]
        part = self._array[first : first + count]
        room = (ctypes.c_char * size).from_address(to)
        numpy.copyto(numpy.ndarray(part.shape, part.dtype, room), part)
        return size

    def copy_all(self, to: int) -> int:
        if self.address is not None:
            ctypes.memmove(to, self.address, self.bytes)
        elif self.bytes:
            rows = self.shape[0]
            self.copy(to, 0, rows, self.bytes // rows)
        return self.bytes


def of_bytes(data: bytes, dtype: str, shape: tuple[int, ...]) -> Memory:
    address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value
    return Memory(dtype, shape, address, data)


def _of_torch(tensor: Any, torch: Any, name: str) -> Memory:
    tensor = tensor.detach()
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise TypeError(
            "%s is a tensor that is sparse or quantized, which can't be "
            "served: make it dense" % name
        )
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    dtype = str(tensor.dtype).rpartition(".")[2]
    if dtype not in SIZES:
        raise TypeError("%s: dtype %s can't be served" % (name, dtype))
    tensor = tensor.resolve_conj().resolve_neg()
    shape = tuple(tensor.shape)
    if tensor.is_contiguous():
        return Memory(dtype, shape, tensor.data_ptr(), tensor)
    if dtype != "bfloat16":
        try:
            return Memory(dtype, shape, None, tensor, tensor.numpy())
        except (RuntimeError, TypeError):
            pass  # a torch without numpy
    tensor = tensor.contiguous()
    return Memory(dtype, shape, tensor.data_ptr(), tensor)


def _of_numpy(array: Any, name: str) -> Memory:
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    dtype = array.dtype.name
    if dtype not in SIZES:
        raise TypeError(
            "%s is an array of dtype %s, which can't be served: numbers can, "
            "and strings as lists" % (name, array.dtype)
        )
    shape = tuple(array.shape)
    if array.flags.c_contiguous:
        return Memory(dtype, shape, array.ctypes.data, array)
    return Memory(dtype, shape, None, array, array)


def _is_a(value: Any, module: str, kind: str) -> bool:
    """Is it of a class of a module that is imported, or being imported?"""
    found = getattr(sys.modules.get(module), kind, None)
    return found is not None and isinstance(value, found)


def of(value: Any, name: str) -> Optional[Memory]:
    """The memory of a tensor or an array; None for anything else."""
    if not is_array(value):
        return None
    if _is_a(value, "torch", "Tensor"):
        return _of_torch(value, sys.modules["torch"], name)
    if _is_a(value, "numpy", "ndarray"):
        return _of_numpy(value, name)
    return _of_numpy(importlib.import_module("numpy").asarray(value), name)


def is_array(value: Any) -> bool:
    """Is that a tensor or an array?"""
    if _is_a(value, "torch", "Tensor"):
        return True
    if isinstance(value, type) or _is_a(value, "numpy", "generic"):
        return False
    return hasattr(value, "__array_interface__") or hasattr(
        value, "__dlpack__"
    )
