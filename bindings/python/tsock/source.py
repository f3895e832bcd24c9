# SPDX-License-Identifier: MIT
"""The value that a loader lends to its iterators, buffers and samplers.

A loader makes one for each iterator.  Only tsock.loader knows what else a
loader has.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

from . import errors
from .about import About
from .batches import Batches
from .connection import Pool, Stream
from .progress import Progress


class Source(NamedTuple):
    """A stream, as one loader reads it.

    The loader lives as long as its source.
    """

    about: About
    pool: Pool
    progress: Progress
    batches: Batches
    tensors: Any  # what makes tensors: of torch, or numpy's arrays
    fields: tuple[str, ...]
    batch_size: int
    drop_last: bool
    even: bool
    # These two may be set while an iterator reads.
    timeout: Callable[[], float]
    pin_memory: Callable[[], bool]
    # Join the stream by that connection.
    join: Callable[[Stream], None]
    # That pool has failed: the source to go on with, or None.
    go_on: Callable[[Pool, errors.Error], Optional[Source]]
