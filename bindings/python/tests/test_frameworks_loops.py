# SPDX-License-Identifier: MIT
"""Training loops that people write, and libraries that work on batches.

Each runs for real, on the CPU; skipped where its library isn't installed.
"""

import time

import pytest

import tsock
from conftest import N, finish

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

SIZE = 32


def model_for(classes):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(3 * SIZE * SIZE, classes)
    )


def plain_loop(loader, epochs=2):
    """(samples, losses) of a loop as tutorials have it."""
    model = model_for(3)
    sgd = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    count, losses = 0, []
    for _ in range(epochs):
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            losses.append(loss.item())
            count += len(labels)
    return count, losses


def pillow():
    """The option by which the pixels are those of this Pillow."""
    version = int(pytest.importorskip("PIL").__version__.split(".")[0])
    return () if version >= 13 else ("--pillow", 12)


def test_a_plain_loop_learns_as_from_a_private_loader(serve):
    transforms = pytest.importorskip("torchvision.transforms")
    serve("--preset", "eval", "--resize", 40, *pillow())
    shared = tsock.DataLoader("toy", 16)
    shared.dataset.transform = transforms.Compose(
        [
            transforms.Resize(40),
            transforms.CenterCrop(SIZE),
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )
    own = torch.utils.data.DataLoader(shared.dataset, 16)
    assert len(own) == len(shared)
    for (a, left), (b, right) in zip(shared, own):
        assert torch.equal(a, b) and torch.equal(left, right)
    count, losses = plain_loop(shared)
    assert count == 2 * N
    # Equal bytes at other addresses: sums may differ in their last bits.
    assert losses == pytest.approx(plain_loop(own)[1], rel=1e-4)


class MetricLogger:
    """What torchvision's references wrap round every loader."""

    def __init__(self):
        self.meters = {}
        self.lines = []

    def update(self, n=1, **values):
        for key, value in values.items():
            self.meters.setdefault(key, []).append((float(value), n))

    def average(self, key):
        total = sum(n for _, n in self.meters[key])
        return sum(value * n for value, n in self.meters[key]) / total

    def log_every(self, iterable, print_freq, header):
        width = len(str(len(iterable)))
        end = time.time()
        for i, batch in enumerate(iterable):
            self.update(data=time.time() - end)
            yield batch
            if i % print_freq == 0:
                self.lines.append(
                    "%s [%*d/%d] %s"
                    % (header, width, i, len(iterable), sorted(self.meters))
                )
            end = time.time()


def accuracy(output, target, topk=(1,)):
    _, found = output.topk(max(topk), 1, True, True)
    correct = found.t().eq(target[None])
    return [correct[:k].flatten().float().sum() / len(target) for k in topk]


def train_one_epoch(model, sgd, loader, device, epoch):
    model.train()
    logger = MetricLogger()
    for image, target in logger.log_every(loader, 5, "Epoch: [%d]" % epoch):
        image, target = image.to(device), target.to(device)
        output = model(image)
        loss = torch.nn.functional.cross_entropy(output, target)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        first, second = accuracy(output, target, topk=(1, 2))
        count = image.shape[0]
        logger.update(count, loss=loss.item(), acc1=first, acc2=second)
    return logger


def evaluate(model, loader, device):
    model.eval()
    logger, samples = MetricLogger(), 0
    with torch.inference_mode():
        for image, target in logger.log_every(loader, 100, "Test:"):
            image = image.to(device, non_blocking=True)
            target = target.to(device, non_blocking=True)
            (first,) = accuracy(model(image), target)
            logger.update(image.shape[0], acc1=first)
            samples += image.shape[0]
    assert samples == len(loader.dataset)
    return logger.average("acc1")


def test_torchvisions_references(serve):
    serve()
    serve("--preset", "eval", name="toy-val")
    data_loader = tsock.DataLoader("toy", 16, pin_memory=False)
    data_loader_test = tsock.DataLoader("toy-val", 16)
    device = torch.device("cpu")
    model = model_for(len(data_loader.dataset.classes)).to(device)
    sgd = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        data_loader.sampler.set_epoch(epoch)
        logger = train_one_epoch(model, sgd, data_loader, device, epoch)
        assert sum(n for _, n in logger.meters["loss"]) == N
        assert [line.split("] ")[1] for line in logger.lines] == [
            "[%2d/13" % i for i in (0, 5, 10)
        ]
        assert 0 <= evaluate(model, data_loader_test, device) <= 1
    assert data_loader.epoch == data_loader_test.epoch == 2


@pytest.mark.parametrize("mode", ["batch", "pair", "elem"])
def test_timms_mixup_in_place(serve, mode):
    mixup = pytest.importorskip("timm.data.mixup")
    loss = pytest.importorskip("timm.loss").SoftTargetCrossEntropy()
    serve()
    mine = tsock.DataLoader("toy", 16, drop_last=True)
    theirs = tsock.DataLoader("toy", 16, drop_last=True)
    mix = mixup.Mixup(0.8, cutmix_alpha=1.0, mode=mode, num_classes=3)
    model = model_for(3)
    changed = 0
    for i, ((images, labels), (other, same)) in enumerate(zip(mine, theirs)):
        assert torch.equal(images, other) and torch.equal(labels, same)
        original = other.clone()
        numpy.random.seed(i)
        wanted, targets = mix(other.clone(), same)
        numpy.random.seed(i)
        mixed, soft = mix(images, labels)
        assert mixed.data_ptr() == images.data_ptr()
        assert torch.equal(mixed, wanted) and torch.equal(soft, targets)
        # Other readers see nothing of it.
        assert torch.equal(other, original)
        changed += not torch.equal(mixed, original)
        loss(model(mixed), soft).backward()
    assert i == len(mine) - 1 and changed > i // 2


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_timms_prefetch_loader(serve, dtype):
    timm = pytest.importorskip("timm.data.loader")
    serve()
    names = dict(dtype=dtype, normalize=None)
    if dtype == "uint8":
        del names["normalize"]
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)
    inner = tsock.DataLoader("toy", 16, **names)
    other = tsock.DataLoader("toy", 16, **names)
    loader = timm.PrefetchLoader(inner, mean, std, device=torch.device("cpu"))
    assert len(loader) == len(inner) and loader.sampler is inner.sampler
    assert loader.dataset is inner.dataset and loader.mixup_enabled is False
    count = 0
    # Samples of float32 are normalised themselves, in place.
    for (images, labels), (raw, same) in zip(loader, other):
        assert images.dtype == torch.float32 and torch.equal(labels, same)
        wanted = raw.to(torch.float32, copy=True)
        wanted.sub_(loader.mean).div_(loader.std)
        assert torch.equal(images, wanted)
        count += len(labels)
    assert count == N


def test_timms_random_erasing_and_models(serve):
    timm = pytest.importorskip("timm")
    loading = pytest.importorskip("timm.data.loader")
    utils = pytest.importorskip("timm.utils")
    serve()
    inner = tsock.DataLoader("toy", 64, dtype="uint8")
    other = tsock.DataLoader("toy", 64, dtype="uint8")
    loader = loading.PrefetchLoader(
        inner, device=torch.device("cpu"), re_prob=0.5, re_mode="pixel"
    )
    model = timm.create_model("test_resnet", num_classes=3)
    losses, erased = utils.AverageMeter(), 0
    for (images, labels), (raw, _) in zip(loader, other):
        plain = raw.to(torch.float32).sub_(loader.mean).div_(loader.std)
        erased += int((images != plain).flatten(1).any(1).sum())
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        losses.update(loss.item(), images.size(0))
    assert losses.count == N and 0 < erased < N


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_jax_trains(serve, framework):
    jax = pytest.importorskip("jax")
    serve()
    loader = tsock.DataLoader("toy", 16, framework=framework, drop_last=True)

    @jax.jit
    def step(weights, images, labels):
        def loss(weights):
            logits = images.reshape(images.shape[0], -1) @ weights
            likely = jax.nn.log_softmax(logits)
            return -jax.numpy.take_along_axis(likely, labels[:, None], 1).mean()

        value, gradient = jax.value_and_grad(loss)(weights)
        return weights - 0.01 * gradient, value

    weights = jax.numpy.zeros((3 * SIZE * SIZE, 3))
    losses, kept = [], []
    for _ in range(3):
        for images, labels in loader:
            taken = jax.dlpack.from_dlpack(images)
            weights, loss = step(
                weights, taken, jax.numpy.asarray(numpy.asarray(labels))
            )
            losses.append(float(loss))
            if len(kept) < 5:
                copy = numpy.array(numpy.asarray(images))
                kept.append((taken, copy))
    assert len(losses) == 3 * len(loader)
    assert losses[0] == pytest.approx(1.0986, abs=1e-3)  # log 3
    assert bool(jax.numpy.isfinite(weights).all())
    # What JAX holds stays what it was, rings later.
    for taken, copy in kept:
        assert (numpy.asarray(taken) == copy).all()


def test_jax_arrays_of_numpys_are_kept(serve):
    jax = pytest.importorskip("jax")
    serve()
    loader = tsock.DataLoader(
        "toy", 16, framework="numpy", fields=("image", "label", "index")
    )
    held = [[jax.numpy.asarray(a) for a in batch] for batch in loader]
    indices = numpy.concatenate([numpy.asarray(b[2]) for b in held])
    assert sorted(indices.tolist()) == list(range(N))
    copies = [[numpy.array(a) for a in batch] for batch in held]
    for _ in loader:
        pass
    for arrays, right in zip(held, copies):
        assert all((numpy.asarray(a) == r).all() for a, r in zip(arrays, right))


def test_torchmetrics_count_every_sample(serve):
    torchmetrics = pytest.importorskip("torchmetrics")
    serve()
    loader = tsock.DataLoader("toy", 16)
    model = model_for(3)
    metrics = torchmetrics.MetricCollection(
        {
            "acc": torchmetrics.classification.MulticlassAccuracy(
                3, average="micro"
            ),
            "matrix": torchmetrics.classification.MulticlassConfusionMatrix(3),
        }
    )
    # These two keep the tensors that they are given, until they compute.
    labels_seen = torchmetrics.CatMetric()
    auroc = torchmetrics.classification.MulticlassAUROC(3)
    for _ in range(2):
        right, copies, outputs = 0, [], []
        for images, labels in loader:
            with torch.no_grad():
                logits = model(images)
            metrics(logits, labels)
            labels_seen.update(labels)
            auroc.update(logits, labels)
            right += int((logits.argmax(1) == labels).sum())
            copies.append(labels.clone())
            outputs.append(logits)
        found = metrics.compute()
        assert float(found["acc"]) == pytest.approx(right / N)
        assert found["matrix"].sum(1).tolist() == [68, 68, 67]
        whole = torch.cat(copies)
        assert labels_seen.compute().to(torch.int64).tolist() == whole.tolist()
        wanted = torchmetrics.functional.classification.multiclass_auroc(
            torch.cat(outputs), whole, 3
        )
        assert float(auroc.compute()) == pytest.approx(float(wanted))
        for metric in (metrics, labels_seen, auroc):
            metric.reset()


NUMPY_ALONE = """
import sys
sys.modules["torch"] = None
import numpy
import tsock

loader = tsock.DataLoader("toy", 16, fields=("image", "label", "index"))
assert loader.framework == "numpy"
weights = numpy.zeros((3 * 32 * 32, 3), numpy.float32)
losses = []
for epoch in range(8):
    seen, total, step = [], 0.0, numpy.zeros_like(weights)
    for images, labels, index in loader:
        images = images.reshape(len(labels), -1)
        logits = images @ weights
        logits -= logits.max(1, keepdims=True)
        likely = numpy.exp(logits)
        likely /= likely.sum(1, keepdims=True)
        rows = numpy.arange(len(labels))
        total -= float(numpy.log(likely[rows, labels]).sum())
        likely[rows, labels] -= 1
        step += images.T @ likely
        seen += index.tolist()
    assert sorted(seen) == list(range(len(loader.dataset)))
    losses.append(total / len(seen))
    weights -= 0.0001 * step / len(seen)
assert all(b < a for a, b in zip(losses, losses[1:])), losses
"""


def test_a_loop_of_numpy_alone_learns(serve, script):
    serve("--preset", "eval")
    finish(script(NUMPY_ALONE), timeout=150)
