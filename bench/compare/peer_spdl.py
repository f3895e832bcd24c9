# SPDX-License-Identifier: MIT
"""SPDL: FFmpeg decodes, crops, scales and mirrors, in a pipeline's threads."""

import itertools
import random

import loop


def versions(options):
    from importlib import metadata

    import spdl.io

    # FFmpeg's libraries are looked for when they are first needed.
    spdl.io.demux_image(loop.files(options.root)[0][0])
    return "SPDL %s" % metadata.version("spdl-io")


def load(item):
    import spdl.io

    path, label = item
    packets = spdl.io.demux_image(path)
    y, x, h, w = loop.crop_box(packets.codec.height, packets.codec.width)
    chain = "crop=%d:%d:%d:%d:exact=1,scale=%d:%d" % (
        (w, h, x, y) + 2 * (loop.SIZE,)
    )
    if random.random() < 0.5:
        chain += ",hflip"
    frames = spdl.io.decode_packets(packets, chain + ",format=pix_fmts=rgb24")
    return frames, label


def convert(items):
    import spdl.io

    frames = spdl.io.convert_frames([frame for frame, _ in items])
    return spdl.io.to_numpy(frames), [label for _, label in items]


def endless(root):
    items = list(zip(*loop.files(root)))
    for _ in itertools.count():
        random.shuffle(items)
        yield from items


def stream(options):
    import torch
    from spdl.pipeline import PipelineBuilder

    torch.set_num_threads(1)
    threads = max(1, options.threads)
    pipeline = (
        PipelineBuilder()
        .add_source(endless(options.root))
        .pipe(load, concurrency=threads, output_order="completion")
        .aggregate(options.batch)
        .pipe(convert)
        .add_sink(2)
        .build(num_threads=threads)
    )
    with pipeline.auto_stop():
        for images, labels in pipeline:
            if options.form == "f32":
                images = loop.normalized(torch.from_numpy(images))
            yield images, labels


if __name__ == "__main__":
    loop.main(versions, {"SPDL": {}}, stream)
