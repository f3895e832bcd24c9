# SPDX-License-Identifier: MIT
"""The random numbers of the script, which looking at its loader mustn't draw."""

from __future__ import annotations

import contextlib
import random
from typing import Any, Iterator

from .datasets import known


def states() -> list[Any]:
    """Of all generators that a script's functions draw from by default."""
    torch, numpy = known("torch:get_rng_state"), known(
        "numpy.random:get_state"
    )
    return [
        random.getstate(),
        torch() if torch else None,
        numpy() if numpy else None,
    ]


def comparable(found: list[Any]) -> list[Any]:
    """The states as values that == compares."""
    python, torch, numpy = found
    return [
        python,
        None if torch is None else torch.tolist(),
        (
            None
            if numpy is None
            else [getattr(x, "tolist", lambda: x)() for x in numpy]
        ),
    ]


def restore(found: list[Any]) -> None:
    python, torch, numpy = found
    random.setstate(python)
    if torch is not None:
        known("torch:set_rng_state")(torch)
    if numpy is not None:
        known("numpy.random:set_state")(numpy)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Within this the script's code may draw; afterwards nothing was drawn."""
    before = states()
    try:
        yield
    finally:
        restore(before)
