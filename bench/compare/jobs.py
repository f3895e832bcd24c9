# SPDX-License-Identifier: MIT
"""k training jobs on one machine: who shares, and what that takes.

  shared         one tsock producer, which all jobs read
  private        a tsock producer for each job
  DataLoader     torchvision's recipe in a DataLoader for each job
  DALI           a DALI pipeline on the CPU for each job, with antialias
  TensorSocket   TensorSocket round one such DataLoader, which all jobs read

Jobs are simulated trainers: processes without a model that ask for batches of
64 normalised float32 images as fast as they get them.  So loading is the
limit, where sharing should give every job what one would get alone: the
aggregate is k times that, and the CPU seconds per 1,000 delivered images are
one k-th.  That is the model's value, printed beside the measured ratio of
shared to private.

All may use all CPUs; how many threads or workers a job's own loader has is
found by a short search for each k, but with QUICK=1, where it is its share of
the CPUs.  The first epoch, which starts workers and
builds what a loader keeps, is apart from the later ones.  An aggregate is what
all jobs got, by the time until the last of them had got it.

usage: jobs.py PRODUCER DIR     DIR has a folder of images per class
"""

import os
import signal
import statistics
import sys
import time

import sides
import rows

QUICK = os.environ.get("QUICK") == "1"
LEAST = 300 if QUICK else 720
ROUNDS = 1 if QUICK else 3
LATER = 1 if QUICK else 2
PROBE = 256  # images of a job in the search
PATIENCE = 300
COUNTS = [int(k) for k in os.environ.get("JOBS", "1 2 4 8").split()]
CPUS = len(os.sched_getaffinity(0))


class Side:
    """k jobs and what they read from."""

    def __init__(self, scratch, k, threads):
        self.scratch = scratch
        self.k = k
        self.threads = threads
        self.jobs = []
        self.servers = []
        self.logs = []
        self.meter = sides.Meter()
        self.mark = None

    def process(self, command):
        log = open(os.path.join(self.scratch.folder, "jobs.log"), "a")
        self.logs.append(log)
        return sides.Process(command, None, log)

    def peer(self, script, variant, *more):
        command = self.scratch.command(
            script, variant, "f32", self.threads, more
        )
        self.jobs.append(self.process(command))

    def serve(self, command):
        self.servers.append(self.process([str(word) for word in command]))

    def begin(self):
        for _ in range(self.k):
            self.peer(self.script, self.variant)

    def sessions(self):
        return [p.session for p in self.jobs + self.servers]

    def turn(self, images):
        """All jobs take so many; images/s of all, CPU s per 1,000.

        A turn begins where the last one ended: what a loader makes ahead in
        between counts for the turn.
        """
        for job in self.jobs:
            job.tell(images)
        count = sum(job.hear()["images"] for job in self.jobs)
        last = self.mark
        self.mark = (time.monotonic(), self.meter.seconds(self.sessions()))
        took, cpu = (now - then for now, then in zip(self.mark, last))
        return count / took, cpu / count * 1000

    def run(self, epochs, images):
        """Turns of so many images, from starting to the last."""
        signal.alarm(PATIENCE)
        try:
            self.begin()
            for job in self.jobs:
                job.hear()
            self.mark = (time.monotonic(), self.meter.seconds(self.sessions()))
            return [self.turn(images) for _ in range(epochs)]
        finally:
            signal.alarm(0)
            for process in self.jobs + self.servers:
                process.end()
            for log in self.logs:
                log.close()


class Private(Side):
    name, script, variant = "private", "peer_tsock.py", "tsock"


class DataLoader(Side):
    name, script, variant = (
        "DataLoader",
        "peer_pil.py",
        "torchvision on Pillow",
    )


class Dali(Side):
    name, script, variant = "DALI", "peer_dali.py", "DALI, antialias"


class Shared(Side):
    name = "shared"

    def begin(self):
        stream = "jobs-%d" % self.scratch.serial
        command = [os.environ["TSOCK_PRODUCER"], "--dataset", "imagefolder"]
        command += ["--root", self.scratch.root, "--name", stream]
        command += ["--ring", 256, "--max-batch", 128, "--no-cache"]
        command += ["--quiet", "--min-consumers", self.k]
        self.serve(command)
        for _ in range(self.k):
            self.peer("peer_tsock.py", "tsock", "--join", stream)


def available():
    with open("/proc/meminfo") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


class TensorSocket(Side):
    name = "TensorSocket"
    port = 21000 + os.getpid() % 1000 * 20

    def begin(self):
        # A message has the producer's whole batch, of two of the loader's,
        # for each of its slices and jobs, and each job gets all of it.
        message = 4 * self.k * 64 * 3 * 224 * 224 * 4
        if message * self.k > available() / 3:
            raise sides.Missing(
                "each job would get messages of %d MB" % (message / 1e6)
            )
        TensorSocket.port += 4
        script = os.path.join(sides.HERE, "peer_tensorsocket.py")
        command = [sys.executable, script, "--produce", self.scratch.root]
        self.serve(command + [self.port, self.threads, 64, "f32"])
        for _ in range(self.k):
            self.peer(
                "peer_tensorsocket.py",
                "TensorSocket",
                "--join",
                str(self.port),
            )


SIDES = (Shared, Private, DataLoader, Dali, TensorSocket)


def search(kind, scratch, k):
    """The number of threads with which all jobs get the most."""
    if kind is Shared:
        return 0
    each = max(1, CPUS // k)
    if QUICK or each == CPUS:
        return each
    best = None
    for threads in sorted({each, CPUS}):
        rate = kind(scratch, k, threads).run(2, PROBE)[-1][0]
        if best is None or rate > best[0]:
            best = (rate, threads)
    return best[1]


def one_count(scratch, k, kinds):
    """What each side gave: lists of (rate, CPU), first and later epochs."""
    threads, found = {}, {}
    for kind in list(kinds):
        try:
            threads[kind] = search(kind, scratch, k)
            found[kind] = {"first": [], "later": []}
        except (sides.Failed, sides.Missing) as why:
            print("k=%d: %s not run: %s" % (k, kind.name, why), flush=True)
    chosen = ["%s %d" % (s.name, n) for s, n in threads.items() if n]
    print(
        "k=%d, threads or workers a job%s: %s"
        % (k, "" if QUICK else ", by search", ", ".join(chosen)),
        flush=True,
    )
    for i in range(ROUNDS):
        order = list(found)
        at = i * 2 % len(order)
        for kind in order[at:] + order[:at]:
            try:
                side = kind(scratch, k, threads[kind])
                turns = side.run(1 + LATER, scratch.images)
            except (sides.Failed, sides.Missing) as why:
                print("k=%d: %s not run: %s" % (k, kind.name, why), flush=True)
                continue
            found[kind]["first"].append(turns[0])
            found[kind]["later"] += turns[1:]
    return found


def report(k, found):
    for epochs in ("first", "later"):
        for column, unit, model in (
            (0, "images/s, all", k),
            (1, "CPU s/1000", 1 / k),
        ):
            ours = [t[column] for t in found[Shared][epochs]]
            for kind, turns in found.items():
                theirs = [t[column] for t in turns[epochs]]
                case = "k=%d, %s, %s" % (k, epochs, kind.name)
                if kind is Shared:
                    rows.show("jobs", case, ours, unit)
                    continue
                against = "shared to this"
                if kind is Private:
                    against += " (model: %g)" % model
                rows.show(
                    "jobs",
                    case,
                    theirs,
                    unit,
                    against,
                    pairs=[a / b for a, b in zip(ours, theirs)],
                )


def main(program, root, *chosen):
    os.environ["TSOCK_PRODUCER"] = os.path.abspath(program)
    sides.handle_signals()
    kinds = [s for s in SIDES if not chosen or s.name in chosen or s is Shared]
    scratch = sides.Scratch(root, LEAST)
    try:
        print(
            "%d images, batches of 64, float32, simulated trainers, %d CPUs"
            % (scratch.images, CPUS)
        )
        for k in COUNTS:
            found = one_count(scratch, k, kinds)
            rows.head("jobs: k=%d, aggregate rate and CPU, in turns" % k)
            report(k, found)
    finally:
        scratch.remove()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.rpartition("\n\n")[2].strip())
    try:
        main(*sys.argv[1:])
    except sides.Failed as failure:
        sys.exit("failed: %s" % failure)
