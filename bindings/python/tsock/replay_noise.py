# SPDX-License-Identifier: MIT
"""The noise of RandomErasing, made again from its seed."""

from __future__ import annotations

import importlib
import math
from typing import Any


def _philox(np: Any, key: int, count: int) -> Any:
    """Philox4x32-10: the blocks 0 to count - 1, four words each."""
    words = [np.zeros(count, np.uint64) for _ in range(4)]
    words[0] = np.arange(count, dtype=np.uint64)
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        a = words[0] * np.uint64(0xD2511F53)
        b = words[2] * np.uint64(0xCD9E8D57)
        words = [
            b >> half ^ words[1] ^ np.uint64(k0),
            b & low,
            a >> half ^ words[3] ^ np.uint64(k1),
            a & low,
        ]
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    return np.stack(words, 1)


def _ends(np: Any, mean: float, std: float) -> Any:
    """Of each byte the end of those numbers of 16 bits that become it."""
    below = (
        0.5 * math.erfc(-((b + 0.5 - mean) / std) * math.sqrt(0.5))
        for b in range(255)
    )
    return np.array([math.floor(65536 * p + 0.5) for p in below])


def noise(
    seed: int, numbers: tuple[float, ...], height: int, width: int, channels: int
) -> Any:
    """Bytes [height, width, channels]; numbers are means and deviations."""
    np = importlib.import_module("numpy")
    several = len(numbers) == 6
    count = height * width * channels
    words = _philox(np, seed, (count + 7) // 8).reshape(-1, 1)
    halves = np.concatenate([words & np.uint64(0xFFFF), words >> np.uint64(16)], 1)
    bits = halves.reshape(-1)[:count].reshape(height, width, channels)
    out = np.empty((height, width, channels), np.uint8)
    for k in range(channels):
        mean, std = (numbers[k], numbers[3 + k]) if several else numbers
        ends = _ends(np, mean, std)
        out[..., k] = np.searchsorted(ends, bits[..., k], side="right")
    return out
