# SPDX-License-Identifier: MIT
"""PyTurboJPEG decodes, OpenCV resizes, PyTorch's DataLoader makes batches."""

from importlib import metadata

import crops
import loop


def versions(options):
    import cv2
    import turbojpeg

    turbojpeg.TurboJPEG()
    return "PyTurboJPEG %s, OpenCV %s" % (
        metadata.version("PyTurboJPEG"),
        cv2.__version__,
    )


def stream(options):
    import turbojpeg

    library = turbojpeg.TurboJPEG()

    def decode(data):
        return library.decode(data, turbojpeg.TJPF_RGB)

    return crops.batches(options, decode)


if __name__ == "__main__":
    loop.main(versions, {"PyTurboJPEG, area": {}}, stream)
