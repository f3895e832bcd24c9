# SPDX-License-Identifier: MIT
"""What an array's __dlpack__() lends, read here and given to nobody else.

It says itself on which device it is, so an array without __dlpack_device__()
will do as well.
"""

from __future__ import annotations

from typing import Any

from .. import tensors

HOST, CUDA, PINNED = 1, 2, 3  # DLDeviceType
# CUDA's: __dlpack__() has it wait until the array is made.  It is the one that
# is meant where none is said, as nobody can to an array of unknown device.
DEFAULT_STREAM = 1
STREAM = {"stream": DEFAULT_STREAM}

_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
_BOOL = (6, 8)


class Lent:
    """An array's memory, for as long as this lives."""

    def __init__(self, value: Any, **how: Any) -> None:
        # The capsule's destructor gives back what it lends.
        self._capsule = value.__dlpack__(**how)
        tensor = tensors.lent_by(self._capsule)
        self.kind: int = tensor.device_type
        self.device: int = tensor.device_id
        self.shape: tuple[int, ...] = tuple(tensor.shape[: tensor.ndim])
        self.address: int = (tensor.data or 0) + tensor.byte_offset
        self.dtype = "bool"
        if (tensor.code, tensor.bits) != _BOOL or tensor.lanes != 1:
            self.dtype = "%s%d%s" % (
                _CODES.get(tensor.code, "type"),
                tensor.bits,
                "" if tensor.lanes == 1 else "x%d" % tensor.lanes,
            )
        self.is_contiguous = True
        elements = 1
        if tensor.strides and 0 not in self.shape:
            for i in reversed(range(tensor.ndim)):
                if self.shape[i] > 1 and tensor.strides[i] != elements:
                    self.is_contiguous = False
                elements *= self.shape[i]


def is_on_gpu(value: Any) -> bool:
    """Does the array say so, without lending anything?"""
    try:
        return bool(value.__dlpack_device__()[0] == CUDA)
    except Exception:  # noqa: BLE001 - any library's, for any reason
        return False
