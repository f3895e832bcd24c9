# SPDX-License-Identifier: MIT
"""k copies of a script, as it is and with tsock.share() around its loader.

The script's loader is torch's DataLoader over torchvision's ImageFolder, with
RandomResizedCrop, flip, ToTensor and Normalize, shuffled, in batches of 32; the
script asks for batches as fast as it can.  Its number of workers is the CPUs'.
Reported: images per second and job, of epochs after the first one,

  native     with tsock.share(loader), which tsock-producer makes
  served     with tsock.share(loader, native=False), for which one process runs
             the script's loader for all jobs

beside the unchanged scripts, in turns.

usage: scripts.py DIR     DIR has a folder of images per class
"""

import functools
import os
import shutil
import sys
import tempfile

import against
import rows

QUICK = against.QUICK
show = functools.partial(rows.show, "scripts")


def rates(results):
    """Images per second of each job, from its first epoch's end on."""
    found = []
    for r in results:
        end = r["ends"][0]
        images = sum(n for when, n in r["arrivals"] if when > end)
        found.append(images / (r["ends"][-1] - end))
    return found


def turn(k, root, workers, native):
    """One run of k scripts; native None is without tsock."""
    spec = {
        "kind": "torch",
        "root": root,
        "workers": workers,
        "epochs": 2 if native is None or QUICK else 3,
        "batches": 0,
    }
    if native is not None:
        spec["native"] = native
    try:
        return rates(against.run_jobs([spec] * k)[0])
    finally:
        end_streams()


def end_streams():
    import tsock

    for stream in tsock.streams():
        tsock.stop(stream.name, force=True)


def measure(k, root):
    workers = len(os.sched_getaffinity(0))
    sides = {"unchanged": None, "native": True, "served": False}
    found = {side: [] for side in sides}
    pairs = {"native": [], "served": []}
    for i in range(1 if QUICK else 3):
        order = list(sides)
        medians = {}
        for side in order[i % 3 :] + order[: i % 3]:
            got = turn(k, root, workers, sides[side])
            found[side] += got
            medians[side] = sorted(got)[len(got) // 2]
        for side, ratios in pairs.items():
            ratios.append(medians[side] / medians["unchanged"])
    show("k=%d, unchanged" % k, found["unchanged"], "images/s/job")
    for side, ratios in pairs.items():
        show(
            "k=%d, %s" % (k, side),
            found[side],
            "images/s/job",
            "unchanged",
            pairs=ratios,
        )


def main(root):
    folder = tempfile.mkdtemp(prefix="tsock-bench-")
    os.environ["TSOCK_DIR"] = os.path.join(folder, "streams")
    os.mkdir(os.environ["TSOCK_DIR"], 0o700)
    os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
    try:
        data = os.path.join(folder, "data")
        n = against.enough(root, data)
        rows.head("scripts: %d images, batches of %d" % (n, against.BATCH))
        for k in (1, 2) if QUICK else (1, 2, 4):
            measure(k, data)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.rpartition("\n\n")[2].strip())
    try:
        main(sys.argv[1])
    except against.Failed as failure:
        sys.exit("failed: %s" % failure)
