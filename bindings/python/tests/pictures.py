# SPDX-License-Identifier: MIT
"""Images of noise by their numbers, and what serves them unchanged."""

import io

import pytest

import tsock

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")

N, SIZE = 20, (30, 40)
AS_IT_IS = dict(
    transform="Resize((%d, %d))" % SIZE,
    order="sequential",
    framework="numpy",
    dtype="uint8",
    layout="hwc",
    batch_size=7,
    exit_when_idle=5,
)


def pixels(i):
    return np.random.default_rng(i).integers(
        0, 256, (*SIZE, 3), dtype=np.uint8
    )


def png(i):
    to = io.BytesIO()
    Image.fromarray(pixels(i)).save(to, "PNG")
    return to.getvalue()


def read(root, *fields, **options):
    """All samples: the values of image and of these fields."""
    loader = tsock.DataLoader(
        root=str(root),
        fields=("image",) + fields,
        **dict(AS_IT_IS, **options),
    )
    batches = list(loader)
    read.classes, read.name = loader.classes, loader.name
    loader.close()
    return [
        sum((list(batch[k]) for batch in batches), [])
        for k in range(1 + len(fields))
    ]


def check_images(got, which=range(N)):
    assert len(got) == len(which)
    for image, i in zip(got, which):
        assert (image == pixels(i)).all(), i
