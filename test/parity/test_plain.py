# SPDX-License-Identifier: MIT
"""PPM, PGM and BMP files: samples of ours are Pillow's, or refused by name."""
import struct

import pytest

pytest.importorskip("torchvision")

from PIL import Image  # noqa: E402
from test_pixels import (SIZES, Loader, must_agree, np,  # noqa: E402
                         photo)

BLANKS = b" \t\n\v\f\r"


def images(rng, width, height):
    rgb = Image.fromarray(photo(rng, width, height, 3))
    yield "PPM", rgb
    yield "PPM", rgb.convert("L")
    yield "BMP", rgb
    yield "BMP", Image.fromarray(photo(rng, width, height, 4), "RGBA")
    yield "BMP", rgb.convert("L")
    for colours in (3, 40, 256):
        yield "BMP", rgb.quantize(colours)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    rng = np.random.default_rng(21)
    paths = []
    for width, height in SIZES:
        for kind, image in images(rng, width, height):
            if kind == "BMP" and image.mode == "P" and width * height < 9:
                # Two greys, which Pillow writes as what it can't read.
                continue
            paths.append(folder / f"{len(paths)}-{width}x{height}.{kind}")
            image.save(paths[-1], kind)
    return paths


@pytest.mark.parametrize("size, epochs", [(224, 3), (32, 2), (1, 1)])
def test_train_equals_pillow_on_every_kind(generated, size, epochs):
    with Loader("train", size, 256) as loader:
        must_agree(loader, "train", generated, epochs=epochs)


@pytest.mark.parametrize("size, resize", [(224, 256), (64, 37)])
def test_eval_equals_torchvision_on_every_kind(generated, size, resize):
    with Loader("eval", size, resize) as loader:
        must_agree(loader, "eval", generated, resize)


def pnms():
    data = bytes(range(200))
    for magic in (b"P5", b"P6"):
        for blank in BLANKS:
            yield magic + bytes([blank]) + b"8 8 255\n" + data
            yield magic + b" 8" + bytes([blank]) + b" 8 255\n" + data
            yield magic + b" 8 8 255" + bytes([blank]) + data
        for head in (b"\n#c\n8 #8\r8\n#\n255\n", b" 8#\n 8 255\n",
                     b" 8 8 2#x\n55\n", b" 8 8 255#\n", b" 8 8\n",
                     b" 0000000008 8 255 ", b" 00000000008 8 255 ",
                     b" 8 8 255", b" 8 8 255 \n", b" 8 8 0 ", b"#\n8 8 255 ",
                     b" 8 0 255 ", b" 0 8 255 ", b" 8 8 x ", b" 8 8 -1 ",
                     b" 4294967297 8 255 ", b"8 8 255 ", b"  8  8  255 "):
            yield magic + head + data
        for most in (1, 2, 7, 15, 100, 127, 128, 254):
            yield magic + b" 8 8 %d\n" % most + data
        for cut in range(0, 200, 9):
            yield magic + b" 8 8 255\n" + data[:cut]
            yield (magic + b" 8 8 255\n" + data)[:cut]


def bmp(width=8, height=8, bits=24, size=40, how=0, colours=0, palette=b"",
        at=None, masks=b"", data=bytes(range(256)) * 2):
    if size == 12:
        head = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        head = struct.pack("<IiiHHIIiiII", size, width, height, 1, bits, how,
                           0, 0, 0, colours, 0) + bytes(size - 40)
        head = head[:40] + masks + head[40 + len(masks):]
    body = head + palette
    at = 14 + len(body) if at is None else at
    return (b"BM" + struct.pack("<IHHI", 14 + len(body) + len(data), 0, 0, at)
            + body + data)


def palette_of(n, entry=4, grey=False):
    return b"".join(bytes([i % 256, i % 256 if grey else 255 - i % 256,
                           i % 256, 0])[:entry] for i in range(n))


def bmps():
    for bits in (24, 32):
        for size in (12, 40, 52, 56, 64, 108, 124, 41):
            yield bmp(bits=bits, size=max(size, 12) if size != 41 else 40)
        for height in (-8, -1, 1, 0, 7):
            yield bmp(height=height, bits=bits)
        for width in (1, 2, 3, 7, -8):
            yield bmp(width=width, bits=bits)
        for at in (0, 20, 54, 60, 400, 5000):
            yield bmp(bits=bits, at=at)
        whole = bmp(bits=bits, width=7, data=bytes(range(256)) * 1)
        for cut in range(0, len(whole), 5):
            yield whole[:cut]
        for cut in range(14, 60):
            yield whole[:cut]
    for end in range(180, 193):
        yield bmp(width=7, data=bytes(range(192))[:end])
    for n in (3, 10, 100, 255, 256):
        for grey in (False, True):
            yield bmp(bits=8, colours=n, palette=palette_of(n, 4, grey))
            yield bmp(bits=8, colours=n, palette=palette_of(n, 4, grey),
                      at=54)
            yield bmp(bits=8, colours=n, palette=palette_of(n, 4, grey), at=0)
    for grey in (False, True):
        yield bmp(bits=8, palette=palette_of(256, 4, grey))
        yield bmp(bits=8, size=12, palette=palette_of(256, 3, grey))
        yield bmp(bits=8, size=108, palette=palette_of(256, 4, grey))
    yield bmp(bits=8, colours=2, palette=b"\0\1\0\0\xff\xff\xff\0")
    yield bmp(bits=8, colours=300, palette=palette_of(300))
    yield bmp(bits=8, colours=70000, palette=palette_of(256))
    usual = struct.pack("<III", 0xff0000, 0xff00, 0xff)
    for size in (52, 56, 108, 124):
        yield bmp(bits=32, size=size, how=3, masks=usual)
    for size in (56, 124):
        yield bmp(bits=32, size=size, how=3,
                  masks=usual + struct.pack("<I", 0xff000000))
    yield bmp(bits=32, how=3, palette=usual)
    yield bmp(bits=32, how=3, palette=usual, at=0)
    yield bmp(bits=32, how=7)


# What Pillow reads and ours declines, by name.
DECLINED = ("is not supported",)


def declined():
    yield b"P5 8 8 65535\n" + bytes(range(128))
    yield b"P6 8 8 1000\n" + bytes(range(256)) * 2
    yield bmp(bits=16)
    yield bmp(bits=4, palette=palette_of(16))
    yield bmp(bits=1, palette=palette_of(2))
    yield bmp(bits=8, how=1, palette=palette_of(256), data=b"\x08\1\0\0" * 8)
    yield bmp(bits=8, colours=2, palette=b"\0\0\0\0\xff\xff\xff\0")
    yield bmp(bits=32, how=3, palette=struct.pack("<III", 0xff000000, 0xff0000,
                                                  0xff00))


@pytest.mark.parametrize("make", [pnms, bmps, declined])
def test_is_decoded_just_when_pillow_does(make, tmp_path):
    path = tmp_path / "odd"
    decoded = refused = 0
    with Loader("eval", 8, 8) as loader:
        for number, data in enumerate(make()):
            path.write_bytes(data)
            try:
                want = np.asarray(Image.open(path).convert("RGB"))
            except Exception:
                want = None
            err, _, got = loader(path)
            if err and make is declined:
                assert want is not None and any(d in got for d in DECLINED)
            else:
                assert bool(err) == (want is None), (number, data[:60], got)
            if err:
                refused += 1
            elif want.shape == (8, 8, 3):
                decoded += 1
                assert np.array_equal(got, want), (number, data[:60])
    assert refused and (decoded or make is declined)
