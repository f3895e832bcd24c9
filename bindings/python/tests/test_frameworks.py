# SPDX-License-Identifier: MIT
"""What frameworks do with a loader; skipped where one isn't installed."""

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


def test_accelerates_skip_first_batches(serve):
    accelerate = pytest.importorskip("accelerate")
    transforms = pytest.importorskip("torchvision.transforms")
    serve()
    loader = tsock.DataLoader("toy", 16)
    loader.dataset.transform = transforms.Compose(
        [transforms.Resize((32, 32)), transforms.ToTensor()]
    )
    whole = [labels.tolist() for _, labels in loader]
    # The epoch that comes next is another one.
    wanted = list(loader.batch_sampler)[3:]
    rest = accelerate.skip_first_batches(loader, 3)
    targets = loader.dataset.targets
    seen = [labels.tolist() for _, labels in rest]
    assert seen == [[targets[i] for i in batch] for batch in wanted]
    assert len(rest) == len(loader) - 3 == len(whole) - 3


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
