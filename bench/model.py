# SPDX-License-Identifier: MIT
"""At what rate a machine of many cores would go, and what would limit it.

Measured on this machine, beside one job: the CPU time of an image in workers, in
the busiest other thread of the producer and in the job; the time of a claim by
eight threads at once; and the rate at which all CPUs copy memory.  Each is
printed.  From these follow, for 8 to 256 cores and 1 to 64 jobs:

    cores    cores / (workers + other threads + jobs x job), if all is parallel
    thread   1 / (busiest other thread)
    claims   1 / (claim)
    memory   bandwidth / (bytes written, fetched to be written, and read)

The lowest is the rate.  What it says of this machine's own CPUs is printed
beside the rate that was measured.  It knows nothing of caches that several cores
share, of several sockets, of clocks that fall under load, and of disks.

usage: model.py PRODUCER PACK CLAIMS DIR     DIR has a folder of images per class

MODEL_BANDWIDTH is the bandwidth of the large machine in GB/s (200, about that of
a socket with eight channels of DDR5).
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

from cores import BATCH, CPUS, IMAGES, QUICK, RING, TURNS, Stream, threads_of
from rows import head, show

BANDWIDTH = float(os.environ.get("MODEL_BANDWIDTH", 200)) * 1e9
CORES = (8, 16, 32, 64, 128, 256)
JOBS = (1, 8, 64)
PIXELS = 224
BYTES = 3 * PIXELS * PIXELS
FORMS = {  # what a job reads, and how many times the bytes of a sample
    "u8": ({}, 1),
    "float16": ({"dtype": "float16", "layout": "chw"}, 2),
    "float32": ({"dtype": "float32", "layout": "chw"}, 4),
}


class Measured:
    """Seconds of CPU of an image, and images/s, as medians of turns."""

    def __init__(self, stream):
        self.workers, self.other, self.busiest, self.job = [], [], [], []
        self.rate = []
        for _ in range(TURNS):
            self._turn(stream)

    def _turn(self, stream):
        stream.take(2 * RING)
        before, cpu = threads_of(stream.process.pid), time.thread_time()
        start = time.monotonic()
        images = stream.take(IMAGES)
        self.rate.append(images / (time.monotonic() - start))
        self.job.append((time.thread_time() - cpu) / images)
        after = threads_of(stream.process.pid)
        spent = {"worker": 0.0}
        others = [0.0]
        for task, (name, seconds, _) in after.items():
            seconds -= before[task][1] if task in before else 0.0
            if name in ("tsock-worker", "tsock-read") or name[:4] == "iou-":
                spent["worker"] += seconds
            else:
                others.append(seconds)
        self.workers.append(spent["worker"] / images)
        self.other.append(sum(others) / images)
        self.busiest.append(max(others) / images)

    def median(self, name):
        return statistics.median(getattr(self, name))


def copied_each_second():
    """Bytes/s that all CPUs copy; each is read, fetched and written."""
    size = 64 << 20
    seconds = 0.5 if QUICK else 2
    copied = [0] * CPUS

    def copy(k):
        source, target = np.ones(size, "u1"), np.ones(size, "u1")
        barrier.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            np.copyto(target, source)
            copied[k] += size

    barrier = threading.Barrier(CPUS)
    threads = [threading.Thread(target=copy, args=(k,)) for k in range(CPUS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sum(copied) / seconds


def claim_seconds(program, folder):
    """Of a sample that eight threads at once claim and commit."""
    path = os.path.join(folder, "claims.json")
    subprocess.run(
        [program],
        env={**os.environ, "JSON": path},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    with open(path) as f:
        for line in f:
            row = json.loads(line)
            if row["case"] == "8 threads":
                return row["value"] / 1e9
    raise SystemExit("model.py: bench/claims measures no 8 threads")


def traffic(times, jobs):
    """Bytes of memory traffic of an image: bytes are made in any case."""
    made = 2 * BYTES + (2 * times * BYTES if times > 1 else 0)
    return made + jobs * times * BYTES


def rate(cores, jobs, form, m, claim, bandwidth):
    """Images/s, and what limits them."""
    times = FORMS[form][1]
    spent = m.median("workers") + m.median("other") + jobs * m.median("job")
    limits = {
        "cores": cores / spent,
        "thread": 1 / max(m.median("busiest"), 1e-9),
        "claims": 1 / claim,
        "memory": bandwidth / traffic(times, jobs),
    }
    lowest = min(limits, key=limits.get)
    return limits[lowest], lowest


def show_measured(found, claim, copied):
    head("model: measured here, beside one job")
    for case, m in found.items():
        for what, name in (
            ("workers", "workers"),
            ("other threads", "other"),
            ("the busiest of these", "busiest"),
            ("a job", "job"),
        ):
            show(
                "model",
                "%s: %s" % (case, what),
                [1e6 * x for x in getattr(m, name)],
                "us/image",
            )
    show("model", "a claim, 8 threads", [1e9 * claim], "ns")
    show("model", "copied by all CPUs", [copied / 1e9], "GB/s")


def show_check(found, claim, copied):
    head("model: this machine's own %d CPUs, beside what it says" % CPUS)
    for case, m in found.items():
        said = rate(CPUS, 1, case.split()[-1], m, claim, 3 * copied)[0]
        show(
            "model",
            case,
            m.rate,
            "images/s",
            "the model",
            pairs=[r / said for r in m.rate],
        )


def show_model(found, claim):
    print(
        "\nmodel: images/s, and what limits them, with %.0f GB/s"
        % (BANDWIDTH / 1e9)
    )
    print("%-18s %5s" % ("samples", "jobs"), end="")
    for cores in CORES:
        print(" %16s" % ("%d cores" % cores), end="")
    print()
    for case, m in found.items():
        for jobs in JOBS:
            print("%-18s %5d" % (case, jobs), end="")
            for cores in CORES:
                form = case.split()[-1]
                said = rate(cores, jobs, form, m, claim, BANDWIDTH)
                print(" %9.3g %-6s" % said, end="")
            print(flush=True)


def measure(producer, root, what):
    found = {}
    for form, (options, _) in FORMS.items():
        name = ("%s %s" % (what, form)).strip()
        stream = Stream(
            producer, root, name.replace(" ", "-"), CPUS, **options
        )
        try:
            found[name] = Measured(stream)
        finally:
            stream.end()
    return found


def main(producer, pack, claims, root):
    folder = tempfile.mkdtemp(prefix="tsock-bench-")
    os.environ["TSOCK_DIR"] = folder
    try:
        packed = os.path.join(folder, "packed")
        subprocess.run(
            [pack, "--quiet", os.path.abspath(root), packed], check=True
        )
        claim, copied = claim_seconds(claims, folder), copied_each_second()
        found = measure(producer, os.path.abspath(root), "JPEG")
        found.update(measure(producer, packed, "packed"))
        show_measured(found, claim, copied)
        show_check(found, claim, copied)
        show_model(found, claim)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__.rpartition("usage: ")[2].partition("\n")[0].strip())
    main(*sys.argv[1:])
