# SPDX-License-Identifier: MIT
"""Train again at each trigger, on the samples that were chosen for it.

    PYTHONPATH=bindings/python python examples/continual.py DIR CHOSEN...

DIR has images, each with its class's number in a file beside it: 1.jpg, 1.label,
as Modyn stores CGLM, CLOC and FMoW.  Each CHOSEN is what one trigger selected:
a line per sample, its path below DIR, a tab, and its weight in the loss.  Any
number of these programs, with other models, share the streams.
"""

import os
import sys

import torch

import tsock

SIZE = 32  # pixels: in earnest 224
BATCH = 32
EPOCHS = 4  # for each trigger


def main(root: str, *triggers: str) -> None:
    torch.manual_seed(1)
    model, sgd = None, None
    for number, chosen in enumerate(triggers):
        # Each trigger has a stream of its own.
        loader = tsock.DataLoader(
            os.path.basename(chosen),
            root=root,
            batch_size=BATCH,
            labels=root + ":label=.label",
            select=chosen,
            size=SIZE,
            fields=("image", "label", "weight"),
        )
        if model is None or sgd is None:
            classes = len(loader.classes)
            model = torch.nn.Sequential(
                torch.nn.Conv2d(3, 16, 3, stride=2),
                torch.nn.ReLU(),
                torch.nn.AdaptiveAvgPool2d(4),
                torch.nn.Flatten(),
                torch.nn.Linear(256, classes),
            )
            sgd = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        total = samples = 0.0
        for _ in range(EPOCHS):
            for images, labels, weights in loader:
                losses = torch.nn.functional.cross_entropy(
                    model(images), labels, reduction="none"
                )
                loss = (losses * weights).mean()
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                total += float(losses.detach().sum())
                samples += len(labels)
        print(
            "trigger %d: %d samples, loss %.3f"
            % (number, samples // EPOCHS, total / samples),
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
