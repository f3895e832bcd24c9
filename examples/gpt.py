# SPDX-License-Identifier: MIT
"""A language model on token files, as nanoGPT and llm.c write them.

    PYTHONPATH=bindings/python python examples/gpt.py DIR [LENGTH [EPOCHS [END]]]

DIR has train.bin and val.bin: uint16 token numbers, one after the other, with
or without llm.c's head.  A sample has LENGTH + 1 tokens: the first LENGTH are
the input, the last LENGTH the targets.  With END, the token at the end of each
document, samples are of whole documents, and no document's last token has the
next one's first as its target.  Any number of these programs share the stream.
"""

import sys
from typing import Any, Iterator, Optional

import torch

import tsock

VOCABULARY = 50304  # GPT-2's, rounded up


def network() -> torch.nn.Module:
    """It sees one token back: in earnest take a transformer."""
    return torch.nn.Sequential(
        torch.nn.Embedding(VOCABULARY, 32), torch.nn.Linear(32, VOCABULARY)
    )


def pairs(
    loader: tsock.DataLoader,
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs and targets, int64 [batch, LENGTH] each; -100 is no target."""
    for tokens, *documents in loader:
        tokens = tokens.long()
        x, y = tokens[:, :-1], tokens[:, 1:]
        for of in documents:  # which one each token is of; -1 is of none
            same = (of[:, :-1] == of[:, 1:]) & (of[:, 1:] >= 0)
            y = y.masked_fill(~same, -100)
        yield x, y


def main(
    root: str, length: int = 1024, epochs: int = 1, end: Optional[int] = None
) -> None:
    options: dict[str, Any] = dict(
        root=root, dataset="tokens", schema="uint16[%d]" % length
    )
    if end is not None:
        options.update(documents="pack", end_token=end)
    train = tsock.DataLoader("text", 8, **options)
    val = tsock.DataLoader("text-val", 8, split="val", **options)
    torch.manual_seed(1)
    model = network()
    adam = torch.optim.Adam(model.parameters(), 0.01)

    def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(
            model(x).flatten(0, 1), y.flatten()
        )

    for epoch in range(epochs):
        for x, y in pairs(train):
            loss = loss_of(x, y)
            adam.zero_grad()
            loss.backward()
            adam.step()
        with torch.no_grad():
            losses = [float(loss_of(x, y)) for x, y in pairs(val)]
        print(
            "epoch %d: loss %.3f on %d samples of val.bin"
            % (epoch, sum(losses) / len(losses), len(val.dataset)),
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
