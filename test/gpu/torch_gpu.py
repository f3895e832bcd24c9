# SPDX-License-Identifier: MIT
"""What PyTorch's users do with batches on a GPU, for test/gpu/run.sh.

    torch_gpu.py [PART...]      all parts, or some, each in its own process
    torch_gpu.py trainers K     K trainers on one GPU, each of three ways

B is the build (build-cuda).  Exits with 77, saying why, where there is no
torch or no GPU that it can use.  Prints TAP.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
B = os.path.join(TOP, os.environ.get("B", "build-cuda"))
N = 24  # of each class
SIZES = (224, 299)


def skip(why):
    print(why)
    sys.exit(77)


def look():
    """Why it can't be tried here, or None; in a process of its own."""
    code = (
        "import sys\n"
        "try:\n"
        "    import torch\n"
        "except ImportError as e:\n"
        "    sys.exit('no torch: %s' % e)\n"
        "if not torch.version.cuda:\n"
        "    sys.exit('no GPU here that torch could use: a build without CUDA')\n"
        "if not torch.cuda.is_available():\n"
        "    sys.exit('no GPU here that torch finds')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE)
    return done.stderr.decode().strip() or None if done.returncode else None


# ---- the other side ----


class Producers:
    """One for each size, of the same images."""

    def __init__(self, sizes=SIZES, options=(), images=N):
        self.folder = tempfile.mkdtemp(prefix="tsock-")
        os.environ["TSOCK_DIR"] = os.path.join(self.folder, "run")
        data = os.path.join(self.folder, "data")
        subprocess.run(
            [os.path.join(B, "bench", "mkdata"), data, "--classes", "4",
             "--images", str(images), "--val", "2", "--seed", "3"],
            check=True, stdout=subprocess.DEVNULL,
        )
        self.started = [
            subprocess.Popen(
                [os.path.join(B, "bin", "tsock-producer"),
                 "--dataset", "imagefolder",
                 "--root", os.path.join(data, "train"),
                 "--name", "t%d" % size, "--size", str(size),
                 "--resize", str(size + 32), "--no-cache"] + list(options),
                stdout=subprocess.DEVNULL,
            )
            for size in sizes
        ]

    def cpu(self):
        """Seconds that the first has used."""
        with open("/proc/%d/stat" % self.started[0].pid) as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        for producer in self.started:
            producer.terminate()
        for producer in self.started:
            producer.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- parts: each runs in a process of its own, with producers beside it ----


def loader(size, **asked):
    import tsock

    asked.setdefault("fields", ("image", "label", "index"))
    asked.setdefault("batch_size", 20)
    return tsock.DataLoader("t%d" % size, wait=60, timeout=60, **asked)


def host_view(size, **asked):
    """Every image of an epoch, by its index."""
    seen = {}
    host = loader(size, **asked)
    for images, labels, index in host:
        for i, image, label in zip(index.tolist(), images, labels.tolist()):
            seen[i] = (image.clone(), label)
    host.close()
    return seen


def bits(tensor):
    """Equal are equal bits."""
    import torch

    return tensor.contiguous().view(torch.uint8)


def same(view, images, labels, index):
    import torch

    images, labels = images.cpu(), labels.cpu().tolist()
    for k, i in enumerate(index.cpu().tolist()):
        assert labels[k] == view[i][1], "label of %d" % i
        assert torch.equal(bits(images[k]), bits(view[i][0])), "image %d" % i
    return len(labels)


def equal(zero_copy=False):
    for size in SIZES:
        for dtype in ("uint8", "float16", "bfloat16", "float32"):
            for layout in ("chw", "hwc"):
                view = host_view(size, dtype=dtype, layout=layout)
                mine = loader(size, dtype=dtype, layout=layout, device="cuda",
                              zero_copy=zero_copy)
                n = sum(same(view, *batch) for batch in mine)
                mine.close()
                assert n == len(view), (n, len(view))


def equal_zero_copy():
    equal(zero_copy=True)


def writes():
    view = host_view(224)
    mine = loader(224, device="cuda")
    for _ in range(3):
        for images, labels, index in mine:
            same(view, images, labels, index)
            images.mul_(0).add_(7)
            labels.fill_(-1)


def keeps():
    view = host_view(224)
    mine = loader(224, device="cuda")
    for _ in range(2):
        kept = list(mine)
        for batch in kept:
            same(view, *batch)


def side_streams():
    import torch

    view = host_view(224)
    mine = loader(224, device="cuda")
    side = [torch.cuda.Stream() for _ in range(3)]
    late = []
    for _ in range(3):
        for k, (images, labels, index) in enumerate(mine):
            at = side[k % 3]
            at.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(at):
                torch.cuda._sleep(2000000)
                late.append((images + 0, labels + 0, index + 0))
            for tensor in (images, labels, index):
                tensor.record_stream(at)
            del images, labels, index
    torch.cuda.synchronize()
    for batch in late:
        same(view, *batch)


def zero_copy_use():
    import torch

    view = host_view(224)
    mine = loader(224, device="cuda", zero_copy=True)
    side, late = torch.cuda.Stream(), []
    for _ in range(3):
        for images, labels, index in mine:
            mine.use(side)
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(2000000)
                late.append((images + 0, labels + 0, index + 0))
            del images, labels, index
    torch.cuda.synchronize()
    for batch in late:
        same(view, *batch)


def graphs():
    import torch

    view = host_view(224)
    mine = loader(224, device="cuda", drop_last=True)
    static = torch.zeros(20, 3, 224, 224, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = static * 1
    n = 0
    for _ in range(3):
        for images, labels, index in mine:
            static.copy_(images)
            graph.replay()
            n += same(view, out, labels, index)
    assert n == 3 * (len(view) // 20) * 20


def capture_while_batches_die(zero_copy=False):
    import torch

    view = host_view(224)
    for mode in ("global", "thread_local", "relaxed"):
        mine = loader(224, device="cuda", zero_copy=zero_copy)
        static = torch.ones(64, device="cuda")
        batches = iter(mine)
        for _ in range(3):
            held = next(batches)
            same(view, *held)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode=mode):
                out = static * 2
                held = None  # on the thread that captures
            graph.replay()
            assert out.sum().item() == 128
        for batch in batches:
            same(view, *batch)
        batch = None
        mine.close()


def capture_while_shared_batches_die():
    capture_while_batches_die(zero_copy=True)


def expandable_segments():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    writes()
    keeps()


class Numbers:
    def __len__(self):
        return 64

    def __getitem__(self, i):
        import torch

        return torch.full((4,), float(i))


def workers_forked_later():
    import torch

    view = host_view(224)
    mine = loader(224, device="cuda")
    batches = iter(mine)
    same(view, *next(batches))
    for _ in range(2):
        other = torch.utils.data.DataLoader(
            Numbers(), batch_size=8, num_workers=3, multiprocessing_context="fork"
        )
        assert sum(len(b) for b in other) == 64
    for batch in batches:
        same(view, *batch)


EXIT = """
import os, sys
sys.path.insert(0, %r)
import torch, tsock
mine = tsock.DataLoader("t224", batch_size=20, device="cuda",
                        zero_copy=sys.argv[1] == "1", wait=60, timeout=60)
batches = iter(mine)
kept = [next(batches) for _ in range(2)]
torch.cuda._sleep(20000000)
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    torch.cuda._sleep(20000000)
    out = kept[0][0] * 2
mine.use(side)
del kept
"""


def exits():
    code = EXIT % os.path.join(TOP, "bindings", "python")
    for k in range(20):
        done = subprocess.run([sys.executable, "-c", code, str(k % 2)],
                              stderr=subprocess.PIPE, timeout=120)
        assert done.returncode == 0, done.stderr.decode()[-400:]


PARTS = (
    equal, equal_zero_copy, writes, keeps, side_streams, zero_copy_use, graphs,
    capture_while_batches_die, capture_while_shared_batches_die,
    expandable_segments, workers_forked_later, exits,
)


def run_parts(names):
    known = {p.__name__: p for p in PARTS}
    for name in names:
        if name not in known:
            sys.exit("no part %r: %s" % (name, ", ".join(known)))
    names = names or list(known)
    producers = Producers(options=("--preset", "eval"))
    bad = 0
    try:
        for n, name in enumerate(names, 1):
            start = time.monotonic()
            done = subprocess.run([sys.executable, __file__, "--in", name],
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=420)
            good = done.returncode == 0
            bad += not good
            if not good:
                print("# " + done.stdout.decode()[-1500:].replace("\n", "\n# "))
            print("%sok %d - %s" % ("" if good else "not ", n, name))
            print("# %.1f s" % (time.monotonic() - start), flush=True)
    finally:
        producers.stop()
    print("1..%d" % len(names))
    return 1 if bad else 0


# ---- trainers ----


def model():
    import torch

    try:
        from torchvision.models import resnet50

        return resnet50().cuda(), "ResNet-50"
    except ImportError:
        layers, width = [], 3
        for out in (64, 128, 256, 512):
            layers += [torch.nn.Conv2d(width, out, 3, 2, 1),
                       torch.nn.BatchNorm2d(out), torch.nn.ReLU()]
            width = out
        layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                   torch.nn.Linear(width, 1000)]
        return torch.nn.Sequential(*layers).cuda(), "four convolutions"


def own_loader(root):
    import torch
    from torchvision import datasets, transforms

    chain = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ])
    return torch.utils.data.DataLoader(
        datasets.ImageFolder(root, chain), batch_size=64, shuffle=True,
        num_workers=4, pin_memory=True, persistent_workers=True,
        drop_last=True,
    )


def train(way, seconds):
    """Images per second of one trainer."""
    import torch

    net, _ = model()
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    scaler = torch.cuda.amp.GradScaler()
    if way == "own":
        batches = own_loader(os.environ["DATA"])
    else:
        batches = loader(224, batch_size=64, device="cuda", drop_last=True,
                         fields=("image", "label"), zero_copy=way == "zero_copy")
    start, n, end = None, 0, time.monotonic() + 120
    while time.monotonic() < end:
        for images, labels in batches:
            images = images.cuda(non_blocking=True)
            labels = labels.cuda(non_blocking=True)
            with torch.autocast("cuda", torch.float16):
                loss = torch.nn.functional.cross_entropy(net(images), labels)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            n += len(labels)
            if start is None and n >= 20 * 64:
                torch.cuda.synchronize()
                start, n = time.monotonic(), 0
                end = start + seconds
            if time.monotonic() > end:
                break
    torch.cuda.synchronize()
    print("%.1f" % (n / (time.monotonic() - (start or end))))


def run_trainers(k):
    for way in ("stored", "zero_copy", "own"):
        producers = Producers(sizes=(224,), images=200)
        try:
            environment = dict(os.environ)
            environment["DATA"] = os.path.join(producers.folder, "data", "train")
            cpu, start = producers.cpu(), time.monotonic()
            running = [
                subprocess.Popen([sys.executable, __file__, "--train", way, "20"],
                                 stdout=subprocess.PIPE, env=environment)
                for _ in range(k)
            ]
            rates = []
            for process in running:
                text = process.communicate(timeout=400)[0].decode().strip()
                rates.append(float(text) if process.returncode == 0 else 0)
            print("%d trainers, %s: %.0f images/s in all (%s), the producer used "
                  "%.2f CPUs" % (k, way, sum(rates),
                                 " ".join("%.0f" % r for r in rates),
                                 (producers.cpu() - cpu)
                                 / (time.monotonic() - start)), flush=True)
        finally:
            producers.stop()
    return 0


def main(arguments):
    sys.path.insert(0, os.path.join(TOP, "bindings", "python"))
    os.environ.setdefault("LIBTSOCK_PATH", os.path.join(B, "lib", "libtsock.so"))
    if arguments[:1] == ["--in"]:
        {p.__name__: p for p in PARTS}[arguments[1]]()
        return 0
    if arguments[:1] == ["--train"]:
        train(arguments[1], float(arguments[2]))
        return 0
    why = look()
    if why:
        skip(why)
    for program in ("bench/mkdata", "bin/tsock-producer", "lib/libtsock.so"):
        if not os.path.exists(os.path.join(B, program)):
            skip("%s/%s is not built" % (B, program))
    if arguments[:1] == ["trainers"]:
        return run_trainers(int(arguments[1]))
    return run_parts(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
