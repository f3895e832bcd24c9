# SPDX-License-Identifier: MIT
"""What a loader becomes: its parts, and the stream that has the same meaning."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterable, NamedTuple, Optional


class Range(NamedTuple):
    """An image that is a part of a file."""

    path: str
    offset: int
    length: int


UNKNOWN = -1  # a length, until the stream is there

# An image's path, its Range or its bytes; and its label.
Sample = tuple[Any, int]


class Part(NamedTuple):
    """A part of a script's loader, as tsock.explain() shows it."""

    name: str  # "data set"
    what: str  # it is
    why: str = ""  # it isn't native; "" where it is
    instead: str = ""  # what would make it native
    differs: str = ""  # how a native stream differs from the script

    @property
    def native(self) -> bool:
        return not self.why


class NotNative(Exception):
    """A part that tsock-producer doesn't have: why, and what would be."""

    def __init__(self, why: str, instead: str = "") -> None:
        super().__init__(why)
        self.why, self.instead = why, instead


class MaskKind(NamedTuple):
    """What masks of a batch are."""

    dtype: str
    channel: bool  # is there a dimension of one between samples and rows?


@dataclasses.dataclass
class Source:
    """A data set that tsock-producer can read.

    what        it is, in words
    options     of the producer; none where a table has to be written
    length      of the whole data set, or UNKNOWN
    at_hand     samples that get() and image() have, where that is UNKNOWN
    transform   of images, as the script has it
    get         the script's own sample of an index, transform included
    image       the same index's image before the transform
    samples     place and label of each image, if a table can be written
    chosen      the indices that the script wants; None: all
    classes     names by label
    pair        a sample's image and label
    keyed       samples are dicts
    masks       samples have a mask in place of a label
    name        what a stream of it is called; "": as its folder
    size        width and height, where all images have the same
    """

    what: str
    options: dict[str, Any]
    length: int
    transform: Any
    get: Callable[[int], Any]
    image: Callable[[int], Any]
    samples: Optional[Callable[[], Iterable[Sample]]] = None
    chosen: Optional[list[int]] = None
    classes: Optional[list[str]] = None
    weights: Optional[list[float]] = None
    pair: Callable[[Any], tuple[Any, Any]] = lambda sample: sample
    table: bool = False  # one has to be written
    keyed: bool = False
    masks: bool = False
    name: str = ""
    at_hand: int = 0
    size: Optional[tuple[int, int]] = None

    def __len__(self) -> int:
        return self.length if self.chosen is None else len(self.chosen)

    @property
    def reach(self) -> int:
        """How many of its first samples can be looked at."""
        return self.at_hand if self.length == UNKNOWN else len(self)

    def place(self, i: int) -> int:
        """The data set's index of the i-th sample that the script wants."""
        if self.length == UNKNOWN:
            return i
        n = len(self)
        if not -n <= i < n:
            raise IndexError(
                "index %d is out of range: %s has %d samples"
                % (i, self.what.partition(":")[0], n)
            )
        return i % n if self.chosen is None else self.chosen[i]


@dataclasses.dataclass
class Plan:
    """Parts of a loader, and what they make.

    options     of tsock-producer
    keywords    of tsock.DataLoader
    """

    parts: list[Part] = dataclasses.field(default_factory=list)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    keywords: dict[str, Any] = dataclasses.field(default_factory=dict)
    source: Optional[Source] = None
    steps: list[tuple[str, Any]] = dataclasses.field(default_factory=list)
    random: bool = True  # does the recipe draw numbers?
    mask: Optional[MaskKind] = None  # of batches, where samples have one

    @property
    def data(self) -> Source:
        """The source, where there is one."""
        assert self.source is not None
        return self.source

    @property
    def native(self) -> bool:
        return bool(self.parts) and all(part.native for part in self.parts)

    @property
    def why(self) -> str:
        """Why a program of Python has to serve the loader."""
        return "; ".join(
            "%s (%s) %s" % (part.name, part.what, part.why)
            for part in self.parts
            if not part.native
        )

    @property
    def differs(self) -> str:
        found = dict.fromkeys(part.differs for part in self.parts)
        return "; it ".join(filter(None, found))

    def add(
        self, name: str, what: str, look: Callable[[], Optional[str]]
    ) -> bool:
        """Add a part, which look() examines; it may say how it differs."""
        try:
            self.parts.append(Part(name, what, differs=look() or ""))
        except NotNative as e:
            self.parts.append(Part(name, what, e.why, e.instead))
        return self.parts[-1].native
