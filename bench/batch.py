# SPDX-License-Identifier: MIT
"""What Python adds to a batch: a loader's next(), beside the calls of the C
library that it makes.

  next       of tsock.DataLoader: two tensors of torch, or of numpy
  rival      tsock_next(), a DLPack tensor of each field and its deleter,
             tsock_batch_release(): called by ctypes, with nothing around them

CPU time of the thread, so that waiting for a batch isn't counted; the median of
the calls of a turn.  The two take turns on one stream, whose batches are ready.
"""

import os
import statistics
import subprocess
import sys
import time
from ctypes import byref, c_void_p

from rows import head, show

TURNS = 2 if os.environ.get("QUICK") == "1" else 15
SIZE, BATCHES = 16, 60  # of 2.4 MB: large enough not to be copied

SERVER = """
import numpy, sys, tsock
batches = [[numpy.zeros((%d, 3, 224, 224), "uint8"), numpy.arange(%d)]] * %d
with tsock.serve(batches, "bench", ring=1024) as server:
    print(flush=True)
    sys.stdin.read()
""" % (SIZE, SIZE, BATCHES)


def of_loader(loader):
    """Seconds of an epoch's next() calls."""
    found, clock, iterator = [], time.thread_time, iter(loader)
    next(iterator)  # which joins
    while True:
        began = clock()
        batch = next(iterator, None)
        found.append(clock() - began)
        if batch is None:
            return found[:-1]
        del batch


def of_calls(stream):
    """... and of the calls of C."""
    from tsock import _ffi, tensors

    lib, out, found, clock = _ffi.lib, c_void_p(), [], time.thread_time
    stream.begin(0)
    while True:
        began = clock()
        code = lib.tsock_next(stream.handle, 1000, byref(out))
        if code:
            return found[1:]
        batch = out.value
        lent = [tensors.lend(batch, i, 1) for i in range(2)]
        lib.tsock_batch_release(batch)
        for address in lent:
            tensors.give_back(address, 1)
        found.append(clock() - began)


def measure():
    import tsock

    loaders = {
        framework: tsock.DataLoader("bench", SIZE, framework=framework)
        for framework in ("torch", "numpy")
    }
    plain = tsock.DataLoader("bench", SIZE, framework="numpy")
    stream = plain._pool.first
    found = {case: [] for case in [*loaders, "calls"]}
    for _ in range(TURNS):
        for framework, loader in loaders.items():
            found[framework].append(statistics.median(of_loader(loader)))
            loader._pool.first.leave()
        found["calls"].append(statistics.median(of_calls(stream)))
        stream.leave()
    micro = {case: [1e6 * s for s in all_] for case, all_ in found.items()}
    head("batch: CPU time of one batch, two tensors")
    show("batch", "calls of C", micro["calls"], "us")
    for framework in loaders:
        show(
            "batch",
            "next(), %s" % framework,
            micro[framework],
            "us",
            "calls of C",
            micro["calls"],
        )


def main():
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        server.stdout.readline()
        measure()
    finally:
        server.communicate()


if __name__ == "__main__":
    main()
