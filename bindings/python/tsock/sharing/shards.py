# SPDX-License-Identifier: MIT
"""The tar files that a webdataset pipeline reads, as a root of tsock-producer,
and which image of a sample that has several is read there.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tarfile
import time
from typing import Iterable, NamedTuple, Optional, Sequence
from urllib.parse import urlparse

from ..indexing import tars
from ..indexing.table import map_file
from . import tables
from .plan import NotNative

_log = logging.getLogger("tsock")

# As tsock-producer ranks the images of a sample that has several.
_IMAGES = (
    "jpg png jpeg webp gif tif tiff bmp ppm pgm pnm jpe jfif dib avif"
).split()
_TELL = 5.0  # seconds
_NUMBERED = re.compile(r"(.*?)([0-9]+)([^0-9]*)")
_BRACES = re.compile(r"[{}]")
_ALL = "all tar files of a folder, or consecutive numbers: x-{000..146}.tar"


class Root(NamedTuple):
    """Where they are: of tsock-producer, and in a stream's name."""

    path: str
    name: str


def _path(url: str) -> str:
    parts = urlparse(url)
    if parts.scheme not in ("", "file") or parts.netloc or not parts.path:
        raise NotNative("reads %s" % url, "tar files in a folder")
    if not parts.path.lower().endswith(".tar"):
        raise NotNative("reads %s" % url, "files that end with .tar")
    return os.path.abspath(parts.path)


def _expanded(first: str, last: str) -> list[str]:
    """The numbers that {first..last} stands for."""
    padded = any(len(n) > 1 and n.startswith("0") for n in (first, last))
    width = max(len(first), len(last)) if padded else 1
    return [str(i).zfill(width) for i in range(int(first), int(last) + 1)]


def _range(names: Sequence[str]) -> Optional[tuple[str, str]]:
    """A pattern of consecutive numbers, and what stands before them."""
    found = [_NUMBERED.fullmatch(name) for name in names]
    numbers = [m[2] for m in found if m]
    if len(numbers) < len(names) or len(numbers[-1]) > 18:
        return None
    before, _, behind = found[0].groups()  # type: ignore[union-attr]
    first, last = numbers[0], numbers[-1]
    if int(last) - int(first) != len(names) - 1:
        return None
    expanded = _expanded(first, last)
    if [before + n + behind for n in expanded] != list(names):
        return None
    return "%s{%s..%s}%s" % (before, first, last, behind), before


def _by_number(name: str) -> tuple[int, str]:
    found = _NUMBERED.fullmatch(name)
    return (int(found[2]) if found else 0), name


def _in_folder(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(
            entry.name
            for entry in entries
            if entry.name.lower().endswith(".tar")
            and not entry.name.startswith(".")
            and not entry.is_dir()
        )


def root_of(urls: Sequence[str], ordered: bool) -> Root:
    """The root that has just these tar files; ordered: in this order."""
    paths = [_path(url) for url in urls]
    folder = os.path.dirname(paths[0])
    if any(os.path.dirname(path) != folder for path in paths):
        raise NotNative("reads tar files of several folders", _ALL)
    if len(set(paths)) < len(paths):
        raise NotNative("reads a tar file twice", "each of them once")
    if any(map(_BRACES.search, paths)):
        raise NotNative(
            "reads files with braces in their paths", "other names"
        )
    names = [os.path.basename(path) for path in paths]
    inside = os.path.basename(folder)
    if len(names) == 1:
        return Root(paths[0], os.path.splitext(names[0])[0])
    found = _range(names if ordered else sorted(names, key=_by_number))
    if found:
        pattern, before = found
        return Root(os.path.join(folder, pattern), before or inside)
    if (names if ordered else sorted(names)) == _in_folder(folder):
        return Root(folder, inside)
    raise NotNative("reads a part of the tar files of %s" % folder, _ALL)


def _first(ranked: Sequence[str], there: Iterable[str]) -> Optional[str]:
    return next((one for one in ranked if one in there), None)


def _count(paths: Sequence[str], endings: Sequence[str]) -> int:
    """The samples of which the producer reads another image."""
    tell, count = time.monotonic() + _TELL, 0
    for path in paths:
        members = tars.find_members(path, map_file(path))
        for _, parts in tars.samples(members):
            mine = _first(endings, parts)
            count += mine is not None and mine != _first(_IMAGES, parts)
        if tell and time.monotonic() > tell:
            _log.warning(
                "reads the heads of %d tar files, once, to see whether samples "
                "have several images",
                len(paths),
            )
            tell = 0
    return count


def check_images(urls: Sequence[str], endings: Sequence[str]) -> None:
    """NotNative if the first of these endings that a sample has isn't that of
    the image which tsock-producer reads; kept in the folder of caches."""
    if not endings or not set(endings) <= set(_IMAGES):
        raise NotNative(
            "reads images of the endings %s" % ", ".join(endings),
            "those of %s" % ", ".join(_IMAGES),
        )
    if list(endings) == _IMAGES[: len(endings)]:
        return
    paths = [_path(url) for url in urls]
    try:
        found = [os.stat(path) for path in paths]
        stamps = [
            (path, s.st_size, s.st_mtime_ns) for path, s in zip(paths, found)
        ]
        text = repr((sorted(stamps), list(endings)))
        digest = hashlib.sha256(os.fsencode(text)).hexdigest()[:16]
        count = tables.noted_of(
            digest, "images", lambda: _count(paths, endings)
        )
    except (OSError, ValueError, tarfile.TarError) as e:
        raise NotNative("has tar files that can't be read: %s" % e) from e
    if count:
        raise NotNative(
            "has %d samples with several images, of which to_tuple(%r) takes "
            "another one than tsock-producer" % (count, ";".join(endings)),
            "to_tuple('jpg;png;jpeg', 'cls')",
        )
