# SPDX-License-Identifier: MIT
"""What samples of other data than folders of images take, on one core.

  cifar     CIFAR-10's pickles, padded, cropped and flipped, beside
            torchvision's CIFAR10 with the same transforms on Pillow
  tokens    windows of 1,024 uint16 of a .bin file, beside memcpy of the same
            windows, and nanoGPT's get_batch (NumPy's memmap, torch.stack)
  documents documents of 20 to 1,025 uint16 of such a file, whole and packed to
            1,025, beside a Dataset of NumPy's memmap that knows where they
            begin, with torch's pad_sequence
  records   Criteo's records of 160 bytes, one by one and 1,024 a sample,
            beside memcpy, and a Dataset that slices NumPy's memmap
  arrow     JPEG files of a Hugging Face data set (save_to_disk), by a table,
            beside the same files in folders, and a Dataset over `datasets`
            with torchvision on Pillow; where `datasets` is installed
  audio     crops of 59,049 frames of files of 29 s at 22,050 Hz, as WAV, FLAC,
            Ogg Vorbis and MP3, beside a Dataset that reads the same crops and
            no more by soundfile; where soundfile is installed
  clips     whole files of 2 to 16 s at 16,000 Hz, as WAV, FLAC and MP3, beside
            a Dataset over soundfile with torch's pad_sequence; likewise
  table14m  a table of 14 million rows: how long it takes to open one that is
            in the page cache (warm) or isn't (cold), and the producer's own
            memory then and once a batch is read

The producer has one thread and one CPU, and a job on another one takes all
batches; what is counted is the CPU time of the producer's process.  Others run
in this process, without workers, and their CPU time is counted.  All take
turns.  A ratio is the other's time divided by tsock's in the same turn; memcpy's
the share of its rate that is reached.

CASES=REGEX measures those cases alone whose names have it in them.

usage: data.py PRODUCER WINDOWS DIR     DIR has a folder of images per class
"""

import glob
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

import big_table
import tsock
from rows import head, show

QUICK = os.environ.get("QUICK") == "1"
CASES = re.compile(os.environ.get("CASES", ""))
TURNS = 2 if QUICK else 5
SECONDS = 0.5 if QUICK else 1.5
RING = 64 << 20
CPUS = sorted(os.sched_getaffinity(0))
CRITEO = "label:int32,dense:int32[13],category:int32[26]"


def cpu_ns(pid):
    """CPU time of all threads of a process."""
    total = 0
    for name in glob.glob("/proc/%d/task/*/schedstat" % pid):
        with open(name) as f:
            total += int(f.read().split()[0])
    return total


class Producer:
    """Samples of a producer of one thread, drained by this process."""

    made = 0

    def __init__(self, program, root, batch, *options, **loader):
        Producer.made += 1
        self._log = tempfile.TemporaryFile()
        self.name = "bench-%d-%d" % (os.getpid(), Producer.made)
        self._run = subprocess.Popen(
            [program, "--name", self.name, "--root", root, "-j1"]
            + ["--max-batch", str(batch), *options],
            stdout=self._log,
            stderr=self._log,
            preexec_fn=lambda: os.sched_setaffinity(0, CPUS[:1]),
        )
        self._loader = tsock.DataLoader(
            self.name,
            batch,
            dtype="uint8",
            layout="hwc",
            framework="numpy",
            wait=60,
            **loader,
        )
        self._batches = self._all()
        self.ns()  # what was made ahead, and the first epoch's faults

    def _all(self):
        while True:
            yield from self._loader

    def ns(self):
        """CPU nanoseconds of a sample."""
        end = time.monotonic() + SECONDS
        begin, n = cpu_ns(self._run.pid), 0
        while time.monotonic() < end:
            n += len(next(self._batches)[0])
        return (cpu_ns(self._run.pid) - begin) / n

    def close(self):
        self._batches.close()
        self._loader.close()
        self._run.terminate()
        self._run.wait()


class Memcpy:
    def __init__(self, program, path, stride, size):
        self._run = subprocess.Popen(
            [program, path, str(stride), str(size), str(RING)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, CPUS[:1]),
        )

    def ns(self):
        self._run.stdin.write("\n")
        self._run.stdin.flush()
        return float(self._run.stdout.readline())

    def close(self):
        self._run.stdin.close()
        self._run.wait()


class Here:
    """Batches of this process; make() is called for one of n samples."""

    def __init__(self, make, n):
        self._make, self._n = make, n

    def ns(self):
        begin, n = time.process_time_ns(), 0
        while time.process_time_ns() - begin < SECONDS * 1e9:
            self._make()
            n += self._n
        return (time.process_time_ns() - begin) / n

    def close(self):
        pass


def measure(case, ours, peers):
    """Rows of a case; peers: name and object, "memcpy" for shares of it."""
    own, theirs = [], {name: [] for name in peers}
    for _ in range(TURNS):
        own.append(ours.ns())
        for name, peer in peers.items():
            theirs[name].append(peer.ns())
    show("data", case, [1e9 / ns for ns in own], "samples/CPU s")
    for name, values in theirs.items():
        show(
            "data",
            case,
            [1e9 / ns for ns in values],
            "samples/CPU s",
            name,
            pairs=[b / a for a, b in zip(own, values)],
        )
    for thing in (ours, *peers.values()):
        thing.close()


def over(dataset, batch, collate=torch.utils.data.default_collate):
    """DataLoader's own work for a batch, in this process."""
    rng = np.random.default_rng(0)

    def make():
        rows = rng.integers(0, len(dataset), batch)
        return collate([dataset[i] for i in rows])

    return Here(make, batch)


def padded(samples):
    """Samples of several lengths in one tensor, and the lengths."""
    pad = torch.nn.utils.rnn.pad_sequence
    lengths = torch.tensor([len(s) for s in samples], dtype=torch.int32)
    return pad(samples, batch_first=True), lengths


# ---- cases -----------------------------------------------------------------


def cifar(producer, windows, folder, data):
    import torchvision
    from torchvision import transforms

    rng = np.random.default_rng(0)
    root = os.path.join(folder, "cifar-10-batches-py")
    os.mkdir(root)
    names = {"label_names": ["class %d" % k for k in range(10)]}
    for k in range(6):
        name = "data_batch_%d" % k if k else "test_batch"
        batch = {
            "data": rng.integers(0, 256, (10000, 3072), dtype="u1"),
            "labels": rng.integers(0, 10, 10000).tolist(),
        }
        with open(os.path.join(root, name), "wb") as f:
            pickle.dump(batch, f)
    with open(os.path.join(root, "batches.meta"), "wb") as f:
        pickle.dump(names, f)

    class Cifar(torchvision.datasets.CIFAR10):
        def _check_integrity(self):
            return True  # these aren't the published bytes

        def _load_meta(self):
            self.classes = names["label_names"]
            self.class_to_idx = {}

    chain = transforms.Compose(
        [
            transforms.RandomCrop(32, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.PILToTensor(),
        ]
    )
    measure(
        "cifar: pad, crop, flip",
        Producer(producer, folder, 128, "--dataset=cifar10"),
        {"torchvision": over(Cifar(folder, transform=chain), 128)},
    )


def tokens(producer, windows, folder, data):
    rng = np.random.default_rng(0)
    path = os.path.join(folder, "train.bin")
    rng.integers(0, 50257, 1 << 27, dtype="u2").tofile(path)
    memory = np.memmap(path, dtype=np.uint16, mode="r")

    def batch():
        at = torch.randint(len(memory) - 1024, (64,))
        x = [
            torch.from_numpy(memory[i : i + 1024].astype(np.int64)) for i in at
        ]
        y = [
            torch.from_numpy(memory[i + 1 : i + 1025].astype(np.int64))
            for i in at
        ]
        return torch.stack(x), torch.stack(y)

    measure(
        "tokens: windows of 1,024",
        Producer(
            producer, path, 64, "--dataset=tokens", "--schema=uint16[1024]"
        ),
        {
            "memcpy": Memcpy(windows, path, 2048, 2050),
            "nanoGPT's get_batch": Here(batch, 64),
        },
    )


class Documents(torch.utils.data.Dataset):
    """What lies between bounds in a file of tokens."""

    def __init__(self, memory, bounds):
        self.memory, self.bounds = memory, bounds

    def __len__(self):
        return len(self.bounds) - 1

    def __getitem__(self, i):
        part = self.memory[self.bounds[i] : self.bounds[i + 1]]
        return torch.from_numpy(part.astype(np.int64))


class Packs(Documents):
    """As many documents as fit, and which one each token is of."""

    def __init__(self, memory, bounds, room):
        super().__init__(memory, bounds)
        self.room, self.packs, first = room, [], 0
        for k in range(1, len(bounds)):
            if bounds[k] - bounds[first] > room:
                self.packs.append((first, k - 1))
                first = k - 1
        self.packs.append((first, len(bounds) - 1))

    def __len__(self):
        return len(self.packs)

    def __getitem__(self, i):
        first, end = self.packs[i]
        bounds = self.bounds[first : end + 1]
        n = bounds[-1] - bounds[0]
        tokens = np.zeros(self.room, np.int64)
        tokens[:n] = self.memory[bounds[0] : bounds[-1]]
        marks = np.full(self.room, -1, np.int32)
        marks[:n] = np.repeat(np.arange(end - first), np.diff(bounds))
        return torch.from_numpy(tokens), torch.from_numpy(marks)


def documents(producer, windows, folder, data):
    rng = np.random.default_rng(0)
    path = os.path.join(folder, "train.bin")
    lengths = rng.lognormal(5.5, 0.9, 300_000).clip(20, 1025).astype(int)
    bounds = np.concatenate([[0], lengths.cumsum()])
    tokens = rng.integers(0, 50256, bounds[-1], dtype="u2")
    tokens[bounds[1:] - 1] = 50256
    tokens.tofile(path)
    memory = np.memmap(path, dtype=np.uint16, mode="r")
    for way, peer in {
        "whole": over(Documents(memory, bounds), 64, padded),
        "pack": over(Packs(memory, bounds, 1025), 64),
    }.items():
        measure(
            "documents: " + way,
            Producer(
                producer,
                path,
                64,
                "--dataset=tokens",
                "--schema=uint16[1024]",
                "--documents=" + way,
                "--end-token=50256",
            ),
            {"a Dataset over NumPy": peer},
        )


def records(producer, windows, folder, data):
    rng = np.random.default_rng(0)
    path = os.path.join(folder, "day_0")
    rng.integers(0, 1000, (1 << 20, 40), dtype="i4").tofile(path)
    memory = np.memmap(path, dtype=np.int32, mode="r").reshape(-1, 40)

    class Criteo(torch.utils.data.Dataset):
        def __len__(self):
            return len(memory)

        def __getitem__(self, i):
            row = np.array(memory[i])
            return row[0], row[1:14], row[14:]

    measure(
        "records: one of 160 bytes",
        Producer(
            producer, path, 4096, "--dataset=records", "--schema=" + CRITEO
        ),
        {
            "memcpy": Memcpy(windows, path, 160, 160),
            "a Dataset on a memmap": over(Criteo(), 4096),
        },
    )
    measure(
        "records: 1,024 a sample",
        Producer(
            producer,
            path,
            4,
            "--dataset=records",
            "--schema=int32[1024,40]",
        ),
        {"memcpy": Memcpy(windows, path, 160 << 10, 160 << 10)},
    )


def arrow(producer, windows, folder, data):
    try:
        import datasets
    except ImportError:
        print("skipped: arrow: this Python has no `datasets`")
        return
    from torchvision import transforms

    paths = sorted(glob.glob(os.path.join(data, "*", "*")))[:300]
    names = sorted({os.path.basename(os.path.dirname(p)) for p in paths})
    rows = {
        "image": [{"bytes": open(p, "rb").read(), "path": p} for p in paths],
        "label": [
            names.index(os.path.basename(os.path.dirname(p))) for p in paths
        ],
    }
    kinds = {
        "image": datasets.Image(),
        "label": datasets.ClassLabel(names=names),
    }
    stored = datasets.Dataset.from_dict(rows, datasets.Features(kinds))
    stored.save_to_disk(os.path.join(folder, "arrow"))
    table = os.path.join(folder, "train.table")
    tsock.index(os.path.join(folder, "arrow"), table)
    chain = transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.PILToTensor(),
        ]
    )

    def transform(batch):
        batch["image"] = [chain(im.convert("RGB")) for im in batch["image"]]
        return batch

    loaded = datasets.load_from_disk(os.path.join(folder, "arrow"))
    loaded.set_transform(transform)
    measure(
        "arrow: JPEG, crop, flip",
        Producer(producer, table, 32),
        {
            "the same files in folders": Producer(
                producer, in_folders(folder, paths), 32
            ),
            "a Dataset over datasets": over(loaded, 32),
        },
    )


def audio(producer, windows, folder, data):
    try:
        import soundfile
    except ImportError:
        print("skipped: audio: this Python has no soundfile")
        return
    rng = np.random.default_rng(0)
    rate, frames = 22050, 59049

    class Crops(torch.utils.data.Dataset):
        def __init__(self, paths):
            self.paths = paths

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, i):
            with soundfile.SoundFile(self.paths[i]) as f:
                f.seek(int(rng.integers(f.frames - frames + 1)))
                crop = f.read(frames, dtype="float32")
            return torch.from_numpy(crop)[None], 0

    kinds = [("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "VORBIS")]
    for kind, coding in [*kinds, ("MP3", "MPEG_LAYER_III")]:
        root = os.path.join(folder, kind)
        os.mkdir(root)
        paths = [os.path.join(root, "%d.%s" % (i, kind)) for i in range(60)]
        for path in paths:
            noise = rng.standard_normal(29 * rate).astype("f4")
            wave = np.convolve(noise, np.ones(16, "f4") / 60, "same")
            soundfile.write(path, wave, rate, format=kind, subtype=coding)
        measure(
            "audio: crops of " + kind,
            Producer(
                producer,
                root,
                48,
                "--dataset=audio",
                "--schema=float32[1,%d]" % frames,
                "--no-cache",
                fields=("audio", "label"),
            ),
            {"a Dataset over soundfile": over(Crops(paths), 48)},
        )


def clips(producer, windows, folder, data):
    try:
        import soundfile
    except ImportError:
        print("skipped: clips: this Python has no soundfile")
        return
    rng = np.random.default_rng(0)
    rate = 16000
    lengths = rng.integers(2 * rate, 16 * rate, 100)
    noise = rng.standard_normal(16 * rate).astype("f4")
    wave = np.convolve(noise, np.ones(16, "f4") / 60, "same")

    class Clips(torch.utils.data.Dataset):
        def __init__(self, paths):
            self.paths = paths

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, i):
            return torch.from_numpy(
                soundfile.read(self.paths[i], dtype="float32")[0]
            )

    kinds = [("WAV", "PCM_16"), ("FLAC", "PCM_16")]
    for kind, coding in [*kinds, ("MP3", "MPEG_LAYER_III")]:
        root = os.path.join(folder, kind)
        os.mkdir(root)
        paths = []
        for i, n in enumerate(lengths):
            paths.append(os.path.join(root, "%d.%s" % (i, kind)))
            soundfile.write(
                paths[-1], wave[:n], rate, format=kind, subtype=coding
            )
        measure(
            "clips: " + kind,
            Producer(
                producer,
                root,
                16,
                "--dataset=audio",
                "--schema=float32[1,%d]" % (16 * rate),
                "--clips=whole",
                "--no-cache",
                fields=("audio", "label"),
            ),
            {"a Dataset over soundfile": over(Clips(paths), 16, padded)},
        )


def table14m(producer, windows, folder, data):
    rows = 1_400_000 if QUICK else 14_000_000
    path = os.path.join(folder, "big.table")
    image = sorted(glob.glob(os.path.join(data, "*", "*")))[0]
    big_table.write(path, image, rows)
    took = {"warm": [], "cold": []}
    own = {"once it is open": [], "once a batch is read": []}
    for _ in range(TURNS):
        for how, seconds in took.items():
            if how == "cold":
                big_table.forget(path)
            took_s, *own_bytes = big_table.opened(producer, path)
            seconds.append(took_s)
            for when, bytes_ in zip(own, own_bytes):
                own[when].append(bytes_ / rows)
    for how, seconds in took.items():
        show("data", "table14m: opened, " + how, seconds, "s")
    for when, values in own.items():
        show("data", "table14m: " + when, values, "B/row")


def in_folders(folder, paths):
    """The same files in a folder per class."""
    root = os.path.join(folder, "folders")
    for path in paths:
        to = os.path.join(root, *path.split(os.sep)[-2:])
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copyfile(path, to)
    return root


def main():
    producer, windows, data = sys.argv[1:]
    os.sched_setaffinity(0, CPUS[-1:])
    torch.set_num_threads(1)
    head("other data than folders of images, on one core")
    for case in (
        *(cifar, tokens, documents, records),
        *(arrow, audio, clips, table14m),
    ):
        if CASES.search(case.__name__):
            with tempfile.TemporaryDirectory() as folder:
                case(producer, windows, folder, data)


if __name__ == "__main__":
    main()
