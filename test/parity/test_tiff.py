# SPDX-License-Identifier: MIT
"""TIFF files: samples of ours are Pillow's, or refused by name."""
import struct
import subprocess
import zlib

import pytest

pytest.importorskip("torchvision")

from PIL import Image, features  # noqa: E402
from test_pixels import (IMGLOAD, SIZES, Loader, check, must_agree,  # noqa: E402
                         np, photo)

PRODUCER = IMGLOAD.rsplit("/", 2)[0] + "/bin/tsock-producer"

if not features.check("libtiff"):
    pytest.skip("Pillow has no libtiff", allow_module_level=True)
if "libtiff none" in subprocess.run([PRODUCER, "--version"], check=True,
                                    capture_output=True, text=True).stdout:
    pytest.skip("a build without libtiff", allow_module_level=True)

RAW, LZW, DEFLATE, OLD_DEFLATE, PACKBITS = 1, 5, 8, 32946, 32773
WAYS = (None, "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits")


def images(rng, width, height):
    rgb = Image.fromarray(photo(rng, width, height, 3))
    yield rgb
    yield rgb.convert("L")
    yield rgb.convert("LA")
    yield Image.fromarray(photo(rng, width, height, 4), "RGBA")
    yield rgb.quantize(100)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiff")
    rng = np.random.default_rng(31)
    paths = []
    for width, height in SIZES:
        for image in images(rng, width, height):
            for how in WAYS:
                paths.append(folder / f"{len(paths)}-{width}x{height}.tif")
                image.save(paths[-1], "TIFF", compression=how)
    return paths


@pytest.mark.parametrize("size, epochs", [(224, 2), (32, 2), (1, 1)])
def test_train_equals_pillow_on_every_kind(generated, size, epochs):
    with Loader("train", size, 256) as loader:
        must_agree(loader, "train", generated, epochs=epochs)


@pytest.mark.parametrize("size, resize", [(224, 256), (64, 37)])
def test_eval_equals_torchvision_on_every_kind(generated, size, resize):
    with Loader("eval", size, resize) as loader:
        must_agree(loader, "eval", generated, resize)


def packbits(data):
    return b"".join(bytes([len(data[i:i + 128]) - 1]) + data[i:i + 128]
                    for i in range(0, len(data), 128))


def compress(how, data):
    if how in (DEFLATE, OLD_DEFLATE):
        return zlib.compress(data)
    return packbits(data) if how == PACKBITS else data


def tiff(width=24, height=20, channels=3, photometric=2, how=RAW, part=None,
         tile=None, order="<", more=(), less=(), seed=1, change=None):
    """A file, part rows a strip or in tiles of tile's width and height."""
    rng = np.random.default_rng(seed)
    pixels = photo(rng, width, height, channels)
    parts = []
    if tile:
        down, across = -(-height // tile[1]), -(-width // tile[0])
        whole = np.zeros((down * tile[1], across * tile[0], channels), np.uint8)
        whole[:height, :width] = pixels
        for y in range(0, height, tile[1]):
            for x in range(0, width, tile[0]):
                parts.append(whole[y:y + tile[1], x:x + tile[0]].tobytes())
    else:
        part = part or height
        parts = [pixels[y:y + part].tobytes() for y in range(0, height, part)]
    parts = [compress(how, p) for p in parts]
    body, offsets = b"", []
    for p in parts:
        offsets.append(8 + len(body))
        body += p + b"\0" * (len(p) % 2)
    tags = {256: (4, [width]), 257: (4, [height]), 258: (3, [8] * channels),
            259: (3, [how]), 262: (3, [photometric]), 277: (3, [channels])}
    if tile:
        tags.update({322: (3, [tile[0]]), 323: (3, [tile[1]]),
                     324: (4, offsets), 325: (4, [len(p) for p in parts])})
    else:
        tags.update({273: (4, offsets), 278: (4, [part]),
                     279: (4, [len(p) for p in parts])})
    if photometric == 3:
        tags[320] = (3, [i * 257 % 65536 for i in range(768)])
    tags.update(more)
    for tag in less:
        del tags[tag]
    directory, extra = b"", b""
    at = 8 + len(body)
    behind = at + 2 + 12 * len(tags) + 4
    for tag, (kind, values) in sorted(tags.items()):
        data = struct.pack(order + str(len(values)) + " HI"[kind - 2], *values)
        if len(data) > 4:
            value = struct.pack(order + "I", behind + len(extra))
            extra += data
        else:
            value = data.ljust(4, b"\0")
        directory += struct.pack(order + "HHI", tag, kind, len(values)) + value
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", at)
    return (head + body + struct.pack(order + "H", len(tags)) + directory
            + bytes(4) + extra)


def kinds():
    for order in "<>":
        for how in (RAW, DEFLATE, OLD_DEFLATE, PACKBITS):
            for channels, photometric in ((1, 0), (1, 1), (3, 2), (1, 3)):
                same = dict(channels=channels, photometric=photometric,
                            how=how, order=order)
                yield tiff(**same)
                yield tiff(part=3, **same)
                yield tiff(tile=(16, 16), **same)
                yield tiff(tile=(32, 32), **same)
                yield tiff(tile=(16, 48), **same)
            for extra in (0, 2):
                more = {338: (3, [extra])}
                yield tiff(channels=4, how=how, order=order, more=more)
                yield tiff(channels=2, photometric=1, how=how, order=order,
                           more=more)
            yield tiff(channels=4, how=how, order=order)
    yield tiff(more={258: (3, [8])})
    yield tiff(more={274: (3, [1])})
    yield tiff(more={339: (3, [1, 1, 1])})
    yield tiff(how=DEFLATE, part=7, more={284: (3, [1])})
    for tag in (256, 257, 273, 258):
        yield tiff(less=[tag])
    yield tiff()[:-3]
    yield tiff(more={256: (4, [0])})
    yield tiff(more={273: (4, [9999999])})


def declined():
    yield tiff(more={274: (3, [6])})
    yield tiff(channels=4, more={338: (3, [1])})
    yield tiff(channels=4, photometric=5)
    yield tiff(how=RAW, more={266: (3, [2])})
    yield tiff(channels=1, photometric=1, width=48,
               more={256: (4, [24]), 258: (3, [16])})


@pytest.mark.parametrize("make", [kinds, declined])
def test_is_decoded_just_when_pillow_does(make, tmp_path):
    path = tmp_path / "odd.tif"
    seen = [0, 0]
    with Loader("eval", 20, 20) as loader:
        for number, data in enumerate(make()):
            path.write_bytes(data)
            image, err, got = check(loader, "eval", path, 20)
            if make is declined:
                assert image is not None and "is not supported" in got, number
            else:
                assert bool(err) == (image is None), (number, got)
            seen[bool(err)] += 1
    assert seen[1] and (seen[0] or make is declined)


@pytest.mark.parametrize("how", [RAW, DEFLATE, PACKBITS])
@pytest.mark.parametrize("parts", [dict(part=6), dict(tile=(16, 16))])
def test_damaged_and_cut_files_are_bad_where_pillows_are(how, parts, tmp_path):
    """Or good: what damaged codes mean differs by libtiff's versions."""
    rng = np.random.default_rng(5)
    path = tmp_path / "damaged.tif"
    whole = tiff(how=how, **parts)
    end = int.from_bytes(whole[4:8], "little")  # of the pixels
    with Loader("eval", 20, 20) as loader:
        for keep in range(0, len(whole), 17):
            path.write_bytes(whole[:keep])
            _, err, _ = check(loader, "eval", path, 20)
            assert err
        for _ in range(150):
            spoilt = bytearray(whole)
            spoilt[rng.integers(8, end)] = rng.integers(256)
            path.write_bytes(spoilt)
            if how == RAW:
                image, err, got = check(loader, "eval", path, 20)
                assert image is not None and not err, got
            elif loader(path)[0]:
                with pytest.raises(OSError):
                    Image.open(path).convert("RGB")
