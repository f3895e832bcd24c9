# SPDX-License-Identifier: MIT
"""What a stream is, read from a connection to it."""

from __future__ import annotations

import logging
import os
from ctypes import byref
from typing import Optional, Sequence

from . import _ffi, identity
from .keywords import did_you_mean
from .launch import log_of
from .parts import PartOf

_lib = _ffi.lib
_log = logging.getLogger("tsock")

# What has to be asked for, and by which of the producer's options.
_ASKED = {
    "weight": "--select gives it",
    "key": "--keys gives it",
    "mask": "--masks gives it",
}


def _call(code: int) -> None:
    if code:
        raise _ffi.failure(code)


def is_image(field: _ffi.Field, dtype: str) -> bool:
    """Is the field an image, which a loader with this dtype gets converted?"""
    if field.flags & _ffi.FIELD_IMAGE:
        return True  # as it is stored
    return (
        dtype != "uint8"
        and field.dtype == _ffi.DTYPES[dtype]
        and field.ndim == 3
        and field.shape[2] in (1, 3)
    )


class About:
    """A stream's numbers, fields, classes and identity."""

    def __init__(self, handle: int, name: str) -> None:
        self.name = name
        info = _ffi.Info()
        _call(_lib.tsock_get_info(handle, byref(info)))
        self.epoch_len: int = info.epoch_len
        self.dataset_len: int = info.dataset_len
        self.epochs: int = info.epochs  # 0: it goes on
        self.pid: int = info.producer_pid
        self.log = log_of(self.pid)  # while it lives
        self.window = min(info.join_window, info.epoch_len)
        self.sequential = bool(info.sequential)
        self.resumable = bool(info.resumable)
        self.shard: tuple[int, int] = info.shard, info.shards
        self.shard_ranks: int = info.shard_ranks
        # The part of a job's epochs, if that is known, and it isn't whole.
        self.part: Optional[PartOf] = None
        if info.shards and info.whole_len:
            self.part = PartOf(
                info.shard,
                info.shard_ranks,
                info.shards,
                info.whole_len,
                info.start_epoch,
                info.start,
            )
        self.fields = [_ffi.Field() for _ in range(info.nfields)]
        for i, field in enumerate(self.fields):
            _call(_lib.tsock_get_field(handle, i, byref(field)))
        self.classes = [
            os.fsdecode(_lib.tsock_class_name(handle, i) or b"")
            for i in range(info.nclasses)
        ]
        said = _lib.tsock_identity(handle)
        self.identity = identity.parse(os.fsdecode(said))
        # Fields of text: each sample's is ended by a zero.
        self.texts = tuple(
            field.name.decode("utf-8", "replace")
            for field in self.fields
            if field.flags & _ffi.FIELD_TEXT
        )
        # Of several lengths: NAME_length says which.
        self.ragged = tuple(
            field.name.decode("utf-8", "replace")
            for field in self.fields
            if field.flags & (_ffi.FIELD_RAGGED | _ffi.FIELD_RAGGED_LAST)
        )
        # After a restart of the producer something in run is different.
        self.stream = info.epoch_len, info.nfields, said
        self.run = info.producer_pid, self.stream

    def usual(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The fields of a batch if none are chosen: these names of samples
        with an image, else all that the data set has."""
        there = [f.name.decode("utf-8", "replace") for f in self.fields]
        own = ("index", *_ASKED)
        if "image" not in there:
            return tuple(name for name in there if name not in own)
        made = (*names, *own, "box", "draws")
        unread = tuple(name for name in there if name not in made)
        if unread:
            _log.info(
                "stream %r also has %s, which batches lack: fields=%r gives "
                "them",
                self.name,
                ", ".join(unread),
                names + unread,
            )
        return names

    def with_lengths(self, names: Sequence[str]) -> list[str]:
        """These fields, and behind them the lengths of ragged ones."""
        lengths = (n + "_length" for n in self.ragged if n in names)
        return [*names, *(n for n in lengths if n not in names)]

    def find(self, names: Sequence[str]) -> list[tuple[int, _ffi.Field]]:
        """The places of fields, and what they are for this consumer."""
        places = {
            field.name.decode("utf-8", "replace"): (i, field)
            for i, field in enumerate(self.fields)
        }
        for name in names:
            if name not in places:
                how = did_you_mean(name, places)
                if name in _ASKED and "root" in self.identity:
                    how = "; the producer's " + _ASKED[name]
                raise ValueError(
                    "field %r: stream %r has %s%s"
                    % (name, self.name, ", ".join(places), how)
                )
        return [places[name] for name in names]
