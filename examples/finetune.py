# SPDX-License-Identifier: MIT
"""Fine-tune a language model on instructions, as Alpaca's are.

    PYTHONPATH=bindings/python python examples/finetune.py DATA.jsonl [EPOCHS]

A line of DATA.jsonl is {"instruction": ..., "output": ...}.  The first run
tokenizes them once, into DATA.jsonl.table; any number of these programs share
the stream of it.  A batch is padded to its longest sample.
"""

import json
import os
import sys
from typing import Any, Iterator

import torch

import tsock

VOCABULARY = 257  # bytes, and the end: in earnest take a tokenizer
END = 256
IGNORED = -100  # by cross_entropy()


def tokenize(text: str) -> list[int]:
    return list(text.encode())


def samples(path: str) -> Iterator[dict[str, list[int]]]:
    """Token numbers; labels are the answer's tokens alone."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            row = json.loads(line)
            prompt = tokenize(row["instruction"] + "\n")
            answer = tokenize(row["output"]) + [END]
            yield {
                "input_ids": prompt + answer,
                "labels": [IGNORED] * len(prompt) + answer,
            }


class Model(torch.nn.Module):
    """It sees one token back: in earnest take a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, 32)
        self.head = torch.nn.Linear(32, VOCABULARY)

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        hidden = self.embedding(input_ids) * attention_mask[..., None]
        return self.head(hidden)


def main(path: str, epochs: int = 3) -> None:
    table = path + ".table"
    if not os.path.exists(table):
        tsock.index(samples(path), table, pad={"labels": IGNORED})
    loader = tsock.DataLoader(
        root=table,
        batch_size=8,
        fields=("input_ids", "labels", "input_ids_length"),
    )
    torch.manual_seed(1)
    model = Model()
    adam = torch.optim.Adam(model.parameters(), 0.01)
    for epoch in range(epochs):
        losses = []
        for input_ids, labels, lengths in loader:
            mask = torch.arange(input_ids.shape[1]) < lengths[:, None]
            logits = model(input_ids, mask)
            loss = torch.nn.functional.cross_entropy(
                logits[:, :-1].flatten(0, 1),
                labels[:, 1:].flatten(),
                ignore_index=IGNORED,
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses.append(float(loss.detach()))
        print(
            "epoch %d: loss %.3f, last batch of %d tokens each"
            % (epoch, sum(losses) / len(losses), input_ids.shape[1]),
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
