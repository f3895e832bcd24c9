# SPDX-License-Identifier: MIT
"""FFCV: a set packed before, at most 500 pixels a side, JPEG or raw.

setup.sh has pip compile the package against OpenCV's and libturbojpeg's
headers.  Where that failed the library calls of its decoder are made from
Python instead: the whole JPEG with libjpeg-turbo's fast DCT, then OpenCV's
resize over the crop's area.  Rows of that are called "emulated".
"""

import io
import os
import random

import crops
import loop

MOST, QUALITY = 500, 90


def versions(options):
    try:
        import ffcv  # noqa: F401
    except (ImportError, OSError) as why:
        if "emulated" not in options.variant:
            raise loop.Missing("FFCV wasn't compiled: %s" % why) from None
        import cv2
        import simplejpeg

        return "calls of simplejpeg %s and OpenCV %s" % (
            simplejpeg.__version__,
            cv2.__version__,
        )
    if "emulated" in options.variant:
        raise loop.Missing("FFCV itself is there")
    from importlib import metadata

    return "FFCV %s" % metadata.version("ffcv")


def packed(options, raw):
    """The set as FFCV's own writer makes it."""
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter
    from torchvision import datasets

    path = os.path.join(options.scratch, "images.beton")
    image = RGBImageField(
        write_mode="proportion" if raw else "jpg",
        compress_probability=1 - raw,
        max_resolution=MOST,
        jpeg_quality=QUALITY,
    )
    fields = {"image": image, "label": IntField()}
    writer = DatasetWriter(path, fields, num_workers=1)
    writer.from_indexed_dataset(datasets.ImageFolder(options.root))
    return path


def stream(options, raw):
    import numpy
    import torch
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import (
        NormalizeImage,
        RandomHorizontalFlip,
        ToTensor,
        ToTorchImage,
    )

    torch.set_num_threads(1)
    steps = [
        RandomResizedCropRGBImageDecoder((loop.SIZE, loop.SIZE)),
        RandomHorizontalFlip(),
    ]
    # Before ToTensor: FFCV's grouping of compiled and other steps never ends
    # where compiled ones stand on both sides of the others.
    if options.form == "f32":
        mean = 255 * numpy.array(loop.MEAN)
        std = 255 * numpy.array(loop.STD)
        steps.append(NormalizeImage(mean, std, numpy.float32))
    steps += [ToTensor(), ToTorchImage()]
    loader = Loader(
        packed(options, raw),
        batch_size=options.batch,
        num_workers=max(1, options.threads),
        order=OrderOption.RANDOM,
        os_cache=True,
        drop_last=False,
        pipelines={"image": steps, "label": [IntDecoder(), ToTensor()]},
    )
    while True:
        yield from loader


def shrunk(path):
    from PIL import Image

    image = Image.open(path).convert("RGB")
    part = MOST / max(image.size)
    if part < 1:
        size = [round(part * side) for side in image.size]
        image = image.resize(size, Image.Resampling.BOX)
    return image


class Packed(crops.Crops):
    """Samples in memory, as FFCV's writer would keep them."""

    def __init__(self, root, raw, interpolation):
        super().__init__(root, None, interpolation)
        import numpy

        chance = random.Random(1)
        self.samples = []
        for path in self.paths:
            image = shrunk(path)
            if chance.random() < raw:
                self.samples.append(numpy.asarray(image))
                continue
            out = io.BytesIO()
            image.save(out, "JPEG", quality=QUALITY)
            self.samples.append(out.getvalue())

    def image(self, i):
        import simplejpeg

        sample = self.samples[i]
        if not isinstance(sample, bytes):
            return sample
        return simplejpeg.decode_jpeg(sample, "RGB", fastdct=True)


def emulated(options, raw):
    import cv2

    cv2.setNumThreads(0)
    dataset = Packed(options.root, raw, cv2.INTER_AREA)
    for images, labels in loop.dataloader(dataset, options):
        if options.form == "f32":
            images = loop.normalized(images)
        yield images, labels


def either(options, raw):
    make = emulated if "emulated" in options.variant else stream
    return make(options, raw)


VARIANTS = {
    "FFCV, JPEG": {"raw": 0},
    "FFCV, half raw": {"raw": 0.5},
    "FFCV, emulated, JPEG": {"raw": 0},
    "FFCV, emulated, half raw": {"raw": 0.5},
}

if __name__ == "__main__":
    loop.main(versions, VARIANTS, either)
