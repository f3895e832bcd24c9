# SPDX-License-Identifier: MIT
"""What a batch looks like: a list, a dict, channels last."""

import pickle

import pytest

import tsock
from conftest import N, SIZE

numpy = pytest.importorskip("numpy")


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_a_batch_can_be_a_dict_of_its_fields(serve, framework):
    pytest.importorskip(framework)
    serve("--order", "sequential")
    lists = tsock.DataLoader("toy", 48, framework=framework)
    dicts = tsock.DataLoader("toy", 48, framework=framework, as_dict=True)
    samples = 0
    for (images, labels), batch in zip(lists, dicts):
        assert type(batch) is dict and list(batch) == ["image", "label"]
        assert (batch["image"] == images).all()
        assert (batch["label"] == labels).all()
        samples += len(labels)
    assert samples == N


def test_a_dicts_keys_can_be_named(serve):
    serve()
    loader = tsock.DataLoader(
        "toy",
        48,
        fields=("image", "label", "index"),
        as_dict={"image": "pixel_values", "label": "labels"},
    )
    assert list(next(iter(loader))) == ["pixel_values", "labels", "index"]
    again = pickle.loads(pickle.dumps(loader))
    assert list(next(iter(again))) == ["pixel_values", "labels", "index"]


@pytest.mark.parametrize(
    "names, text",
    [
        ({"imge": "x"}, "did you mean 'image'"),
        ({"box": "boxes"}, "isn't one of the loader's fields"),
        ({"image": "label"}, "a name of its own"),
        ({"image": 3}, "a name of its own"),
        ("image", "True, False, or names"),
        (7, "True, False, or names"),
    ],
)
def test_names_that_can_not_be_are_refused(serve, names, text):
    serve()
    with pytest.raises(ValueError, match=text):
        tsock.DataLoader("toy", as_dict=names)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16"])
def test_channels_last_has_the_same_values_and_torchs_strides(serve, dtype):
    torch = pytest.importorskip("torch")
    serve("--order", "sequential")
    first = tsock.DataLoader("toy", 48, dtype=dtype)
    last = tsock.DataLoader(
        "toy", 48, dtype=dtype, memory_format=torch.channels_last
    )
    assert last.layout == "chw" and last.memory_format is torch.channels_last
    for (right, _), (images, labels) in zip(first, last):
        assert images.shape == (len(labels), 3, SIZE, SIZE)
        assert torch.equal(images, right)
        assert images.is_contiguous(memory_format=torch.channels_last)
        assert not images.is_contiguous()
        images[0] = 1  # as any other
    assert len(next(iter(pickle.loads(pickle.dumps(last))))[0]) == 48


def test_only_image_fields_have_channels(serve):
    torch = pytest.importorskip("torch")
    serve()
    loader = tsock.DataLoader(
        "toy",
        16,
        memory_format="channels_last",
        fields=("index", "box", "image", "label"),
    )
    index, box, image, label = next(iter(loader))
    assert index.shape == label.shape == (16,) and box.shape == (16, 5)
    assert image.is_contiguous(memory_format=torch.channels_last)


def test_memory_formats_that_can_not_be_are_refused(place):
    pytest.importorskip("torch")
    for keywords, text in (
        ({"memory_format": "channels_first"}, "'channels_last'"),
        ({"memory_format": 7}, "'channels_last'"),
        ({"memory_format": "channels_last", "layout": "hwc"}, "'chw'"),
        ({"memory_format": "channels_last", "framework": "numpy"}, "torch's"),
    ):
        with pytest.raises(ValueError, match=text):
            tsock.DataLoader("toy", wait=0.1, **keywords)


def test_a_contiguous_format_is_the_usual_one(serve):
    torch = pytest.importorskip("torch")
    serve()
    for usual in ("contiguous_format", torch.contiguous_format, None):
        loader = tsock.DataLoader("toy", 16, memory_format=usual)
        assert next(iter(loader))[0].is_contiguous()
        loader.close()
