# SPDX-License-Identifier: MIT
"""The numbers that tsock.serve() is given, and the ring that they make."""

from __future__ import annotations

import os
from typing import Any, Optional

_MIB = 1 << 20
_NAMES = "length ring join_window max_batch epochs batch_bytes threads".split()


class Options:
    """What serve() was given, checked; without more what it does by default."""

    def __init__(
        self, min_consumers: int = 1, string_bytes: int = 256, **more: Any
    ) -> None:
        given: dict[str, Any] = dict.fromkeys(_NAMES)
        given.update(
            more, min_consumers=min_consumers, string_bytes=string_bytes
        )
        for what, value in given.items():
            least = 0 if what == "epochs" else 1
            if value is not None and (
                isinstance(value, bool)
                or not hasattr(value, "__index__")
                or value.__index__() < least
            ):
                raise ValueError(
                    "%s %r: it is a whole number, %d or more"
                    % (what, value, least)
                )
        self.length: Optional[int] = given["length"]
        self.ring: Optional[int] = given["ring"]
        self.join_window: Optional[int] = given["join_window"]
        self.max_batch: Optional[int] = given["max_batch"]
        self.epochs: int = given["epochs"] or 0
        self.string_bytes: int = string_bytes
        self.batch_bytes: Optional[int] = given["batch_bytes"]
        self.min_consumers: int = min_consumers
        cpus = len(os.sched_getaffinity(0))
        self.threads: int = given["threads"] or max(1, min(4, cpus // 2))


def _of_epochs(length: int, largest: int) -> int:
    """Samples that two epochs need, or one and two of the largest batches."""
    return max(64, (2 if largest < length else 3) * length)


def ring_of(
    o: Options, schema: Any, ragged: bool, length: int
) -> tuple[int, int]:
    """(samples in the ring, the largest batch), where nothing was said."""
    each = max(1, schema.row_bytes)
    if ragged:
        usual = min(64, 256 * _MIB // each, 2 * length)
        return o.ring or max(4, usual), 1
    own = schema.batch_size
    largest = o.max_batch
    if not largest:
        largest = max(2 * own, min(512, 64 * _MIB // each))
        if o.ring:
            largest = min(largest, max(own, o.ring // 4))
    usual = max(8 * own, min(2048, 256 * _MIB // each))
    usual = max(usual, 4 * largest)
    return o.ring or min(usual, _of_epochs(length, largest)), largest
