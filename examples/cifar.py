# SPDX-License-Identifier: MIT
"""CIFAR-10, or downsampled ImageNet: padded, cropped and flipped natively.

    PYTHONPATH=bindings/python python examples/cifar.py DIR [EPOCHS]

DIR has CIFAR-10's files, Python's or the binary ones, or the batches of
ImageNet at 32 x 32 or 64 x 64.  Any number of these programs, with other models
or seeds of theirs, read the same stream: it is made once.
"""

import sys

import torch

import tsock

RATE = 0.05
MEAN_STD = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26)  # of each channel


def network(classes: int) -> torch.nn.Module:
    """A small one: in earnest take a ResNet."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(512, classes),
    )


def right_of(model: torch.nn.Module, loader: tsock.DataLoader) -> float:
    right = count = 0
    with torch.no_grad():
        for images, labels in loader:
            right += int((model(images).argmax(1) == labels).sum())
            count += len(labels)
    return right / count


def main(root: str, epochs: int = 3) -> None:
    train = tsock.DataLoader(root=root, batch_size=128, normalize=MEAN_STD)
    test = tsock.DataLoader(
        root=root, split="val", batch_size=500, normalize=MEAN_STD
    )
    print("training with %s" % train.transform)
    torch.manual_seed(1)
    model = network(len(train.classes))
    sgd = torch.optim.SGD(model.parameters(), RATE, momentum=0.9)
    for epoch in range(epochs):
        for images, labels in train:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        print(
            "epoch %d: %.1f %% of the test images right"
            % (epoch, 100 * right_of(model, test)),
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
