# SPDX-License-Identifier: MIT
"""Crops for the peers that only decode: read, decode, cut, resize, mirror.

OpenCV resizes: over the area, its way to take every pixel of the crop into
account as the others' antialiasing does, or bilinearly from four pixels of it.
"""

import random

import loop


class Crops:
    """A data set for PyTorch's DataLoader, of uint8 HWC."""

    def __init__(self, root, decode, interpolation, flip_channels=False):
        self.paths, self.labels = loop.files(root)
        self.decode = decode
        self.interpolation = interpolation
        self.flip_channels = flip_channels

    def __len__(self):
        return len(self.paths)

    def image(self, i):
        with open(self.paths[i], "rb") as f:
            return self.decode(f.read())

    def __getitem__(self, i):
        import cv2
        import torch

        image = self.image(i)
        y, x, h, w = loop.crop_box(*image.shape[:2])
        image = cv2.resize(
            image[y : y + h, x : x + w],
            (loop.SIZE, loop.SIZE),
            interpolation=self.interpolation,
        )
        if random.random() < 0.5:
            image = cv2.flip(image, 1)
        if self.flip_channels:
            image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        return torch.from_numpy(image), self.labels[i]


def batches(options, decode, area=True, flip_channels=False):
    import cv2

    cv2.setNumThreads(0)
    way = cv2.INTER_AREA if area else cv2.INTER_LINEAR
    dataset = Crops(options.root, decode, way, flip_channels)
    for images, labels in loop.dataloader(dataset, options):
        if options.form == "f32":
            images = loop.normalized(images)
        yield images, labels
