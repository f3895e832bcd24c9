# SPDX-License-Identifier: MIT
"""JPEG files of many kinds, and damage of many kinds to them.

All of it is made from seeds.  A damage is a name and the damaged bytes.
"""
import io
import os
import random
import struct
import subprocess
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
JPEGMAKE = os.environ.get("TSOCK_JPEGMAKE") or str(
    ROOT / "build" / "test" / "jpegmake")

# What Pillow writes, and what jpegmake does.
PILLOW_KINDS = {
    "4:2:0": dict(subsampling=2),
    "4:2:2": dict(subsampling=1),
    "4:4:4": dict(subsampling=0),
    "grey": dict(mode="L"),
    "cmyk": dict(mode="CMYK"),
    "optimized": dict(subsampling=2, optimize=True),
    "restart rows": dict(subsampling=2, restart_marker_rows=1),
    "restart blocks": dict(subsampling=0, restart_marker_blocks=5),
    "progressive": dict(subsampling=2, progressive=True),
    "progressive restart": dict(progressive=True, restart_marker_rows=1),
}
MADE_KINDS = {
    "arithmetic": (3, 2, 2, "arithmetic"),
    "arithmetic restart": (3, 1, 1, "arithmetic,restart"),
    "arithmetic progressive": (3, 2, 2, "arithmetic,progressive"),
    "4:4:0": (3, 1, 2, ""),
    "4:1:1 restart": (3, 4, 1, "restart"),
}
KINDS = [*PILLOW_KINDS, *MADE_KINDS]


def picture(size, seed, mode="RGB"):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:size, 0:size]
    planes = [(3 * x + 5 * y) / 4, 2 * x + y * y / 9, x * y / 7]
    pixels = np.stack(planes, -1) % 200 + rng.integers(0, 50, (size, size, 3))
    return Image.fromarray(pixels.astype(np.uint8)).convert(mode)


def jpeg(kind, size, seed=1):
    """The bytes of a file of this kind, whose edges have so many pixels."""
    if kind in MADE_KINDS:
        parts, h, v, how = MADE_KINDS[kind]
        return subprocess.run(
            [JPEGMAKE, *map(str, (size, size, parts, h, v, seed)), how],
            stdout=subprocess.PIPE, check=True).stdout
    options = dict(quality=85, **PILLOW_KINDS[kind])
    out = io.BytesIO()
    picture(size, seed, options.pop("mode", "RGB")).save(out, "JPEG", **options)
    return out.getvalue()


def segments(data):
    """Where the header's segments begin, then where the scan's data do."""
    at = [2]
    while data[at[-1] + 1] != 0xda:
        at.append(at[-1] + 2 + struct.unpack_from(">H", data, at[-1] + 2)[0])
    return [*at, at[-1] + 2 + struct.unpack_from(">H", data, at[-1] + 2)[0]]


def restarts(data):
    return [i for i in range(segments(data)[-1], len(data) - 1)
            if data[i] == 0xff and 0xd0 <= data[i + 1] <= 0xd7]


def places(data):
    """Classes of positions for a marker: name, position, bytes it replaces."""
    *heads, start = segments(data)
    long = len(data) - start
    yield "header", heads[len(heads) // 2], 0
    yield "first row", start + 40, 2
    yield "middle", start + long * 4 // 10, 2
    yield "last row", len(data) - 60, 2
    yield "last bytes", len(data) - 4, 2
    yield "before the end", len(data) - 2, 0
    marks = restarts(data)
    if marks:
        yield "a restart", marks[len(marks) // 2], 2


def replaced(data, at, new, old=None):
    return data[:at] + new + data[at + (len(new) if old is None else old):]


def markers(data, numbers, only=None):
    for where, at, old in places(data):
        if only and where not in only:
            continue
        for m in numbers:
            yield (f"{where}: ff {m:02x}",
                   replaced(data, at, bytes((0xff, m)), old))


def twice(data, seed, n):
    """A marker instead of a restart, and more damage further down."""
    rng = random.Random(seed)
    marks = restarts(data)
    for i in range(n if marks else 0):
        at, m = rng.choice(marks), rng.choice((rng.randrange(1, 0xc0),
                                               rng.randrange(1, 255)))
        new = replaced(data, at, bytes((0xff, m)))
        lower = rng.randrange(at + 2, len(data) - 1)
        how = ("cut", "marker", "behind")[i % 3]
        if how == "cut":
            new = new[:lower]
        elif how == "marker":
            new = replaced(new, lower, bytes((0xff, rng.randrange(1, 255))))
        else:
            new = replaced(new, len(data) - 2, bytes(
                (0, 0, 0xff, rng.randrange(1, 255))), 0)
        yield f"restart: ff {m:02x} at {at}, then {how} at {lower}", new


def cuts(data, seed, n):
    rng = random.Random(seed)
    start = segments(data)[-1]
    for lost in {*range(1, 9), *(rng.randrange(9, len(data) - start)
                                 for _ in range(n))}:
        yield f"cut: {lost}", data[:-lost]


def bursts(data, seed, n):
    rng = random.Random(seed)
    start = segments(data)[-1]
    for i in range(n):
        size = rng.choice((1, 2, 16, 512))
        at = start + (len(data) - start) * (i % 10) // 10 + rng.randrange(40)
        new = rng.choice((b"\xff" * size, bytes(size), rng.randbytes(size)))
        new = new[:max(1, len(data) - 2 - at)]
        yield f"burst: {size} bytes {new[:2].hex()} at {at}", replaced(
            data, at, new)


def sectors(data, seed, n):
    """Sectors of a disk, or of flash memory, exchanged, doubled or lost."""
    rng = random.Random(seed)
    for _ in range(n):
        size = rng.choice((512, 4096))
        whole = len(data) // size
        if whole < 3:
            continue
        a, b = rng.sample(range(1, whole), 2)
        how = rng.choice(("swap", "copy", "zero", "lose"))
        part = data[size * a:size * (a + 1)]
        other = data[size * b:size * (b + 1)]
        if how == "swap":
            new = replaced(replaced(data, size * a, other), size * b, part)
        elif how == "copy":
            new = replaced(data, size * b, part)
        elif how == "zero":
            new = replaced(data, size * a, bytes(size))
        else:
            new = replaced(data, size * a, b"", size)
        yield f"sectors: {how} {size} {a} {b}", new


def headers(data, seed, n):
    """Among the segments before the data, in their lengths and contents."""
    rng = random.Random(seed)
    at = segments(data)
    for _ in range(n):
        how = rng.choice(("marker", "junk", "byte", "length", "segment"))
        where = rng.choice(at)
        if how == "marker":
            new = replaced(data, where, bytes((0xff, rng.randrange(256))), 0)
        elif how == "junk":
            new = replaced(data, where, rng.randbytes(rng.randrange(1, 6)), 0)
        elif how == "byte":
            new = replaced(data, rng.randrange(2, at[-1]), rng.randbytes(1))
        elif how == "length":
            size = rng.choice((0, 1, 2, 3, 5, 8, 14, 16, 300))
            new = replaced(data, rng.choice(at[:-1]) + 2,
                           struct.pack(">H", size))
        else:
            marker = rng.choice((0xe0, 0xe1, 0xe2, 0xed, 0xee, 0xfe, 0xdc))
            new = replaced(data, where, bytes(
                (0xff, marker, 0, rng.randrange(4))), 0)
        yield f"header: {how}", new


def flips(data, seed, n):
    rng = random.Random(seed)
    for _ in range(n):
        new = bytearray(data)
        for _ in range(rng.choice((1, 1, 3))):
            new[rng.randrange(2, len(new))] ^= 1 << rng.randrange(8)
        yield "flips", bytes(new)
