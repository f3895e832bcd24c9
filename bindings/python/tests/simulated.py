# SPDX-License-Identifier: MIT
"""What tests of GPUs share: the simulated CUDA runtime, with a stand-in for
torch's tensors and streams, in processes of their own; torch on a real one."""

import functools
import glob
import itertools
import os

import pytest

from conftest import CHECKOUT, finish

SIM = os.environ.get("TSOCK_BUILD_SIM", os.path.join(CHECKOUT, "build-sim"))
LIBRARY = os.path.join(SIM, "lib", "libtsock.so.0.1")
PRODUCER = os.path.join(SIM, "bin", "tsock-producer")

STAND_IN = """
import ctypes, itertools, os, sys
import numpy
import tsock
from tsock import _ffi, gpu, tensors

lib = _ffi.lib
rt = ctypes.CDLL(os.path.join(os.path.dirname(_ffi.path), "libcudart_sim.so"))
for name in ("cudaMalloc", "cudaFree", "cudaMemcpyAsync", "cudaSetDevice",
             "cudaStreamSynchronize", "cudaStreamCreateWithFlags",
             "cudaStreamBeginCapture", "cudaStreamEndCapture"):
    getattr(rt, name).restype = ctypes.c_int
KINDS = {0: "i", 1: "u", 2: "f"}
P = ctypes.c_void_p


def cu(name, *arguments):
    code = getattr(rt, name)(*arguments)
    assert code == 0, (name, code)


class Tensor:
    def __init__(self, address, shape, dtype, free):
        self.address, self.shape = address, tuple(shape)
        self.dtype, self.free = numpy.dtype(dtype), free

    def copy(self, stream):
        out = numpy.empty(self.shape, self.dtype)
        cu("cudaMemcpyAsync", P(out.ctypes.data), P(self.address),
           ctypes.c_size_t(out.nbytes), 2, P(stream))
        return out

    def __getitem__(self, key):  # [:, :n], a view of these bytes
        rows, values = key
        assert rows == slice(None) and (values.start, values.step) == (None, None)
        return View(self, values.stop)

    def max(self):  # a number: queued, and waited for, as int() of torch's
        out = self.copy(Tensor.current)
        cu("cudaStreamSynchronize", P(Tensor.current))
        return out.max()

    def __del__(self):
        self.free()


class View:
    def __init__(self, base, n):
        self.base, self.n = base, n
        self.shape = base.shape[:1] + (n,) + base.shape[2:]
        self.dtype = base.dtype

    def copy(self, stream):
        return self.base.copy(stream)[:, : self.n]


class Cuda:
    def __init__(self, device, importer):
        self.device = str(device)
        self.ordinal = int(self.device.rpartition(":")[2])
        cu("cudaSetDevice", self.ordinal)
        s = P()
        cu("cudaStreamCreateWithFlags", ctypes.byref(s), 1)
        self.current = Tensor.current = s.value

    def stream(self, which=None):
        return self.current if which is None else which

    def empty(self, shape, dtype):
        size = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
        p = P()
        cu("cudaMalloc", ctypes.byref(p), ctypes.c_size_t(size))
        return Tensor(p.value, shape, dtype, lambda: rt.cudaFree(p)), p.value

    def lend(self, batch, i):
        address = tensors.lend(batch, i, 1)
        t = tensors._Versioned.from_address(address).tensor
        assert (t.device_type, t.device_id) == (2, self.ordinal)
        return Tensor(t.data, t.shape[: t.ndim],
                      KINDS[t.code] + str(t.bits // 8),
                      lambda: tensors.give_back(address, 1))

    def wait(self):
        cu("cudaStreamSynchronize", P(self.current))


gpu.Cuda = Cuda
"""


@functools.lru_cache
def newer_source(checkout, build):
    """A source that one of a build's objects is older than; "": none is.

    Which sources an object has is in a file beside it, or, where builds share
    objects, beside the same one in build/obj.
    """
    for made in itertools.chain.from_iterable(
        glob.iglob("%s/obj/%s/**/*.o" % (build, part), recursive=True)
        for part in ("lib", "producer", "test/simcuda")
    ):
        name = os.path.relpath(made, build)
        for folder in (build, os.path.join(checkout, "build")):
            said = os.path.join(folder, name[:-1] + "d")
            if os.path.exists(said):
                break
        else:
            continue
        with open(said) as f:
            rule = f.read().replace("\\\n", " ").partition("\n")[0]
        for source in rule.partition(":")[2].split():
            path = os.path.join(checkout, source)
            try:
                if os.path.getmtime(path) > os.path.getmtime(made):
                    return source
            except FileNotFoundError:
                return source  # it has another name now
    return ""


def need_sim():
    """Skip where the simulated build is missing, or of other sources."""
    make = "make CUDA=sim"
    if not os.path.exists(LIBRARY) or not os.path.exists(PRODUCER):
        pytest.skip("no simulated build: " + make)
    newer = newer_source(CHECKOUT, SIM)
    if newer:
        pytest.skip("the simulated build is older than %s: %s" % (newer, make))


@pytest.fixture
def sim(serve, monkeypatch):
    """serve() with the simulated runtime in the producer."""
    need_sim()
    pytest.importorskip("numpy")
    monkeypatch.setattr("conftest.PRODUCER", PRODUCER)
    return serve


@pytest.fixture
def ride(script):
    def run(text, *arguments, **environment):
        return finish(
            script(
                STAND_IN + text,
                *arguments,
                LIBTSOCK_PATH=LIBRARY,
                **environment
            )
        )[0]

    return run


@pytest.fixture
def torch():
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("no GPU")
    return found
