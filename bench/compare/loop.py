# SPDX-License-Identifier: MIT
"""What every peer_*.py is: a loader that gives batches when it is told to.

A peer's script defines versions(), VARIANTS (a name and its keywords) and
stream(options, **keywords), a generator of (images, labels) without an end,
and ends with loop.main(versions, VARIANTS, stream).

By itself it prints how many images it gives a second.  With --serve it obeys
run.py and jobs.py: it says that it is ready, with its versions; then it reads
how many images to give, gives at least so many, and prints how many they were
and how long that took, as often as it is asked.
"""

import argparse
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import time

SIZE, SCALE, RATIO = 224, (0.08, 1.0), (3 / 4, 4 / 3)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Missing(Exception):
    """The peer can't run here; the text says why."""


def files(root):
    """The images below root, and the number of each one's folder."""
    paths, labels = [], []
    for label, name in enumerate(sorted(os.listdir(root))):
        folder = os.path.join(root, name)
        for file in sorted(os.listdir(folder)):
            paths.append(os.path.join(folder, file))
            labels.append(label)
    return paths, labels


def crop_box(height, width):
    """Where torchvision's RandomResizedCrop would cut: y, x, h, w."""
    area = height * width
    for _ in range(10):
        target = area * random.uniform(*SCALE)
        aspect = RATIO[0] * (RATIO[1] / RATIO[0]) ** random.random()
        w = round((target * aspect) ** 0.5)
        h = round((target / aspect) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            y = random.randint(0, height - h)
            return y, random.randint(0, width - w), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side


def normalized(batch):
    """uint8 [N, H, W, 3] as float32 [N, 3, H, W], a whole batch at once."""
    import torch

    mean = torch.tensor(MEAN).mul_(255).view(3, 1, 1)
    scale = torch.tensor(STD).mul_(255).reciprocal_().view(3, 1, 1)
    out = torch.empty(batch.shape[0], 3, *batch.shape[1:3])
    return out.copy_(batch.permute(0, 3, 1, 2)).sub_(mean).mul_(scale)


def dataloader(dataset, options, **keywords):
    """The batches of PyTorch's DataLoader, epoch after epoch; without threads
    it does its work in this process."""
    import torch

    torch.set_num_threads(1)
    if options.threads:
        keywords.update(persistent_workers=True)
        # What a script gets by default up to Python 3.13.
        keywords.update(multiprocessing_context="fork")
    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=options.batch,
        shuffle=True,
        num_workers=options.threads,
        **keywords
    )
    while True:
        yield from loader


def spawn(command):
    """A process that ends with this one."""

    def tie():
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG

    return subprocess.Popen(command, preexec_fn=tie)


def arguments(variants):
    parser = argparse.ArgumentParser()
    parser.add_argument("root", nargs="?", help="a folder per class")
    parser.add_argument("--form", choices=("u8", "f32"), default="f32")
    first = list(variants)[0]
    parser.add_argument("--variant", choices=variants, default=first)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--scratch", help="an empty folder to write into")
    parser.add_argument("--join", help="read what already runs there")
    return parser.parse_args()


def give(batches, wanted):
    """Take so many images, and read one number of each."""
    start, count, sink = time.monotonic(), 0, 0.0
    while count < wanted:
        images, labels = next(batches)
        sink += float(images[:, 0, 0, 0].sum()) + float(labels[0])
        count += len(labels)
    return {"images": count, "seconds": time.monotonic() - start}


def main(versions, variants, stream):
    options = arguments(variants)
    # Libraries write to standard output what they like.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(what):
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    try:
        version = versions(options)
        batches = stream(options, **variants[options.variant])
    except (ImportError, OSError, RuntimeError, Missing) as error:
        say({"missing": str(error).split("\n")[0]})
        sys.exit(77)
    if not options.serve:
        print(version, give(batches, options.batch * 8), file=sys.stderr)
        os._exit(0)
    say({"ready": version})
    for line in iter(sys.stdin.readline, ""):
        say(give(batches, int(line)))
    # Threads and workers of all these libraries end in as many ways.
    os._exit(0)
