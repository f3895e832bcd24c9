# SPDX-License-Identifier: MIT
"""Semantic segmentation: images and masks, cropped and mirrored together.

    PYTHONPATH=bindings/python python examples/segmentation.py IMAGES MASKS \
        [CLASSES [EPOCHS]]

The mask of IMAGES/a/NAME.jpg is MASKS/a/NAME.png, with a class in each pixel
and 255 where there is none, as in Pascal VOC's JPEGImages and
SegmentationClass.  Started again with other models, the program reads the same
stream: each image is decoded and augmented once for all of them.
"""

import sys

import torch

import tsock

VOID = 255
SIZE = 96
# That of torchvision's reference, for images of any size; for Pascal VOC's
# preset="segmentation" has its sizes.
RECIPE = (
    "RandomResize({0}, {1}) RandomHorizontalFlip() "
    "RandomCrop({0}, pad_if_needed=True, mask_fill={2})"
).format(SIZE, 2 * SIZE, VOID)


def network(classes: int) -> torch.nn.Module:
    """Three layers that see 7 x 7 pixels: in earnest take a real one."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, classes, 3, padding=1),
    )


def main(images: str, masks: str, classes: int = 21, epochs: int = 3) -> None:
    loader = tsock.DataLoader(
        "segmentation", 8, root=images, masks=masks, transform=RECIPE
    )
    torch.manual_seed(1)
    model = network(classes)
    adam = torch.optim.Adam(model.parameters(), lr=0.003)
    for epoch in range(epochs):
        right = pixels = 0
        for pictures, numbers in loader:
            numbers = numbers.long()  # uint8 from the stream
            scores = model(pictures)
            loss = torch.nn.functional.cross_entropy(
                scores, numbers, ignore_index=VOID
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
            right += int((scores.argmax(1) == numbers).sum())
            pixels += int((numbers != VOID).sum())
        print(
            "epoch %d: %.1f %% of the pixels right"
            % (epoch, 100 * right / max(1, pixels)),
            flush=True,
        )
    loader.close()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
