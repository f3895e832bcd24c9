# SPDX-License-Identifier: MIT
"""Which sample of the data set has which position in an epoch.

The library's tsock_order() and tsock_order_at(), from what the stream says
about itself, so that a loader's sampler can be iterated;
include/tsock/order.h says what each order is.
"""

from __future__ import annotations

from array import array
from ctypes import POINTER, byref, c_uint64, cast
from typing import Iterator, Mapping, Optional, Sequence, Union, overload

from . import _ffi, errors
from .interrupts import patiently

_lib = _ffi.lib

# From so many samples on the philox order is of this version (order.h).
_EVALUATED, _VERSION = 1 << 16, "2"
_SOME = 4096  # places that are found at once


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


def _check(epoch: int) -> None:
    if not 0 <= epoch < 1 << 64:
        raise ValueError("epoch %d: epochs are numbered from 0" % epoch)


class Places(Sequence[int]):
    """What an epoch visits, found where it is asked for."""

    def __init__(self, opts: _ffi.OrderOpts, epoch: int) -> None:
        self._opts, self._epoch = opts, epoch
        self._length: int = _lib.tsock_order_len(byref(opts))

    def __len__(self) -> int:
        return self._length

    def _at(self, first: int, step: int, count: int) -> array[int]:
        items = array("q", [0]) * count
        for at in range(0, count, _SOME):
            some = min(_SOME, count - at)
            start = items.buffer_info()[0] + at * items.itemsize
            code = _lib.tsock_order_at(
                byref(self._opts), self._epoch, first + at * step, step,
                cast(start, POINTER(c_uint64)), some,
            )
            if code:
                raise _ffi.failure(code)
        return items

    @overload
    def __getitem__(self, which: int) -> int: ...

    @overload
    def __getitem__(self, which: slice) -> array[int]: ...

    def __getitem__(self, which: Union[int, slice]) -> Union[int, array[int]]:
        places = range(self._length)[which]
        if isinstance(places, int):
            return self._at(places, 1, 1)[0]
        if places.step > 0:
            return self._at(places.start, places.step, len(places))
        if not places:
            return array("q")
        return self[places[-1] : places[0] + 1 : -places.step][::-1]

    def __iter__(self) -> Iterator[int]:
        for at in range(0, self._length, _SOME):
            yield from self[at : at + _SOME]


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
        evaluated = kind == "philox" and int(identity["samples"]) >= _EVALUATED
        version = identity.get("order-version")
        if version != (_VERSION if evaluated else None):
            raise ValueError(
                "stream %r visits the data set in an order of another release "
                "of tsock (order-version=%s), which isn't known here; what a "
                "batch holds is in the field 'index'"
                % (name, version or "none")
            )
        ranks, _, shards = identity.get("shard", "0/0").partition("/")
        shard, _, last = ranks.partition("-")
        epoch, _, start = identity.get("start", "0:0").partition(":")
        of_part = int(last or shard) - int(shard) + 1
        # Nothing of it has to be made: order.h says where.
        segments = int(identity["segments"])
        least = int(identity["samples"])
        if segments > 1:  # the shortest of them
            least = least * of_part // max(int(shards), 1) // segments
        self._evaluated = kind == "sequential" or (
            kind == "philox" and least >= _EVALUATED
        )
        self._opts = _ffi.OrderOpts(
            kind=_ffi.ORDERS[kind],
            seed=int(identity["seed"]),
            count=int(identity["samples"]),
            segments=segments,
            shard=int(shard),
            shards=int(shards),
            shard_ranks=of_part,
            start_epoch=int(epoch),
            start=int(start),
            repeat=repeat,
            limit=limit,
        )
        self._last: Optional[tuple[int, array[int]]] = None

    def _make(self, epoch: int) -> array[int]:
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
        _check(epoch)
        if self._last is None or self._last[0] != epoch:
            self._last = (epoch, self._make(epoch))
        return self._last[1]

    def places(self, epoch: int) -> Sequence[int]:
        """The same, without the memory where the order needs none."""
        _check(epoch)
        # Of options that name no order, the other call says why.
        if self._evaluated and _lib.tsock_order_len(byref(self._opts)):
            return Places(self._opts, epoch)
        return self.indices(epoch)
