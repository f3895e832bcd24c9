# SPDX-License-Identifier: MIT
"""TensorSocket in its CPU mode, for serve.py: a loader's batches to one job.

  serve_peer.py                   its version, or status 77 and why not
  serve_peer.py produce PORT      serves batches, of four ports from PORT on
  serve_peer.py consume PORT N M  takes N batches and M more: batches per
                                  second of the latter

A message has the producer's whole batch for each of its slices, so the
producer's batch is two of the loader's: with one TensorSocket 0.0.5 fails.
"""

import os
import signal
import sys
import time

PATIENCE = 120
# Longer than a consumer reads: at an epoch's end TensorSocket throws away
# what it has sent, and waits for those that have left.
EPOCH = 1000


def ports(first):
    return {
        "port": first,
        "ack_port": first + 1,
        "heart_ports": (first + 2, first + 3),
    }


def version():
    from importlib import metadata

    try:
        import tensorsocket  # noqa: F401
    except ImportError as why:
        print(why)
        sys.exit(77)
    print(metadata.version("tensorsocket"))


def produce(first):
    from tensorsocket import TensorProducer

    import serve

    producer = TensorProducer(
        serve.Ready(EPOCH),
        rubber_band_pct=1,
        producer_batch_size=2,
        **ports(first)
    )
    while True:
        for _ in producer:
            pass


def consume(first, skipped, measured):
    from tensorsocket import TensorConsumer

    import serve

    consumer = TensorConsumer(batch_size=serve.SIZE, **ports(first))
    sink, began = 0.0, None
    for took, batch in enumerate(consumer, 1):
        sink += float(batch[0][:, 0, 0, 0].sum())
        if took == skipped:
            began = time.monotonic()
        if took == skipped + measured:
            break
    print(measured / (time.monotonic() - began), flush=True)
    # Its threads don't end.
    os._exit(0)


def main(command=None, *numbers):
    if command is None:
        return version()
    import torch

    # Neither waits for one that is gone.
    signal.alarm(PATIENCE)
    torch.set_num_threads(1)
    run = {"produce": produce, "consume": consume}[command]
    return run(*[int(n) for n in numbers])


if __name__ == "__main__":
    main(*sys.argv[1:])
