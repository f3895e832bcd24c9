# SPDX-License-Identifier: MIT
"""Frameworks that start two processes: Lightning, accelerate, torchrun.

Each runs for real, on the CPU by gloo; skipped where its framework isn't
installed.
"""

import json
import os
import subprocess
import sys

import pytest

from conftest import CHECKOUT, N

pytest.importorskip("torch.distributed")
pytest.importorskip("numpy")
pytestmark = [pytest.mark.minutes(10), pytest.mark.usefixtures("warm")]

# What the scripts share.  say() leaves what a rank has seen for the test.
COMMON = """
import json, os, sys
import torch
import tsock

torch.set_num_threads(1)


def say(rank, what):
    with open(os.path.join(sys.argv[1], "rank%d" % rank), "w") as f:
        json.dump(what, f)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3 * 32 * 32, 3)

    def loss(self, images, labels):
        out = self.layer(images.flatten(1))
        return torch.nn.functional.cross_entropy(out, labels)

    def whole(self):
        return [float(p.double().sum()) for p in self.layer.parameters()]


FIELDS = ("image", "label", "index")
"""

LIGHTNING = """
import pytorch_lightning as lightning


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.inner = Layer()
        self.epochs, self.validated = {}, []

    # Here the ranks know each other already.
    def train_dataloader(self):
        return tsock.DataLoader("toy", 16, fields=FIELDS)

    def val_dataloader(self):
        return tsock.DataLoader("toy-val", 16, fields=FIELDS)

    def training_step(self, batch, _):
        images, labels, index = batch
        self.epochs.setdefault(self.current_epoch, []).append(index.tolist())
        return self.inner.loss(images, labels)

    def validation_step(self, batch, _):
        images, labels, index = batch
        if not self.trainer.sanity_checking:
            self.validated += index.tolist()
        loss = self.inner.loss(images, labels)
        self.log("val", loss, sync_dist=True, batch_size=len(labels))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


model = Model()
trainer = lightning.Trainer(
    accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False,
    enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, default_root_dir=sys.argv[1])
trainer.fit(model)
say(trainer.global_rank,
    [[model.epochs[e] for e in range(2)], model.validated,
     model.inner.whole(), float(trainer.callback_metrics["val"])])
"""

ACCELERATE = """
import accelerate


def train():
    accelerator = accelerate.Accelerator(cpu=True)
    assert accelerator.num_processes == 2
    torch.manual_seed(0)
    model = Layer()
    sgd = torch.optim.SGD(model.parameters(), 0.01)
    mine = tsock.DataLoader("toy", 16, fields=FIELDS)
    val = tsock.DataLoader("toy-val", 16, fields=FIELDS)
    layer, sgd, loader, val = accelerator.prepare(model.layer, sgd, mine, val)
    assert loader is mine
    model.layer = layer
    epochs, validated = [], []
    for epoch in range(2):
        epochs.append([])
        for images, labels, index in loader:
            loss = model.loss(images, labels)
            accelerator.backward(loss)
            sgd.step()
            sgd.zero_grad()
            epochs[-1].append(index.tolist())
        for images, labels, index in val:
            validated += index.tolist()
    seen = torch.tensor([len(sum(epochs[-1], []))])
    total = accelerator.gather(seen).sum().item()
    # Equal sizes: each rank gets the batches of all.
    even = tsock.DataLoader("toy-val", 16, fields=("index",), even=True)
    gathered = []
    for (index,) in even:
        gathered += accelerator.gather_for_metrics(index).tolist()
    say(accelerator.process_index,
        [epochs, validated, model.whole(), total, gathered])
    accelerator.end_training()


if __name__ == "__main__":
    accelerate.debug_launcher(train, num_processes=2)
"""

TRAINER = """
import transformers


class Model(Layer):
    def __init__(self):
        super().__init__()
        self.epochs = []

    def forward(self, pixel_values, labels, index):
        if self.training:
            self.epochs.append(index.tolist())
        out = self.layer(pixel_values.flatten(1))
        loss = torch.nn.functional.cross_entropy(out, labels)
        return {"loss": loss, "logits": out, "index": index}


NAMES = {"image": "pixel_values", "label": "labels", "index": "index"}


class Trainer(transformers.Trainer):
    def get_train_dataloader(self):
        return tsock.DataLoader("toy", 16, fields=FIELDS, as_dict=NAMES)

    # The Trainer gathers what the ranks found in tensors of equal sizes.
    def get_eval_dataloader(self, eval_dataset=None):
        return tsock.DataLoader("toy-val", 16, fields=FIELDS, as_dict=NAMES,
                                **how)


how = dict(rank=0, world_size=1)  # every rank evaluates on everything
found = []


def metrics(said):
    found.extend(said.predictions[1].tolist())
    return {}


model = Model()
trainer = Trainer(
    model,
    transformers.TrainingArguments(
        sys.argv[1], num_train_epochs=2, per_device_train_batch_size=16,
        use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True),
    compute_metrics=metrics, eval_dataset=[0])
trainer.train()
assert trainer.state.global_step == 2 * 7, trainer.state.global_step
trainer.evaluate()
on_everything, found[:], how = found[:], [], dict(even=True)
trainer.evaluate()
rank = int(os.environ["RANK"])
epochs = [model.epochs[:7], model.epochs[7:]]
say(rank, [epochs, on_everything, model.whole(), 0, found])
"""


NOTEBOOK = LIGHTNING[: LIGHTNING.index("    # Here the ranks")] + """
    def training_step(self, batch, _):
        images, labels, index = batch
        self.epochs.setdefault(self.current_epoch, []).append(index.tolist())
        return self.inner.loss(images, labels)

    def validation_step(self, batch, _):
        self.validated += batch[2].tolist()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)

    def on_fit_end(self):
        say(self.trainer.global_rank,
            [[self.epochs[e] for e in range(2)], self.validated,
             self.inner.whole()])


# Cells of a notebook: the loaders are there, and one was looked at.
train = tsock.DataLoader("toy", 16, fields=FIELDS)
val = tsock.DataLoader("toy-val", 16, fields=FIELDS)
next(iter(train))
trainer = lightning.Trainer(
    accelerator="cpu", devices=2, strategy="ddp_notebook", max_epochs=2,
    logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, default_root_dir=sys.argv[1],
    num_sanity_val_steps=0)
trainer.fit(Model(), train, val)
# The parent's loader is the parent's.
assert sum(len(batch[1]) for batch in train) == %d
""" % N

# The evaluation of PyTorch's imagenet example: what is left over by a sampler
# that drops it is read by every rank, from the data set.
EVALUATION = """
def evaluate(loader, world):
    seen = []

    def run(loader):
        for images, labels, index in loader:
            assert images.shape[1:] == (3, 32, 32)
            seen.extend(index.tolist())

    run(loader)
    covered = len(loader.sampler) * world
    if covered < len(loader.dataset):
        run(torch.utils.data.DataLoader(
            torch.utils.data.Subset(
                loader.dataset, range(covered, len(loader.dataset))),
            batch_size=16, shuffle=False))
    return seen


torch.distributed.init_process_group("gloo")
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
said = []
for size in (16, 50, 101, 203):
    loader = tsock.DataLoader("toy-val", size, fields=FIELDS)
    said.append(evaluate(loader, world))
    loader.close()
say(rank, said)
torch.distributed.destroy_process_group()
"""

# One training as it is, and one that is killed in its second epoch, of a
# stream that is like the first one's.
RESUMED = TRAINER[: TRAINER.index("class Trainer")] + """
class Killed(Exception):
    pass


class Kill(transformers.TrainerCallback):
    def on_step_begin(self, args, state, control, **_):
        if state.global_step == killed_at:
            raise Killed


class Trainer(transformers.Trainer):
    def get_train_dataloader(self):
        return tsock.DataLoader(name, 16, fields=FIELDS, as_dict=NAMES)


def train(**keywords):
    model = Model()
    trainer = Trainer(
        model,
        transformers.TrainingArguments(
            os.path.join(sys.argv[1], name), num_train_epochs=3,
            per_device_train_batch_size=16, use_cpu=True, report_to=[],
            save_steps=5, disable_tqdm=True),
        callbacks=[Kill()])
    try:
        trainer.train(**keywords)
    except Killed:
        pass
    return model.epochs


name, killed_at = "toy", None
whole = train()
name, killed_at = "toy-2", 12
before = train()
killed_at = None
after = train(resume_from_checkpoint=True)
say(int(os.environ["RANK"]), [whole, before, after])
"""


def run(folder, text, *launcher):
    """What each of the two ranks said."""
    script = folder / "script.py"
    script.write_text(COMMON + text)
    env = dict(
        os.environ,
        PYTHONPATH=os.path.join(CHECKOUT, "bindings", "python"),
        GLOO_SOCKET_IFNAME="lo",
        OMP_NUM_THREADS="1",
        MASTER_ADDR="127.0.0.1",
    )
    for key in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT"):
        env.pop(key, None)
    job = subprocess.Popen(
        [sys.executable, *launcher, str(script), str(folder)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said = job.communicate(timeout=550)[0]
    finally:
        try:
            os.killpg(job.pid, 9)
        except ProcessLookupError:
            pass
    assert job.returncode == 0, said
    return [json.loads((folder / ("rank%d" % i)).read_text()) for i in (0, 1)]


def check_training(ranks):
    """Two epochs, each shared by the ranks, and one model at the end."""
    for e in range(2):
        parts = [rank[0][e] for rank in ranks]
        assert [len(part) for part in parts] == [7, 7]
        samples = [sum(part, []) for part in parts]
        assert [len(s) for s in samples] == [102, 102]
        assert set(samples[0] + samples[1]) == set(range(N))
    assert ranks[0][0][0] != ranks[0][0][1]
    assert ranks[0][2] == pytest.approx(ranks[1][2], rel=1e-9)


def check_gathered(ranks):
    """What was evaluated with even=True, and gathered: each sample once."""
    for rank in ranks:
        assert sorted(rank[4]) == list(range(N))


def test_lightning_on_two_processes(serve, tmp_path):
    pytest.importorskip("pytorch_lightning")
    serve()
    serve("--preset", "eval", name="toy-val")
    ranks = run(tmp_path, LIGHTNING)
    check_training(ranks)
    both = sorted(ranks[0][1] + ranks[1][1])
    assert both == sorted(2 * list(range(N)))
    assert ranks[0][3] == pytest.approx(ranks[1][3])


def test_lightning_forks_a_notebooks_processes(serve, tmp_path):
    pytest.importorskip("pytorch_lightning")
    serve()
    serve("--preset", "eval", name="toy-val")
    ranks = run(tmp_path, NOTEBOOK)
    check_training(ranks)
    both = sorted(ranks[0][1] + ranks[1][1])
    assert both == sorted(2 * list(range(N)))


TORCHRUN = (
    *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
)


def test_pytorchs_imagenet_example_evaluates(serve, tmp_path):
    serve("--preset", "eval", name="toy-val")
    ranks = run(tmp_path, EVALUATION, *TORCHRUN)
    for seen in zip(*ranks):
        assert sorted(sum(seen, [])) == list(range(N))


def test_a_killed_trainer_goes_on_on_two_processes(serve, tmp_path):
    pytest.importorskip("accelerate")
    pytest.importorskip("transformers")
    serve()
    serve(name="toy-2")
    for whole, before, after in run(tmp_path, RESUMED, *TORCHRUN):
        assert len(whole) == 3 * 7 and len(before) == 12
        assert before == whole[:12] and after == whole[10:]


def test_accelerate_on_two_processes(serve, tmp_path):
    pytest.importorskip("accelerate")
    serve()
    serve("--preset", "eval", name="toy-val")
    ranks = run(tmp_path, ACCELERATE)
    check_training(ranks)
    both = sorted(ranks[0][1] + ranks[1][1])
    assert both == sorted(2 * list(range(N)))
    assert ranks[0][3] == ranks[1][3] == 204
    check_gathered(ranks)


def test_hugging_faces_trainer_on_two_processes(serve, tmp_path):
    pytest.importorskip("accelerate")
    pytest.importorskip("transformers")
    serve()
    serve("--preset", "eval", name="toy-val")
    ranks = run(tmp_path, TRAINER, *TORCHRUN)
    check_training(ranks)
    for rank in ranks:
        assert sorted(rank[1]) == sorted(2 * list(range(N)))
    check_gathered(ranks)
