# SPDX-License-Identifier: MIT
"""Where the images of a table's rows lie."""

from __future__ import annotations

import struct
from array import array
from typing import NamedTuple, Sequence

MAX_LENGTH = 0xFFFFFFFF  # bytes of an image, and rows of a table


class Place(NamedTuple):
    """length bytes of a file from offset on; 0: all of it."""

    path: str
    offset: int = 0
    length: int = 0

    def check(self, row: int) -> None:
        """A ValueError, if that is no image's."""
        if not 0 <= self.length <= MAX_LENGTH or (
            self.offset and not self.length
        ):
            raise ValueError(
                "row %d: %d bytes at %d of %s; a sample has 1 byte to 4 GiB"
                % (row, self.length, self.offset, self.path)
            )


class Places:
    """A column of them, by the files' numbers."""

    def __init__(self) -> None:
        self.offset, self.length = array("Q"), array("I")
        self.file = array("I")

    def __len__(self) -> int:
        return len(self.file)

    def add(self, place: Place, files: dict[str, int]) -> None:
        """A row's; files gets the number of a new one."""
        self.file.append(files.setdefault(place.path, len(files)))
        self.offset.append(place.offset)
        self.length.append(place.length)

    def extend(self, more: Places, numbers: Sequence[int]) -> None:
        """Those of another column, whose files have these numbers here."""
        self.file.extend(numbers[k] for k in more.file)
        self.offset.extend(more.offset)
        self.length.extend(more.length)

    def encode(self) -> bytes:
        out = bytearray()
        for row in zip(self.offset, self.length, self.file):
            out += struct.pack("<QII", *row)
        return bytes(out)
