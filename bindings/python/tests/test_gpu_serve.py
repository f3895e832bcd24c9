# SPDX-License-Identifier: MIT
"""Served loaders whose tensors, or whose jobs, are on a GPU.  Without one: on
the simulated runtime."""

import itertools
import os

import pytest

import tsock
from conftest import finish
from simulated import LIBRARY, SIM, STAND_IN, ride, sim, torch

FIXTURES = (ride, sim, torch)


SERVER = """
import numpy, tsock
batches = [
    {"x": numpy.arange(at, at + 40, dtype="float32").reshape(10, 4),
     "y": numpy.arange(at, at + 10), "name": [str(at + i) for i in range(10)]}
    for at in range(0, 1000, 10)
]
with tsock.serve(batches, "mine", epochs=1) as server:
    server.run()
"""


def test_a_served_loader_is_uploaded_once_for_those_on_a_gpu(
    sim, script, ride
):
    server = script(SERVER, LIBTSOCK_PATH=LIBRARY)
    ride(
        """
loaders = [tsock.DataLoader("mine", size, device="cuda:1", framework="numpy",
                            fields=("x", "y"), wait=60)
           for size in (16, 16)]
at = 0
for batches in zip(*loaders):
    for loader, (x, y) in zip(loaders, batches):
        x, y = (t.copy(loader._cuda.current) for t in (x, y))
        loader._cuda.wait()
        assert x.dtype == "float32" and y.dtype == "int64"
        for i in range(len(y)):
            assert y[i] == at + i
            first = (at + i) // 10 * 10 + (at + i) % 10 * 4
            assert x[i].tolist() == [first + k for k in range(4)]
    # At its end the stream may be gone, with all that it had handed out.
    if not at:
        rows = tsock.query("mine")["rows"]
        assert len(rows) == 2 and len({row["view"] for row in rows}) == 1
    at += len(y)
assert at == 1000, at
assert {loader.transport for loader in loaders} == {"vmm"}
"""
    )
    finish(server)


ON_GPU = STAND_IN + """
import threading, time

lent, given_back, fetched = [0], [0], [0]
threads = set()
stream = P()
cu("cudaSetDevice", int(os.environ["DEVICE"]))
cu("cudaStreamCreateWithFlags", ctypes.byref(stream), 1)
kept = []  # what copies still read


def copy(to, at, size, kind):
    cu("cudaMemcpyAsync", P(to), P(at), ctypes.c_size_t(size), kind, stream)


class Array:
    def __init__(self, values):
        lent[0] += 1
        kept.append(values)
        self.shape, self.values = values.shape, values
        p = P()
        cu("cudaSetDevice", int(os.environ["DEVICE"]))
        cu("cudaMalloc", ctypes.byref(p), ctypes.c_size_t(values.nbytes))
        self.address = p.value
        copy(p.value, values.ctypes.data, values.nbytes, 1)
        self.__cuda_array_interface__ = dict(
            shape=values.shape, typestr=values.dtype.str, strides=None,
            data=(p.value, False), version=3, stream=stream.value)

    def __dlpack_device__(self):
        return 2, int(os.environ["DEVICE"])

    def get(self):
        fetched[0] += 1
        return self.values.copy()

    def __del__(self):
        given_back[0] += 1
        threads.add(threading.current_thread().name)
        garbage = numpy.full(self.shape, 77, self.values.dtype)
        kept.append(garbage)
        copy(self.address, garbage.ctypes.data, garbage.nbytes, 1)


alive = {}  # the arrays of capsules, by their addresses


@ctypes.PYFUNCTYPE(None, P)
def give_back_lent(capsule):
    del alive[capsule]


class Lender:  # what only its __dlpack__() shows to be an array
    def __init__(self, values):
        self._values = values

    def __dlpack__(self, stream=None, dl_device=(2, 0)):
        # What is lent is the capsule's alone.
        array, values, device = Array(self._values), self._values, (1, 0)
        if dl_device == (2, 0):
            done, device = P(), array.__dlpack_device__()
            cu("cudaSetDevice", device[1])
            cu("cudaEventCreateWithFlags", ctypes.byref(done), 2)
            cu("cudaEventRecord", done, stream_of_arrays)
            cu("cudaStreamWaitEvent", P(stream or 1), done, 0)
        else:
            values = array.get()
        at = values.ctypes.data if device[0] == 1 else array.address
        shape = (ctypes.c_int64 * values.ndim)(*values.shape)
        made = tensors._Managed()
        made.tensor = tensors._Tensor(
            data=at - 16, device_type=device[0], device_id=device[1],
            ndim=values.ndim, code="iuf".index(values.dtype.kind),
            bits=8 * values.itemsize, lanes=1, shape=shape, byte_offset=16)
        made.deleter = 1  # is never called: nobody takes the tensor
        capsule = tensors._new(
            ctypes.addressof(made), tensors._NAMES[0], give_back_address)
        alive[id(capsule)] = made, shape, values, array
        return capsule


stream_of_arrays = stream
give_back_address = ctypes.cast(give_back_lent, P)
on_gpu = Lender if os.environ.get("LENT") else Array
N = int(os.environ["N"])


class Loader:
    batch_size = 10

    def __len__(self):
        return N // 10

    def __iter__(self):
        for at in range(0, N, 10):
            y = numpy.arange(at, at + 10)
            x = y[:, None] * numpy.ones(4, "float32") + numpy.arange(4)
            yield {"x": on_gpu(x.astype("float32")), "y": y,
                   "z": on_gpu(y.astype("int16")), "name": list(map(str, y))}
"""

SERVE_ON_GPU = (
    ON_GPU
    + """
with tsock.serve(Loader(), "mine", epochs=2, min_consumers=2, length=N,
                 ring=64, max_batch=16, identity="on a gpu") as server:
    server.run()
    copied = server.stats()["copied_bytes"]
assert copied == 2 * N * (16 + 8 + 2 + 260), copied
cu("cudaStreamSynchronize", stream)
assert given_back == lent, (given_back, lent)
# The digest of the first batch alone comes by way of the host.
print(fetched[0], len(threads - {"tsock-copy", "tsock-serve", "MainThread"}))
"""
)

READ_BOTH = """
N = int(os.environ["N"])
host = tsock.DataLoader("mine", 16, framework="numpy", wait=60)
mine = tsock.DataLoader("mine", 9, device="cuda:" + sys.argv[1],
                        zero_copy=True, framework="numpy", fields=("x", "y"),
                        wait=60)
seen = []


def read():
    for epoch in range(2):
        for batch in host:
            y = batch["y"]
            assert (batch["x"][:, 3] == y + 3).all()
            assert (batch["z"] == y).all() and batch["z"].dtype == "int16"
            assert batch["name"] == list(map(str, y))
            seen.extend(y.tolist())


import threading
thread = threading.Thread(target=read)
thread.start()
at = 0
for epoch in range(2):
    for x, y in mine:
        x, y = x.copy(mine._cuda.current), y.copy(mine._cuda.current)
        mine._cuda.wait()
        assert (y == numpy.arange(at, at + len(y)) % N).all(), y
        assert (x == y[:, None] + numpy.arange(4)).all(), x
        at += len(y)
thread.join()
assert at == 2 * N and seen == 2 * list(range(N))
"""


@pytest.mark.parametrize("mode", ["late", "random"])
@pytest.mark.parametrize("device", "01")
def test_a_served_loader_on_a_gpu_stays_there(
    sim, script, ride, device, mode
):
    sim_mode = dict(SIMCUDA_MODE=mode, SIMCUDA_LATE_MS="20")
    server = script(
        SERVE_ON_GPU, LIBTSOCK_PATH=LIBRARY, DEVICE="1", N="200", **sim_mode
    )
    ride(READ_BOTH, device, N="200", **sim_mode)
    fetched, elsewhere = map(int, finish(server)[0].split())
    assert fetched == 2
    # On the loader's GPU a view's thread has given back what it has copied.
    assert elsewhere or device == "0"


@pytest.mark.parametrize("mode", ["late", "random"])
def test_arrays_that_only_lend_themselves_stay_on_the_gpu(
    sim, script, ride, mode
):
    sim_mode = dict(SIMCUDA_MODE=mode, SIMCUDA_LATE_MS="20")
    server = script(
        SERVE_ON_GPU + "assert not alive",
        LIBTSOCK_PATH=LIBRARY,
        DEVICE="1",
        N="200",
        LENT="1",
        **sim_mode
    )
    ride(READ_BOTH, "1", N="200", **sim_mode)
    fetched, _ = map(int, finish(server)[0].split())
    assert fetched == 2


def test_a_served_loader_on_a_gpu_without_cuda_goes_by_the_host(
    sim, script, place
):
    server = script(SERVE_ON_GPU.replace(
        "os.path.dirname(_ffi.path)", repr(os.path.join(SIM, "lib"))
    ).replace("min_consumers=2", "min_consumers=1"), DEVICE="0", N="200")
    seen = []
    loader = tsock.DataLoader("mine", 16, framework="numpy", wait=60)
    for _ in range(2):
        for batch in loader:
            assert (batch["x"][:, 3] == batch["y"] + 3).all()
            assert (batch["z"] == batch["y"]).all()
            seen += batch["y"].tolist()
    assert seen == 2 * list(range(200))
    loader.close()
    fetched, _ = map(int, finish(server)[0].split())
    assert fetched == 2 + 2 * 2 * 20


def test_arrays_on_a_gpu_that_can_t_be_served_are_told(sim, ride):
    ride(
        ON_GPU
        + """
def refused(text, **said):
    array = Array(numpy.zeros((10, 4), "float32"))
    array.__cuda_array_interface__.update(said)
    try:
        tsock.serve([{"x": array}], "mine")
    except TypeError as e:
        assert text in str(e), e
    else:
        raise SystemExit(text)


refused("isn't contiguous", strides=(4, 40))
refused("type <V2", typestr="<V2")
refused("numbers can", mask=1)
# As a C program would say it, and as some libraries do.
array = Array(numpy.zeros((10, 4), "float32"))
array.__cuda_array_interface__["strides"] = (16, 4)
with tsock.serve([{"x": array}], "mine"):
    pass
cu("cudaStreamSynchronize", stream)
""",
        DEVICE="0",
        N="10",
    )


# ---- with a GPU -----------------------------------------------------------


def test_a_served_loader_of_torch_tensors_stays_on_a_real_gpu(torch, served):
    at = torch.arange(200, device="cuda")
    batches = [
        (at[i : i + 10, None] + torch.zeros(3, device="cuda"), at[i : i + 10])
        for i in range(0, 200, 10)
    ]
    served(batches, epochs=1, min_consumers=2)
    host = tsock.DataLoader("mine", 16)
    mine = tsock.DataLoader("mine", 16, device="cuda")
    n = 0
    for a, b in itertools.zip_longest(mine, host):
        assert all(x.is_cuda and torch.equal(x.cpu(), y) for x, y in zip(a, b))
        assert torch.equal(b[1], torch.arange(n, n + len(b[1])))
        assert torch.equal(b[0][:, 2], b[1].float())
        n += len(b[1])
    assert n == 200
