# SPDX-License-Identifier: MIT
"""Samples of an iterable, collected in a table beside the pack to be."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
from typing import Any, Callable, Iterable, Iterator, Optional

from ..indexing.places import Place
from ..indexing.table import Path, Table
from ..indexing.telling import Telling
from .images import encode, encode_mask


class Images:
    """Which fields of a sample are images."""

    def __init__(
        self, names: Optional[Iterable[str]] = None, mask: Optional[str] = None
    ) -> None:
        named = ("image",) if names is None else tuple(names)
        if not named or len({*named, mask}) <= len(named):
            raise ValueError(
                "images=%r: the names of fields, each once" % (list(named),)
            )
        self.first = named[0]
        self.others = named[1:]
        self.mask = mask
        self.needed = names is not None or mask is not None


def _split(sample: Any, images: Images) -> dict[str, Any]:
    """A sample's fields, its image among them."""
    if isinstance(sample, dict):
        return dict(sample)
    if not isinstance(sample, (tuple, list)) or len(sample) != 2:
        raise TypeError(
            "it is neither (image, label) nor (image, {field: value}) nor a "
            "dict of fields, but %.80r" % (sample,)
        )
    image, fields = sample
    if not isinstance(fields, dict):
        fields = {} if fields is None else {"label": fields}
    return {**fields, images.first: image}


def _place(table: Table, value: Any, encode: Callable[[Any], bytes]) -> Place:
    """Where an image or a mask lies."""
    if not isinstance(value, (str, os.PathLike)):
        return table.keep(encode(value))
    path = os.path.abspath(value)
    if not os.path.isfile(path):
        raise FileNotFoundError("there is no file %s" % path)
    return Place(path)


def _take(fields: dict[str, Any], name: str) -> Any:
    if name not in fields:
        raise TypeError(
            "it has no field %s, which images= or masks= names" % name
        )
    return fields.pop(name)


def _add(table: Table, number: int, sample: Any, images: Images) -> None:
    fields = _split(sample, images)
    key = fields.pop("key", None)
    if images.first not in fields and not images.needed:
        key = None if key is None else str(key)
        table.add_values(key=key, **fields)
        return
    image = _take(fields, images.first)
    first = _place(table, image, encode)
    for name in images.others:
        fields[name] = _place(table, _take(fields, name), encode)
    if images.mask is not None:
        mask = _take(fields, images.mask)
        fields[images.mask] = _place(table, mask, encode_mask)
    if key is None:
        named = isinstance(image, (str, os.PathLike))
        key = os.fspath(image) if named else number
    table.add(*first, key=str(key), **fields)


def _add_all(
    table: Table,
    samples: Iterable[Any],
    images: Images,
    telling: Optional[Telling],
) -> None:
    for number, sample in enumerate(samples):
        try:
            _add(table, number, sample, images)
        except (TypeError, ValueError, FileNotFoundError) as e:
            raise type(e)(
                "sample %d can't be packed: %s" % (number, e)
            ) from None
        if telling:
            telling.at(len(table), 0)
    if not len(table):
        raise ValueError("there is no sample to pack: the iterable is empty")


@contextlib.contextmanager
def _locked(path: str, what: str) -> Iterator[None]:
    """Nobody else has the file or folder, as long as this lasts."""
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise FileExistsError(
            "another process writes the pack %s just now" % what
        ) from None
    finally:
        os.close(fd)


class Spool:
    """The folder DST.samples, which is there as long as samples are packed.

    What is left of a process that was killed is thrown away: its samples may
    have been others.
    """

    def __init__(self, dst: Path) -> None:
        self._dst = os.path.abspath(dst)
        self._folder = self._dst + ".samples"
        self._part = self._dst + ".part"
        self.table = os.path.join(self._folder, "table")
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Spool:
        self._check()
        ours = os.path.isdir(self._folder)
        os.makedirs(self._folder, exist_ok=True)
        with contextlib.ExitStack() as stack:
            stack.enter_context(_locked(self._folder, self._dst))
            if ours:
                self._begin_anew()
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            if os.path.exists(self._part):
                raise FileExistsError(
                    "%s has a part of another pack: remove that folder to "
                    "begin anew, or choose another place" % self._part
                )
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *_: Any) -> None:
        with self._exit:
            if os.path.exists(self._part):
                self._remove_part()

    def _check(self) -> None:
        """Nothing is at the pack's place but an empty folder, perhaps."""
        packed = ("pack.index", "pack.table")
        if any(os.path.exists(os.path.join(self._dst, n)) for n in packed):
            raise FileExistsError(
                "%s is a pack already: remove it, or choose another place"
                % self._dst
            )
        there = os.path.lexists(self._dst)
        if there and not (
            os.path.isdir(self._dst) and not os.listdir(self._dst)
        ):
            raise FileExistsError(
                "%s is there already, and no empty folder: choose another "
                "place for the pack" % self._dst
            )

    def _begin_anew(self) -> None:
        print(
            "tsock.pack: %s was broken off, and is begun anew" % self._dst,
            file=sys.stderr,
        )
        self._remove_part()
        for name in os.listdir(self._folder):
            os.unlink(os.path.join(self._folder, name))

    def _remove_part(self) -> None:
        journal = os.path.join(self._part, "journal")
        if os.path.exists(journal):
            # tsock-pack may still be at it.
            with _locked(journal, self._dst):
                shutil.rmtree(self._part)

    def fill(
        self,
        samples: Iterable[Any],
        images: Images,
        classes: Optional[Iterable[str]],
        progress: bool,
    ) -> None:
        """Write the table of all samples.

        ValueError, TypeError and OSError name the first one that can't be.
        """
        table = Table(self.table)
        telling = Telling("tsock.pack", 0) if progress else None
        try:
            table.name_classes(None if classes is None else list(classes))
            _add_all(table, samples, images, telling)
            table.write()
        finally:
            if telling:
                telling.end()
            table.drop()
