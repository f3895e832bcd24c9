# SPDX-License-Identifier: MIT
"""Object detection: images and their boxes, cropped and mirrored together.

    PYTHONPATH=bindings/python python examples/detection.py INSTANCES IMAGES \
        [EPOCHS]

INSTANCES is an annotation file as COCO's instances_train2017.json, IMAGES the
folder of its images.  Started again with other models, the program reads the
same stream: each image is decoded and augmented once for all of them.
"""

import os
import sys

import torch

import tsock

SIZE, CELLS = 96, 6
RECIPE = (
    "RandomResizedCrop({0}, scale=(0.3, 1)) RandomHorizontalFlip()"
).format(SIZE)


class Grid(torch.nn.Module):
    """Is the middle of a box in this cell?  In earnest take a real detector."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 5, 4, 2),
            torch.nn.ReLU(),
            torch.nn.Conv2d(16, 32, 3, 2, 1),
            torch.nn.ReLU(),
            torch.nn.Conv2d(32, 1, 3, 2, 1),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        cells: torch.Tensor = self.layers(images)
        return cells[:, 0]


def middles(boxes: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """1 in the cells that have the middle of a box."""
    target = torch.zeros(len(boxes), CELLS, CELLS)
    at = (boxes[..., :2] + boxes[..., 2:]) / 2 * CELLS / SIZE
    cell = at.long().clamp(0, CELLS - 1)
    for k, n in enumerate(lengths.tolist()):
        target[k, cell[k, :n, 1], cell[k, :n, 0]] = 1
    return target


def main(instances: str, images: str, epochs: int = 3) -> None:
    table = os.path.splitext(instances)[0] + ".table"
    if not os.path.exists(table):
        tsock.index(instances, table, root=images, boxes=True)
    loader = tsock.DataLoader(
        "detection",
        8,
        root=table,
        boxes="boxes,box_labels",
        transform=RECIPE,
        fields=("image", "boxes", "box_labels", "boxes_length"),
    )
    torch.manual_seed(1)
    model = Grid()
    adam = torch.optim.Adam(model.parameters(), lr=0.003)
    for epoch in range(epochs):
        total, count = 0.0, 0
        for pictures, boxes, _, lengths in loader:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                model(pictures), middles(boxes, lengths)
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
            total += float(loss.detach())
            count += int(lengths.sum())
        print(
            "epoch %d: loss %.3f, %d boxes" % (epoch, total, count), flush=True
        )
    loader.close()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
