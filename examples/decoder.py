# SPDX-License-Identifier: MIT
"""The decoder of DALL-E 2: from CLIP's embedding of an image to the image.

    PYTHONPATH=bindings/python python examples/decoder.py DIR [EPOCHS]

DIR has WebDataset's tar files, as img2dataset and clip-retrieval make them: for
each image KEY.jpg its embedding KEY.npy, float32.  Any number of these programs
share the stream.
"""

import sys
from typing import Any

import torch

import tsock

SIZE = 32  # pixels: the first of the decoder's networks has 64
BATCH = 64


class Decoder(torch.nn.Module):
    """What a noisy image was: in earnest take a U-Net."""

    def __init__(self, embedding: int) -> None:
        super().__init__()
        pixels = 3 * SIZE * SIZE
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(pixels + embedding + 1, 256),
            torch.nn.GELU(),
            torch.nn.Linear(256, pixels),
        )

    def forward(self, noisy: Any, time: Any, embedding: Any) -> Any:
        x = torch.cat([noisy.flatten(1), time, embedding], 1)
        return self.layers(x).view_as(noisy)


def main(root: str, epochs: int = 3) -> None:
    loader = tsock.DataLoader(
        "decoder",
        BATCH,
        root=root,
        dataset="webdataset",
        labels=root + ":fields=.npy",
        transform="Resize(%d) CenterCrop(%d)" % (SIZE, SIZE),
        normalize=((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),  # -1 to 1
        fields=("image", "npy"),
    )
    torch.manual_seed(1)
    model, adam = None, None
    for epoch in range(epochs):
        losses = []
        for image, embedding in loader:
            if model is None or adam is None:
                model = Decoder(embedding.shape[1])
                adam = torch.optim.Adam(model.parameters(), 0.001)
            time = torch.rand(len(image), 1)
            angle = (time * torch.pi / 2)[..., None, None]
            noisy = angle.cos() * image + angle.sin() * torch.randn_like(image)
            loss = torch.nn.functional.mse_loss(
                model(noisy, time, embedding), image
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
