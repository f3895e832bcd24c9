# SPDX-License-Identifier: MIT
"""Serve a Dataset of your own, with your own augmentation, to any job.

    python serve_dataset.py serve tones 3       # in one process, 3 epochs
    python serve_dataset.py train tones 100     # in each job: its batch size

The data set is made up: short tones with noise, each with its pitch, its name
and its index.  Workers of PyTorch's DataLoader make the samples once, whatever
the number of jobs; each job takes batches of its own size.
"""

import math
import sys
from typing import Any

import torch

import tsock


class Tones(torch.utils.data.Dataset[dict[str, Any]]):
    rate, samples = 8000, 4000

    def __len__(self) -> int:
        return 600

    def __getitem__(self, index: int) -> dict[str, Any]:
        pitch = 220.0 * 2 ** (index % 24 / 12)
        time = torch.arange(self.samples) / self.rate
        wave = torch.sin(2 * math.pi * pitch * time)
        return {
            "wave": wave + 0.1 * torch.randn(self.samples),
            "pitch": torch.tensor(pitch),
            "name": "tone %d" % index,
            "index": index,
        }


def serve(name: str, epochs: int) -> None:
    loader = torch.utils.data.DataLoader(
        Tones(), batch_size=32, shuffle=True, num_workers=2
    )
    with tsock.serve(loader, name, epochs=epochs) as server:
        server.run()  # until every job has read the last epoch, or Ctrl-C
        stats = server.stats()
    print(
        "served %d samples, waited %.1f s for the loader"
        % (stats["produced"], stats["loader_wait"])
    )


def train(name: str, batch_size: int) -> None:
    loader = tsock.DataLoader(name, batch_size)
    while True:
        seen = set()
        try:
            for batch in loader:  # a dict, as the Dataset's samples are
                seen.update(batch["index"].tolist())
                assert batch["name"][0] == "tone %d" % batch["index"][0]
        except tsock.StreamEnded:
            return
        print("epoch %s: %d tones" % (loader.epoch, len(seen)))


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("serve", "train"):
        sys.exit(__doc__)
    {"serve": serve, "train": train}[sys.argv[1]](
        sys.argv[2], int(sys.argv[3])
    )
