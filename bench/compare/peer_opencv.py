# SPDX-License-Identifier: MIT
"""OpenCV decodes and resizes, PyTorch's DataLoader makes the batches."""

import crops
import loop


def versions(options):
    import cv2

    return "OpenCV %s" % cv2.__version__


def decode(data):
    import cv2
    import numpy

    return cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_COLOR)


def stream(options, area):
    return crops.batches(options, decode, area, flip_channels=True)


if __name__ == "__main__":
    loop.main(
        versions,
        {
            "OpenCV, area": {"area": True},
            "OpenCV, no antialias": {"area": False},
        },
        stream,
    )
