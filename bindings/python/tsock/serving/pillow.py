# SPDX-License-Identifier: MIT
"""Images of Pillow's, which data sets give that have no transform."""

from __future__ import annotations

from typing import Any

from . import nest
from .fixed import BadBatch


def bad_batch() -> BadBatch:
    return BadBatch(
        "the loader's samples are images of Pillow's, which can't be served: "
        "give its data set a transform that makes tensors of one size, such as "
        "torchvision.transforms.Compose([Resize((224, 224)), ToTensor()])"
    )


def is_why(error: TypeError) -> bool:
    """Are they what torch's loader could not put together?"""
    return "class 'PIL." in str(error)


def refuse(batch: Any) -> None:
    """Refuse a batch with images that nobody has put together."""
    for _, value in nest.walk(batch):
        if type(value).__module__.partition(".")[0] == "PIL":
            raise bad_batch()
