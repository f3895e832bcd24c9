# SPDX-License-Identifier: MIT
"""PNG files that no encoder writes: ours are decoded just when Pillow's are.

Pillow has a PNG reader of its own, and lets pass what libpng refuses and the
other way round.  Files are made byte by byte here; the eval crop is all of the
image, so every row is needed.
"""
import random
import struct
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image

from test_pixels import Loader

SIZE = 16
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PALETTE = bytes(range(10, 22))
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4),
          (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
END = (b"IEND", b"")

warnings.simplefilter("ignore", UserWarning)


def chunk(name, data=b"", crc=0, length=None):
    return (struct.pack(">I", len(data) if length is None else length) +
            name + data + struct.pack(">I", zlib.crc32(name + data) ^ crc))


def header(kind=2, depth=8, compression=0, filters=0, interlace=0):
    return struct.pack(">IIBBBBB", SIZE, SIZE, depth, kind, compression,
                       filters, interlace)


def png(*chunks):
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        c if isinstance(c, bytes) else chunk(*c) for c in chunks)


def a_row(rng, kind, depth, width=SIZE):
    n = (width * CHANNELS[kind] * depth + 7) // 8
    return bytes([0]) + bytes(rng.randrange(256) for _ in range(n))


def rows_of(kind=2, depth=8, interlaced=False):
    rng = random.Random(kind * 10 + depth)
    if not interlaced:
        return [a_row(rng, kind, depth) for _ in range(SIZE)]
    return [a_row(rng, kind, depth, (SIZE - x + dx - 1) // dx)
            for x, y, dx, dy in PASSES for _ in range(y, SIZE, dy)]


def pixels(rows):
    return zlib.compress(b"".join(rows))


ROWS = rows_of()
DATA = pixels(ROWS)
HEAD = (b"IHDR", header())
IDAT = (b"IDAT", DATA)


def spoilt(data):
    return data[:-1] + bytes([data[-1] ^ 1])


def check_sums():
    yield png(HEAD, IDAT, END)
    yield png(chunk(*HEAD, crc=1), IDAT, END)
    yield png(HEAD, chunk(*IDAT, crc=1), END)
    yield png(HEAD, IDAT, chunk(*END, crc=1))
    yield png(HEAD, (b"IDAT", spoilt(DATA)), END)
    yield png(HEAD, (b"IDAT", DATA[:-4]), (b"IDAT", b"abcd"), END)
    yield png(HEAD, (b"IDAT", DATA[:-4]), (b"IDAT", DATA[-4:]), END)
    for cut in (1, 2, 4, 5, 8):
        yield png(HEAD, (b"IDAT", DATA[:-cut]), END)
        yield png(HEAD, (b"IDAT", DATA))[:-cut]


def data_that_ends_too_early():
    for kind, depth in ((2, 8), (0, 1), (0, 8), (3, 2), (3, 8), (6, 8)):
        for interlaced in (0, 1, 2):
            rows = rows_of(kind, depth, interlaced)
            head = [(b"IHDR", header(kind, depth, interlace=interlaced))]
            if kind == 3:
                head.append((b"PLTE", PALETTE))
            for n in (0, 1, 2, 8, len(rows) - 1, len(rows)):
                data = pixels(rows[:n])
                yield png(*head, (b"IDAT", data), END)
                yield png(*head, (b"IDAT", spoilt(data)), END)
                yield png(*head, (b"IDAT", data + b"junk" * 9), END)
                yield png(*head, (b"IDAT", data), (b"IDAT", b"junk"), END)
                yield png(*head, (b"IDAT", data[:-5]), (b"IDAT", data[-5:]),
                          END)
                yield png(*head, (b"IDAT", pixels(rows[:n] + [b"\0\1"])), END)


def pieces_of_data():
    yield png(HEAD, END)
    yield png(HEAD, (b"IDAT",), END)
    yield png(HEAD, (b"IDAT",), IDAT, END)
    yield png(HEAD, (b"IDAT", DATA[:20]), (b"IDAT",), (b"IDAT", DATA[20:]))
    yield png(HEAD, (b"IDAT", DATA[:20]), (b"tEXt", b"a\0b"),
              (b"IDAT", DATA[20:]), END)
    yield png(HEAD, chunk(*IDAT, length=len(DATA) + 1000))
    yield png(HEAD, chunk(*IDAT, length=len(DATA) + 5), END)
    yield png(HEAD, (b"IDAT", b"junkjunk"), END)
    yield png(HEAD, (b"IDAT", pixels(ROWS + ROWS)), END)
    yield png(HEAD, (b"IDAT", spoilt(pixels(ROWS + ROWS))), END)
    yield png(HEAD, (b"IDAT", pixels([b"\5" + ROWS[0][1:]] + ROWS[1:])), END)
    yield png(HEAD, (b"IDAT", pixels(ROWS[:-1] + [b"\7" + ROWS[-1][1:]])), END)


def chunks_before_the_pixels():
    for name in (b"abCd", b"ABCD", b"AbCd", b"a1C2", b"_a__", b"a b!", b"CgBI",
                 b"IEND", b"DDAT", b"fdAT", b"sBIT", b"\xe4bcd"):
        for data in (b"", b"12345678"):
            for crc in (0, 1):
                yield png(HEAD, chunk(name, data, crc), IDAT, END)
    for name, least in ((b"gAMA", 4), (b"cHRM", 32), (b"sRGB", 1),
                        (b"pHYs", 9), (b"acTL", 8)):
        for n in (0, least - 1, least):
            yield png(HEAD, (name, bytes(n)), IDAT, END)
    yield png(HEAD, b"\xff\xff\xff\xffabCd")
    yield png(HEAD, chunk(b"abCd", b"", length=4096), IDAT)


def headers():
    yield png((b"IHDR", header() + b"more"), IDAT, END)
    yield png((b"IHDR", header()[:12]), IDAT, END)
    for value in (1, 2, 64):
        yield png((b"IHDR", header(compression=value)), IDAT, END)
        yield png((b"IHDR", header(filters=value)), IDAT, END)


def palettes():
    for depth in (1, 2, 4, 8):
        head = (b"IHDR", header(3, depth))
        data = (b"IDAT", pixels(rows_of(3, depth)))
        yield png(head, data, END)
        yield png(head, data, (b"PLTE", PALETTE), END)
        yield png(head, (b"PLTE", PALETTE), (b"PLTE", PALETTE[:6]), data, END)
        for n in (0, 1, 2, 3, 10, 11, 12, 60, 767, 768, 769, 771, 900):
            for crc in (0, 1):
                palette = (bytes(range(256)) * 4)[:n]
                yield png(head, chunk(b"PLTE", palette, crc), data, END)
    for kind, depth in ((0, 1), (0, 8), (2, 8), (3, 8), (4, 8), (6, 8)):
        head = (b"IHDR", header(kind, depth))
        data = (b"IDAT", pixels(rows_of(kind, depth)))
        yield png(head, (b"PLTE", PALETTE[:7]), data, END)
        for n in (0, 1, 2, 5, 6, 300):
            yield png(head, (b"PLTE", PALETTE), (b"tRNS", b"a" * n), data, END)


def sixteen_bits():
    """Levels of all kinds: Pillow clips grey, and shortens all else."""
    for kind in (0, 2, 4, 6):
        for interlaced in (False, True):
            head = (b"IHDR", header(kind, 16, interlace=int(interlaced)))
            rows = rows_of(kind, 16, interlaced)
            # Some levels that clipping leaves as they are.
            dark = [bytes(b if i % 2 == 0 or i % 3 else 0
                          for i, b in enumerate(row)) for row in rows]
            data = pixels(dark)
            yield png(head, (b"IDAT", data), END)
            yield png(head, (b"tRNS", dark[0][1:7]), (b"IDAT", data), END)
            yield png(head, (b"IDAT", pixels(dark[:-2])), END)
            yield png(head, (b"IDAT", data[:-9]), END)


@pytest.mark.parametrize("make", [
    check_sums, sixteen_bits, data_that_ends_too_early, pieces_of_data,
    chunks_before_the_pixels, headers, palettes])
def test_is_decoded_just_when_pillow_does(make, tmp_path):
    path = tmp_path / "odd.png"
    decoded = refused = 0
    with Loader("eval", SIZE, SIZE) as loader:
        for number, data in enumerate(make()):
            path.write_bytes(data)
            try:
                want, why = np.asarray(Image.open(path).convert("RGB")), ""
            except Exception as e:
                want, why = None, repr(e)
            err, _, got = loader(path)
            assert bool(err) == (want is None), (number, why or "ok", got)
            if err:
                refused += 1
            else:
                assert (got == want).all(), number
                decoded += 1
    assert decoded and refused
