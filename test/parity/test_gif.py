# SPDX-License-Identifier: MIT
"""GIF files: samples of ours are Pillow's, and a file is bad where it is to
Pillow."""
import struct

import pytest

pytest.importorskip("torchvision")

from PIL import Image  # noqa: E402
from test_pixels import (SIZES, Loader, must_agree, np,  # noqa: E402
                         photo)


def images(rng, width, height):
    rgb = Image.fromarray(photo(rng, width, height, 3))
    for interlace in (0, 1):
        yield rgb.convert("L"), dict(interlace=interlace)
        for colours in (2, 5, 64, 256):
            yield rgb.quantize(colours), dict(interlace=interlace)
    yield rgb.quantize(100), dict(transparency=3)
    yield rgb, dict(save_all=True, append_images=[
        Image.fromarray(photo(rng, width, height, 3))])


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gif")
    rng = np.random.default_rng(41)
    paths = []
    for width, height in SIZES:
        for image, options in images(rng, width, height):
            paths.append(folder / f"{len(paths)}-{width}x{height}.gif")
            image.save(paths[-1], "GIF", **options)
    return paths


@pytest.mark.parametrize("size, epochs", [(224, 2), (32, 2), (1, 1)])
def test_train_equals_pillow_on_every_kind(generated, size, epochs):
    with Loader("train", size, 256) as loader:
        must_agree(loader, "train", generated, epochs=epochs)


@pytest.mark.parametrize("size, resize", [(224, 256), (64, 37)])
def test_eval_equals_torchvision_on_every_kind(generated, size, resize):
    with Loader("eval", size, resize) as loader:
        must_agree(loader, "eval", generated, resize)


def pack(codes):
    """Codes and their sizes as GIF's blocks."""
    bits = at = 0
    for code, size in codes:
        bits |= code << at
        at += size
    data = bits.to_bytes((at + 7) // 8, "little")
    return b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255]
                    for i in range(0, len(data), 255)) + b"\0"


def literal(numbers, bits, end=True):
    """Numbers as codes of their own, of one size."""
    clear, codes = 1 << bits, []
    for i, number in enumerate(numbers):
        if i % 2 == 0:
            codes.append((clear, bits + 1))
        codes.append((number, bits + 1))
    return pack(codes + [(clear + 1, bits + 1)] * end)


def gif(screen=(8, 8), palette=b"", box=(0, 0, 8, 8), local=b"", bits=8,
        extra=b"", interlace=0, blocks=None, background=0, version=b"89a"):
    def flags(p):
        return 128 | (len(p) // 3).bit_length() - 2 if p else 0

    if blocks is None:
        n = box[2] * box[3]
        blocks = literal([i * 7 % (1 << bits) for i in range(n)], bits)
    return (b"GIF" + version + struct.pack("<HHBBB", *screen, flags(palette),
                                           background, 0) + palette + extra
            + b"," + struct.pack("<HHHHB", *box, interlace << 6 | flags(local))
            + local + bytes([bits]) + blocks + b";")


def control(clear=None, data=None):
    if data is None:
        data = bytes([clear is not None, 0, 0, clear or 0])
    return b"!\xf9" + bytes([len(data)]) + data + b"\0" * bool(data)


def colours(n, ramp=False):
    return b"".join(bytes([i, i, i] if ramp else [i * 5 % 256, 255 - i, i])
                    for i in range(n))


def palettes():
    for n in (2, 4, 16, 128, 256):
        for ramp in (False, True):
            p = colours(n, ramp)
            yield gif(palette=p)
            yield gif(local=p)
            for other in (colours(4), colours(256, True), colours(8)[::-1]):
                yield gif(palette=other, local=p)
    # More than 8 bits, which Pillow reads, no specification allows.
    for bits in [*range(0, 9), 13, 255]:
        yield gif(palette=colours(256), bits=bits,
                  blocks=None if bits < 14 else b"\0")
    yield gif()


def places():
    for box in ((0, 0, 8, 8), (1, 2, 3, 4), (7, 7, 1, 1), (0, 5, 8, 3),
                (0, 0, 9, 8), (4, 4, 8, 8), (0, 0, 0, 8), (0, 0, 8, 0),
                (8, 8, 1, 1), (3, 0, 5, 7)):
        for extra in (b"", control(0), control(9), control(255)):
            for interlace in (0, 1):
                for p in (colours(16), colours(16, True)):
                    yield gif(palette=p, box=box, extra=extra, background=3,
                              interlace=interlace)
    for height in range(1, 9):
        yield gif(box=(0, 0, 8, height), interlace=1)
        yield gif(screen=(0, 0), box=(0, 8 - height, 8, height), interlace=1)


def extensions():
    for extra in (b"!\xfe\0", b"!\xfe\3abc\2de\0", b"!\xfe\3abc",
                  b"!\xff\x0bNETSCAPE2.0\3\1\0\0\0", b"!\xff\x0bNETSCAPE2.0\0",
                  b"!\xff\x0bNETSCAPE2.0\0\0", b"!\xff\x0bNETSCAPE2.1\0",
                  b"!\1\0", b"!\1\0\0", b"!\1\2ab\0", b"xyz", b"\0", b";",
                  b"!", b"!\xf9", control(4) + control(5),
                  control(4) + control(), control(data=b""),
                  control(data=b"") + b"\0", control(data=b"\0"),
                  control(data=b"\0\0\0"), control(data=b"\1\0\0"),
                  control(data=b"\1\0\0\4xyz"), b"," * 3):
        yield gif(palette=colours(16), extra=extra, box=(0, 0, 8, 4))
    for version in (b"87a", b"89a", b"88a", b"89b"):
        yield gif(version=version)


def codes():
    end = 7 + 2
    for n in (1, 62, 63, 64, 65, 100):
        for last in (False, True):
            yield gif(blocks=literal(range(n), 8, end=last))
    yield gif(bits=3, blocks=pack([(1, 4)] + [(10 + i, 4) for i in range(5)]))
    grown = [(8, 4), (1, 4), (10, 4), (11, 4), (12, 4), (13, 4), (14, 4)]
    for more in ([(15, 4)], [(15, 4), (16, 5), (17, 5), (18, 5), (3, 5)],
                 [(15, 4), (18, 5)], [(8, 4), (9, 4)],
                 [(8, 4), (8, 4), (2, 4)], [(8, 4), (10, 4)], [(end, 4)],
                 [(15, 4), (10, 5), (16, 5), (17, 5), (16, 5), (8, 5)]):
        for tail in ([], [(3, 5)] * 60):
            yield gif(bits=3, blocks=pack(grown + more + tail))
    data = literal(range(64), 8)
    for empty in (b"\0", b"\0\0"):
        yield gif(blocks=empty + data)
        yield gif(blocks=data[:1] + data[1:] + empty)
    whole = gif(palette=colours(4), extra=control(2))
    for cut in range(len(whole)):
        yield whole[:cut]


def noise():
    """Codes of a real encoder, and damage to them."""
    import io
    rng = np.random.default_rng(5)
    for i in range(40):
        levels = rng.integers(1, 1 + int(rng.integers(1, 256)), (8, 8))
        file = io.BytesIO()
        Image.fromarray(levels.astype(np.uint8)).save(file, "GIF")
        data = bytearray(file.getvalue())
        yield bytes(data)
        for _ in range(10):
            bad = bytearray(data)
            bad[int(rng.integers(len(bad) - 90, len(bad)))] ^= \
                1 << int(rng.integers(8))
            yield bytes(bad)


@pytest.mark.parametrize("make", [palettes, places, extensions, codes, noise])
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
            assert bool(err) == (want is None), (number, data, got)
            if err:
                refused += 1
            elif want.shape == (8, 8, 3):
                decoded += 1
                assert np.array_equal(got, want), (number, data)
    assert refused and decoded
