# SPDX-License-Identifier: MIT
"""Tables of a script's samples, where no folder or file has just those.

They are kept in the folder of caches, under a hash of what is in them, so that
all jobs with the same samples find the same one.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
from typing import Any, Callable, Iterator, Optional

from .. import errors
from ..index import index
from ..indexing import locking
from ..indexing.automatic import cache_folder
from .plan import Range, Source

_log = logging.getLogger("tsock")


def _digest(source: Source) -> str:
    made = hashlib.sha256()
    assert source.samples
    for where, label in source.samples():
        if isinstance(where, str):
            where = os.fsencode(os.path.abspath(where))
        elif isinstance(where, Range):
            where = b"%s\0%d\0%d" % (os.fsencode(where.path), *where[1:])
        made.update(where)
        made.update(b"\0%d\n" % label)
    made.update(repr((source.classes, source.weights)).encode())
    return made.hexdigest()[:16]


def base_name(source: Source) -> str:
    """What a stream of it is called, before the hash."""
    if source.name:
        path = source.name
    elif source.options:
        path = source.options["root"]
    else:
        assert source.samples
        paths = [os.path.abspath(path) for path, _ in source.samples()]
        path = os.path.commonpath(paths[:1] + paths[-1:]) if paths else ""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(path.rstrip("/")))
    return name.strip("-._")[:32] or "images"


def _no_cache(folder: str, error: OSError) -> errors.Error:
    return errors.Error(
        "tsock.share: %s in the folder of caches can't be written: %s; "
        "XDG_CACHE_HOME=DIR names another folder" % (folder, error.strerror)
    )


def remember(path: str, text: str) -> None:
    """Write the file, if the folder of caches can be written."""
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with open("%s.%d" % (path, os.getpid()), "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(f.name, path)
    except OSError as e:
        _log.debug("tsock.share: isn't remembered: %s", e)


def _locked(
    folder: str, what: str
) -> contextlib.AbstractContextManager[None]:
    """While no other process is in there."""
    try:
        lock = locking.lock_of(folder)
    except OSError as e:
        raise _no_cache(folder, e) from e
    return locking.held(lock, what)


def noted(source: Source, what: str, find: Callable[[], int]) -> int:
    """A number that find() finds out about its samples, once."""
    return noted_of(_digest(source), what, find)


def noted_of(digest: str, what: str, find: Callable[[], int]) -> int:
    """Likewise, of what has that hash."""
    folder = os.path.join(cache_folder(None), "noted")
    path = os.path.join(folder, "%s-%s" % (digest, what))
    try:
        with open(path, encoding="utf-8") as f:
            return int(f.read())
    except (OSError, ValueError):
        pass
    number = find()
    remember(path, "%d\n" % number)
    return number


def selected(names: list[str]) -> str:
    """The path of a file that lists these samples."""
    text = "".join(name + "\n" for name in names).encode(
        "utf-8", "surrogateescape"
    )
    folder = os.path.join(os.path.realpath(cache_folder(None)), "selected")
    digest = hashlib.sha256(text).hexdigest()[:16]
    path = os.path.join(folder, digest + ".txt")
    if not os.path.exists(path):
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            with open("%s.%d" % (path, os.getpid()), "wb") as f:
                f.write(text)
            os.replace(f.name, path)
        except OSError as e:
            raise _no_cache(folder, e) from e
    return path


def _rows(source: Source) -> Iterator[Any]:
    assert source.samples
    for i, (where, label) in enumerate(source.samples()):
        fields: dict[str, Any] = {"label": label}
        if source.weights is not None:
            fields["weight"] = source.weights[i]
        yield where, fields


def written(source: Source, cache: Optional[str], again: bool = False) -> str:
    """The path of the source's table; again: write it anew."""
    folder = os.path.join(
        os.path.realpath(cache_folder(cache)), "tables", _digest(source)
    )
    path = os.path.join(folder, base_name(source) + ".table")
    if again or not os.path.exists(path):
        with _locked(folder, "writes the table %s" % path):
            if again or not os.path.exists(path):
                index(_rows(source), path, classes=source.classes)
    return path
