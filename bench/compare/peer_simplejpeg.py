# SPDX-License-Identifier: MIT
"""simplejpeg decodes, OpenCV resizes, PyTorch's DataLoader makes batches."""

import crops
import loop


def versions(options):
    import cv2
    import simplejpeg

    return "simplejpeg %s, OpenCV %s" % (
        simplejpeg.__version__,
        cv2.__version__,
    )


def decode(data):
    import simplejpeg

    return simplejpeg.decode_jpeg(data, "RGB")


def stream(options):
    return crops.batches(options, decode)


if __name__ == "__main__":
    loop.main(versions, {"simplejpeg, area": {}}, stream)
