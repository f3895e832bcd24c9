# SPDX-License-Identifier: MIT
"""Which sample of the data set has which position in an epoch.

The producer's orders once more, from what the stream says about itself, so
that a loader's sampler can be iterated.  lib/order/order.h says what each
order is; a test compares both.
"""

from __future__ import annotations

import importlib
import random
from array import array
from typing import Any, Iterator, Mapping, Optional

_MASK = 0xFFFFFFFF
_EPOCH, _DEAL = 1, 2  # enum tsi_shuffle_use
_CHUNK = 1 << 14  # blocks of four words that are drawn at once


def _philox(key: int, counter: tuple[Any, Any, Any, Any]) -> tuple[Any, ...]:
    """Philox4x32-10; a counter's words may be arrays of 64-bit integers."""
    a, b, c, d = counter
    k, m = key & _MASK, key >> 32 & _MASK
    for _ in range(10):
        x, y = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (
            (y >> 32) ^ b ^ k,
            y & _MASK,
            (x >> 32) ^ d ^ m,
            x & _MASK,
        )
        k, m = k + 0x9E3779B9 & _MASK, m + 0xBB67AE85 & _MASK
    return a, b, c, d


def _words(seed: int, use: int, epoch: int, segment: int) -> Iterator[int]:
    """The words of one philox stream."""
    first = _philox(seed, (0x6F726472, use, 0, 0))
    key = first[1] << 32 | first[0]
    rest = segment, epoch & _MASK, epoch >> 32
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        block = 0
        while True:
            yield from _philox(key, (block, *rest))
            block += 1
    at, chunk = 0, 64
    while True:
        counter = numpy.arange(at, at + chunk, dtype=numpy.uint64)
        wide = [numpy.full(chunk, word, dtype=numpy.uint64) for word in rest]
        drawn = _philox(key, (counter, wide[0], wide[1], wide[2]))
        yield from numpy.stack(drawn, 1).ravel().tolist()
        at, chunk = at + chunk, min(2 * chunk, _CHUNK)


def _shuffle_philox(items: Any, words: Iterator[int]) -> None:
    """Fisher and Yates's shuffle; a draw below n as Lemire has it."""
    for n in range(len(items), 1, -1):
        m = next(words) * n
        if m & _MASK < n:
            floor = (_MASK + 1 - n) % n
            while m & _MASK < floor:
                m = next(words) * n
        j = m >> 32
        items[n - 1], items[j] = items[j], items[n - 1]


class _Torch:
    """torch's generator on the CPU."""

    def __init__(self, seed: int) -> None:
        state = [seed & _MASK]
        for i in range(1, 624):
            last = state[-1]
            state.append(1812433253 * (last ^ last >> 30) + i & _MASK)
        self._random = random.Random()
        self._random.setstate((3, tuple(state) + (624,), None))

    def words(self, count: int) -> array[int]:
        drawn = array("I")
        if count:
            bits = self._random.getrandbits(32 * count)
            drawn.frombytes(bits.to_bytes(4 * count, "little"))
        return drawn

    def skip(self, count: int) -> None:
        while count > 0:
            self.words(min(count, 1 << 20))
            count -= 1 << 20

    def permutation(self, n: int) -> array[int]:
        """torch.randperm(n)"""
        items = array("I", range(n))
        for i, word in enumerate(self.words(n - 1)):
            j = i + word % (n - i)
            items[i], items[j] = items[j], items[i]
        return items


class Order:
    """The order of a stream's epochs.

    identity is what the stream says about itself, see identity.py.  ValueError where that names no order that is known here.
    """

    def __init__(self, name: str, identity: Mapping[str, str]) -> None:
        self.kind = identity.get("order", "")
        if self.kind not in ("philox", "torch", "sequential"):
            raise ValueError(
                "stream %r doesn't say in which order it visits the data set; "
                "what a batch holds is in the field 'index', if the stream "
                "has one" % name
            )
        self.seed = int(identity["seed"])
        self.count = int(identity["samples"])
        self.segments = int(identity["segments"])
        rank, _, world = identity.get("shard", "0/1").partition("/")
        self.sharded = "shard" in identity
        self.rank, self.world = int(rank), int(world)
        self.length = -(-self.count // self.world)
        self._dealt: Optional[array[int]] = None
        self._last: tuple[int, array[int]] = (-1, array("I"))

    def _strided(self, items: Any) -> array[int]:
        """This rank's part of an order, padded by its own first samples."""
        if self.world == 1:
            return array("I", items)
        return array(
            "I",
            (
                items[(k * self.world + self.rank) % self.count]
                for k in range(self.length)
            ),
        )

    def _bound(self, segment: int) -> int:
        each, more = divmod(self.length, self.segments)
        return segment * each + min(segment, more)

    def _philox_by_segment(self, epoch: int) -> array[int]:
        if self._dealt is None:
            everything = array("I", range(self.count))
            _shuffle_philox(everything, _words(self.seed, _DEAL, 0, 0))
            self._dealt = self._strided(everything)
        items = array("I")
        for s in range(self.segments):
            part = self._dealt[self._bound(s) : self._bound(s + 1)]
            _shuffle_philox(part, _words(self.seed, _EPOCH, epoch, s))
            items.extend(part)
        return items

    def _torch(self, epoch: int) -> array[int]:
        if self.sharded:
            return self._strided(
                _Torch(self.seed + epoch).permutation(self.count)
            )
        generator = _Torch(self.seed)
        # Of each pass: the workers' seed, the order, and one not used.
        generator.skip(epoch * (2 + 2 * (self.count - 1)) + 2)
        return generator.permutation(self.count)

    def _make(self, epoch: int) -> array[int]:
        if self.kind == "torch":
            return self._torch(epoch)
        if self.kind == "sequential":
            return self._strided(range(self.count))
        if self.segments > 1:
            return self._philox_by_segment(epoch)
        items = array("I", range(self.count))
        _shuffle_philox(items, _words(self.seed, _EPOCH, epoch, 0))
        return self._strided(items)

    def indices(self, epoch: int) -> array[int]:
        """What epoch number epoch of the stream visits."""
        if self._last[0] != epoch:
            self._last = (epoch, self._make(epoch))
        return self._last[1]
