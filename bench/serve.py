# SPDX-License-Identifier: MIT
"""What tsock.serve() makes of a loader's batches, 38.5 MB of float32 each.

  copy      a loader that has its batches ready, to 1 to 8 jobs: bytes per
            second that each job gets, beside memcpy's of the same tensors
            into as much memory as the ring has, and beside what one job gets
            of TensorSocket on the CPU, where that is installed
  loader    PyTorch's DataLoader, two workers that stack samples: batches per
            second of each of 1 to 8 jobs, beside the loader's own

A job takes a batch, reads a number of each image, and takes the next.

usage: serve.py
"""

import ctypes
import os
import socket
import subprocess
import sys
import time

import torch

from rows import head, show

QUICK = os.environ.get("QUICK") == "1"
SIZE = 64
SHAPE = (3, 224, 224)
POOL = 6  # tensors that a loader gives in turns
BATCHES = 40 if QUICK else 160
SKIPPED = 12  # that were buffered before a job's clock starts
TURNS = 1 if QUICK else 5
JOBS = (1, 2) if QUICK else (1, 2, 4, 8)
PEER_BATCHES = 8 if QUICK else 24  # that TensorSocket's job is timed for
PEER_SKIPPED = 2  # its job is faster than its producer: none wait for it
MB = SIZE * 3 * 224 * 224 * 4 / 1e6
HERE = os.path.dirname(os.path.abspath(__file__))
PEER = os.path.join(HERE, "serve_peer.py")
PEERS = os.path.join(HERE, "..", "build", "venv-compare", "bin", "python")

JOB = """
import time, tsock
sink, took, began = 0.0, 0, None
loader = tsock.DataLoader("bench", batch_size=None)
for batch in loader:
    sink += float(batch[0][:, 0, 0, 0].sum())
    took += 1
    if took == %(skipped)d:
        began = time.monotonic()
    if took == %(batches)d:
        break
print((took - %(skipped)d) / (time.monotonic() - began), flush=True)
"""


def pool():
    return [
        [torch.full((SIZE,) + SHAPE, float(i)), torch.arange(SIZE)]
        for i in range(POOL)
    ]


class Ready:
    """A loader whose batches are there already."""

    def __init__(self, batches=BATCHES):
        self._pool = pool()
        self._batches = batches

    def __len__(self):
        return self._batches

    def __iter__(self):
        for i in range(self._batches):
            yield self._pool[i % POOL]


class Samples(torch.utils.data.Dataset):
    def __init__(self):
        self._pool = [torch.full(SHAPE, float(i)) for i in range(SIZE)]

    def __len__(self):
        return BATCHES * SIZE

    def __getitem__(self, i):
        return self._pool[i % SIZE], i


def workers():
    return torch.utils.data.DataLoader(Samples(), SIZE, num_workers=2)


def memcpy():
    """MB/s into memory that was written to before, and isn't in a cache."""
    tensors = [batch[0] for batch in pool()]
    slots = [torch.zeros_like(tensors[0]) for _ in range(8)]
    size = tensors[0].numel() * 4
    began = time.monotonic()
    for i in range(BATCHES):
        ctypes.memmove(
            slots[i % 8].data_ptr(), tensors[i % POOL].data_ptr(), size
        )
    return BATCHES * MB / (time.monotonic() - began)


def alone():
    """Batches per second of the loader in one process."""
    loader = iter(workers())
    next(loader)
    began = time.monotonic()
    for batch in loader:
        float(batch[0][:, 0, 0, 0].sum())
    return (BATCHES - 1) / (time.monotonic() - began)


def job():
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            JOB % {"batches": BATCHES, "skipped": SKIPPED},
        ],
        stdout=subprocess.PIPE,
    )


def rate_of(started):
    out = started.communicate()[0]
    if started.returncode:
        sys.exit("serve.py: a job failed")
    return float(out)


def shared(loader, k):
    """Batches per second of each of k jobs."""
    import tsock

    with tsock.serve(
        loader, "bench", epochs=1, min_consumers=k, length=BATCHES * SIZE
    ) as server:
        jobs = [job() for _ in range(k)]
        rates = [rate_of(each) for each in jobs]
        server.run()
    return rates


class TensorSocket:
    """TensorSocket's producer and one job, by serve_peer.py."""

    def __init__(self):
        self._python = PEERS if os.path.exists(PEERS) else sys.executable
        self.missing = None
        out = self._start().communicate()[0].decode().strip()
        # None of what comes then is known to run: say why, and go on.
        if not out[:1].isdigit():
            self.missing = "%s; bench/compare/setup.sh installs it" % out
        self.name = "TensorSocket %s on the CPU" % out

    def _start(self, *more):
        return subprocess.Popen(
            [self._python, PEER] + [str(word) for word in more],
            stdout=subprocess.PIPE,
            env=dict(os.environ, CUDA_VISIBLE_DEVICES=""),
        )

    def rate(self):
        """Batches per second; None, and missing says why, where it fails."""
        port = free_ports()
        both = [
            self._start("produce", port),
            self._start("consume", port, PEER_SKIPPED, PEER_BATCHES),
        ]
        try:
            # A consumer waits without an end for a producer that is gone.
            while all(process.poll() is None for process in both):
                time.sleep(0.1)
            ended = [process.poll() for process in both]
        finally:
            for process in both:
                process.kill()
        out = [process.communicate()[0] for process in both][1]
        if ended[1] == 0:
            return float(out.split()[-1])
        self.missing = "its producer and its job ended with %s and %s" % tuple(
            ended
        )
        return None


def free_ports():
    """The first of four ports that nobody listens on."""
    while True:
        taken = []
        try:
            for i in range(4):
                taken.append(socket.socket())
                first = taken[0].getsockname()[1] if i else 0
                taken[i].bind(("127.0.0.1", first + i if i else 0))
            return taken[0].getsockname()[1]
        except (OSError, OverflowError):
            continue
        finally:
            for each in taken:
                each.close()


def copies():
    plain, ours, theirs = [], {k: [] for k in JOBS}, []
    peer = TensorSocket()
    for _ in range(TURNS):
        plain.append(memcpy())
        for k in JOBS:
            ours[k].append(min(shared(Ready(), k)) * MB)
        rate = None if peer.missing else peer.rate()
        if rate:
            theirs.append(rate * MB)
    head("batches of %.1f MB that are ready (medians of turns)" % MB)
    show("serve", "memcpy", plain, "MB/s")
    for k in JOBS:
        show(
            "serve",
            "%d job%s, the slowest" % (k, "s" if k > 1 else ""),
            ours[k],
            "MB/s",
            "memcpy",
            plain,
        )
    if peer.missing:
        print("TensorSocket not run: %s" % peer.missing)
    show("serve", "%s, 1 job" % peer.name, theirs, "MB/s", "memcpy", plain)
    show(
        "serve",
        "1 job",
        ours[1],
        "MB/s",
        peer.name,
        pairs=[a / b for a, b in zip(ours[1], theirs)],
    )


def loaders():
    own, ours = [], {k: [] for k in JOBS}
    for _ in range(TURNS):
        own.append(alone())
        for k in JOBS:
            ours[k].append(min(shared(workers(), k)))
    head("a DataLoader with two workers")
    show("serve", "in one process, unshared", own, "batches/s")
    for k in JOBS:
        show(
            "serve",
            "%d job%s, the slowest" % (k, "s" if k > 1 else ""),
            ours[k],
            "batches/s",
            "unshared",
            own,
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    copies()
    loaders()
