# SPDX-License-Identifier: MIT
"""A training loop with torch: the loader is the only line that changes.

    PYTHONPATH=bindings/python python examples/train.py imagenet
"""

import sys

import torch

import tsock

loader = tsock.DataLoader(sys.argv[1], batch_size=256)
model = torch.nn.Sequential(
    torch.nn.AdaptiveAvgPool2d(8),
    torch.nn.Flatten(),
    torch.nn.Linear(3 * 8 * 8, max(len(loader.classes), 1)),
)
sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    print("epoch %s: last loss %.4f" % (loader.epoch, loss.item()))
