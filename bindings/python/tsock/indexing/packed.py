# SPDX-License-Identifier: MIT
"""Rows of several lengths, packed one behind the other into samples of one."""

from __future__ import annotations

from array import array
from typing import Any, Iterator, Mapping, NamedTuple, Sequence, Union

from .column import Column
from .table import Table

DOCUMENT = "document"  # which of a sample's documents a value is of


class _Piece(NamedTuple):
    """Values of a row, by their numbers in the column, and where they go."""

    sample: int
    at: int  # in the sample
    begin: int
    end: int
    document: int  # of the sample's, from 0 on


def _pieces(
    starts: Sequence[int], length: int, split: bool
) -> Iterator[_Piece]:
    sample = at = document = 0
    for row, (begin, end) in enumerate(zip(starts, starts[1:])):
        if end - begin > length and not split:
            raise ValueError(
                "row %d has %d values, and a sample has room for %d: pass "
                "split_rows=True, a larger pack_to=, or shorter rows"
                % (row, end - begin, length)
            )
        if at + end - begin > length and not split:
            sample, at, document = sample + 1, 0, 0
        while begin < end:
            if at == length:
                sample, at, document = sample + 1, 0, 0
            n = min(end - begin, length - at)
            yield _Piece(sample, at, begin, begin + n, document)
            begin, at, document = begin + n, at + n, document + 1


def _check(table: Table) -> Sequence[int]:
    """Where the rows of all columns begin."""
    if table.images:
        raise ValueError("pack_to= is for samples without an image")
    if DOCUMENT in table.columns:
        raise ValueError(
            "a column can't be called %r where pack_to= makes one" % DOCUMENT
        )
    first = next(iter(table.columns.values()), None)
    if first is None:
        raise ValueError("there is no sample to index")
    for c in table.columns.values():
        if c.texts is not None or not c.shape:
            raise ValueError(
                "pack_to= packs lists, and the column %r has none; leave it "
                "out" % c.name
            )
        if c.starts != first.starts:
            row = next(
                k
                for k, pair in enumerate(zip(c.starts[1:], first.starts[1:]))
                if pair[0] != pair[1]
            )
            raise ValueError(
                "row %d has %d values in the column %r and %d in %r; those "
                "that are packed have as many in all columns"
                % (
                    row,
                    c.starts[row + 1] - c.starts[row],
                    c.name,
                    first.starts[row + 1] - first.starts[row],
                    first.name,
                )
            )
    return first.starts


def _column(
    c: Column,
    pieces: Sequence[_Piece],
    samples: int,
    length: int,
    pad: Union[int, float],
) -> Column:
    item = 1
    for n in (c.shape or [0])[1:]:
        item *= n
    made = Column(c.name)
    made.dtype, made.exact, made.count = c.dtype, c.exact, samples
    made.shape = [length] + (c.shape or [0])[1:]
    made.values = array(c.values.typecode, [pad]) * (samples * length * item)
    made.starts = array("Q", range(0, (samples + 1) * length, length))
    for p in pieces:
        to = (p.sample * length + p.at) * item
        n = (p.end - p.begin) * item
        begin = p.begin * item
        made.values[to : to + n] = c.values[begin : begin + n]
    return made


def _documents(pieces: Sequence[_Piece], samples: int, length: int) -> Column:
    made = Column(DOCUMENT)
    made.dtype, made.count, made.shape = "int32", samples, [length]
    made.values = array("i", [-1]) * (samples * length)
    made.starts = array("Q", range(0, (samples + 1) * length, length))
    for p in pieces:
        to, n = p.sample * length + p.at, p.end - p.begin
        made.values[to : to + n] = array("i", [p.document]) * n
    return made


def pack(
    table: Table, length: int, split: bool, pad: Mapping[str, Any]
) -> None:
    """Make the table's rows samples of this length: as many rows as there is
    room for, in their order, and pad behind them."""
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise ValueError("pack_to=%r: it is how long a sample is" % (length,))
    starts = _check(table)
    pieces = list(_pieces(starts, length, split))
    if not pieces:
        raise ValueError("there is no value to pack")
    samples = pieces[-1].sample + 1
    table.columns = {
        name: _column(c, pieces, samples, length, pad.get(name, 0))
        for name, c in table.columns.items()
    }
    table.columns[DOCUMENT] = _documents(pieces, samples, length)
    table.rows, table.keys, table.classes = samples, None, None
