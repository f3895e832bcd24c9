# SPDX-License-Identifier: MIT
"""Tensors: the right bytes, no copy, written into and kept by everybody."""

import ctypes
import gc
import itertools

import pytest

import tsock
from conftest import N, SIZE
from tsock import _ffi, tensors

numpy = pytest.importorskip("numpy")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RAW = dict(dtype="uint8", layout="hwc", fields=("image", "label", "index"))
# Three rings to an epoch.
# Loaders that read side by side join one after the other: the window holds the
# epoch while the first of them has a batch.
SMALL = ("--ring", 64, "--max-batch", 16, "--join-window", 32)


def together(*loaders):
    """Their batches of one epoch, side by side."""
    for batches in itertools.zip_longest(*loaders):
        assert len({loader.stream_epoch for loader in loaders}) == 1
        yield batches


@pytest.fixture(params=["torch", "numpy"])
def framework(request):
    pytest.importorskip(request.param)
    return request.param


def as_numpy(tensor):
    return tensor if isinstance(tensor, numpy.ndarray) else tensor.numpy()


@pytest.mark.parametrize("normalize", ["imagenet", None, "custom"])
@pytest.mark.parametrize("layout", ["chw", "hwc"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_floats_are_bit_equal_to_torchvision(serve, dtype, layout, normalize):
    torch = pytest.importorskip("torch")
    transforms = pytest.importorskip("torchvision.transforms")
    serve()
    mean, std = (0.1, 0.2, 0.9), (0.5, 2, 0.25)
    asked = (mean, std) if normalize == "custom" else normalize
    if normalize == "imagenet":
        mean, std = MEAN, STD
    raw = tsock.DataLoader("toy", batch_size=48, **RAW)
    made = tsock.DataLoader(
        "toy", batch_size=48, dtype=dtype, layout=layout, normalize=asked
    )
    to_tensor = transforms.ToTensor()
    scale = transforms.Normalize(mean, std)
    samples = 0
    for (u8, label, _), (images, labels) in together(raw, made):
        wanted = torch.stack([to_tensor(i) for i in u8.numpy()])
        if normalize is not None:
            wanted = torch.stack([scale(i) for i in wanted])
        if layout == "hwc":
            wanted = wanted.permute(0, 2, 3, 1)
        wanted = wanted.to(getattr(torch, dtype))
        assert images.dtype == wanted.dtype and images.is_contiguous()
        assert images.shape == wanted.shape
        bits = torch.int32 if dtype == "float32" else torch.int16
        assert torch.equal(
            images.view(bits), wanted.contiguous().view(bits)
        )
        assert torch.equal(label, labels)
        samples += len(labels)
    assert samples == N


def test_raw_bytes_come_in_either_layout(serve, framework):
    serve()
    hwc = tsock.DataLoader("toy", batch_size=48, framework=framework, **RAW)
    chw = tsock.DataLoader(
        "toy", batch_size=48, framework=framework, dtype="uint8"
    )
    for (a, _, _), (b, _) in together(hwc, chw):
        a, b = as_numpy(a), as_numpy(b)
        assert a.dtype == b.dtype == numpy.uint8
        assert a.shape[1:] == (SIZE, SIZE, 3) and b.flags.c_contiguous
        assert (a.transpose(0, 3, 1, 2) == b).all()


def test_the_default_is_what_a_torchvision_recipe_gives(serve):
    torch = pytest.importorskip("torch")
    serve()
    images, labels = next(iter(tsock.DataLoader("toy", batch_size=10)))
    assert images.dtype == torch.float32 and labels.dtype == torch.int64
    assert images.shape == (10, 3, SIZE, SIZE)
    assert images.min() < -0.5  # normalized


def test_a_list_of_an_epoch_over_three_rings_keeps_every_byte(
    serve, framework
):
    serve(*SMALL)
    keeper = tsock.DataLoader("toy", 16, framework=framework, **RAW)
    witness = tsock.DataLoader("toy", 16, framework=framework, **RAW)
    copies, kept = [], []
    for one, other in together(keeper, witness):
        kept.append(one)
        copies.append([as_numpy(t).copy() for t in other])
    assert sum(len(batch[0]) for batch in kept) == N
    for batch, copy in zip(kept, copies):
        for tensor, right in zip(batch, copy):
            assert (as_numpy(tensor) == right).all()
    # And they are still those of the first epoch after two more.
    for _ in range(2):
        for _ in together(keeper, witness):
            pass
    for batch, copy in zip(kept, copies):
        for tensor, right in zip(batch, copy):
            assert (as_numpy(tensor) == right).all()


def test_list_of_a_loader_alone(serve, framework):
    serve(*SMALL)
    loader = tsock.DataLoader(
        "toy", 16, timeout=60, framework=framework, **RAW
    )
    index = [int(i) for batch in list(loader) for i in batch[2]]
    assert sorted(index) == list(range(N))


def test_writing_into_a_batch_is_seen_by_nobody_else(serve, framework):
    serve(*SMALL)
    writer = tsock.DataLoader("toy", 16, framework=framework)
    reader = tsock.DataLoader("toy", 16, framework=framework)
    raw = tsock.DataLoader("toy", 16, framework=framework, **RAW)
    table = numpy.stack(
        [
            (numpy.arange(256, dtype=numpy.float32) / numpy.float32(255)
             - numpy.float32(m)) / numpy.float32(s)
            for m, s in zip(MEAN, STD)
        ]
    )
    for _ in range(3):
        for mine, theirs, source in together(writer, reader, raw):
            right = numpy.stack(
                [table[c][as_numpy(source[0])[..., c]] for c in range(3)], 1
            )
            # What was written into these very pages before is gone too.
            assert (as_numpy(mine[0]) == right).all()
            mine[0][:] = -7
            mine[1][:] = -7
            assert (as_numpy(theirs[0]) == right).all()
            assert (as_numpy(theirs[1]) >= 0).all()
            assert (as_numpy(mine[0]) == -7).all()


def test_sub_in_place_as_the_usual_recipes_do(serve):
    pytest.importorskip("torch")
    serve(*SMALL)
    loader = tsock.DataLoader("toy", 16, normalize=None)
    for _ in range(4):
        for images, labels in loader:
            assert 0 <= images.min() and images.max() <= 1
            images.sub_(10).mul_(3)
            assert images.max() <= -27


def test_the_first_batch_is_kept_for_the_whole_run(serve, framework):
    serve(*SMALL)
    loader = tsock.DataLoader(
        "toy", 16, timeout=60, framework=framework, **RAW
    )
    first = next(iter(loader))
    right = [as_numpy(t).copy() for t in first]
    for _ in range(5):
        assert sum(len(b[0]) for b in loader) == N
        assert all((as_numpy(t) == r).all() for t, r in zip(first, right))


def test_a_view_keeps_its_batch_alive(serve, framework):
    serve(*SMALL)
    loader = tsock.DataLoader("toy", 16, framework=framework, **RAW)
    image = next(iter(loader))[0]
    right = as_numpy(image)[3].copy()
    view = image[3]
    del image
    for _ in range(3):
        for _ in loader:
            pass
    gc.collect()
    assert (as_numpy(view) == right).all()


def raw_batch(loader):
    """A tsock_batch * of the loader's, by the C call."""
    stream = loader._pool.first
    stream.begin(100)
    out = ctypes.c_void_p()
    code = _ffi.lib.tsock_next(stream.handle, 100000, ctypes.byref(out))
    assert code == 0
    return out


def address(tensor):
    if isinstance(tensor, numpy.ndarray):
        return tensor.__array_interface__["data"][0]
    return tensor.data_ptr()


@pytest.mark.parametrize("which", ["torch", "legacy", "numpy", "old numpy"])
def test_tensors_share_the_librarys_bytes(serve, which):
    serve()
    if which in ("torch", "legacy"):
        pytest.importorskip("torch")
        importer = tensors.Torch()
        importer._versioned = which == "torch"
    else:
        importer = tensors.Numpy()
        if which == "old numpy":
            importer._dlpack = False
    loader = tsock.DataLoader("toy", 16, **RAW)
    batch = raw_batch(loader)
    made = [importer.tensor(batch, i) for i in loader._batches.places]
    for tensor, i in zip(made, loader._batches.places):
        data = _ffi.lib.tsock_batch_data_mut(batch, i)
        assert address(tensor) == data
        assert len(tensor) == 16
        if isinstance(tensor, numpy.ndarray):
            assert tensor.flags.writeable and tensor.flags.c_contiguous
        tensor[0] = 5
    right = [as_numpy(t).copy() for t in made]
    _ffi.lib.tsock_batch_release(batch)
    loader.close()
    for tensor, copy in zip(made, right):
        assert (as_numpy(tensor) == copy).all()
    assert as_numpy(made[0]).reshape(16, -1)[0].tolist() == [5] * (
        SIZE * SIZE * 3
    )


def test_a_refused_capsule_gives_the_batch_back(serve):
    serve(*SMALL)
    loader = tsock.DataLoader("toy", 16, timeout=60, **RAW)

    def refuse(capsule):
        raise TypeError("no")

    for _ in range(30):  # more than the ring holds, were they not released
        batch = raw_batch(loader)
        for i in loader._batches.places:
            with pytest.raises(TypeError):
                tensors._import(batch, i, 1, refuse)
        _ffi.lib.tsock_batch_release(batch)
    assert sum(len(b[0]) for b in loader) == N


class ReadOnly:
    """numpy 2.1.0 to 2.2.4, whose from_dlpack() gives read-only arrays."""

    def __getattr__(self, name):
        return getattr(numpy, name)

    def from_dlpack(self, lent):
        array = numpy.from_dlpack(lent)
        array.flags.writeable = False
        return array


class Refusing(ReadOnly):
    """One before 2.1, which doesn't know versioned capsules."""

    def from_dlpack(self, lent):
        raise ValueError("Unsupported capsule")


@pytest.mark.parametrize("kind", [ReadOnly, Refusing])
def test_arrays_are_writable_whatever_from_dlpack_gives(serve, kind):
    serve(*SMALL)
    loader = tsock.DataLoader(
        "toy", 16, framework="numpy", timeout=60, **RAW
    )
    loader._tensors._numpy = kind()
    seen = []
    for _ in range(2):
        for batch in loader:
            seen += batch[2].tolist()
            assert all(array.flags.writeable for array in batch)
            batch[0][:] = 7
            batch[1] += 1
    assert sorted(seen) == sorted(2 * list(range(N)))


def test_old_numpy_arrays_are_kept_and_given_back(serve):
    serve(*SMALL)
    loader = tsock.DataLoader("toy", 16, framework="numpy", **RAW)
    loader._tensors._dlpack = False
    kept = next(iter(loader))
    right = [t.copy() for t in kept]
    for _ in range(3):
        index = [i for batch in loader for i in batch[2].tolist()]
        assert sorted(index) == list(range(N))
        assert all((t == r).all() for t, r in zip(kept, right))


def test_a_batch_is_not_lost_when_ctrl_c_comes_while_it_is_made(
    serve, monkeypatch
):
    serve()
    loader = tsock.DataLoader("toy", 16, **RAW)
    iterator = iter(loader)
    made = loader._tensors.tensor
    calls = []

    def interrupted(batch, i):
        calls.append(i)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return made(batch, i)

    monkeypatch.setattr(loader._tensors, "tensor", interrupted)
    seen = next(iterator)[2].tolist()
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    for batch in iterator:
        seen += batch[2].tolist()
    assert sorted(seen) == list(range(N))


def test_pin_memory_without_a_gpu_warns_and_goes_on(serve):
    torch = pytest.importorskip("torch")
    serve()
    if torch.cuda.is_available():
        loader = tsock.DataLoader("toy", 16, pin_memory=True)
        assert next(iter(loader))[0].is_pinned()
        return
    with pytest.warns(UserWarning, match="pin"):
        loader = tsock.DataLoader("toy", 16, pin_memory=True)
    assert loader.pin_memory is False
    assert len(next(iter(loader))[0]) == 16
