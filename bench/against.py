# SPDX-License-Identifier: MIT
"""Sharing against not sharing, and against PyTorch's own DataLoader.

Two arms, so that faster decoding and sharing aren't mixed up:

  1  k jobs, each with a tsock-producer of its own, against k jobs that share
     one: the same decoder, so the difference is the sharing.
  2  k jobs, each with an ordinary DataLoader (torchvision's ImageFolder,
     RandomResizedCrop, flip, ToTensor, Normalize), against the same shared
     one: the same files, what a user would see.

A job is a simulated trainer without a model: a process that asks for batches
as fast as it can and reads one number per image.  So loading is the limit,
where sharing is expected to give each job k times the rate; a job that its
own GPU holds back gains less.  How many threads a private producer and how
many workers a DataLoader has is found by a short search for each k.

Reported: images per second and job, and CPU seconds of all processes per
1,000 images delivered, for the first epoch and for those after it.

usage: against.py PRODUCER DIR     DIR has a folder of images per class
"""

import functools
import os
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import rows
from rows import head

BATCH = 32
RING = 256
MIN_IMAGES = 720
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
QUICK = os.environ.get("QUICK") == "1"

show = functools.partial(rows.show, "against")


# ---- a job ---------------------------------------------------------------


def tsock_loader(name):
    import tsock

    return tsock.DataLoader(name, batch_size=BATCH)


def torch_loader(root, workers):
    import torch
    from torchvision import datasets, transforms

    chain = transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    return torch.utils.data.DataLoader(
        datasets.ImageFolder(root, chain),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        persistent_workers=True,
        # What a script gets by default up to Python 3.13.
        multiprocessing_context="fork",
    )


def job(spec, pipe):
    """Say that it is ready, wait for a go, run, tell when what arrived."""
    import torch

    torch.set_num_threads(1)
    if spec["kind"] == "tsock":
        loader = tsock_loader(spec["name"])
    else:
        loader = torch_loader(spec["root"], spec["workers"])
    if "native" in spec:
        import tsock

        loader = tsock.share(loader, native=spec["native"])
    pipe.send("ready")
    pipe.recv()
    start = time.monotonic()
    arrivals, ends, sink = [], [], 0.0
    for _ in range(spec["epochs"]):
        for i, (images, labels) in enumerate(loader):
            if spec["batches"] and i == spec["batches"]:
                break
            sink += float(images[:, 0, 0, 0].sum()) + int(labels[0])
            arrivals.append((time.monotonic(), len(labels)))
        ends.append(time.monotonic())
    pipe.send({"start": start, "arrivals": arrivals, "ends": ends})
    pipe.recv()  # until everybody has finished


# ---- CPU time of a tree of processes -------------------------------------


def children_of():
    table = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                # The name may hold anything, a closing bracket too.
                parent = int(f.read().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        table.setdefault(parent, []).append(int(pid))
    return table


class Meter(threading.Thread):
    """Samples the CPU seconds of all descendants, also of ended ones."""

    def __init__(self):
        super().__init__(daemon=True)
        self.samples = []  # (time, seconds)
        self.last = {}
        self.done = threading.Event()

    def read(self):
        table, todo = children_of(), [os.getpid()]
        while todo:
            for pid in table.get(todo.pop(), ()):
                todo.append(pid)
                try:
                    # The kernel's number for a process's CPU clock.
                    seconds = time.clock_gettime((~pid << 3) | 2)
                except OSError:
                    continue
                self.last[pid] = max(seconds, self.last.get(pid, 0))
        self.samples.append((time.monotonic(), sum(self.last.values())))

    def run(self):
        while not self.done.wait(0.1):
            self.read()

    def stop(self):
        self.done.set()
        self.join()
        self.read()

    def at(self, when):
        """Seconds used until then, interpolated."""
        before = self.samples[0]
        for sample in self.samples:
            if sample[0] >= when:
                gap = sample[0] - before[0]
                part = (when - before[0]) / gap if gap > 0 else 0
                return before[1] + part * (sample[1] - before[1])
            before = sample
        return before[1]


# ---- running k of them ---------------------------------------------------


class Failed(Exception):
    pass


class Job:
    """A process that has torch already, so that starting one is quick."""

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torchvision"])

    def __init__(self, spec):
        self.pipe, theirs = self.context.Pipe()
        self.process = self.context.Process(target=job, args=(spec, theirs))
        self.process.start()
        theirs.close()

    def tell(self):
        self.pipe.send("go")

    def hear(self):
        try:
            return self.pipe.recv()
        except EOFError:
            self.process.join()
            raise Failed(
                "a job ended early, with %r" % self.process.exitcode
            ) from None

    def end(self):
        self.process.join(10)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()


def start_producer(program, root, name, threads, consumers):
    command = [program, "--dataset", "imagefolder", "--root", root]
    command += ["--name", name, "--ring", str(RING), "--max-batch", "64"]
    command += ["--min-consumers", str(consumers), "--no-cache", "--quiet"]
    if threads:
        command += ["--threads", str(threads)]
    return subprocess.Popen(command)


def run_jobs(specs):
    """Start all, let them go at once; what each reports, and the meter."""
    meter = Meter()
    jobs = []
    try:
        for spec in specs:
            jobs.append(Job(spec))
        for each in jobs:
            each.hear()
        meter.read()
        meter.start()
        for each in jobs:
            each.tell()
        results = [each.hear() for each in jobs]
        meter.stop()
        for each in jobs:
            each.tell()
    finally:
        meter.done.set()
        for each in jobs:
            each.pipe.close()
            each.end()
    return results, meter


class Bench:
    def __init__(self, program, root):
        self.program = program
        self.root = root
        self.serial = 0

    def torch(self, k, workers, epochs, batches=0):
        spec = {"kind": "torch", "root": self.root, "workers": workers}
        spec.update(epochs=epochs, batches=batches)
        return run_jobs([spec] * k)

    def tsock(self, k, producers, threads, epochs, batches=0):
        """k jobs over that many producers: 1 or k."""
        names, running, specs = [], [], []
        try:
            for _ in range(producers):
                self.serial += 1
                names.append("bench-against-%d" % self.serial)
                running.append(
                    start_producer(
                        self.program,
                        self.root,
                        names[-1],
                        threads,
                        k // producers,
                    )
                )
            for i in range(k):
                spec = {"kind": "tsock", "name": names[i % producers]}
                spec.update(epochs=epochs, batches=batches)
                specs.append(spec)
            return run_jobs(specs)
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait()


# ---- figures -------------------------------------------------------------


def window(results, meter, begin, end):
    """CPU seconds per 1,000 images that all jobs got in that time."""
    images = sum(
        n for r in results for when, n in r["arrivals"] if begin < when <= end
    )
    return (meter.at(end) - meter.at(begin)) / images * 1000


def figures(results, meter):
    """Lists of samples: rates and CPU, first epoch and later."""
    rates = {"first": [], "later": []}
    for r in results:
        count = sum(n for _, n in r["arrivals"]) / len(r["ends"])
        marks = [r["start"]] + r["ends"]
        for i in range(len(r["ends"])):
            which = "later" if i else "first"
            rates[which].append(count / (marks[i + 1] - marks[i]))
    start = min(r["start"] for r in results)
    middle = max(r["ends"][0] for r in results)
    # Until the first has finished: all are at work.
    end = min(r["ends"][-1] for r in results)
    cpu = {"first": [window(results, meter, start, middle)], "later": []}
    if end > middle:
        cpu["later"].append(window(results, meter, middle, end))
    return {"rate": rates, "cpu": cpu}


def merge(into, more):
    for what, epochs in more.items():
        for which, values in epochs.items():
            into.setdefault(what, {}).setdefault(which, []).extend(values)


def compare(k, name, private, shared, model):
    """Rows of one k: the private side, then the shared one against it."""
    against = name if model is None else "%s (model: %g)" % (name, model)
    for which in ("first", "later"):
        tail = "first epoch" if which == "first" else "later epochs"
        rate, cpu = private["rate"][which], private["cpu"][which]
        show("k=%d, %s, %s" % (k, name, tail), rate, "images/s/job")
        show(
            "k=%d, shared, %s" % (k, tail),
            shared["rate"][which],
            "images/s/job",
            against,
            rate,
        )
        show("k=%d, %s, %s" % (k, name, tail), cpu, "CPU s/1000")
        show(
            "k=%d, shared, %s" % (k, tail),
            shared["cpu"][which],
            "CPU s/1000",
            against if model is None else "%s (model: %g)" % (name, 1 / k),
            cpu,
        )


def search(candidates, run):
    """The candidate with which all jobs together get the most images."""
    best = None
    for candidate in candidates:
        results, _ = run(candidate)
        span = max(r["ends"][-1] for r in results)
        span -= min(r["start"] for r in results)
        rate = sum(n for r in results for _, n in r["arrivals"]) / span
        if best is None or rate > best[0]:
            best = (rate, candidate)
    return best[1]


# ---- data and main -------------------------------------------------------


def enough(root, folder):
    """root's images, several times over if they are few: short epochs would
    measure how loaders start, not how they run."""
    files = []
    for base, _, names in os.walk(root):
        files += [os.path.join(base, n) for n in names]
    if not files:
        raise Failed("no files in %s" % root)
    copies = -(-MIN_IMAGES // len(files))
    for path in files:
        target = os.path.join(folder, os.path.relpath(path, root))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        stem, extension = os.path.splitext(target)
        for i in range(copies):
            shutil.copyfile(path, "%s-%d%s" % (stem, i, extension))
    return len(files) * copies


def measure(bench, k):
    """One k: search, then the sides in turn, each turn in another order."""
    cpus = len(os.sched_getaffinity(0))
    share = max(1, cpus // k)
    probe = 4 if QUICK else 8
    threads = search(
        sorted({share, cpus}), lambda n: bench.tsock(k, k, n, 1, probe)
    )
    workers = search(
        sorted({1, share, min(2 * share, cpus), cpus}),
        lambda n: bench.torch(k, n, 1, probe),
    )
    print(
        "k=%d: %d threads a private producer, %d workers a DataLoader, by "
        "search" % (k, threads, workers),
        flush=True,
    )
    fast = 2 if QUICK else 4  # later epochs where they are short
    slow = 1 if QUICK else 2
    sides = {
        "private": lambda: bench.tsock(k, k, threads, 1 + fast),
        "shared": lambda: bench.tsock(k, 1, 0, 1 + fast),
        "torch": lambda: bench.torch(k, workers, 1 + slow),
    }
    found = {side: {} for side in sides}
    for turn in range(1 if QUICK else 3):
        order = ["private", "shared"]
        if turn % 2:
            order.reverse()
        if turn == 0:
            order.insert(1, "torch")
        for side in order:
            merge(found[side], figures(*sides[side]()))
    return found


def main(program, root):
    bench_dir = tempfile.mkdtemp(prefix="tsock-bench-")
    os.environ["TSOCK_DIR"] = os.path.join(bench_dir, "streams")
    os.mkdir(os.environ["TSOCK_DIR"], 0o700)
    try:
        data = os.path.join(bench_dir, "data")
        n = enough(root, data)
        print("%d images, batches of %d, simulated trainers" % (n, BATCH))
        bench = Bench(program, data)
        found = {}
        for k in (1, 2) if QUICK else (1, 2, 4):
            found[k] = measure(bench, k)
        head("against, arm 1: k private producers, one shared by k jobs")
        for k, sides in found.items():
            compare(k, "private", sides["private"], sides["shared"], k)
        head("against, arm 2: k DataLoaders, one producer shared by k jobs")
        for k, sides in found.items():
            compare(k, "DataLoader", sides["torch"], sides["shared"], None)
    finally:
        shutil.rmtree(bench_dir, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.rpartition("\n\n")[2].strip())
    try:
        main(*sys.argv[1:])
    except Failed as failure:
        sys.exit("failed: %s" % failure)
