# SPDX-License-Identifier: MIT
"""Which sample of the data set has which position in an epoch.

The library's tsock_order(), from what the stream says about itself, so that a
loader's sampler can be iterated; include/tsock/order.h says what each order
is.
"""

from __future__ import annotations

from array import array
from ctypes import POINTER, byref, c_uint64, cast
from typing import Mapping, Optional

from . import _ffi, errors
from .interrupts import patiently

_lib = _ffi.lib


def _often(sampler: str) -> tuple[Optional[int], int]:
    """How often each sample comes, and how many are left of an epoch, as
    order.h takes them; None where samples are drawn."""
    repeat, limit = 1, 0
    for word in filter(None, sampler.split(",")):
        kind, _, number = word.partition(":")
        if kind == "repeat":
            repeat = int(number)
        elif kind == "limit":
            limit = int(number)
        else:
            return None, 0
    return repeat, limit


class Order:
    """The order of a stream's epochs.

    identity is what the stream says about itself, see identity.py.  ValueError
    where that names no order that is known here.
    """

    def __init__(self, name: str, identity: Mapping[str, str]) -> None:
        kind = identity.get("order", "")
        if kind not in _ffi.ORDERS:
            raise ValueError(
                "stream %r doesn't say in which order it visits the data set; "
                "what a batch holds is in the field 'index', if the stream "
                "has one" % name
            )
        sampler = identity.get("sampler", "")
        repeat, limit = _often(sampler)
        if repeat is None:
            raise ValueError(
                "stream %r draws its samples (sampler=%s), so their order "
                "isn't known beforehand; what a batch holds is in the field "
                "'index'" % (name, sampler)
            )
        shard, _, shards = identity.get("shard", "0/0").partition("/")
        self._opts = _ffi.OrderOpts(
            kind=_ffi.ORDERS[kind],
            seed=int(identity["seed"]),
            count=int(identity["samples"]),
            segments=int(identity["segments"]),
            shard=int(shard),
            shards=int(shards),
            repeat=repeat,
            limit=limit,
        )
        self._last: Optional[tuple[int, array[int]]] = None

    def _make(self, epoch: int) -> array[int]:
        if not 0 <= epoch < 1 << 64:
            raise ValueError("epoch %d: epochs are numbered from 0" % epoch)
        opts = byref(self._opts)
        # The length is 0 if there is no such order: the other call says why.
        length: int = _lib.tsock_order_len(opts)
        items = array("q", [0]) * length
        index = cast(items.buffer_info()[0], POINTER(c_uint64))

        def write() -> Optional[errors.Error]:
            code = _lib.tsock_order(opts, epoch, index, len(items))
            return _ffi.failure(code) if code else None

        failure = patiently(write)
        if failure:
            raise failure
        return items

    def indices(self, epoch: int) -> array[int]:
        """What epoch number epoch of the stream visits."""
        if self._last is None or self._last[0] != epoch:
            self._last = (epoch, self._make(epoch))
        return self._last[1]
