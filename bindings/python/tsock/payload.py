# SPDX-License-Identifier: MIT
"""What TensorSocket's pack_fn and unpack_fn are given, and what they make.

For tensorsocket.py.  A pack_fn may wrap tensors in TensorPayload and make any
nest of them; tsock.serve() carries that as nested dicts, and here they become
those dicts and what they were before.  Values alone: nothing here knows a
stream.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable

_PACKED = "tensorsocket.packed"  # around what a pack_fn made
_PAYLOAD = "tensorsocket.payload"  # around a tensor that it wrapped


class TensorPayload:
    """A tensor on its way; ``tensor`` is it."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def is_tensor(value: Any) -> bool:
    return hasattr(value, "data_ptr") and hasattr(value, "shape")


def each(value: Any, function: Callable[[Any], Any]) -> Any:
    """A nest like this one, of function(leaf)."""
    if isinstance(value, dict):
        return {k: each(v, function) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[each(v, function) for v in value])
    if isinstance(value, (list, tuple)):
        return type(value)([each(v, function) for v in value])
    return function(value)


def as_tuple(batch: Any) -> Any:
    """A batch as TensorSocket gives it: a dict, or a tuple."""
    if isinstance(batch, dict):
        return batch
    return tuple(batch) if isinstance(batch, (list, tuple)) else (batch,)


# ---- the usual functions -------------------------------------------------


def pack(data: Any) -> Any:
    """The usual pack_fn: each tensor as a TensorPayload."""
    return _like(
        data,
        [TensorPayload(t) if is_tensor(t) else t for t in _items(data)],
    )


def unpack(data: Any) -> Any:
    """The usual unpack_fn: the tensors of TensorPayloads."""
    return _like(
        data,
        [
            t.tensor if isinstance(t, TensorPayload) else t
            for t in _items(data)
        ],
    )


def _items(data: Any) -> list[Any]:
    return list(data.values() if isinstance(data, dict) else data)


def _like(data: Any, items: list[Any]) -> Any:
    """A dict with data's keys if that is one, else a tuple."""
    return dict(zip(data, items)) if isinstance(data, dict) else tuple(items)


def padded(longest: int) -> Callable[[Any], Any]:
    """Dicts' tensors padded to longest in their last dimension."""
    pad = importlib.import_module("torch.nn.functional").pad

    def one(key: Any, tensor: Any) -> Any:
        if not is_tensor(tensor) or len(tensor.shape) < 2:
            return tensor
        length = int(tensor.shape[-1])
        if length > longest:
            raise ValueError(
                "%r is %d long, and max_tensor_length is %d"
                % (key, length, longest)
            )
        # What loss functions leave out, where it's what they are given.
        value = -100 if key == "labels" else 0
        return pad(tensor, (0, longest - length), value=value)

    def all_of(batch: Any) -> Any:
        if not isinstance(batch, dict):
            return batch
        return {key: one(key, value) for key, value in batch.items()}

    return all_of


# ---- on its way ----------------------------------------------------------


def to_serve(made: Any) -> Any:
    """What a pack_fn made, as tsock.serve() can carry it."""
    return {
        _PACKED: each(
            made,
            lambda v: {_PAYLOAD: v.tensor}
            if isinstance(v, TensorPayload)
            else v,
        )
    }


def is_packed(batch: Any) -> bool:
    """Did a pack_fn make this batch of a stream?"""
    return isinstance(batch, dict) and set(batch) == {_PACKED}


def as_packed(batch: Any) -> Any:
    """What a pack_fn made, again."""
    return _with_payloads(batch[_PACKED])


def _with_payloads(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {_PAYLOAD}:
            return TensorPayload(value[_PAYLOAD])
        return {k: _with_payloads(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)([_with_payloads(v) for v in value])
    return value
