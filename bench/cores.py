# SPDX-License-Identifier: MIT
"""What more cores bring, and what a producer's CPU time goes into.

Two producers of the same data set, one that decodes with one thread and one
with a thread for each CPU, take turns at feeding a reader that does nothing
with its batches: images/s, in later epochs.  More would be a part of it for
each thread, but for what cores share (memory, caches, their clock) and for the
reader itself.

Where that time goes is what the kernel has counted for each thread of the
second producer meanwhile: workers' user time (decoding, resizing) and system
time (opening and reading files), the control thread (who reads, how far), and
all others.

usage: cores.py PRODUCER DIR     DIR has a folder of images per class
"""

import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from rows import head, show

QUICK = os.environ.get("QUICK") == "1"
BATCH = 64
RING = 512
IMAGES = 1200 if QUICK else 6000  # of a turn, behind those that were ready
WARM = 3  # epochs before the first turn: the index, the page cache
TURNS = 2 if QUICK else 9
CPUS = len(os.sched_getaffinity(0))


def threads_of(pid):
    """Of each thread its name, its CPU seconds, and the user's part of them."""
    found = {}
    for task in glob.glob("/proc/%d/task/*" % pid):
        try:
            with open(task + "/stat") as f:
                name, _, rest = f.read().rpartition(")")
            with open(task + "/schedstat") as f:
                seconds = int(f.read().split()[0]) / 1e9
        except OSError:
            continue  # it has ended
        # In ticks, so they only tell how to divide the seconds.
        user, system = (int(n) for n in rest.split()[11:13])
        part = user / max(1, user + system)
        found[task] = name.partition("(")[2], seconds, part
    return found


class Stream:
    """A producer, and a job in this process; options are the job's."""

    def __init__(self, program, root, name, threads, **options):
        import tsock

        command = [program, "--root", root]
        command += ["--name", name, "--threads", str(threads)]
        command += ["--ring", str(RING), "--max-batch", str(BATCH)]
        command += ["--no-cache", "--quiet"]
        self.process = subprocess.Popen(command)
        options = {"dtype": "uint8", "layout": "hwc", **options}
        self._loader = tsock.DataLoader(
            name, BATCH, framework="numpy", wait=60, **options
        )
        for _ in range(WARM):
            for _ in self._loader:
                pass
        self._batches = self._endless()

    def _endless(self):
        while True:
            yield from self._loader

    def take(self, images):
        taken = 0
        while taken < images:
            taken += len(next(self._batches)[0])
        return taken

    def turn(self):
        """Images/s, and the CPU seconds of each kind meanwhile."""
        self.take(2 * RING)
        before, start = self.times(), time.monotonic()
        images = self.take(IMAGES)
        seconds = time.monotonic() - start
        after = self.times()
        return images / seconds, {k: after[k] - before[k] for k in after}

    def times(self):
        """CPU seconds so far, by the names of docs/inside/threads.md."""
        found = {"decoding": 0.0, "reading": 0.0, "control": 0.0, "rest": 0.0}
        for name, seconds, user in threads_of(self.process.pid).values():
            if name == "tsock-worker":
                found["decoding"] += user * seconds
                found["reading"] += (1 - user) * seconds
            elif name.startswith("iou-") or name == "tsock-read":
                found["reading"] += seconds
            elif name == "tsock-control":
                found["control"] += seconds
            else:
                found["rest"] += seconds
        return found

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def measure(streams):
    one, all_ = streams
    rates, parts, ratios = ([], []), [], []
    for _ in range(TURNS):
        rates[0].append(one.turn()[0])
        rate, spent = all_.turn()
        rates[1].append(rate)
        ratios.append(rate / (CPUS * rates[0][-1]))
        whole = sum(spent.values())
        parts.append({k: spent[k] / whole for k in spent})
    return rates, ratios, parts


def show_all(rates, ratios, parts):
    head("cores: %d threads beside one, later epochs" % CPUS)
    show("cores", "one thread", rates[0], "images/s")
    show(
        "cores",
        "%d threads" % CPUS,
        rates[1],
        "images/s",
        "%d times one thread" % CPUS,
        pairs=ratios,
    )
    head("cores: where the CPU time of %d threads goes" % CPUS)
    for kind in parts[0]:
        show("cores", kind, [100 * p[kind] for p in parts], "%")


def main(program, root):
    folder = tempfile.mkdtemp(prefix="tsock-bench-")
    os.environ["TSOCK_DIR"] = folder
    streams = []
    try:
        for name, threads in (("cores-one", 1), ("cores-all", CPUS)):
            streams.append(
                Stream(program, os.path.abspath(root), name, threads)
            )
        show_all(*measure(streams))
    finally:
        for stream in streams:
            stream.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.rpartition("\n\n")[2].strip())
    main(*sys.argv[1:])
