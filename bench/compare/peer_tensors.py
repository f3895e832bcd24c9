# SPDX-License-Identifier: MIT
"""torchvision.io.decode_jpeg and torchvision's v2 transforms on tensors."""

import loop


def versions(options):
    import torch
    import torchvision

    return "torch %s, torchvision %s" % (
        torch.__version__,
        torchvision.__version__,
    )


def read(path):
    from torchvision import io

    return io.decode_jpeg(io.read_file(path), io.ImageReadMode.RGB)


def chain(form):
    import torch
    from torchvision.transforms import v2

    steps = [
        v2.RandomResizedCrop(loop.SIZE, antialias=True),
        v2.RandomHorizontalFlip(),
    ]
    if form == "f32":
        steps += [
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(loop.MEAN, loop.STD),
        ]
    return v2.Compose(steps)


def stream(options):
    from torchvision import datasets

    steps = chain(options.form)
    dataset = datasets.ImageFolder(options.root, steps, loader=read)
    return loop.dataloader(dataset, options)


if __name__ == "__main__":
    loop.main(versions, {"torchvision on tensors": {}}, stream)
