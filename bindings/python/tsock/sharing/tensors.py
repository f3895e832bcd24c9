# SPDX-License-Identifier: MIT
"""Steps that a script does on tensors, and which of them do the same there as
on Pillow's images, whose bytes tsock-producer makes."""

from __future__ import annotations

import re

from .. import recipe

_COLOUR = re.compile(r"\bfill=(?!0[,)])")  # of a border, but for black
_LISTS = ("RandomApply", "RandomChoice", "RandomOrder")
# What a step makes of an image: bytes or floats in a tensor.
_TO_BYTES = ("PILToTensor", "ToImage", "ToPureTensor")
_TO_FLOATS = ("ToTensor", "ToDtype", "ConvertImageDtype")
# By what an image is before it, the operations with the same result.
_ANYWHERE = ("RandomHorizontalFlip", "RandomVerticalFlip", "RandomErasing")
_CROPS = ("CenterCrop", "RandomCrop", "Pad")
_OF_BYTES = (
    "GaussianBlur RandomSolarize RandomPosterize RandomInvert RandomEqualize "
    "RandomAdjustSharpness"
).split()


def _same(name: str, text: str, state: str) -> bool:
    """Does it make the same of a tensor in that state as of an image?"""
    if name in _ANYWHERE or state == "image":
        return True
    if name in _CROPS:
        black = not _COLOUR.search(text)
        return state == "bytes" or (state == "floats" and black)
    return state == "bytes" and name in _OF_BYTES


def differ(texts: list[str]) -> list[bool]:
    """Of each step's text, does it make something else of the tensor that it
    is given than of an image?"""
    state, found = "image", []
    for text in texts:
        other = False
        for name in recipe.operations(text):
            if name == "Normalize":
                state = "normalized"
            elif name in _TO_FLOATS:
                state = "floats" if state != "normalized" else state
            elif name in _TO_BYTES:
                state = "bytes" if state == "image" else state
            elif name not in _LISTS:
                other = other or not _same(name, text, state)
        found.append(other)
    return found
