# SPDX-License-Identifier: MIT
"""Small pictures in binary records: Yearbook, as Modyn stores it.

    PYTHONPATH=bindings/python python examples/portraits.py DIR [EPOCHS]

DIR has files of records, one after the other: an int32 label, little-endian, and
32 x 32 pixels of red, green and blue.  Any number of these programs share the
stream.  MNIST's own files are read as they are, with dataset="mnist".
"""

import sys

import torch

import tsock

BATCH = 128
SCHEMA = "label:int32,pixels:uint8[32,32,3]"


def main(root: str, epochs: int = 3) -> None:
    loader = tsock.DataLoader(
        "portraits",
        BATCH,
        root=root,
        dataset="records",
        schema=SCHEMA,
        fields=("pixels", "label"),
    )
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(256, 2),
    )
    adam = torch.optim.Adam(model.parameters(), 0.003)
    for epoch in range(epochs):
        losses = []
        for pixels, labels in loader:
            images = pixels.permute(0, 3, 1, 2).float() / 255
            loss = torch.nn.functional.cross_entropy(
                model(images), labels.long()
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses.append(loss.item())
        print(
            "epoch %d: loss %.3f" % (epoch, sum(losses) / len(losses)),
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
