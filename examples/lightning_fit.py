# SPDX-License-Identifier: MIT
"""Lightning on a folder of images: its two loaders are tsock's.

    python examples/lightning_fit.py DIR [EPOCHS [DEVICES]]

DIR has the folders train and val, and in each a folder per class.  The first
job starts the two producers; others on the same DIR read along.  DEVICES of 2
and more are as many processes that share every epoch.
"""

import os
import sys
from typing import Literal

import lightning
import torch

import tsock


class Images(lightning.LightningDataModule):
    """Loaders are made when Lightning asks: then ranks know each other."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = os.path.abspath(root)

    def loader(self, split: Literal["train", "val"]) -> tsock.DataLoader:
        return tsock.DataLoader(
            "%s-%s" % (os.path.basename(self.root), split),
            batch_size=32,
            root=self.root,
            dataset="imagefolder",
            split=split,
        )

    def train_dataloader(self) -> tsock.DataLoader:
        return self.loader("train")

    def val_dataloader(self) -> tsock.DataLoader:
        return self.loader("val")


class Classifier(lightning.LightningModule):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 32, 7, stride=4),
            torch.nn.ReLU(),
            torch.nn.Conv2d(32, 64, 3, stride=2),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(64, classes),
        )

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.layers(images), labels)

    def validation_step(self, batch: list[torch.Tensor], _: int) -> None:
        images, labels = batch
        right = (self.layers(images).argmax(1) == labels).float().mean()
        self.log("accuracy", right, batch_size=len(labels), sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), 1e-3)


if __name__ == "__main__":
    data = Images(sys.argv[1])
    classes = len(os.listdir(os.path.join(data.root, "train")))
    epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    devices = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    trainer = lightning.Trainer(max_epochs=epochs, devices=devices)
    trainer.fit(Classifier(classes), data)
    if trainer.is_global_zero:
        found = trainer.callback_metrics["accuracy"]
        print("after %d epochs: accuracy %.3f" % (epochs, found))
