# SPDX-License-Identifier: MIT
"""The prior of DALL-E 2: from a caption to CLIP's embedding of its image.

    PYTHONPATH=bindings/python python examples/prior.py DIR [EPOCHS]

DIR has what clip-retrieval writes: img_emb/img_emb_0.npy, float32 [N, 512], and
metadata/metadata_0.parquet, whose column caption has a text for each row, and so
on for 1, 2, ...  The first run tokenizes the captions into DIR/prior.table; any
number of these programs share the stream of it.
"""

import glob
import os
import re
import sys
from typing import Any, Iterator

import numpy as np
import torch

import tsock

LENGTH = 77  # tokens of a caption, as CLIP has them
BEGIN, END = 256, 257  # after the bytes: in earnest take CLIP's tokenizer
VOCABULARY = 258
WIDTH = 128
BATCH = 64


def tokenize(caption: str) -> Any:
    """Zeros are behind the end."""
    tokens = [BEGIN, *caption.encode()[: LENGTH - 2], END]
    return np.array(tokens + [0] * (LENGTH - len(tokens)), np.int32)


def number(path: str) -> int:
    return int(re.findall("[0-9]+", os.path.basename(path))[-1])


def samples(root: str) -> Iterator[dict[str, Any]]:
    """An image's embedding and its caption, file by file."""
    import pyarrow.parquet

    for path in sorted(glob.glob(root + "/img_emb/*.npy"), key=number):
        embeddings = np.load(path, mmap_mode="r")
        texts = "%s/metadata/metadata_%d.parquet" % (root, number(path))
        captions = pyarrow.parquet.read_table(texts, columns=["caption"])[0]
        if len(captions) != len(embeddings):
            sys.exit("%s and %s have not as many rows" % (path, texts))
        for embedding, caption in zip(embeddings, captions):
            yield {"embedding": embedding, "tokens": tokenize(caption.as_py())}


class Prior(torch.nn.Module):
    """What a noisy embedding was: in earnest take a transformer."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.words = torch.nn.EmbeddingBag(
            VOCABULARY, WIDTH, mode="mean", padding_idx=0
        )
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(size + WIDTH + 1, 4 * WIDTH),
            torch.nn.GELU(),
            torch.nn.Linear(4 * WIDTH, size),
        )

    def forward(self, noisy: Any, time: Any, tokens: Any) -> Any:
        return self.layers(torch.cat([noisy, time, self.words(tokens)], 1))


def main(root: str, epochs: int = 3) -> None:
    table = os.path.join(root, "prior.table")
    if not os.path.exists(table):
        tsock.index(samples(root), table)
    loader = tsock.DataLoader(
        "prior", BATCH, root=table, fields=("embedding", "tokens")
    )
    torch.manual_seed(1)
    model, adam = None, None
    for epoch in range(epochs):
        losses = []
        for embedding, tokens in loader:
            if model is None or adam is None:
                model = Prior(embedding.shape[1])
                adam = torch.optim.Adam(model.parameters(), 0.001)
            image = torch.nn.functional.normalize(embedding, dim=1)
            image = image * image.shape[1] ** 0.5  # as large as the noise
            time = torch.rand(len(image), 1)
            angle = time * torch.pi / 2
            noisy = angle.cos() * image + angle.sin() * torch.randn_like(image)
            loss = torch.nn.functional.mse_loss(
                model(noisy, time, tokens), image
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses.append(loss.item())
        print(
            "epoch %d: loss %.3f" % (epoch, sum(losses) / len(losses)),
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
