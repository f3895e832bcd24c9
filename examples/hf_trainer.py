# SPDX-License-Identifier: MIT
"""Hugging Face's Trainer on a folder of images: its two loaders are tsock's.

    python examples/hf_trainer.py DIR [EPOCHS]
    torchrun --nproc-per-node 2 examples/hf_trainer.py DIR [EPOCHS]

DIR has the folders train and val, and in each a folder per class.  The first
job starts the two producers; others on the same DIR read along.
"""

import os
import sys
from typing import Any, Literal

import transformers

import tsock

root = os.path.abspath(sys.argv[1])


def loader(split: Literal["train", "val"], **ranks: Any) -> tsock.DataLoader:
    return tsock.DataLoader(
        "%s-%s" % (os.path.basename(root), split),
        batch_size=32,
        root=root,
        dataset="imagefolder",
        split=split,
        as_dict={"image": "pixel_values", "label": "labels"},
        **ranks
    )


class Trainer(transformers.Trainer):
    def get_train_dataloader(self) -> Any:
        return train

    # All of it on every rank: the Trainer gathers tensors of equal sizes.
    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        return val


def accuracy(predictions: transformers.EvalPrediction) -> dict[str, float]:
    found = predictions.predictions.argmax(1) == predictions.label_ids
    return {"accuracy": float(found.mean())}


# These make the ranks known, so they come before the loaders.
arguments = transformers.TrainingArguments(
    os.environ.get("OUTPUT", "trained"),
    num_train_epochs=int(sys.argv[2]) if len(sys.argv) > 2 else 1,
    learning_rate=1e-3,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=50,
    report_to=[],
)
train = loader("train")
val = loader("val", rank=0, world_size=1)
model = transformers.ResNetForImageClassification(
    transformers.ResNetConfig(
        embedding_size=32,
        hidden_sizes=[32, 64, 128],
        depths=[1, 1, 1],
        layer_type="basic",
        num_labels=len(train.classes),
    )
)
trainer = Trainer(
    model,
    arguments,
    train_dataset=train.dataset,
    eval_dataset=val.dataset,
    compute_metrics=accuracy,
)
trainer.train()
trainer.save_model()
