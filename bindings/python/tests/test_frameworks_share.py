# SPDX-License-Identifier: MIT
"""tsock.share() and tsock.run inside frameworks that make their own loaders.

Skipped where a framework isn't installed.  Samples are known by their labels,
which are their numbers.
"""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

import tsock
from conftest import CHECKOUT, N, end_all, everything, running

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
pytestmark = pytest.mark.minutes(10)

COMMON = """
import json, os, sys
import torch
from torch.utils.data import DataLoader
from torchvision import transforms as T
from torchvision.datasets import ImageFolder

torch.set_num_threads(1)
EVAL = T.Compose([T.Resize(40), T.CenterCrop(32), T.ToTensor()])
TRAIN = T.Compose([T.RandomResizedCrop(32), T.ToTensor()])


def numbered(transform):
    data = ImageFolder(sys.argv[1], transform)
    data.samples = [(path, i) for i, (path, _) in enumerate(data.samples)]
    data.class_to_idx = {"%03d" % i: i for i in range(len(data.samples))}
    return data


def as_dict(samples):
    return {
        "pixel_values": torch.stack([image for image, _ in samples]),
        "labels": torch.tensor([label for _, label in samples]),
    }


def say(rank, **what):
    with open(os.path.join(sys.argv[2], "rank%d" % rank), "w") as f:
        json.dump(what, f)
"""


@pytest.fixture
def job(tmp_path, images, place, monkeypatch):
    """job(text) is what each rank said, and the script's standard error."""
    for key in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv(
        "PYTHONPATH", os.path.join(CHECKOUT, "bindings", "python")
    )

    def start(text, *launcher, ranks=1):
        script = tmp_path / "script.py"
        script.write_text(COMMON + text)
        done = subprocess.run(
            [sys.executable, *launcher, str(script), images, tmp_path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=550,
        )
        assert done.returncode == 0, done.stdout
        said = [tmp_path / ("rank%d" % i) for i in range(ranks)]
        return [json.loads(path.read_text()) for path in said], done.stdout

    yield start
    for name in running():
        tsock.stop(name, force=True)
    end_all(place)


RUN = ("-m", "tsock.run")
TORCHRUN = (
    *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
)


def two_epochs(ranks):
    """Both epochs of training have all samples, in other orders."""
    for e in range(2):
        parts = [rank["epochs"][e] for rank in ranks]
        assert len({len(part) for part in parts}) == 1
        assert sorted(set(sum(parts, []))) == everything()
        assert len(sum(parts, [])) - N < len(ranks)
    assert ranks[0]["epochs"][0] != ranks[0]["epochs"][1]


# ---- accelerate ----

ACCELERATE = """
import accelerate
import tsock

accelerator = accelerate.Accelerator(cpu=True)
rank = accelerator.process_index
train = DataLoader(numbered(TRAIN), 16, shuffle=True)
val = DataLoader(numbered(EVAL), 16)
train, val, own = accelerator.prepare(train, val, DataLoader(numbered(EVAL), 16))
assert tsock.share(train) is train and tsock.share(val) is val
assert isinstance(train, DataLoader) and len(val) == len(own)
epochs = [sum((y.tolist() for _, y in train), []) for _ in range(2)]


def gathered(loader):
    return sum((accelerator.gather_for_metrics(y).tolist()
                for _, y in loader), [])


say(rank, epochs=epochs, gathered=gathered(val), wanted=gathered(own))
accelerator.end_training()
"""


@pytest.mark.parametrize("launcher", [(), TORCHRUN])
def test_loaders_that_accelerate_has_prepared(job, launcher):
    pytest.importorskip("accelerate")
    ranks, _ = job(ACCELERATE, *launcher, ranks=2 if launcher else 1)
    two_epochs(ranks)
    for rank in ranks:
        assert sorted(rank["gathered"]) == sorted(rank["wanted"])
        assert sorted(rank["gathered"]) == everything()
    if not launcher:
        assert ranks[0]["gathered"] == ranks[0]["wanted"]


PREPARED = """
import accelerate
import tsock

accelerator = accelerate.Accelerator(cpu=True)
loader = tsock.share(DataLoader(numbered(EVAL), 16), rank=None, world_size=None)
assert accelerator.prepare(loader) is loader
say(accelerator.process_index, labels=[int(i) for _, y in loader for i in y])
accelerator.end_training()
"""


def test_accelerate_prepares_a_shared_loader(job):
    pytest.importorskip("accelerate")
    ranks, _ = job(PREPARED, *TORCHRUN, ranks=2)
    assert sorted(ranks[0]["labels"] + ranks[1]["labels"]) == everything()


# ---- Hugging Face's Trainer ----

TRAINER = """
import transformers


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3 * 32 * 32, 203)
        self.seen = []

    def forward(self, pixel_values, labels):
        if self.training:
            self.seen += labels.tolist()
        out = self.layer(pixel_values.flatten(1))
        loss = torch.nn.functional.cross_entropy(out, labels)
        return {"loss": loss, "logits": out[:, 0]}


def metrics(said):
    evaluated[:] = said.label_ids.tolist()
    return {"sum": float(said.predictions.sum())}


transformers.set_seed(1)
evaluated = []
model = Model()
trainer = transformers.Trainer(
    model,
    transformers.TrainingArguments(
        sys.argv[2], num_train_epochs=2, per_device_train_batch_size=16,
        per_device_eval_batch_size=16, use_cpu=True, report_to=[],
        save_strategy="no", disable_tqdm=True),
    train_dataset=numbered(TRAIN), eval_dataset=numbered(EVAL),
    data_collator=as_dict, compute_metrics=metrics)
before = trainer.evaluate()
%s
after = trainer.evaluate()
assert after["eval_loss"] == before["eval_loss"] or trainer.args.world_size > 1
trainer.train()
trainer.evaluate()
half = len(model.seen) // 2
say(trainer.args.process_index, epochs=[model.seen[:half], model.seen[half:]],
    evaluated=evaluated, steps=trainer.state.global_step)
"""
SHARED = "import tsock\nassert tsock.share(trainer) is trainer"


def is_trained(ranks):
    two_epochs(ranks)
    for rank in ranks:
        assert sorted(rank["evaluated"]) == everything()
        assert rank["steps"] == 2 * (7 if len(ranks) == 2 else 13)


@pytest.mark.parametrize("launcher", [(), TORCHRUN])
def test_a_trainer_s_loaders_are_shared(job, launcher):
    pytest.importorskip("accelerate")
    pytest.importorskip("transformers")
    world = 2 if launcher else 1
    is_trained(job(TRAINER % SHARED, *launcher, ranks=world)[0])
    assert len(running()) == 2


@pytest.mark.parametrize("launcher", [(), TORCHRUN])
def test_a_trainer_that_tsock_run_runs(job, launcher):
    pytest.importorskip("accelerate")
    pytest.importorskip("transformers")
    world = 2 if launcher else 1
    ranks, log = job(TRAINER % "", *launcher, *RUN, ranks=world)
    is_trained(ranks)
    assert "which is native" in log and "script's own" not in log


# ---- Lightning ----

LIGHTNING = """
import pytorch_lightning as lightning


class Data(lightning.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(numbered(TRAIN), batch_size=16, shuffle=True)

    def val_dataloader(self):
        return [DataLoader(numbered(EVAL), batch_size=16)]

    def predict_dataloader(self):
        return DataLoader(numbered(EVAL), batch_size=16)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3 * 32 * 32, 203)
        self.epochs, self.validated = {}, []

    def loss(self, batch):
        images, labels = batch
        return torch.nn.functional.cross_entropy(
            self.layer(images.flatten(1)), labels)

    def training_step(self, batch, _):
        seen = self.epochs.setdefault(self.current_epoch, [])
        seen += batch[1].tolist()
        return self.loss(batch)

    def validation_step(self, batch, _):
        self.validated += batch[1].tolist()

    def predict_step(self, batch, _):
        return batch[1]

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def main(world):
    data, model = Data(), Model()
    %s
    trainer = lightning.Trainer(
        accelerator="cpu", devices=world, max_epochs=2, logger=False,
        strategy="ddp" if world > 1 else "auto", num_sanity_val_steps=0,
        enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=sys.argv[2])
    trainer.fit(model, data)
    predicted = trainer.predict(model, data)
    say(trainer.global_rank, epochs=[model.epochs[e] for e in range(2)],
        validated=model.validated,
        predicted=[int(i) for batch in predicted for i in batch])


main(%d)
"""


def is_fitted(ranks):
    two_epochs(ranks)
    validated = sum((rank["validated"] for rank in ranks), [])
    assert set(validated) == set(everything())
    assert len(validated) == 2 * (N + len(ranks) - 1)
    predicted = sum((rank["predicted"] for rank in ranks), [])
    assert sorted(predicted) == everything()


@pytest.mark.parametrize("world", [1, 2])
def test_a_data_module_s_loaders_are_shared(job, world):
    pytest.importorskip("pytorch_lightning")
    share = "import tsock; assert tsock.share(data) is data"
    is_fitted(job(LIGHTNING % (share, world), ranks=world)[0])
    assert len(running()) == 2


def test_lightning_that_tsock_run_runs(job):
    pytest.importorskip("pytorch_lightning")
    ranks, log = job(LIGHTNING % ("pass", 1), *RUN)
    is_fitted(ranks)
    assert log.count("which is native") == 2
    # Lightning notes which samples it predicts of.
    assert "script's own: its batches (_IndexBatchSamplerWrapper)" in log


def test_lightning_s_ranks_that_tsock_run_runs(job):
    pytest.importorskip("pytorch_lightning")
    ranks, log = job(LIGHTNING % ("pass", 2), *TORCHRUN, *RUN, ranks=2)
    is_fitted(ranks)
    assert "which is native" in log


# ---- Keras ----

KERAS = """
os.environ["KERAS_BACKEND"] = "torch"
import keras

model = keras.Sequential([
    keras.layers.Input((3, 32, 32)), keras.layers.Flatten(),
    keras.layers.Dense(203)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(True))
val = DataLoader(numbered(EVAL), 16)
history = model.fit(
    DataLoader(numbered(TRAIN), 16, shuffle=True), validation_data=val,
    epochs=2, verbose=0)
mine = model.evaluate(val, verbose=0)
torch.utils.data.DataLoader.__iter__ = (
    torch.utils.data.DataLoader.__iter__.__wrapped__)
own = model.evaluate(val, verbose=0)
say(0, history=history.history["val_loss"], mine=mine, own=own)
"""


def test_keras_fits_on_shared_loaders(job):
    # It can't be imported where its default backend isn't installed.
    if importlib.util.find_spec("keras") is None:
        pytest.skip("no keras")
    (said,), log = job(KERAS, *RUN)
    assert said["mine"] == pytest.approx(said["own"], rel=1e-6)
    assert len(said["history"]) == 2
    assert len(running()) == 2 and "script's own" not in log
