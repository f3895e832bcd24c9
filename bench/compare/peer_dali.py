# SPDX-License-Identifier: MIT
"""NVIDIA DALI's pipeline on the CPU, with a decoder that skips what lies
outside of the crop.

Batches are taken as views of DALI's own memory: its PyTorch plugin copies them
once more.  The decoder is asked for its exact DCT, which is the default.
"""

import loop


def versions(options):
    import nvidia.dali

    return "DALI %s" % nvidia.dali.__version__


def pipeline(options, antialias):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def
    def graph():
        jpegs, labels = fn.readers.file(
            file_root=options.root, random_shuffle=True, name="reader"
        )
        images = fn.decoders.image_random_crop(
            jpegs,
            device="cpu",
            output_type=types.RGB,
            random_area=loop.SCALE,
            random_aspect_ratio=loop.RATIO,
        )
        images = fn.resize(
            images,
            size=(loop.SIZE, loop.SIZE),
            interp_type=types.INTERP_LINEAR,
            antialias=antialias,
        )
        mirror = fn.random.coin_flip()
        if options.form == "u8":
            return fn.flip(images, horizontal=mirror), labels
        images = fn.crop_mirror_normalize(
            images,
            dtype=types.FLOAT,
            output_layout="CHW",
            mean=[255 * m for m in loop.MEAN],
            std=[255 * s for s in loop.STD],
            mirror=mirror,
        )
        return images, labels

    return graph(
        batch_size=options.batch,
        num_threads=max(1, options.threads),
        device_id=None,
        seed=1,
        prefetch_queue_depth=2,
    )


def stream(options, antialias):
    pipe = pipeline(options, antialias)
    pipe.build()
    while True:
        images, labels = pipe.run()
        yield images.as_array(), labels.as_array()


if __name__ == "__main__":
    loop.main(
        versions,
        {
            "DALI, antialias": {"antialias": True},
            "DALI, no antialias": {"antialias": False},
        },
        stream,
    )
