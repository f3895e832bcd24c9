# SPDX-License-Identifier: MIT
"""torchvision's recipe for ImageNet: Pillow, transforms, DataLoader."""

import loop


def versions(options):
    import PIL
    import torch
    import torchvision

    return "torch %s, torchvision %s, Pillow %s" % (
        torch.__version__,
        torchvision.__version__,
        PIL.__version__,
    )


def chain(form):
    from torchvision import transforms as t

    steps = [t.RandomResizedCrop(loop.SIZE), t.RandomHorizontalFlip()]
    if form == "u8":
        return t.Compose(steps + [t.PILToTensor()])
    return t.Compose(
        steps + [t.ToTensor(), t.Normalize(loop.MEAN, loop.STD)]
    )


def stream(options):
    from torchvision import datasets

    dataset = datasets.ImageFolder(options.root, chain(options.form))
    return loop.dataloader(dataset, options)


if __name__ == "__main__":
    loop.main(versions, {"torchvision on Pillow": {}}, stream)
