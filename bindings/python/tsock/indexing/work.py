# SPDX-License-Identifier: MIT
"""Fills a table from a data set's files, one after the other."""

from __future__ import annotations

import logging
import os
from typing import Any, Iterator, Mapping, Optional, Sequence

from . import arrow, containers
from .journal import Journal
from .lmdb import index_lmdb
from .sources import Shard
from .table import Table
from .tars import index_tar
from .telling import Telling

_log = logging.getLogger("tsock")


def _rows(
    part: Table, kind: str, shard: Shard, options: Mapping[str, Any]
) -> Iterator[float]:
    """Add a file's rows one by one; how much of the file was read by then."""
    if kind == "arrow":
        return arrow.index_arrow(part, shard.path, **options)
    if kind == "parquet":
        return arrow.index_parquet(part, shard.path, **options)
    if kind == "lmdb":
        return index_lmdb(part, shard.path)
    if kind == "webdataset":
        return index_tar(part, shard.path, **options)
    if kind == "mds":
        return containers.index_mds(part, shard.path, shard.about, **options)
    return containers.index_tfrecord(part, shard.path, **options)


def _word(value: Any) -> Any:
    """An option, as JSON has it."""
    if value is None or isinstance(value, (bool, str)):
        return value
    return [str(one) for one in value]


def fill(
    table: Table,
    kind: str,
    shards: Sequence[Shard],
    options: Mapping[str, Any],
    telling: Optional[Telling] = None,
) -> None:
    """Add the samples of all files to the table, but of those that an earlier
    run has indexed, which was broken off."""
    sizes = [os.path.getsize(shard.path) for shard in shards]
    first, done = 0, 0.0
    if len(shards) > 1:
        asked = {key: _word(value) for key, value in options.items()}
        table.journal = Journal(table, {"kind": kind, **asked})
        first = table.journal.restore(table, shards)
        done += sum(sizes[:first])
    if first:
        _log.info(
            "%s: going on after file %d of %d", table.dst, first, len(shards)
        )
    if telling:
        telling.skip(len(table), done)
    for shard, size in list(zip(shards, sizes))[first:]:
        part = table.part()
        for share in _rows(part, kind, shard, options):
            if telling:
                telling.at(len(table) + len(part), done + share * size)
        if table.journal:
            table.journal.note(shard, part)
        try:
            table.absorb(part)
        except ValueError as e:
            raise ValueError("%s: %s" % (shard.path, e)) from None
        done += size
