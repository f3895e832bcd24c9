# SPDX-License-Identifier: MIT
"""A batch's field as a tensor of torch or numpy: the same bytes, no copy.

Each tensor keeps its batch alive by a DLPack manager whose deleter is C: it
needs no interpreter, so the last tensor may die on any thread and at any time,
the end of the process included.  Nothing here looks at a pixel.
"""

from __future__ import annotations

import ctypes
import importlib
from ctypes import CFUNCTYPE, Structure, c_int, c_int32, c_int64, c_uint8
from ctypes import POINTER, byref, c_char_p, c_uint16, c_uint32, c_uint64
from ctypes import c_void_p, py_object
from typing import Any, Callable, Optional, Union

from . import _ffi

_lib = _ffi.lib

_new = ctypes.pythonapi.PyCapsule_New
_new.restype = py_object
_new.argtypes = [c_void_p, c_char_p, c_void_p]
_unused = ctypes.pythonapi.PyCapsule_IsValid
_unused.restype = c_int
_unused.argtypes = [py_object, c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = c_void_p
_pointer.argtypes = [py_object, c_char_p]

# A capsule keeps the pointer to its name: these two live for ever.
_NAMES = {0: c_char_p(b"dltensor"), 1: c_char_p(b"dltensor_versioned")}
_DELETER = CFUNCTYPE(None, c_void_p)


class _Tensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Managed(Structure):
    _fields_ = [
        ("tensor", _Tensor),
        ("manager", c_void_p),
        ("deleter", c_void_p),
    ]


class _Versioned(Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    ]


_STRUCTS = {0: _Managed, 1: _Versioned}


def lend(batch: Any, i: int, versioned: int) -> int:
    """The address of a DLPack tensor of field i, which shares its bytes."""
    out = c_void_p()
    code = _lib.tsock_batch_dlpack(batch, i, versioned, byref(out))
    if code:
        raise _ffi.failure(code)
    assert out.value is not None
    return out.value


def give_back(address: int, versioned: int) -> None:
    """Call the deleter of a tensor that nobody took."""
    managed: Any = _STRUCTS[versioned].from_address(address)
    deleter = managed.deleter
    if deleter:
        _DELETER(deleter)(address)


def lent_by(capsule: Any) -> Any:
    """The tensor of a capsule, whose owner keeps it while that lives."""
    for versioned, name in _NAMES.items():
        if _unused(capsule, name):
            return _STRUCTS[versioned].from_address(
                _pointer(capsule, name)
            ).tensor
    raise TypeError("%r is no DLPack capsule, or one that was used" % capsule)


class _Lent:
    """What numpy.from_dlpack() wants to see."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule


def _import(
    batch: Any, i: int, versioned: int, take: Callable[[Any], Any]
) -> Any:
    """take() a capsule of field i; unless it did, the field goes back.

    The capsule has no destructor: none in Python could be trusted at the end
    of the interpreter, and it never leaves this function unused.
    """
    name = _NAMES[versioned]
    address = lend(batch, i, versioned)
    capsule = None
    try:
        capsule = _new(address, name, None)
        return take(capsule)
    finally:
        if capsule is None or _unused(capsule, name):
            give_back(address, versioned)


class Torch:
    """torch tensors."""

    name = "torch"

    def __init__(self) -> None:
        self.torch = importlib.import_module("torch")
        dlpack = importlib.import_module("torch.utils.dlpack")
        self._take = dlpack.from_dlpack
        self._versioned = 1

    def roll(self, tensor: Any, by: int) -> Any:
        """Its samples, so many places further, and round the end."""
        return self.torch.roll(tensor, by, 0)

    def tensor(self, batch: Any, i: int) -> Any:
        if self._versioned:
            try:
                return _import(batch, i, 1, self._take)
            except (RuntimeError, BufferError, ValueError, TypeError):
                # A torch from before versioned DLPack refuses the name.
                tensor = _import(batch, i, 0, self._take)
                self._versioned = 0
                return tensor
        return _import(batch, i, 0, self._take)


class Numpy:
    """numpy arrays, writable."""

    name = "numpy"
    torch: Any = None

    def __init__(self) -> None:
        self._numpy = importlib.import_module("numpy")
        # Does from_dlpack() give arrays that may be written into?
        self._dlpack: Optional[bool] = None

    def roll(self, array: Any, by: int) -> Any:
        return self._numpy.roll(array, by, 0)

    def _take(self, capsule: Any) -> Any:
        return self._numpy.from_dlpack(_Lent(capsule))

    def _is_writable(self, batch: Any, i: int) -> bool:
        """Is the array that from_dlpack() makes of a field?"""
        # Not so before 2.2.5; before 2.1 it doesn't know the capsule.
        try:
            array = _import(batch, i, 1, self._take)
        except (AttributeError, RuntimeError, ValueError, TypeError):
            return False
        return bool(array.flags.writeable)

    def tensor(self, batch: Any, i: int) -> Any:
        if self._dlpack is None:
            self._dlpack = self._is_writable(batch, i)
        if self._dlpack:
            return _import(batch, i, 1, self._take)
        return self._numpy.asarray(_Owner(lend(batch, i, 0)))


class _Owner:
    """A field for numpy's older array interface; the array keeps it alive."""

    _KINDS = {0: "i", 1: "u", 2: "f"}  # DLDataTypeCode

    def __init__(self, address: int) -> None:
        managed = _Managed.from_address(address)
        self._address: Optional[int] = address
        self._free = _DELETER(managed.deleter)
        t = managed.tensor
        kind = "%s%d" % (self._KINDS[t.code], t.bits // 8)
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(t.shape[: t.ndim]),
            "typestr": ("|" if t.bits == 8 else "<") + kind,
            "data": (t.data + t.byte_offset, False),
        }

    def __del__(self) -> None:
        address, self._address = self._address, None
        if address:
            self._free(address)


def framework(which: Optional[str]) -> Union[Torch, Numpy]:
    """The importer for "torch", "numpy", or None: torch if there is one."""
    if which not in (None, "torch", "numpy"):
        raise ValueError(
            "framework %r: it is 'torch', 'numpy', or None for what is there"
            % (which,)
        )
    if which != "numpy":
        try:
            return Torch()
        except ImportError as e:
            if which == "torch":
                raise ImportError(
                    "framework='torch', but torch can't be imported: %s" % e
                ) from e
    try:
        return Numpy()
    except ImportError as e:
        raise ImportError(
            "tsock.DataLoader gives torch or numpy tensors, and neither can "
            "be imported: %s" % e
        ) from e
