# SPDX-License-Identifier: MIT
"""WebDataset: tar files of the images, Pillow, torchvision's transforms."""

import os
import tarfile

import loop
import peer_pil


def versions(options):
    from importlib import metadata

    import webdataset  # noqa: F401

    return "WebDataset %s, %s" % (
        metadata.version("webdataset"),
        peer_pil.versions(options),
    )


def write(root, folder, shards=4):
    paths, labels = loop.files(root)
    names = []
    for shard in range(shards):
        names.append(os.path.join(folder, "%d.tar" % shard))
        with tarfile.open(names[-1], "w") as tar:
            for i in range(shard, len(paths), shards):
                tar.add(paths[i], "%06d-%d.jpg" % (i, labels[i]))
    return names


def stream(options):
    import torch
    import webdataset

    torch.set_num_threads(1)
    names = write(options.root, options.scratch)
    chain = peer_pil.chain(options.form)
    dataset = (
        webdataset.WebDataset(names, shardshuffle=len(names))
        .shuffle(1000)
        .decode("pil")
        .to_tuple("jpg", "__key__")
        .map_tuple(chain, lambda key: int(key.rpartition("-")[2]))
        .batched(options.batch)
    )
    loader = webdataset.WebLoader(
        dataset, batch_size=None, num_workers=options.threads
    )
    while True:
        yield from loader


if __name__ == "__main__":
    loop.main(versions, {"WebDataset": {}}, stream)
