# SPDX-License-Identifier: MIT
"""tsock.serve(): one copy into the ring, none at a consumer, and no pickle."""

import json
import os
import sys

import pytest

from conftest import finish
from test_serve_loader import cut, images, labels, loader_of, nested, words
from tsock import tensors
from tsock.serving import arrays

numpy = pytest.importorskip("numpy")

# ---- at a consumer ----

CONSUMER = """
import pickle, sys, _pickle

class Poison:
    def __init__(self, *_, **__):
        raise AssertionError("something was unpickled")

for module in (pickle, _pickle):
    for name in ("load", "loads", "Unpickler", "_load", "_loads", "_Unpickler"):
        if hasattr(module, name):
            setattr(module, name, Poison)

def audit(event, arguments):  # what any other unpickler raises, too
    if event == "pickle.find_class":
        Poison()

sys.addaudithook(audit)

import json
import tsock

def plain(value):
    if isinstance(value, bytes):
        return list(value)
    return value.tolist()

size = int(sys.argv[1]) or None
for batch in tsock.DataLoader("mine", size, framework="numpy"):
    print(json.dumps(batch, default=plain))
try:
    pickle.loads(b"N.")
except AssertionError:
    print("poisoned")
"""


def plain(value):
    if isinstance(value, numpy.bool_):
        return bool(value)
    return list(value) if isinstance(value, bytes) else value.tolist()


def shown(batch):
    """A batch as the consumer writes it."""
    return json.dumps(batch, default=plain)


@pytest.mark.parametrize("ragged", [False, True])
def test_nothing_is_unpickled_at_a_consumer(served, script, ragged):
    make = words if ragged else nested
    served(cut(make), ragged=ragged, epochs=1)
    out, _ = finish(script(CONSUMER, 0 if ragged else 16))
    lines = out.splitlines()
    assert lines.pop() == "poisoned"
    assert lines == [shown(batch) for batch in cut(make)]


ADDRESSES = """
import sys
import tsock

def mapped():
    found = []
    with open("/proc/self/maps") as f:
        for line in f:
            if "/memfd:tsock:" in line:
                a, b = [int(x, 16) for x in line.split()[0].split("-")]
                if found and found[-1][1] == a:
                    found[-1][1] = b  # a ring's start once more, behind its end
                else:
                    found.append([a, b])
    return found

def where(tensor):
    if framework == "torch":
        return tensor.data_ptr(), tensor.numel() * tensor.element_size()
    return tensor.ctypes.data, tensor.nbytes

framework = sys.argv[1]
loader = tsock.DataLoader("mine", int(sys.argv[2]) or None, framework=framework)
for batch in (batch for epoch in range(2) for batch in loader):
    maps = mapped()
    shared = 0
    for key in "xyz":
        begin, size = where(batch[key])
        shared += any(a <= begin and begin + size <= b for a, b in maps)
    print(shared, *[int(batch[key].sum()) for key in "xyz"])
"""


def large(at):
    """Fields that have more than 64 KiB in a batch: smaller ones are copied."""
    x = images(at)
    return {
        "x": numpy.tile(x.reshape(len(at), 60), 20),
        "y": numpy.tile(labels(at)[:, None], 200),
        "z": numpy.tile(labels(at)[:, None] * 1.0, 250),
    }


@pytest.mark.parametrize(
    "framework, size", [("numpy", 50), ("torch", 50), ("numpy", 0)]
)
def test_a_consumers_tensors_are_the_rings_memory(
    served, script, framework, size
):
    """Also where a batch goes round the ring's end."""
    pytest.importorskip(framework)
    if not os.access("/proc/self/pagemap", os.R_OK):
        pytest.skip("no /proc/self/pagemap: batches are copied")
    n, epochs = 350, 2
    rings = {"ring": 256, "max_batch": 64} if size else {"ring": 4}
    served(cut(large, n, 64), epochs=epochs, ragged=not size, **rings)
    out, _ = finish(script(ADDRESSES, framework, size))
    right = [
        "3 %d %d %d" % tuple(int(large(at)[key].sum()) for key in "xyz")
        for at in cut(list, n, size or 64)
    ]
    assert out.splitlines() == epochs * right


# ---- in the process that serves ----


@pytest.fixture
def copies(monkeypatch):
    """Each (to, from, bytes) that is copied in the end."""
    made = []
    move = arrays.ctypes.memmove

    def watched(to, source, size):
        made.append((to, source, size))
        return move(to, source, size)

    monkeypatch.setattr(arrays.ctypes, "memmove", watched)
    return made


def rings():
    found = []
    with open("/proc/self/maps") as f:
        for line in f:
            if "/memfd:tsock:" in line:
                begin, end = line.split()[0].split("-")
                found.append((int(begin, 16), int(end, 16)))
    return found


def is_within(address, size, places):
    return any(a <= address and address + size <= b for a, b in places)


@pytest.mark.parametrize("ring", [None, 40])
def test_each_byte_is_copied_once_from_the_loader_to_its_slot(
    served, copies, ring
):
    batches = cut(lambda at: [images(at), labels(at)])
    theirs = [
        (leaf.ctypes.data, leaf.ctypes.data + leaf.nbytes)
        for batch in batches
        for leaf in batch
    ]
    size = sum(leaf.nbytes for batch in batches for leaf in batch)
    server = served(batches, ring=ring, max_batch=ring and 10, epochs=2)
    loader = loader_of(batch_size=10)
    places = rings()
    for _ in range(2):
        list(loader)
    assert sum(n for _, _, n in copies) == 2 * size
    assert all(is_within(to, n, places) for to, _, n in copies)
    assert all(is_within(source, n, theirs) for _, source, n in copies)
    assert server.stats()["copied_bytes"] == 2 * size


def test_strided_rows_are_copied_once(served, copies):
    batches = cut(lambda at: numpy.stack([labels(at), labels(at)])[:, ::-1].T)
    assert not any(b.flags.c_contiguous for b in batches)
    server = served(batches, epochs=1)
    list(loader_of(batch_size=10))
    assert not copies  # numpy's own, straight to the slot
    assert server.stats()["copied_bytes"] == sum(b.nbytes for b in batches)


def test_ragged_batches_are_copied_once(served, copies):
    """What is copied is a batch and its description, and not a slot."""
    batches = cut(words)
    server = served(batches, ragged=True, epochs=1)
    assert len(list(loader_of(batch_size=None))) == len(batches)
    leaves = sum(
        b["ids"].nbytes + sum(x.nbytes for x in b["boxes"]) + len(b["blob"])
        for b in batches
    )
    copied = server.stats()["copied_bytes"]
    assert copied == sum(n for _, _, n in copies)
    assert leaves < copied < leaves + 2048 * len(batches)


# ---- what only __dlpack__() shows to be an array ----


class Lender:
    def __init__(self, array, device=None):
        self.array, self.device = array, device

    def __dlpack__(self, stream=None, **how):
        capsule = self.array.__dlpack__(**how)
        if self.device is not None:
            lent = tensors.lent_by(capsule)
            lent.device_type, lent.device_id = self.device
        return capsule


class Named(Lender):
    """And it says where it is."""

    def __dlpack_device__(self):
        return self.device or (1, 0)


@pytest.mark.parametrize("kind", [Lender, Named])
@pytest.mark.parametrize("ragged", [False, True])
def test_arrays_that_only_lend_themselves(served, copies, kind, ragged):
    batches = cut(lambda at: [images(at), labels(at)])
    dtypes = "uint8 int16 uint64 float16 float64 complex64 bool".split()
    for dtype in dtypes:
        for batch in batches:
            batch.append(batch[1].astype(dtype))
    server = served(
        [[kind(leaf) for leaf in batch] for batch in batches],
        epochs=1,
        ragged=ragged,
    )
    seen = list(loader_of(batch_size=None))
    assert len(seen) == len(batches)
    for got, batch in zip(seen, batches):
        for a, b in zip(got, batch):
            assert a.dtype == b.dtype and (a == b).all()
    theirs = sum(leaf.nbytes for batch in batches for leaf in batch)
    assert theirs <= server.stats()["copied_bytes"] < theirs + (1 << 14)


def test_bfloat16_needs_no_numpy(served):
    torch = pytest.importorskip("torch")
    rows = torch.arange(40, dtype=torch.bfloat16).view(8, 5)
    served([Lender(rows)], epochs=1)
    (batch,) = loader_of(batch_size=8, framework="torch")
    assert torch.equal(batch, rows)


@pytest.mark.parametrize(
    "lender, text",
    [
        (Lender(numpy.ones((8, 6))[:, ::2]), "isn't contiguous: make it so"),
        (Lender(numpy.ones((8, 6)).T[:, :2]), "isn't contiguous: make it so"),
        (Lender(numpy.ones(8), device=(10, 0)), "of an odd kind, 10"),
        (Lender(numpy.ones(8), device=(2, 0)), "^x .* to come to host memory"),
        (Named(numpy.ones(8), device=(2, 0)), "Named has neither get"),
    ],
)
def test_what_lends_itself_and_can_t_be_served(lender, text):
    with pytest.raises(TypeError, match=text):
        arrays.of(lender, "x")


def test_what_a_stream_of_a_gpu_is_told_when_a_lender_says_so():
    asked = []

    class Asked(Named):
        def __dlpack__(self, **how):
            asked.append(how)
            return self.array.__dlpack__()

    arrays.of(Asked(numpy.ones(8), device=(2, 1)), "x")
    arrays.of(Asked(numpy.ones(8)), "x")
    assert asked == [{"stream": 1}, {}]


@pytest.mark.parametrize("shape", [(8, 1, 3), (1, 8), (8,), ()])
def test_the_shapes_of_lenders(shape):
    array = numpy.ones(shape, "float32").T  # strides of 1s may be odd
    if not array.flags.c_contiguous:
        array = numpy.ascontiguousarray(array)
    memory = arrays.of(Lender(array), "x")
    assert memory.shape == array.shape
    assert memory.address == array.ctypes.data
    assert memory.bytes == array.nbytes


def test_a_lender_has_its_memory_back_when_it_is_not_needed():
    array = numpy.ones(8)
    before = sys.getrefcount(array)
    memory = arrays.of(Lender(array), "x")
    assert sys.getrefcount(array) > before
    del memory
    assert sys.getrefcount(array) == before
