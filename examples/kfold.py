# SPDX-License-Identifier: MIT
"""k-fold validation: k jobs on one stream, each with samples of its own.

    PYTHONPATH=bindings/python python examples/kfold.py [DIR [FOLDS [EPOCHS]]]

DIR has a folder of images per class; without it a small set of made-up ones is
used.  One producer decodes and augments every image once per epoch, for all
jobs.  A second one gives the images as they are, for the validation.
"""

import multiprocessing
import os
import random
import struct
import sys
import tempfile
import zlib
from typing import Any, Callable, Iterable

import torch

import tsock

SIZE = 32


def png(
    width: int, height: int, pixel: Callable[[int, int], Iterable[int]]
) -> bytes:
    """A PNG file of RGB pixels; pixel(x, y) gives three bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(
            ">I", zlib.crc32(body)
        )

    rows = b"".join(
        b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width))
        for y in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def make_images(root: str, each: int = 60) -> None:
    """Noise in three classes, each of which has more of one colour."""
    draw = random.Random(1)
    for label, name in enumerate(("red", "green", "blue")):
        os.mkdir(os.path.join(root, name))
        for i in range(each):

            def pixel(x: int, y: int) -> list[int]:
                found = [draw.randrange(150) for _ in range(3)]
                found[label] += draw.randrange(100)
                return found

            with open(os.path.join(root, name, "%03d.png" % i), "wb") as f:
                f.write(png(40, 40, pixel))


def folds_of(length: int, folds: int) -> list[list[int]]:
    """Each sample in one of so many folds, by chance."""
    order = list(range(length))
    random.Random(1).shuffle(order)
    return [sorted(order[k::folds]) for k in range(folds)]


def job(k: int, folds: int, epochs: int) -> None:
    """Train on all folds but one, and validate on that."""
    torch.manual_seed(k)
    torch.set_num_threads(1)
    held_out = tsock.DataLoader("kfold-eval", 16)
    parts = folds_of(len(held_out.dataset), folds)
    held_out.close()
    train = tsock.DataLoader(
        "kfold", 16, subset=sum(parts[:k] + parts[k + 1 :], [])
    )
    held_out = tsock.DataLoader("kfold-eval", 16, subset=parts[k])
    model = torch.nn.Sequential(
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(3 * 4 * 4, len(train.classes)),
    )
    sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(epochs):
        for images, labels in train:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    train.close()
    right = 0
    with torch.no_grad():
        for images, labels in held_out:
            right += int((model(images).argmax(1) == labels).sum())
    samples = len(train.sampler), len(held_out.sampler)
    held_out.close()
    print(
        "fold %d: trained on %d samples, %d of %d others right"
        % (k, samples[0], right, samples[1]),
        flush=True,
    )


def producer(root: str, name: str, **options: Any) -> tsock.Producer:
    return tsock.Producer(
        name=name, dataset="imagefolder", root=root, size=SIZE, **options
    )


def main(root: str, folds: int, epochs: int) -> bool:
    with producer(root, "kfold", min_consumers=folds), producer(
        root, "kfold-eval", preset="eval", resize=SIZE
    ):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["torch"])  # imported once
        jobs = [
            context.Process(target=job, args=(k, folds, epochs))
            for k in range(folds)
        ]
        for process in jobs:
            process.start()
        for process in jobs:
            process.join()
    return max(process.exitcode != 0 for process in jobs)


if __name__ == "__main__":
    numbers = [int(n) for n in sys.argv[2:]] + [5, 3][len(sys.argv[2:]) :]
    if len(sys.argv) > 1:
        sys.exit(main(sys.argv[1], *numbers))
    with tempfile.TemporaryDirectory() as folder:
        make_images(folder)
        sys.exit(main(folder, *numbers))
