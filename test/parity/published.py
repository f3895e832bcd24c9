# SPDX-License-Identifier: MIT
"""Recipes as their authors have published them, made of the objects that their
programs make: torchvision's references, timm's, SimCLR's, DINO's and FixRes's.
"""
import random
from itertools import groupby

import torch
from PIL import Image, ImageFilter, ImageOps
from torchvision import transforms as v1
from torchvision.transforms import v2

from tsock.recipe import text_of

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BILINEAR, BICUBIC = v1.InterpolationMode.BILINEAR, v1.InterpolationMode.BICUBIC
ENDS = ("ToTensor", "MaybeToTensor", "PILToTensor", "ConvertImageDtype",
        "ToDtype", "Normalize", "ToPureTensor")


class Blur:
    """The blur of MoCo v2, SimCLR on Pillow and DINO: a radius is drawn."""

    def __init__(self, p):
        self.p = p

    def __call__(self, image):
        if random.random() > self.p:
            return image
        return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2)))


class Solarization:
    """DINO's."""

    def __init__(self, p):
        self.p = p

    def __call__(self, image):
        return ImageOps.solarize(image) if random.random() < self.p else image


def tensors(package):
    """The end of torchvision's references on Pillow's images."""
    steps = [package.PILToTensor(),
             v1.ConvertImageDtype(torch.float) if package is v1
             else v2.ToDtype(torch.float, scale=True)]
    return steps + [package.Normalize(MEAN, STD)]


def references(package, size=224, policy=None, erase=0.0):
    """references/classification: training, with its options."""
    steps = [package.RandomResizedCrop(size, interpolation=BILINEAR,
                                       antialias=True),
             package.RandomHorizontalFlip(0.5)]
    if policy == "ra":
        steps.append(package.RandAugment(interpolation=BILINEAR, magnitude=9))
    elif policy == "ta_wide":
        steps.append(package.TrivialAugmentWide(interpolation=BILINEAR))
    elif policy:
        steps.append(package.AutoAugment(
            policy=v1.AutoAugmentPolicy(policy), interpolation=BILINEAR))
    steps += tensors(package)
    if erase:
        steps.append(package.RandomErasing(p=erase))
    if package is v2:
        steps.append(v2.ToPureTensor())
    return package.Compose(steps)


def references_eval(package, size=224, resize=232):
    return package.Compose([
        package.Resize(resize, interpolation=BILINEAR, antialias=True),
        package.CenterCrop(size), *tensors(package)])


def normalized(package, *steps):
    return package.Compose([*steps, *tensors(package)])


def fixres(package, size=224):
    """Its training, of kind "full"."""
    return normalized(package, package.RandomResizedCrop(size),
                      package.RandomHorizontalFlip(),
                      package.ColorJitter(0.3, 0.3, 0.3))


def fixres_eval(package, size=288):
    """For pictures that are at least as wide as high: of others its own Resize
    makes size the height, and they get a black border."""
    return normalized(package, package.Resize(int(256 / 224 * size)),
                      package.CenterCrop(size))


def simclr(package, size=224, s=1.0):
    """A view: its paper's appendix A, in whose words torchvision is, too."""
    jitter = package.ColorJitter(0.8 * s, 0.8 * s, 0.8 * s, 0.2 * s)
    return package.Compose([
        package.RandomResizedCrop(size), package.RandomHorizontalFlip(),
        package.RandomApply([jitter], p=0.8), package.RandomGrayscale(p=0.2),
        Blur(0.5), *tensors(package)[:2]])


def dino(size=224, local=96, global_scale=(0.4, 1.0), local_scale=(0.05, 0.4)):
    """main_dino.py: both global views, and the local ones."""
    colours = v1.Compose([
        v1.RandomHorizontalFlip(p=0.5),
        v1.RandomApply([v1.ColorJitter(brightness=0.4, contrast=0.4,
                                       saturation=0.2, hue=0.1)], p=0.8),
        v1.RandomGrayscale(p=0.2)])

    def crop(size, scale):
        return v1.RandomResizedCrop(size, scale=scale,
                                    interpolation=Image.BICUBIC)

    return [normalized(v1, crop(size, global_scale), colours, Blur(1.0)),
            normalized(v1, crop(size, global_scale), colours, Blur(0.1),
                       Solarization(0.2)),
            *8 * [normalized(v1, crop(local, local_scale), colours,
                             Blur(0.5))]]


def cifar(package):
    return normalized(package, package.RandomCrop(32, padding=4),
                      package.RandomHorizontalFlip())


def timm(size=224, **options):
    """With the options of timm's train.py, and the defaults of the others."""
    from timm.data import create_transform

    given = dict(interpolation="random", color_jitter=0.4, **options)
    return create_transform(size, is_training=True, **given)


def deit(size=224):
    """main.py's options of DeiT, which are timm's."""
    from timm.data import create_transform

    return create_transform(
        size, is_training=True, color_jitter=0.3, interpolation="bicubic",
        auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25, re_mode="pixel",
        re_count=1)


def deit_eval(size=224):
    return normalized(
        v1, v1.Resize(int(size / 0.875), interpolation=BICUBIC),
        v1.CenterCrop(size))


def is_end(step):
    return type(step).__name__ in ENDS


def flat(transform):
    for step in transform.transforms:
        if type(step).__name__ == "Compose":
            yield from flat(step)
        else:
            yield step


def written(step):
    if isinstance(step, Blur):
        return f"PILGaussianBlur({step.p}, (0.1, 2))"
    if isinstance(step, Solarization):
        return f"RandomSolarize(128, {step.p})"
    return step


def text(views):
    """The recipe of a transform, or of the views that several make."""
    if not isinstance(views, list):
        return text_of([written(step) for step in flat(views)])
    texts = [text_of([written(step) for step in flat(view)
                      if not is_end(step)]) for view in views]
    return "Views(%s)" % ", ".join(f"{len(list(alike))} * [{one}]"
                                   for one, alike in groupby(texts))
