# SPDX-License-Identifier: MIT
"""What frameworks do with a loader; skipped where one isn't installed."""

import pickle

import pytest

import tsock
from conftest import N

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")


def test_class_weights_from_the_targets(serve):
    serve()
    loader = tsock.DataLoader("toy", 16)
    counts = torch.bincount(torch.tensor(loader.dataset.targets))
    assert counts.tolist() == [68, 68, 67]
    seen = torch.zeros(3, dtype=torch.int64)
    for _, labels in loader:
        seen += torch.bincount(labels, minlength=3)
    assert torch.equal(seen, counts)


FIELDS = ("image", "label", "index")
NAMES = {"image": "pixel_values", "label": "labels", "index": "index"}


def toy():
    # torch's own loader would refuse a time-out without workers.
    return tsock.DataLoader(
        "toy", 16, fields=FIELDS, as_dict=NAMES, timeout=100
    )


def same(batch, right):
    """Are the two batches, dicts, alike, bit by bit?"""
    return list(batch) == list(right) and all(
        torch.equal(batch[key], right[key]) for key in right
    )


def copied(batch):
    return {key: value.clone() for key, value in batch.items()}


@pytest.mark.parametrize("skipped", [1, 3, 12, 13])
def test_accelerate_skips_batches_of_the_stream(serve, skipped):
    accelerate = pytest.importorskip("accelerate")
    serve()
    with toy() as loader:
        whole = [copied(batch) for batch in loader]
    # A job that comes back, and says which epoch it was in.
    again = toy()
    rest = accelerate.skip_first_batches(again, skipped)
    rest.batch_sampler.batch_sampler.set_epoch(0)
    batches = [copied(batch) for batch in rest]
    assert len(rest) == len(batches) == 13 - skipped
    assert all(map(same, batches, whole[skipped:]))
    assert again.timeout == 100
    if skipped == 13:
        return
    assert again.epoch == again.stream_epoch == 0 and again.resumed
    # The next epoch is the next one.
    index = [int(i) for batch in again for i in batch["index"]]
    assert sorted(index) == list(range(N)) and again.epoch == 1


def test_batches_are_skipped_in_the_epoch_that_comes_next(serve):
    accelerate = pytest.importorskip("accelerate")
    serve()
    loader = tsock.DataLoader("toy", 16, fields=("label", "index"))
    for _ in loader:
        pass
    wanted = list(loader.batch_sampler)
    seen = []
    # Nothing else holds the loader.
    loader = accelerate.skip_first_batches(loader, 3)
    for labels, index in loader:
        seen.append(index.tolist())
        if len(seen) == 4:
            break
    assert seen == wanted[3:7]
    # One that was broken off is begun again.
    assert next(iter(loader))[1].tolist() == seen[0]


def test_batches_of_a_subset_are_skipped_by_reading_them(serve):
    accelerate = pytest.importorskip("accelerate")
    serve()
    keywords = dict(fields=("index",), subset=range(0, N, 3), dtype="uint8")
    with tsock.DataLoader("toy", 10, **keywords) as loader:
        whole = [b[0].tolist() for b in loader]
    loader = tsock.DataLoader("toy", 10, **keywords)
    loader.set_epoch(0)
    rest = accelerate.skip_first_batches(loader, 2)
    assert [b[0].tolist() for b in rest] == whole[2:]


def test_batches_of_a_served_loader_are_skipped(served):
    accelerate = pytest.importorskip("accelerate")
    served(
        torch.utils.data.DataLoader(torch.arange(40), 10),
        identity="numbers",
    )
    loader = tsock.DataLoader("mine", 4)
    with pytest.raises(ValueError, match="in which order"):
        list(next(iter(loader.batch_sampler)))
    whole = [batch.tolist() for batch in loader]
    loader.close()
    again = tsock.DataLoader("mine", 4)
    again.set_epoch(0)
    rest = accelerate.skip_first_batches(again, 7)
    assert [batch.tolist() for batch in rest] == whole[7:]


def test_torchs_own_loader_of_its_batch_sampler_reads_the_stream(serve):
    serve("--order", "sequential")
    loader = tsock.DataLoader("toy", 16, fields=("index",), dtype="uint8")
    data = torch.utils.data
    theirs = data.DataLoader(
        loader.dataset,
        batch_sampler=loader.batch_sampler,
        collate_fn=loader.collate_fn,
    )
    for _ in range(2):
        assert sum((b[0].tolist() for b in theirs), []) == list(range(N))
    # A batch by its number, and indices alone, as another process gets them.
    fifth = list(loader.batch_sampler)[5]
    assert loader.dataset.__getitems__(fifth).batch[0].tolist() == fifth
    assert type(pickle.loads(pickle.dumps(fifth))) is list
    items = loader.dataset.__getitems__([7, 1])
    assert [label for _, label in items] == [
        loader.dataset.targets[7],
        loader.dataset.targets[1],
    ]


def test_accelerate_saves_where_a_loader_is(serve, tmp_path):
    accelerate = pytest.importorskip("accelerate")
    serve()
    accelerator = accelerate.Accelerator(cpu=True)
    loader = tsock.DataLoader("toy", 16, fields=FIELDS, as_dict=NAMES)
    assert accelerator.prepare_data_loader(loader) is loader
    batches = iter(loader)
    for _ in range(4):
        next(batches)
    accelerator.save_state(tmp_path / "saved")
    wanted = [copied(batch) for batch in batches]
    for batch in loader:
        pass
    accelerator.load_state(tmp_path / "saved")
    assert all(map(same, loader, wanted))
    assert loader.epoch == 0 and loader.resumed
    accelerator.free_memory()


def test_accelerate_leaves_a_loader_as_it_is(serve):
    accelerate = pytest.importorskip("accelerate")
    serve()
    loader = tsock.DataLoader("toy", 16)
    model = torch.nn.Linear(1, 1)
    accelerator = accelerate.Accelerator(cpu=True)
    prepared, _ = accelerator.prepare(loader, model)
    assert prepared is loader
    assert sum(len(labels) for _, labels in prepared) == N


def test_a_sanity_check_costs_nothing_of_the_first_epoch(serve):
    # What Lightning does: some validation batches, and a look at the first
    # of the training stream, each by an iterator that it drops.
    serve("--epochs", 2)
    loader = tsock.DataLoader("toy", 16, fields=("index",), dtype="uint8")
    look = iter(loader)
    for _ in range(2):
        next(look)
    look = None
    assert len(loader) == 13
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        next(iter(loader))
        seen = [int(i) for (index,) in loader for i in index]
        assert sorted(seen) == list(range(N)) and loader.epoch == epoch


def test_batches_for_trainers_that_want_dicts(serve):
    serve()
    loader = tsock.DataLoader(
        "toy", 16, as_dict={"image": "pixel_values", "label": "labels"}
    )

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3 * 32 * 32, 3)

        def forward(self, pixel_values, labels):
            out = self.layer(pixel_values.flatten(1))
            return torch.nn.functional.cross_entropy(out, labels)

    model = Model()
    losses = [model(**batch).item() for batch in loader]
    assert len(losses) == len(loader)


def test_lightning_reads_whole_epochs_whatever_it_peeks_at(serve, tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")
    serve()
    serve("--preset", "eval", name="toy-val")
    train = tsock.DataLoader("toy", 16, fields=("image", "label", "index"))
    val = tsock.DataLoader("toy-val", 16)

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3 * 32 * 32, 3)
            self.epochs, self.validated = {}, []

        def training_step(self, batch, _):
            images, labels, index = batch
            seen = self.epochs.setdefault(self.current_epoch, [])
            seen += index.tolist()
            out = self.layer(images.flatten(1))
            return torch.nn.functional.cross_entropy(out, labels)

        def validation_step(self, batch, _):
            self.validated.append(len(batch[1]))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    model = Model()
    next(iter(train))
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(model, train, val)
    assert sorted(model.epochs) == [0, 1, 2]
    for seen in model.epochs.values():
        assert sorted(seen) == list(range(N))
    assert train.epoch == train.stream_epoch == 2
    # Two batches of the sanity check, and three whole passes.
    assert sum(model.validated) == 2 * 16 + 3 * N


@pytest.mark.parametrize("package", ["pytorch_lightning", "lightning.pytorch"])
@pytest.mark.parametrize("order", ["philox", "sequential"])
def test_lightning_overfits_on_the_same_batches(
    serve, tmp_path, package, order
):
    lightning = pytest.importorskip(package)
    serve("--order", order)
    # Validation that is shuffled is so no longer, either.
    serve("--preset", "eval", "--order", order, name="toy-val")
    fields = ("image", "label", "index")
    train = tsock.DataLoader("toy", 16, fields=fields)
    val = tsock.DataLoader("toy-val", 16, fields=fields)

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3 * 32 * 32, 3)
            self.epochs, self.validated = {}, {}

        def loss(self, batch, epochs):
            images, labels, index = batch
            epochs.setdefault(self.current_epoch, []).extend(index.tolist())
            out = self.layer(images.flatten(1))
            return torch.nn.functional.cross_entropy(out, labels)

        def training_step(self, batch, _):
            return self.loss(batch, self.epochs)

        def validation_step(self, batch, _):
            self.loss(batch, self.validated)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    def fit(**keywords):
        model = Model()
        trainer = lightning.Trainer(
            max_epochs=4,
            num_sanity_val_steps=0,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
            **keywords
        )
        trainer.fit(model, train, val)
        return model, trainer

    model, trainer = fit(overfit_batches=3)
    for epochs in (model.epochs, model.validated):
        assert len(epochs) == 4 and len(set(epochs[0])) == 3 * 16
        assert all(seen == epochs[0] for seen in epochs.values())
    # Another trainer, and the first one while it doesn't run: whole epochs.
    model, _ = fit()
    for epochs in (model.epochs, model.validated):
        assert [sorted(epochs[e]) for e in range(4)] == [list(range(N))] * 4
        assert (epochs[0] != epochs[1]) == (order == "philox")
    del trainer


def test_hugging_faces_trainer_trains_and_evaluates(serve, tmp_path):
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")
    serve()
    serve("--preset", "eval", name="toy-val")
    names = {"image": "pixel_values", "label": "labels"}

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3 * 32 * 32, 3)
            self.seen = {True: 0, False: 0}

        def forward(self, pixel_values, labels):
            self.seen[self.training] += len(labels)
            logits = self.layer(pixel_values.flatten(1))
            loss = torch.nn.functional.cross_entropy(logits, labels)
            return {"loss": loss, "logits": logits}

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return tsock.DataLoader("toy", 16, as_dict=names)

        def get_eval_dataloader(self, eval_dataset=None):
            return tsock.DataLoader("toy-val", 16, as_dict=names)

    model = Model()
    trainer = Trainer(
        model,
        transformers.TrainingArguments(
            str(tmp_path),
            num_train_epochs=2,
            per_device_train_batch_size=16,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            eval_strategy="epoch",
            disable_tqdm=True,
        ),
        eval_dataset=[0],
    )
    trainer.train()
    assert trainer.state.epoch == 2 and trainer.state.global_step == 2 * 13
    assert model.seen == {True: 2 * N, False: 2 * N}


class Killed(Exception):
    pass


def trainer_for(transformers, folder, make, killed_at=None, **keywords):
    """Hugging Face's Trainer over make(), saving each fifth step, and what it
    trains on: the indices, step by step."""
    seen = []

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3 * 32 * 32, 3)

        def forward(self, pixel_values, labels, index):
            seen.append(index.tolist())
            out = self.layer(pixel_values.flatten(1))
            loss = torch.nn.functional.cross_entropy(out, labels)
            return {"loss": loss, "logits": out}

    class Kill(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, **_):
            if state.global_step == killed_at:
                raise Killed

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return make()

    trainer = Trainer(
        Model(),
        transformers.TrainingArguments(
            str(folder),
            num_train_epochs=3,
            per_device_train_batch_size=16,
            use_cpu=True,
            report_to=[],
            save_steps=5,
            disable_tqdm=True,
            **keywords
        ),
        callbacks=[Kill()],
    )
    return trainer, seen


@pytest.mark.parametrize("accumulated", [1, 2])
def test_a_killed_trainer_goes_on_where_it_was(serve, tmp_path, accumulated):
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")
    keywords = dict(gradient_accumulation_steps=accumulated)
    producer = serve()
    trainer, whole = trainer_for(
        transformers, tmp_path / "whole", toy, **keywords
    )
    trainer.train()
    assert len(whole) == 3 * 13
    producer.stop()
    producer = serve()
    folder = tmp_path / "killed"
    steps = 17 // accumulated
    trainer, before = trainer_for(
        transformers, folder, toy, steps, **keywords
    )
    with pytest.raises(Killed):
        trainer.train()
    # Its batches of the begun epoch are those of the unbroken run.
    assert before == whole[: len(before)]
    del trainer
    producer.stop()
    serve()  # the node was restarted
    trainer, after = trainer_for(transformers, folder, toy, **keywords)
    trainer.train(resume_from_checkpoint=True)
    saved = len(whole) - len(after)
    assert saved % 13 and 5 <= saved < len(before)
    assert before[:saved] + after == whole


def test_lightning_goes_on_in_the_middle_of_an_epoch(serve, tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")
    serve()

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3 * 32 * 32, 3)
            self.epochs = {}

        def training_step(self, batch, _):
            images, labels, index = batch
            seen = self.epochs.setdefault(self.current_epoch, [])
            seen += index.tolist()
            out = self.layer(images.flatten(1))
            return torch.nn.functional.cross_entropy(out, labels)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    def fit(checkpoint=None, **keywords):
        model = Model()
        loader = tsock.DataLoader("toy", 16, fields=("image", "label", "index"))
        trainer = lightning.Trainer(
            accelerator="cpu",
            logger=False,
            callbacks=[
                lightning.callbacks.ModelCheckpoint(
                    tmp_path, "saved", every_n_train_steps=7, save_top_k=-1
                )
            ],
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
            **keywords
        )
        trainer.fit(model, loader, ckpt_path=checkpoint)
        loader.close()
        return model.epochs, loader.resumed

    first, resumed = fit(max_steps=7)
    assert len(first[0]) == 7 * 16 and resumed is None
    rest, resumed = fit(str(tmp_path / "saved.ckpt"), max_epochs=2)
    assert resumed == "held"
    assert sorted(first[0] + rest[0]) == list(range(N))
    assert sorted(rest[1]) == list(range(N))
