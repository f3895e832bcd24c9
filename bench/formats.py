# SPDX-License-Identifier: MIT
"""What samples take from image files of each format, on one core.

The photos are converted by Pillow.  From a file's bytes in memory to a sample
of 224 x 224, u8, by RandomResizedCrop and RandomHorizontalFlip: the producer's
code (recipes.c) beside torchvision's transforms on Pillow.  Both are pinned to
one CPU and take turns; what is counted is CPU time.  A ratio is Pillow's time
divided by tsock's in the same pass.

usage: formats.py PROGRAM DIR
"""

import os
import random
import sys
import tempfile

import recipes
import recipes_peers
from rows import head

CASES = {
    "WebP, quality 80": ("WEBP", dict(quality=80)),
    "WebP, lossless": ("WEBP", dict(lossless=True, method=2)),
    "PNG": ("PNG", {}),
    "TIFF": ("TIFF", {}),
    "TIFF, LZW": ("TIFF", dict(compression="tiff_lzw")),
    "TIFF, Deflate": ("TIFF", dict(compression="tiff_adobe_deflate")),
    "PPM": ("PPM", {}),
    "GIF": ("GIF", {}),
    "BMP": ("BMP", {}),
    "AVIF": ("AVIF", dict(quality=75, speed=8)),
}


def convert(paths, folder, kind, options):
    from PIL import Image

    made = []
    for i, path in enumerate(paths):
        made.append(os.path.join(folder, "%d.%s" % (i, kind.lower())))
        with Image.open(path) as image:
            image.convert("RGB").save(made[-1], kind, **options)
    return made


def measure(program, case, paths):
    native = recipes.Native(program, paths)
    data = [recipes.read(p) for p in paths]
    chain = recipes_peers.pillow_chains()["crop, flip"]
    arms = {
        "tsock": lambda p: native.ask("files %d %s" % (p, recipes.CROP)) / 1e6,
        "Pillow": lambda p: recipes.cpu(chain, data),
    }
    values = recipes.in_turns(arms, recipes.PASSES)
    recipes.report(case, values, "us/sample", 1e6, "formats")
    native.close()


def main():
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    random.seed(1)
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    paths = recipes.find(sys.argv[2])
    if not paths:
        sys.exit("failed: no JPEG in %s" % sys.argv[2])
    print("%d photos of %s" % (len(paths), sys.argv[2]))
    head("formats: one core, from files in memory to samples of 224 x 224")
    for case, (kind, options) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            made = convert(paths, folder, kind, options)
            measure(sys.argv[1], case, made)


if __name__ == "__main__":
    main()
