# SPDX-License-Identifier: MIT
"""libtsock: a producer and one consumer of it, or a consumer alone (--join).

TSOCK_PRODUCER is the program; TSOCK_BEFORE is another checkout, built, whose
producer and library "tsock before" takes.
"""

import os
import subprocess
import sys

import loop

HERE = os.path.dirname(os.path.abspath(__file__))


def checkout(before):
    """Take the Python package and the programs of one checkout."""
    top = os.path.abspath(os.path.join(HERE, "..", ".."))
    if before:
        top = os.environ.get("TSOCK_BEFORE")
        if not top:
            raise loop.Missing("TSOCK_BEFORE names no checkout")
        os.environ["LIBTSOCK_PATH"] = top + "/build/lib/libtsock.so"
        os.environ["TSOCK_PRODUCER"] = top + "/build/bin/tsock-producer"
    sys.path.insert(0, os.path.join(top, "bindings", "python"))


def versions(options):
    checkout(options.variant == "tsock before")
    import torch  # noqa: F401  before any clock starts
    import tsock

    if options.join:
        return "tsock %s" % tsock.__version__
    said = subprocess.run(
        [os.environ["TSOCK_PRODUCER"], "--version"],
        stdout=subprocess.PIPE,
        check=True,
    )
    return said.stdout.decode().split("\n")[0]


def pack(options):
    """The set as tsock-pack writes it, which lies beside the producer."""
    folder = os.path.dirname(os.environ["TSOCK_PRODUCER"])
    packed = os.path.join(options.scratch, "packed")
    subprocess.run(
        [
            os.path.join(folder, "tsock-pack"),
            "--quiet",
            "--dataset",
            "imagefolder",
            options.root,
            packed,
        ],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return packed


def start(options, root):
    name = "compare-%d" % os.getpid()
    command = [os.environ["TSOCK_PRODUCER"], "--dataset", "imagefolder"]
    command += ["--root", root, "--name", name, "--ring", "256"]
    command += ["--max-batch", "128", "--no-cache", "--quiet"]
    if options.threads:
        command += ["--threads", str(options.threads)]
    loop.spawn(command)
    return name


def stream(options, packed=False):
    import torch
    import tsock

    torch.set_num_threads(1)
    name = options.join
    if not name:
        name = start(options, pack(options) if packed else options.root)
    if options.form == "u8":
        loader = tsock.DataLoader(
            name,
            batch_size=options.batch,
            dtype="uint8",
            layout="hwc",
            normalize=None,
            wait=60,
        )
    else:
        loader = tsock.DataLoader(name, batch_size=options.batch, wait=60)
    while True:
        yield from loader


VARIANTS = {
    "tsock": {},
    "tsock, packed": {"packed": True},
    "tsock before": {},
}

if __name__ == "__main__":
    loop.main(versions, VARIANTS, stream)
