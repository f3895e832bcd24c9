# SPDX-License-Identifier: MIT
"""The memory of a tensor or an array, to be copied from once.

Copies run without the interpreter's lock.  Where an array isn't contiguous
numpy copies it, straight to its place, too.  What is in a GPU's memory may be
left there for readers that can take it from there.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import sys
import threading
from typing import Any, Callable, Optional, Sequence

from . import dlpack

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


class OnGpu(Memory):
    """Bytes in a GPU's memory, at address; copies come by way of the host."""

    __slots__ = ("device", "stream", "_fetch", "_fetched", "_lock")

    def __init__(
        self,
        dtype: str,
        shape: tuple[int, ...],
        address: int,
        keep: Any,
        device: int,
        stream: int,
        fetch: Callable[[], Memory],
    ) -> None:
        super().__init__(dtype, shape, address, keep)
        self.device = device  # as CUDA numbers it
        self.stream = stream  # in which they are being made
        self._fetch = fetch
        self._fetched: Optional[Memory] = None
        self._lock = threading.Lock()

    def on_host(self) -> Memory:
        with self._lock:
            if self._fetched is None:
                self._fetched = self._fetch()
            return self._fetched

    def copy(self, to: int, first: int, count: int, row_bytes: int) -> int:
        return self.on_host().copy(to, first, count, row_bytes)

    def copy_all(self, to: int) -> int:
        return self.on_host().copy_all(to)


def of_bytes(data: bytes, dtype: str, shape: tuple[int, ...]) -> Memory:
    address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value
    return Memory(dtype, shape, address, data)


def _on_gpu_of_torch(tensor: Any, torch: Any, dtype: str) -> Memory:
    # The current stream is this thread's, and may be fetched by another.
    stream = torch.cuda.current_stream(tensor.device)
    tensor = tensor.resolve_conj().resolve_neg().contiguous()

    def fetch() -> Memory:
        with torch.cuda.stream(stream):
            there = tensor.cpu()
        return Memory(dtype, shape, there.data_ptr(), there)

    shape = tuple(tensor.shape)
    return OnGpu(
        dtype,
        shape,
        tensor.data_ptr(),
        tensor,
        tensor.device.index,
        stream.cuda_stream,
        fetch,
    )


def _of_torch(tensor: Any, torch: Any, name: str, stays: bool) -> Memory:
    tensor = tensor.detach()
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise TypeError(
            "%s is a tensor that is sparse or quantized, which can't be "
            "served: make it dense" % name
        )
    dtype = str(tensor.dtype).rpartition(".")[2]
    if dtype not in SIZES:
        raise TypeError("%s: dtype %s can't be served" % (name, dtype))
    if stays and tensor.device.type == "cuda" and tensor.numel():
        return _on_gpu_of_torch(tensor, torch, dtype)
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
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


# By the letter and the size of __cuda_array_interface__'s typestr.
_LETTERS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


_TO_HOST = ("get", "copy_to_host")  # CuPy's, numba's
_NUMPYS = ("__array__", "__array_interface__")  # what numpy takes


def _host_array(value: Any) -> Any:
    """An array of another library's, in host memory."""
    for name in _TO_HOST:
        if hasattr(value, name):
            return getattr(value, name)()
    return importlib.import_module("numpy").asarray(value)


def _of_cuda(value: Any, name: str, stays: bool) -> Memory:
    """An array on a GPU that isn't torch's: CuPy's, numba's, JAX's."""
    said = value.__cuda_array_interface__
    letter, size = said["typestr"][1], int(said["typestr"][2:])
    dtype = _LETTERS.get(letter, "") + ("" if letter == "b" else str(8 * size))
    shape = tuple(said["shape"])
    if dtype not in SIZES or said["typestr"][0] == ">" or said.get("mask"):
        raise TypeError(
            "%s is an array of type %s on a GPU, which can't be served: "
            "numbers can" % (name, said["typestr"])
        )
    whole, strides = SIZES[dtype], said.get("strides")
    for n, stride in zip(reversed(shape), reversed(strides or ())):
        if n > 1 and stride != whole:
            raise TypeError(
                "%s is an array on a GPU that isn't contiguous: make it so"
                % name
            )
        whole *= n
    if not stays or 0 in shape:
        return _of_numpy(_host_array(value), name)
    kind, device = value.__dlpack_device__()
    if kind != 2:  # kDLCUDA
        raise TypeError("%s is in memory of an odd kind, %d" % (name, kind))
    return OnGpu(
        dtype,
        shape,
        said["data"][0],
        value,
        device,
        said.get("stream") or 1,  # CUDA's default stream
        lambda: _of_numpy(_host_array(value), name),
    )


def _fetched(value: Any, name: str) -> Memory:
    """A copy in host memory of an array on a GPU, as its library makes it."""
    if any(hasattr(value, way) for way in (*_TO_HOST, *_NUMPYS)):
        return _of_numpy(_host_array(value), name)
    why: Optional[Exception] = None
    try:
        lent = dlpack.Lent(value, dl_device=(dlpack.HOST, 0))
        if lent.kind == dlpack.HOST:
            return Memory(lent.dtype, lent.shape, lent.address, lent)
    except (TypeError, BufferError) as e:
        why = e
    raise TypeError(
        "%s has to come to host memory, and %s has neither get() nor "
        "__array__(), nor does its __dlpack__() take dl_device=(1, 0): serve "
        "torch.from_dlpack() of it, or a copy in host memory"
        % (name, type(value).__qualname__)
    ) from why


def _of_dlpack(value: Any, name: str, stays: bool) -> Memory:
    """An array that is known by what its __dlpack__() lends alone."""
    there = dlpack.is_on_gpu(value)
    lent = dlpack.Lent(value, **dlpack.STREAM if there else {})
    if lent.dtype not in SIZES:
        raise TypeError(
            "%s is an array of type %s, which can't be served: numbers can"
            % (name, lent.dtype)
        )
    if not lent.is_contiguous:
        raise TypeError(
            "%s is an array that isn't contiguous: make it so" % name
        )
    if lent.kind in (dlpack.HOST, dlpack.PINNED):
        return Memory(lent.dtype, lent.shape, lent.address, lent)
    if lent.kind != dlpack.CUDA:
        raise TypeError(
            "%s is in memory of an odd kind, %d" % (name, lent.kind)
        )

    def fetch() -> Memory:
        return _fetched(value, name)

    if not stays or 0 in lent.shape:
        return fetch()
    return OnGpu(
        lent.dtype,
        lent.shape,
        lent.address,
        lent,
        lent.device,
        dlpack.DEFAULT_STREAM,
        fetch,
    )


def _is_a(value: Any, module: str, kind: str) -> bool:
    """Is it of a class of a module that is imported, or being imported?"""
    found = getattr(sys.modules.get(module), kind, None)
    return found is not None and isinstance(value, found)


def of(value: Any, name: str, stays: bool = False) -> Optional[Memory]:
    """The memory of a tensor or an array; None for anything else.

    stays: what is on a GPU is OnGpu, and else copied to host memory here.
    """
    if not is_array(value):
        return None
    if _is_a(value, "torch", "Tensor"):
        return _of_torch(value, sys.modules["torch"], name, stays)
    if _is_a(value, "numpy", "ndarray"):
        return _of_numpy(value, name)
    if hasattr(value, "__cuda_array_interface__"):
        return _of_cuda(value, name, stays)
    if hasattr(value, "__dlpack__") and (
        dlpack.is_on_gpu(value)
        or not any(hasattr(value, way) for way in _NUMPYS)
    ):
        return _of_dlpack(value, name, stays)
    return _of_numpy(importlib.import_module("numpy").asarray(value), name)


def is_array(value: Any) -> bool:
    """Is that a tensor or an array?"""
    if _is_a(value, "torch", "Tensor"):
        return True
    if isinstance(value, type) or _is_a(value, "numpy", "generic"):
        return False
    return any(
        hasattr(value, name)
        for name in (
            "__array_interface__",
            "__cuda_array_interface__",
            "__dlpack__",
        )
    )


def shape_of(value: Any) -> Sequence[int]:
    """The shape of a tensor or an array; those that only lend say it then."""
    shape: Optional[Sequence[int]] = getattr(value, "shape", None)
    return dlpack.Lent(value).shape if shape is None else shape
