# SPDX-License-Identifier: MIT
"""What samples take by recipes that people train with, on one core.

  chains      from the bytes of JPEG files in memory to samples of 224 x 224,
              u8: by the producer's code (recipes.c, with the JPEG index, as in
              later epochs) beside torchvision on Pillow, torchvision.v2 on
              tensors, timm, albumentations and kornia-rs, those that are there
  cifar       pictures of 32 x 32 in memory: padded, cropped and flipped
  operations  each alone on pictures of 224 x 224, nanoseconds per pixel, beside
              Pillow's (as torchvision calls it) and OpenCV's

All are pinned to one CPU and take turns, in another order each pass; what is
counted is CPU time.  A ratio is the other's time divided by tsock's in the
same pass.

CASES=REGEX measures those cases alone whose names have it in them.

usage: recipes.py PROGRAM DIR
"""

import os
import random
import re
import subprocess
import sys
import time

import recipes_ops
import recipes_peers
from rows import head, show

QUICK = os.environ.get("QUICK") == "1"
FILES = int(os.environ.get("FILES", 24 if QUICK else 120))
PASSES = int(os.environ.get("PASSES", 2 if QUICK else 7))
OP_PASSES = 2 if QUICK else 9
OP_PICTURES = 4 if QUICK else 16
SMALL = 200 if QUICK else 2000
EDGE = recipes_ops.SIZE
CASES = re.compile(os.environ.get("CASES", ""))

CROP = "RandomResizedCrop(224) RandomHorizontalFlip() "
TIMM = "RandomResizedCropAndInterpolation(224) RandomHorizontalFlip() "
CHAINS = {
    "crop, flip": CROP,
    "timm default": TIMM + "ColorJitter(0.4, 0.4, 0.4)",
    "timm rand-m9": TIMM
    + "TimmRandAugment(m=9, mstd=0.5, inc=True)",
    "RandAugment(2, 9)": CROP + "RandAugment(2, 9)",
    "TrivialAugmentWide": CROP + "TrivialAugmentWide()",
    "AutoAugment": CROP + "AutoAugment()",
    "AugMix": CROP + "PILAugMix()",
    "timm augmix-m3-w3": TIMM + "TimmAugMix(m=3, w=3)",
    "timm original-mstd0.5": TIMM + "TimmAutoAugment(original, mstd=0.5)",
    "bicubic crop, flip": "RandomResizedCrop(224, interpolation=bicubic) "
    "RandomHorizontalFlip()",
    "SimCLR, one view": CROP
    + "RandomApply([ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8) "
    "RandomGrayscale(p=0.2) PILGaussianBlur(p=0.5)",
}
CHAINS["SimCLR, two views"] = "Views(2 * [%s])" % CHAINS["SimCLR, one view"]
CIFAR = "RandomCrop(32, padding=4) RandomHorizontalFlip()"


class Native:
    """recipes.c, which does a pass for a line."""

    def __init__(self, program, paths):
        self._run = subprocess.Popen(
            [program, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, line):
        self._run.stdin.write(line + "\n")
        self._run.stdin.flush()
        answer = self._run.stdout.readline()
        try:
            return float(answer)
        except ValueError:
            sys.exit("failed: %s: %s" % (line, answer.strip() or "no answer"))

    def close(self):
        self._run.stdin.close()
        if self._run.wait():
            sys.exit("failed: recipes ended with %d" % self._run.returncode)


def usable(path):
    """JPEG files that every decoder here turns into RGB by itself."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            return image.format == "JPEG" and image.mode in ("RGB", "L")
    except OSError:
        return False


def find(folder):
    paths = []
    for at, folders, names in os.walk(folder):
        folders.sort()
        paths += [os.path.join(at, n) for n in sorted(names)]
    # Some of each class, not the first classes alone.
    step = max(1, len(paths) // FILES)
    return [p for p in paths[::step] if usable(p)][:FILES]


def read(path):
    with open(path, "rb") as f:
        return bytearray(f.read())


def cpu(make, items):
    """CPU seconds per item that could be made."""
    done = 0
    began = time.process_time_ns()
    for item in items:
        try:
            make(item)
            done += 1
        except ValueError:
            # timm's posterize asks for 0 bits, which Pillow 13 refuses.
            continue
    if not done:
        raise ValueError("none could be made")
    return (time.process_time_ns() - began) / 1e9 / done


def in_turns(arms, passes):
    """Each arm's values, one for each pass; the order is turned round."""
    values = {}
    for name, arm in arms.items():
        try:
            arm(0)
        except Exception as e:
            print("left out: %s: %s" % (name, e or type(e).__name__))
            continue
        values[name] = []
    names = list(values)
    for p in range(passes):
        at = p % len(names)
        for name in names[at:] + names[:at]:
            values[name].append(arms[name](p + 1))
    return values


def report(case, values, unit, scale, bench="recipes"):
    """tsock's time, and how many times that the others take."""
    own = values["tsock"]
    show(bench, case, [v * scale for v in own], unit)
    for name, other in values.items():
        if name != "tsock":
            show(
                bench,
                "%s: %s" % (case, name),
                [v * scale for v in other],
                unit,
                "tsock",
                pairs=[o / v for o, v in zip(other, own)],
            )


def peers():
    found = {}
    for name, chains in recipes_peers.PEERS.items():
        try:
            found[name] = chains()
        except Exception as e:
            print("left out: %s: %s" % (name, e or type(e).__name__))
    return found


def chains(native, others, data):
    head("recipes: one core, from JPEG files in memory to samples of 224 x 224")
    for case, text in CHAINS.items():
        if not CASES.search(case):
            continue
        arms = {
            "tsock": lambda p, text=text: native.ask(
                "files %d %s" % (p, text)
            )
            / 1e6
        }
        for name, makes in others.items():
            if case in makes:
                arms[name] = lambda p, make=makes[case]: cpu(make, data)
        values = in_turns(arms, PASSES)
        report(case, values, "us/sample", 1e6)


def cifar(native, others, pictures):
    if not CASES.search("cifar"):
        return
    head("recipes: one core, pictures of 32 x 32, padded, cropped, flipped")
    line = "pictures 32 32 %d " + CIFAR
    arms = {"tsock": lambda p: native.ask(line % p) / 1e9}
    items = (pictures * (SMALL // len(pictures) + 1))[:SMALL]
    for name, makes in others.items():
        if "cifar" in makes:
            arms[name] = lambda p, make=makes["cifar"]: cpu(make, items)
    values = in_turns(arms, PASSES)
    report("cifar", values, "us/sample", 1e6)


def operations(native, images):
    """Nanoseconds per pixel of the picture before the operation."""
    import numpy as np

    try:
        of_cv2 = recipes_ops.cv2_ops()
    except ImportError as e:
        print("left out: OpenCV: %s" % e)
        of_cv2 = {}
    arrays = [np.asarray(i).copy() for i in images]
    head("recipes: operations on pictures of %d x %d, one core" % (EDGE, EDGE))
    for name, text, of_pillow in recipes_ops.pillow_ops():
        if not CASES.search(name):
            continue
        line = "apply %d %d %%d %s" % (EDGE, EDGE, text)
        arms = {
            "tsock": lambda p, line=line: native.ask(line % p) / 1e9,
            "Pillow": lambda p, make=of_pillow: cpu(make, images),
        }
        if name in of_cv2:
            arms["OpenCV"] = lambda p, make=of_cv2[name]: cpu(make, arrays)
        values = in_turns(arms, OP_PASSES)
        report(name, values, "ns/pixel", 1e9 / EDGE**2)


def main():
    import numpy as np
    import torch
    from PIL import Image

    torch.set_num_threads(1)
    torch.manual_seed(1)
    random.seed(1)
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    print("beside: " + ", ".join(recipes_peers.versions()))
    print("left out: DALI, which make bench-compare measures")
    paths = find(sys.argv[2])
    if not paths:
        sys.exit("failed: no JPEG in %s" % sys.argv[2])
    print("%d JPEG files of %s" % (len(paths), sys.argv[2]))
    native = Native(sys.argv[1], paths)
    others = peers()
    data = [read(p) for p in paths]
    chains(native, others, data)
    images = [Image.open(p).convert("RGB") for p in paths[:OP_PICTURES]]
    small = [np.asarray(i.resize((32, 32))).copy() for i in images]
    cifar(native, others, small)
    operations(native, [i.resize((EDGE, EDGE)) for i in images])
    native.close()


if __name__ == "__main__":
    main()
