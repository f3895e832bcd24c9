# SPDX-License-Identifier: MIT
"""The chains of recipes.py as other packages make them.

Each function here returns a dictionary: the chain's name to what turns a
file's bytes (or, of cifar's, a picture) into a sample, as bytes.  Chains that
a package hasn't got are left out of it.  ImportError: the package isn't there.
"""

import io
import math
import os
import random

SIZE = 224

# albumentations asks the network for a newer one unless it is told not to.
os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")


def pillow_chains():
    """torchvision's transforms on pictures of Pillow."""
    from PIL import Image, ImageFilter
    from torchvision import transforms as t

    class Blur:
        """SimCLR's, as MoCo's and DINO's code has it."""

        def __call__(self, image):
            radius = random.uniform(0.1, 2.0)
            return image.filter(ImageFilter.GaussianBlur(radius))

    def of(*steps, views=1):
        chain = t.Compose(steps)

        def make(data):
            image = Image.open(io.BytesIO(data)).convert("RGB")
            return [chain(image) for _ in range(views)]

        return make

    def after_crop(*steps, views=1):
        crop = t.RandomResizedCrop(SIZE)
        return of(crop, t.RandomHorizontalFlip(), *steps, views=views)

    cubic = t.InterpolationMode.BICUBIC
    simclr = [
        t.RandomApply([t.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
        t.RandomGrayscale(p=0.2),
        t.RandomApply([Blur()], p=0.5),
    ]
    small = t.Compose(
        [t.RandomCrop(32, padding=4), t.RandomHorizontalFlip()]
    )
    return {
        "crop, flip": after_crop(),
        "timm default": after_crop(t.ColorJitter(0.4, 0.4, 0.4)),
        "RandAugment(2, 9)": after_crop(t.RandAugment(2, 9)),
        "TrivialAugmentWide": after_crop(t.TrivialAugmentWide()),
        "AutoAugment": after_crop(t.AutoAugment()),
        "AugMix": after_crop(t.AugMix()),
        "bicubic crop, flip": of(
            t.RandomResizedCrop(SIZE, interpolation=cubic),
            t.RandomHorizontalFlip(),
        ),
        "SimCLR, one view": after_crop(*simclr),
        "SimCLR, two views": after_crop(*simclr, views=2),
        "cifar": lambda pixels: small(Image.fromarray(pixels)),
    }


def tensor_chains():
    """torchvision.transforms.v2 on what torchvision.io decodes."""
    import torch
    from torchvision import io as tio
    from torchvision.transforms import v2

    def of(*steps, views=1):
        chain = v2.Compose(steps)

        def make(data):
            image = tio.decode_jpeg(
                torch.frombuffer(data, dtype=torch.uint8),
                tio.ImageReadMode.RGB,
            )
            return [chain(image) for _ in range(views)]

        return make

    def after_crop(*steps, views=1):
        crop = v2.RandomResizedCrop(SIZE)
        return of(crop, v2.RandomHorizontalFlip(), *steps, views=views)

    simclr = [
        v2.RandomApply([v2.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
        v2.RandomGrayscale(p=0.2),
        v2.RandomApply([v2.GaussianBlur(23, (0.1, 2.0))], p=0.5),
    ]
    small = v2.Compose(
        [v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip()]
    )
    return {
        "crop, flip": after_crop(),
        "timm default": after_crop(v2.ColorJitter(0.4, 0.4, 0.4)),
        "RandAugment(2, 9)": after_crop(v2.RandAugment(2, 9)),
        "TrivialAugmentWide": after_crop(v2.TrivialAugmentWide()),
        "AutoAugment": after_crop(v2.AutoAugment()),
        "AugMix": after_crop(v2.AugMix()),
        "bicubic crop, flip": of(
            v2.RandomResizedCrop(
                SIZE, interpolation=v2.InterpolationMode.BICUBIC
            ),
            v2.RandomHorizontalFlip(),
        ),
        "SimCLR, one view": after_crop(*simclr),
        "SimCLR, two views": after_crop(*simclr, views=2),
        "cifar": lambda pixels: small(
            torch.from_numpy(pixels).permute(2, 0, 1)
        ),
    }


def timm_chains():
    """timm's own transforms, on Pillow."""
    from PIL import Image
    from timm.data.auto_augment import (
        augment_and_mix_transform,
        auto_augment_transform,
        rand_augment_transform,
    )
    from timm.data.transforms import RandomResizedCropAndInterpolation
    from torchvision import transforms as t

    def after_crop(*steps):
        chain = t.Compose(
            [
                RandomResizedCropAndInterpolation(
                    SIZE, interpolation="random"
                ),
                t.RandomHorizontalFlip(),
                *steps,
            ]
        )
        return lambda data: chain(
            Image.open(io.BytesIO(data)).convert("RGB")
        )

    def params(**more):
        return {
            "translate_const": int(SIZE * 0.45),
            "img_mean": (124, 116, 104),
            **more,
        }

    rand = rand_augment_transform("rand-m9-mstd0.5-inc1", params())
    mix = augment_and_mix_transform(
        "augmix-m3-w3", params(translate_pct=0.3)
    )
    auto = auto_augment_transform("original-mstd0.5", params())
    return {
        "timm default": after_crop(t.ColorJitter(0.4, 0.4, 0.4)),
        "timm rand-m9": after_crop(rand),
        "timm augmix-m3-w3": after_crop(mix),
        "timm original-mstd0.5": after_crop(auto),
    }


def albumentations_chains():
    """albumentations on what OpenCV decodes; no antialias in the resize."""
    import albumentations as a
    import cv2
    import numpy as np

    def of(*steps):
        chain = a.Compose(list(steps))

        def make(data):
            image = cv2.imdecode(
                np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR_RGB
            )
            return chain(image=image)["image"]

        return make

    def after_crop(*steps, filter=cv2.INTER_LINEAR):
        return of(
            a.RandomResizedCrop((SIZE, SIZE), interpolation=filter),
            a.HorizontalFlip(p=0.5),
            *steps,
        )

    def jitter(b, c, s, h, p):
        return a.ColorJitter(
            brightness=(1 - b, 1 + b),
            contrast=(1 - c, 1 + c),
            saturation=(1 - s, 1 + s),
            hue=(-h, h),
            p=p,
        )

    small = a.Compose(
        [
            a.Pad(4),
            a.RandomCrop(32, 32),
            a.HorizontalFlip(p=0.5),
        ]
    )
    return {
        "crop, flip": after_crop(),
        "timm default": after_crop(jitter(0.4, 0.4, 0.4, 0, 1)),
        "bicubic crop, flip": after_crop(filter=cv2.INTER_CUBIC),
        "SimCLR, one view": after_crop(
            jitter(0.8, 0.8, 0.8, 0.2, 0.8),
            a.ToGray(p=0.2),
            a.GaussianBlur(blur_limit=(23, 23), sigma_limit=(0.1, 2), p=0.5),
        ),
        "cifar": lambda pixels: small(image=pixels)["image"],
    }


def kornia_chains():
    """kornia-rs; it has no random resized crop: the box is drawn here."""
    import kornia_rs as k

    jitter = k.augmentations.ColorJitter(0.4, 0.4, 0.4, 0.0)

    def box(width, height):
        for _ in range(10):
            area = width * height * random.uniform(0.08, 1.0)
            ratio = math.exp(
                random.uniform(math.log(3 / 4), math.log(4 / 3))
            )
            w = round(math.sqrt(area * ratio))
            h = round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                break
        else:
            w = h = min(width, height)
        x, y = random.randint(0, width - w), random.randint(0, height - h)
        return x, y, w, h

    def crop(data):
        image = k.image.Image.decode(bytes(data))
        image = image.crop(*box(image.width, image.height))
        image = image.resize(SIZE, SIZE, "bilinear")
        return image.flip_horizontal() if random.random() < 0.5 else image

    return {
        "crop, flip": crop,
        "timm default": lambda data: jitter(crop(data)),
    }


def versions():
    names = "PIL torch torchvision timm cv2 albumentations kornia_rs"
    found = []
    for name in names.split():
        try:
            module = __import__(name)
            found.append("%s %s" % (name, module.__version__))
        except ImportError:
            pass  # peers() of recipes.py says so
    return found


PEERS = {
    "torchvision, Pillow": pillow_chains,
    "torchvision, tensors": tensor_chains,
    "timm": timm_chains,
    "albumentations": albumentations_chains,
    "kornia-rs": kornia_chains,
}
