# SPDX-License-Identifier: MIT
"""What it costs to divide an epoch among nodes: two nodes on this machine.

A node is a folder of sockets of its own.  Three questions:

  CPU      of a producer of a node's part (--shard 0/2), for each sample that it
           makes, beside a producer of all samples with as many threads, in
           turns, in later epochs
  decoded  samples that the producers of two nodes make in an epoch, by their
           own count, beside those of one node
  start    from the moment when the ranks have imported everything and know each
           other until the last one has its first batch: two nodes of one rank
           beside one node of two ranks, in turns; no producer runs, and the
           scan of the data set is kept.  Both nodes have the same CPUs here,
           and start two producers where one node starts one.

usage: nodes.py PRODUCER DIR     DIR has a folder of images per class
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from rows import head, show

QUICK = os.environ.get("QUICK") == "1"
BATCH = 32
RING = 256
WARM = 2 if QUICK else 6  # epochs of a part, whose samples differ by epoch
SAMPLES = 480 if QUICK else 2400  # of a turn
TURNS = 2 if QUICK else 11
STARTS = 2 if QUICK else 7

RANK = """
import sys, time
import torch.distributed as dist
import tsock
root, meet, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=2)
dist.barrier()
start = time.monotonic()
loader = tsock.DataLoader("photos", root=root, batch_size=%d)
images, labels = next(iter(loader))
print(start, time.monotonic(), flush=True)
sys.stdin.read()
""" % BATCH


class Stream:
    """A producer of one thread, and a reader that does nothing with it."""

    def __init__(self, program, root, name, cache, shard=None):
        import tsock

        command = [program, "--dataset", "imagefolder", "--root", root]
        command += ["--name", name, "--threads", "1", "--quiet"]
        command += ["--ring", str(RING), "--max-batch", str(BATCH)]
        command += ["--cache-dir", cache]
        command += ["--shard", shard] if shard else []
        self._name = name
        self._process = subprocess.Popen(command)
        self._loader = tsock.DataLoader(
            name,
            BATCH,
            rank=0,
            world_size=1,
            framework="numpy",
            dtype="uint8",
            layout="hwc",
            wait=60,
        )
        self._batches = self._endless()

    def _endless(self):
        while True:
            yield from self._loader

    def take(self, samples):
        while samples > 0:
            samples -= len(next(self._batches)[0])

    def warm(self, epochs):
        self.take(epochs * len(self._loader.sampler))

    def _now(self):
        """(CPU seconds, samples) of the producer, once its ring is full."""
        made = settled(self._name)["produced"]
        total = 0
        for task in os.listdir("/proc/%d/task" % self._process.pid):
            with open(
                "/proc/%d/task/%s/schedstat" % (self._process.pid, task)
            ) as f:
                total += int(f.read().split()[0])
        return total / 1e9, made

    def turn(self):
        """Microseconds of CPU time for each sample."""
        before = self._now()
        self.take(SAMPLES)
        after = self._now()
        return (after[0] - before[0]) / (after[1] - before[1]) * 1e6

    def end(self):
        self._loader.close()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()


def settled(name):
    """What a stream says once its producer has made all that it may."""
    import tsock

    made = -1
    while True:
        stats = tsock.query(name, 60)
        if stats["produced"] == made:
            return stats
        made = stats["produced"]
        time.sleep(0.05)


def measure_cpu(program, root, folder):
    streams = []
    cache = os.path.join(folder, "cache")
    try:
        for name, shard in (("whole", None), ("part", "0/2")):
            os.environ["TSOCK_DIR"] = node_of(folder, name)
            streams.append(Stream(program, root, name, cache, shard))
            streams[-1].warm(WARM)
        found = [[], []]
        for turn in range(TURNS):
            for at in (0, 1) if turn % 2 else (1, 0):
                os.environ["TSOCK_DIR"] = node_of(
                    folder, ("whole", "part")[at]
                )
                found[at].append(streams[at].turn())
        return found
    finally:
        for stream in streams:
            stream.end()


def node_of(folder, name):
    made = os.path.join(folder, name)
    os.makedirs(made, mode=0o700, exist_ok=True)
    return made


def count(root, folder, nodes):
    """Samples that each node makes in an epoch, and those of the data set."""
    import tsock

    made = []
    for node in range(nodes):
        os.environ["TSOCK_DIR"] = node_of(folder, "n%d" % node)
        with tsock.DataLoader(
            "count%d" % nodes,
            BATCH,
            root=root,
            rank=0,
            world_size=1,
            size=32,
            epochs=1,
            shard="%d/%d" % (node, nodes) if nodes > 1 else None,
            framework="numpy",
        ) as loader:
            batches = iter(loader)
            for _ in range(len(loader) - 1):
                next(batches)
            # The producer ends with the epoch: it is asked before.
            stats = settled(loader.name)
            made.append(stats["produced"])
            end(stats["pid"])
    return made


def end(pid):
    try:
        os.kill(pid, signal.SIGTERM)
        while True:
            os.kill(pid, 0)
            time.sleep(0.01)
    except ProcessLookupError:
        pass


def start(root, folder, places, turn):
    """Seconds until the last of the ranks at these places has a batch."""
    meet = "file://%s/meet%d-%d" % (folder, turn, len({*places}))
    nodes = [node_of(folder, "n%d" % place) for place in places]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, root, meet, str(rank)],
            env=dict(os.environ, TSOCK_DIR=node, GLOO_SOCKET_IFNAME="lo"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for rank, node in enumerate(nodes)
    ]
    times = [[float(t) for t in r.stdout.readline().split()] for r in ranks]
    for rank in ranks:
        rank.communicate()
    for node in {*nodes}:
        end_all(node)
    return max(t[1] for t in times) - max(t[0] for t in times)


def end_all(node):
    import tsock

    os.environ["TSOCK_DIR"] = node
    for stream in tsock.streams():
        end(tsock.query(stream.name, 60)["pid"])


def main(program, root):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="tsock-bench-")
    os.environ["TSOCK_PRODUCER"] = os.path.abspath(program)
    os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "scans")
    root = os.path.abspath(root)
    try:
        head("nodes: CPU time of a producer of one thread")
        whole, part = measure_cpu(program, root, folder)
        show("nodes", "without parts", whole, "us/sample")
        pairs = [a / b for a, b in zip(part, whole)]
        show(
            "nodes",
            "part 0 of 2",
            part,
            "us/sample",
            "without parts",
            pairs=pairs,
        )
        head("nodes: samples that producers make in an epoch")
        one = count(root, folder, 1)
        show("nodes", "one node", one, "samples")
        for node, made in enumerate(count(root, folder, 2)):
            show(
                "nodes",
                "node %d of 2" % node,
                [made],
                "samples",
                "one node",
                pairs=[made / one[0]],
            )
        head("nodes: from the ranks' meeting to the last one's first batch")
        found = {places: [] for places in ((0, 0), (0, 1))}
        for turn in range(STARTS + 1):
            for places in found if turn % 2 else reversed(found):
                seconds = start(root, folder, places, turn)
                if turn:  # the first one scans the data set
                    found[places].append(seconds)
        one, two = found.values()
        show("nodes", "one node, two ranks", one, "s")
        show(
            "nodes",
            "two nodes of one rank",
            two,
            "s",
            "one node, two ranks",
            pairs=[a / b for a, b in zip(two, one)],
        )
    finally:
        for node in os.listdir(folder):
            if node.startswith("n"):
                end_all(os.path.join(folder, node))
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.rpartition("\n\n")[2].strip())
    main(*sys.argv[1:])
