# SPDX-License-Identifier: MIT
"""TensorFlow's tf.data: the crop alone is decoded, then resized."""

import os

import loop


def versions(options):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow

    return "TensorFlow %s" % tensorflow.__version__


def dataset(options):
    import tensorflow as tf

    threads = max(1, options.threads)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)

    def load(path, label):
        data = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(data),
            tf.zeros([0, 0, 4]),
            area_range=loop.SCALE,
            aspect_ratio_range=loop.RATIO,
            min_object_covered=0,
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        image = tf.image.decode_and_crop_jpeg(
            data, window, channels=3, dct_method="INTEGER_ACCURATE"
        )
        image = tf.image.resize(
            image, (loop.SIZE, loop.SIZE), antialias=True
        )
        image = tf.image.random_flip_left_right(image)
        if options.form == "u8":
            return tf.cast(image + 0.5, tf.uint8), label
        image = (image - [255 * m for m in loop.MEAN]) / [
            255 * s for s in loop.STD
        ]
        return tf.transpose(image, (2, 0, 1)), label

    paths, labels = loop.files(options.root)
    made = tf.data.Dataset.from_tensor_slices((paths, labels))
    made = made.shuffle(len(paths)).repeat()
    made = made.map(load, num_parallel_calls=threads, deterministic=False)
    made = made.batch(options.batch).prefetch(2)
    choice = tf.data.Options()
    choice.threading.private_threadpool_size = threads
    return made.with_options(choice)


def stream(options):
    for images, labels in dataset(options):
        yield images.numpy(), labels.numpy()


if __name__ == "__main__":
    loop.main(versions, {"tf.data": {}}, stream)
