# SPDX-License-Identifier: MIT
"""Contrastive learning of audio, as CLMR does it, and tags by what was learned.

    PYTHONPATH=bindings/python python examples/audio.py DIR [LABELS [EPOCHS]]

DIR has audio files of 22,050 Hz, and LABELS is how the file of their tags is
read, such as MagnaTagATune's, where each tag is a column of zeros and ones:
annotations_final.csv:path=mp3_path,label=guitar+piano+techno,as=float

A sample is two random crops of a file, each augmented on its own.  Started
again with other models, the program reads the same stream: files are read and
crops augmented once for all of them.
"""

import sys

import torch

import tsock

RATE = 22050
FRAMES = 3**8  # CLMR: 3 ** 10, or 2.7 s
BATCH = 16
TEMPERATURE = 0.5
RECIPE = """
RandomResizedCrop(n_samples={0})
RandomApply([PolarityInversion()], p=0.8)
RandomApply([Noise()], p=0.01)
RandomApply([Gain()], p=0.3)
RandomApply([HighLowPass(sample_rate={1})], p=0.8)
RandomApply([Delay(sample_rate={1})], p=0.3)
""".format(FRAMES, RATE)


def encoder() -> torch.nn.Sequential:
    """SampleCNN's idea: each layer takes a third of the frames."""
    layers: list[torch.nn.Module] = []
    for taken, given in ((1, 16), (16, 16), (16, 32), (32, 32), (32, 64)):
        layers += [
            torch.nn.Conv1d(taken, given, 3, stride=3),
            torch.nn.BatchNorm1d(given),
            torch.nn.ReLU(),
        ]
    layers += [torch.nn.AdaptiveMaxPool1d(1), torch.nn.Flatten()]
    return torch.nn.Sequential(*layers)


def contrast(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """NT-Xent: the other crop of a file is to be told from all others."""
    both = torch.nn.functional.normalize(torch.cat((one, other)), dim=1)
    alike = both @ both.T / TEMPERATURE
    alike.fill_diagonal_(-1e9)
    n = len(one)
    partner = torch.cat((torch.arange(n, 2 * n), torch.arange(n)))
    return torch.nn.functional.cross_entropy(alike, partner)


def learn(root: str, epochs: int) -> torch.nn.Sequential:
    """An encoder of audio, learned without labels."""
    pairs = tsock.DataLoader(
        name="audio-pairs",
        root=root,
        dataset="audio",
        schema="float32[1,%d]@%d" % (FRAMES, RATE),
        transform=RECIPE,
        views=2,
        batch_size=BATCH,
        fields=("audio", "audio2"),
    )
    model = encoder()
    head = torch.nn.Sequential(
        torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)
    )
    adam = torch.optim.Adam([*model.parameters(), *head.parameters()], 3e-3)
    for epoch in range(epochs):
        total = 0.0
        for one, other in pairs:
            loss = contrast(head(model(one)), head(model(other)))
            adam.zero_grad()
            loss.backward()
            adam.step()
            total += loss.item()
        print("epoch %d: loss %.3f" % (epoch, total / len(pairs)))
    return model.eval()


def probe(
    root: str, labels: str, model: torch.nn.Module, epochs: int
) -> None:
    """A line between those that have a tag and those that don't."""
    tagged = tsock.DataLoader(
        name="audio-tags",
        root=root,
        dataset="audio",
        schema="float32[1,%d]@%d" % (FRAMES, RATE),
        labels=labels,
        batch_size=BATCH,
        fields=("audio", "label"),
    )
    line, adam = None, None
    for _ in range(epochs):
        right = count = 0
        for audio, tags in tagged:
            if line is None or adam is None:
                line = torch.nn.Linear(64, tags.shape[1])
                adam = torch.optim.Adam(line.parameters(), 3e-2)
            with torch.no_grad():
                features = model(audio)
            said = line(features)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                said, tags
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
            right += int(((said > 0) == (tags > 0.5)).sum())
            count += tags.numel()
    print("%.1f %% of the tags right" % (100 * right / count))


def main(root: str, labels: str = "", epochs: int = 3) -> None:
    torch.manual_seed(1)
    model = learn(root, epochs)
    if labels:
        probe(root, labels, model, epochs)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], "".join(sys.argv[2:3]), *map(int, sys.argv[3:]))
