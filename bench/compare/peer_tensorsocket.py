# SPDX-License-Identifier: MIT
"""TensorSocket round the DataLoader of peer_pil.py, or a consumer (--join).

Its window holds the whole epoch, so that jobs which start together get the
same batches; the loader's and the consumers' batch sizes are equal, the case
in which it repeats and leaves out the least.  --join names its first port.
"""

import argparse
import os
import sys

import loop


def versions(options):
    from importlib import metadata

    import peer_pil
    import tensorsocket  # noqa: F401

    return "TensorSocket %s, %s" % (
        metadata.version("tensorsocket"),
        peer_pil.versions(options),
    )


def ports(first):
    return {
        "port": first,
        "ack_port": first + 1,
        "heart_ports": (first + 2, first + 3),
    }


def produce(root, first, threads, batch, form):
    import torch
    from tensorsocket import TensorProducer
    from torchvision import datasets

    import peer_pil

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        datasets.ImageFolder(root, peer_pil.chain(form)),
        batch_size=batch,
        shuffle=True,
        drop_last=True,
        num_workers=threads,
        persistent_workers=threads > 0,
        multiprocessing_context="fork" if threads else None,
    )
    producer = TensorProducer(
        loader, rubber_band_pct=1, producer_batch_size=2, **ports(first)
    )
    while True:
        for _ in producer:
            pass


def start(options):
    first = 21000 + os.getpid() % 5000 * 4
    command = [sys.executable, __file__, "--produce", options.root, str(first)]
    command += [str(options.threads), str(options.batch), options.form]
    loop.spawn(command)
    return first


def stream(options):
    import torch
    from tensorsocket import TensorConsumer

    torch.set_num_threads(1)
    first = int(options.join) if options.join else start(options)
    consumer = TensorConsumer(batch_size=options.batch, **ports(first))
    while True:
        yield from consumer


def main():
    if sys.argv[1:2] != ["--produce"]:
        loop.main(versions, {"TensorSocket": {}}, stream)
    parser = argparse.ArgumentParser()
    parser.add_argument("--produce", action="store_true")
    parser.add_argument("root")
    parser.add_argument("first", type=int)
    parser.add_argument("threads", type=int)
    parser.add_argument("batch", type=int)
    parser.add_argument("form")
    o = parser.parse_args()
    produce(o.root, o.first, o.threads, o.batch, o.form)


if __name__ == "__main__":
    main()
