# SPDX-License-Identifier: MIT
"""MosaicML Streaming: MDS shards of the JPEG files, Pillow, transforms."""

import loop
import peer_pil


def versions(options):
    from importlib import metadata

    import streaming  # noqa: F401

    return "Streaming %s, %s" % (
        metadata.version("mosaicml-streaming"),
        peer_pil.versions(options),
    )


def write(root, folder):
    from streaming import MDSWriter

    columns = {"image": "bytes", "label": "int"}
    with MDSWriter(out=folder, columns=columns) as out:
        for path, label in zip(*loop.files(root)):
            with open(path, "rb") as f:
                out.write({"image": f.read(), "label": label})


def dataset(options):
    import io

    from PIL import Image
    from streaming import StreamingDataset

    class Images(StreamingDataset):
        def __init__(self):
            super().__init__(
                local=options.scratch, shuffle=True, batch_size=options.batch
            )
            self.chain = peer_pil.chain(options.form)

        def __getitem__(self, i):
            sample = super().__getitem__(i)
            image = Image.open(io.BytesIO(sample["image"])).convert("RGB")
            return self.chain(image), sample["label"]

    return Images()


def stream(options):
    import torch

    torch.set_num_threads(1)
    write(options.root, options.scratch)
    loader = torch.utils.data.DataLoader(
        dataset(options),
        batch_size=options.batch,
        num_workers=options.threads,
    )
    while True:
        yield from loader


if __name__ == "__main__":
    loop.main(versions, {"Streaming": {}}, stream)
