# SPDX-License-Identifier: MIT
"""How long a job waits for its first batch, from making its loader.

  cold      no producer runs: the loader starts one; with the scan of the data
            set kept from before, without, and with a set that tsock-pack wrote
  attached  another job reads
  rival     PyTorch's DataLoader on torchvision's ImageFolder, the same data
            and batch size, with a worker per CPU, and with none

First with the images of DIR, then with 100,000 files (FILES=N: so many), which
are links to small copies of these: a scan looks at each of them.  Each time a
new process, which has imported everything before the clock starts, in turns.
What it reads is in the page cache.

usage: start.py PRODUCER DIR     DIR has a folder of images per class
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from rows import head, show

BATCH = 32
QUICK = os.environ.get("QUICK") == "1"
TURNS = 2 if QUICK else 7
FILES = int(os.environ.get("FILES", 5000 if QUICK else 100000))
CASES = (
    "cold, first scan",
    "cold, scan kept",
    "cold, packed",
    "attached",
    "DataLoader, workers",
    "DataLoader, none",
)
RIVAL_CASE = "DataLoader, workers"

OURS = """
import sys, time, torch, tsock
start = time.monotonic()
loader = tsock.DataLoader("photos", root=sys.argv[1], batch_size=%d)
iterator = iter(loader)
images, labels = next(iterator)
print(time.monotonic() - start, flush=True)
sys.stdin.read()
""" % BATCH

RIVAL = """
import sys, time, torch
from torchvision import datasets, transforms
start = time.monotonic()
chain = transforms.Compose([
    transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
loader = torch.utils.data.DataLoader(
    datasets.ImageFolder(sys.argv[1], chain), batch_size=%d, shuffle=True,
    num_workers=int(sys.argv[2]))
images, labels = next(iter(loader))
print(time.monotonic() - start)
""" % BATCH


class Job:
    """A job that has its first batch; ours go on holding it until end()."""

    def __init__(self, script, *arguments):
        self._process = subprocess.Popen(
            [sys.executable, "-c", script] + [str(a) for a in arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.seconds = float(self._process.stdout.readline())

    def end(self):
        self._process.communicate()
        return self.seconds


def end_producer():
    import tsock

    for stream in tsock.streams():
        os.kill(tsock.query(stream.name, 60)["pid"], signal.SIGTERM)
    while tsock.streams():
        time.sleep(0.01)


def one_turn(found, root, packed, scans):
    shutil.rmtree(scans, ignore_errors=True)
    first = Job(OURS, root)
    found["attached"].append(Job(OURS, root).end())
    found["cold, first scan"].append(first.end())
    end_producer()
    found["cold, scan kept"].append(Job(OURS, root).end())
    end_producer()
    found["cold, packed"].append(Job(OURS, packed).end())
    end_producer()
    workers = len(os.sched_getaffinity(0))
    found["DataLoader, workers"].append(Job(RIVAL, root, workers).end())
    found["DataLoader, none"].append(Job(RIVAL, root, 0).end())


def pack(root, target):
    program = os.path.join(
        os.path.dirname(os.environ["TSOCK_PRODUCER"]), "tsock-pack"
    )
    command = [program, "--quiet", "--dataset", "imagefolder", root, target]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return target


def many(root, folder):
    """FILES files below the folder, a thousand in each class."""
    from PIL import Image

    found, firsts = [], []
    for base, _, names in os.walk(root):
        found += [os.path.join(base, name) for name in names]
    for path in sorted(found)[:500]:
        stem = os.path.join(folder, str(len(firsts)))
        firsts.append(stem + ".jpeg")
        small = Image.open(path).convert("RGB")
        small.thumbnail((96, 96))
        small.save(firsts[-1])
    made = os.path.join(folder, "many")
    for i in range(FILES):
        parent = os.path.join(made, "class-%03d" % (i // 1000))
        if i % 1000 == 0:
            os.makedirs(parent)
        name = os.path.join(parent, "%06d.jpeg" % i)
        os.link(firsts[i % len(firsts)], name)
    return made


def show_all(found, what):
    head("start: from making a loader to its first batch of %d" % BATCH)
    for case in CASES:
        against = None if case == RIVAL_CASE else RIVAL_CASE
        show(
            "start",
            case + what,
            found[case],
            "s",
            against,
            found[RIVAL_CASE],
        )


def main(program, root):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="tsock-bench-")
    scans = os.path.join(folder, "scans")
    os.environ["TSOCK_PRODUCER"] = os.path.abspath(program)
    os.environ["TSOCK_DIR"] = os.path.join(folder, "streams")
    os.environ["XDG_CACHE_HOME"] = scans
    try:
        for data, what in (
            (os.path.abspath(root), ""),
            (many(root, folder), ", %d files" % FILES),
        ):
            packed = pack(data, os.path.join(folder, "packed" + what))
            found = {case: [] for case in CASES}
            for _ in range(TURNS):
                one_turn(found, data, packed, scans)
            show_all(found, what)
    finally:
        end_producer()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.rpartition("\n\n")[2].strip())
    main(*sys.argv[1:])
