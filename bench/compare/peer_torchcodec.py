# SPDX-License-Identifier: MIT
"""torchcodec's decode_jpeg, then torchvision's v2 transforms on tensors."""

import loop
import peer_tensors


def versions(options):
    import torchcodec
    from torchcodec.decoders import decode_jpeg

    return "torchcodec %s, %s" % (
        torchcodec.__version__,
        peer_tensors.versions(options),
    )


def read(path):
    from torchcodec.decoders import ImageReadMode, decode_jpeg

    return decode_jpeg(path, mode=ImageReadMode.RGB)


def stream(options):
    from torchvision import datasets

    chain = peer_tensors.chain(options.form)
    dataset = datasets.ImageFolder(options.root, chain, loader=read)
    return loop.dataloader(dataset, options)


if __name__ == "__main__":
    loop.main(versions, {"torchcodec": {}}, stream)
