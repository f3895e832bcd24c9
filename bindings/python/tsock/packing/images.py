# SPDX-License-Identifier: MIT
"""Images as Python programs have them, as image files' bytes."""

from __future__ import annotations

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
