# SPDX-License-Identifier: MIT
"""Click-through rates: a DLRM on Criteo's binary records.

    PYTHONPATH=bindings/python python examples/dlrm.py DIR [EPOCHS]

DIR has files of records of 160 bytes, little-endian: int32 label, 13 int32
numbers, 26 int32 categories.  Any number of these programs share the stream:
the records are shuffled and copied once for all of them.
"""

import sys

import torch

import tsock

BATCH = 1024
SCHEMA = "label:int32,dense:int32[13],category:int32[26]"
ROWS, WIDTH = 1000, 16  # of each embedding: categories by their remainder


class Dlrm(torch.nn.Module):
    """Numbers and embeddings of categories, and their products by pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.EmbeddingBag(26 * ROWS, WIDTH, mode="sum")
        self.bottom = torch.nn.Linear(13, WIDTH)
        self.top = torch.nn.Sequential(
            torch.nn.Linear(WIDTH + 27 * 26 // 2, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 1),
        )
        self.register_buffer("begins", ROWS * torch.arange(26))

    def forward(
        self, dense: torch.Tensor, category: torch.Tensor
    ) -> torch.Tensor:
        x = torch.relu(self.bottom(torch.log1p(dense.clamp(min=0).float())))
        rows = category.remainder(ROWS) + self.begins
        sparse = self.embed(rows.reshape(-1, 1)).reshape(-1, 26, WIDTH)
        all_ = torch.cat([x[:, None], sparse], 1)
        products = all_ @ all_.transpose(1, 2)
        i, k = torch.tril_indices(27, 27, -1)
        return self.top(torch.cat([x, products[:, i, k]], 1)).squeeze(1)


def main(root: str, epochs: int = 2) -> None:
    loader = tsock.DataLoader(
        "criteo",
        BATCH,
        root=root,
        dataset="records",
        schema=SCHEMA,
        max_batch=BATCH,
        fields=("label", "dense", "category"),
    )
    torch.manual_seed(1)
    model = Dlrm()
    adam = torch.optim.Adam(model.parameters(), 0.003)
    for epoch in range(epochs):
        total = 0.0
        for label, dense, category in loader:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                model(dense, category), label.float()
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
            total += float(loss) * len(label)
        print(
            "epoch %d: loss %.3f" % (epoch, total / len(loader.dataset)),
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
