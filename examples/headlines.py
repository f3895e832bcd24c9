# SPDX-License-Identifier: MIT
"""Tell the classes of short texts apart: HuffPost's headlines, arXiv's titles.

    PYTHONPATH=bindings/python python examples/headlines.py DATA.csv [EPOCHS]

DATA.csv has a header with the columns text and label, the name of a class.  The
first run tokenizes the texts into DATA.csv.table; any number of these programs
share the stream of it.  A batch is padded to its longest text.
"""

import csv
import os
import sys
from typing import Any, Iterator

import torch

import tsock

VOCABULARY = 257  # 0 is padding, then bytes: in earnest DistilBERT's tokenizer


def tokenize(text: str) -> list[int]:
    return [1 + byte for byte in text.encode()]


def rows(path: str) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def samples(path: str) -> Iterator[dict[str, Any]]:
    data = rows(path)
    numbers = {name: i for i, name in enumerate(classes(data))}
    for row in data:
        yield {
            "input_ids": tokenize(row["text"]),
            "label": numbers[row["label"]],
        }


def classes(data: list[dict[str, str]]) -> list[str]:
    return sorted({row["label"] for row in data})


class Model(torch.nn.Module):
    """The mean of a text's tokens: in earnest take DistilBERT."""

    def __init__(self, number_of_classes: int) -> None:
        super().__init__()
        self.tokens = torch.nn.EmbeddingBag(
            VOCABULARY, 64, mode="mean", padding_idx=0
        )
        self.head = torch.nn.Linear(64, number_of_classes)

    def forward(self, input_ids: Any) -> Any:
        return self.head(self.tokens(input_ids))


def main(path: str, epochs: int = 3) -> None:
    table = path + ".table"
    if not os.path.exists(table):
        tsock.index(samples(path), table)
    loader = tsock.DataLoader(
        root=table, batch_size=32, fields=("input_ids", "label")
    )
    torch.manual_seed(1)
    model = Model(len(classes(rows(path))))
    adam = torch.optim.Adam(model.parameters(), 0.01)
    for epoch in range(epochs):
        losses, right, count = [], 0, 0
        for input_ids, labels in loader:
            logits = model(input_ids)
            loss = torch.nn.functional.cross_entropy(logits, labels)
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses.append(loss.item())
            right += int((logits.argmax(1) == labels).sum())
            count += len(labels)
        print(
            "epoch %d: loss %.3f, %.0f %% right"
            % (epoch, sum(losses) / len(losses), 100 * right / count),
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
