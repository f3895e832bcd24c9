# SPDX-License-Identifier: MIT
"""A sweep: jobs with different learning rates, on one stream.

    PYTHONPATH=bindings/python python examples/sweep.py DIR [EPOCHS]

DIR has a folder of images per class.  Every job makes the same loader: the
first one starts the producer, which ends by itself after the last, and each
image is decoded once per epoch for all of them.  Nothing else is shared: the
jobs could be started by hand, at different times, or by a scheduler.
"""

import multiprocessing
import sys
from multiprocessing.queues import SimpleQueue

import torch

import tsock

RATES = (0.001, 0.01, 0.1, 1.0)


def job(
    root: str,
    rate: float,
    epochs: int,
    results: SimpleQueue[tuple[float, float]],
) -> None:
    torch.manual_seed(0)  # all begin with the same model
    torch.set_num_threads(1)
    loader = tsock.DataLoader(
        "sweep", 16, root=root, size=32, exit_when_idle=5
    )
    model = torch.nn.Sequential(
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(3 * 4 * 4, len(loader.classes)),
    )
    sgd = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(epochs):
        total = 0.0
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            total += loss.item()
    loader.close()
    results.put((rate, total / len(loader)))


def main(root: str, epochs: int) -> bool:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])  # imported once
    results: SimpleQueue[tuple[float, float]] = context.SimpleQueue()
    jobs = [
        context.Process(target=job, args=(root, rate, epochs, results))
        for rate in RATES
    ]
    for process in jobs:
        process.start()
    for process in jobs:
        process.join()
    found: dict[float, float] = {}
    while not results.empty():
        rate, loss = results.get()
        found[rate] = loss
    for rate in RATES:
        print("lr %g: loss %s" % (rate, found.get(rate, "unknown")))
    if found:
        print("best: lr %g" % min(found, key=lambda rate: found[rate]))
    return len(found) < len(RATES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3))
