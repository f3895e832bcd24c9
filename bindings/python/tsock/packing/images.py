# SPDX-License-Identifier: MIT
"""Images as Python programs have them, as image files' bytes."""

from __future__ import annotations

import struct
import zlib
from typing import Any


def _netpbm(width: int, height: int, channels: int, pixels: bytes) -> bytes:
    """A file of the pixels as they are: PPM, or PGM for one channel."""
    kind = b"P6" if channels == 3 else b"P5"
    return kind + b"\n%d %d\n255\n" % (width, height) + pixels


def _from_pil(image: Any) -> bytes:
    try:
        if image.mode != "L":
            image = image.convert("RGB")
        pixels = image.tobytes()
    except OSError as e:  # its file is read only now
        raise ValueError("its image can't be read: %s" % e) from None
    channels = 1 if image.mode == "L" else 3
    return _netpbm(image.width, image.height, channels, pixels)


def _from_array(array: Any) -> bytes:
    shape, dtype = tuple(array.shape), str(array.dtype).replace("torch.", "")
    good = len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3))
    if dtype != "uint8" or not good or 0 in shape:
        raise TypeError(
            "its image is an array of %s %s, and uint8 [height, width, 3] or "
            "[height, width] is wanted" % (dtype, list(shape))
        )
    import numpy

    if hasattr(array, "detach"):
        array = array.detach().cpu().numpy()
    pixels = numpy.ascontiguousarray(array).tobytes()
    channels = shape[2] if len(shape) == 3 else 1
    return _netpbm(shape[1], shape[0], channels, pixels)


def _png(width: int, height: int, rows: list[bytes]) -> bytes:
    """A PNG of grey levels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows), 1)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", data)
        + chunk(b"IEND", b"")
    )


def encode_mask(mask: Any) -> bytes:
    """The bytes of a PNG of this mask's numbers; TypeError: it is none."""
    if isinstance(mask, (bytes, bytearray, memoryview)):
        if not len(mask):
            raise ValueError("its mask has no bytes")
        return bytes(mask)
    import numpy

    if hasattr(mask, "detach"):
        mask = mask.detach().cpu()
    if getattr(mask, "mode", "L") not in ("L", "P"):
        raise TypeError(
            "its mask is an image of mode %s, and one number a pixel is "
            "wanted: mode L or P" % mask.mode
        )
    numbers = numpy.asarray(mask)
    if numbers.dtype != numpy.uint8 or numbers.ndim != 2 or 0 in numbers.shape:
        raise TypeError(
            "its mask is %s %s, and uint8 [height, width] is wanted"
            % (numbers.dtype, list(numbers.shape))
        )
    height, width = numbers.shape
    return _png(width, height, [row.tobytes() for row in numbers])


def encode(image: Any) -> bytes:
    """The bytes of a file of this image; TypeError: it is none."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        if not len(image):
            raise ValueError("its image has no bytes")
        return bytes(image)
    if hasattr(image, "convert") and hasattr(image, "tobytes"):
        return _from_pil(image)
    if hasattr(image, "shape") and hasattr(image, "dtype"):
        return _from_array(image)
    raise TypeError(
        "its image is neither bytes nor a path nor an image of PIL nor an "
        "array, but %.80r" % (image,)
    )
