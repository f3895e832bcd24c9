# SPDX-License-Identifier: MIT
"""The callers of a property: frameworks expect of a loader what it can't be.

Frameworks get the answer that they need to go on, everybody else the truth.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Iterator, Optional


def _frames(packages: tuple[str, ...]) -> Iterator[FrameType]:
    """The innermost calls that are in these packages, outwards, as seen from
    the property that asks."""
    frame: Optional[FrameType] = sys._getframe(3)
    while frame is not None:
        module: str = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] not in packages:
            return
        yield frame
        frame = frame.f_back


def is_accelerate() -> bool:
    """Has accelerate's code called the property that asks?"""
    for _ in _frames(("accelerate",)):
        return True
    return False


def overfitting_trainer() -> Any:
    """Lightning's trainer, if it reads the property that asks in order to see
    whether overfit_batches has to turn off shuffling; else None."""
    asked = False
    for frame in _frames(("lightning", "pytorch_lightning")):
        if asked:
            return frame.f_locals.get("trainer")
        asked = frame.f_code.co_name == "_resolve_overfit_batches"
    return None
