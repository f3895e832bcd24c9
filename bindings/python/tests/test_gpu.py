# SPDX-License-Identifier: MIT
"""Loaders on a GPU.  Without one: on the simulated runtime, with a stand-in
for torch's tensors and streams, in processes of their own."""

import functools
import glob
import itertools
import os
import shutil

import pytest

import tsock
from conftest import CHECKOUT, N, SIZE, finish, until

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

    def __del__(self):
        self.free()


class Cuda:
    def __init__(self, device, importer):
        self.device = str(device)
        self.ordinal = int(self.device.rpartition(":")[2])
        cu("cudaSetDevice", self.ordinal)
        s = P()
        cu("cudaStreamCreateWithFlags", ctypes.byref(s), 1)
        self.current = s.value

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
    """Skip where the simulated build isn't there, or isn't of these sources."""
    make = "make CUDA=sim"
    if not os.path.exists(LIBRARY) or not os.path.exists(PRODUCER):
        pytest.skip("no simulated build: " + make)
    newer = newer_source(CHECKOUT, SIM)
    if newer:
        pytest.skip("the simulated build is older than %s: %s" % (newer, make))


def test_a_simulated_build_older_than_its_sources_is_noticed(tmp_path):
    def write(name, text, when):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (when, when))

    def newer():
        newer_source.cache_clear()
        return newer_source(str(tmp_path), str(tmp_path / "build-sim"))

    write("lib/a.c", "", 10)
    write("lib/a.h", "", 20)
    write("build-sim/obj/lib/a.o", "", 30)
    write("build-sim/obj/lib/a.d", "a.o: lib/a.c \\\n lib/a.h\nlib/a.h:\n", 30)
    # One that builds share, whose sources stand in the other's folder.
    write("lib/b.c", "", 10)
    write("build-sim/obj/lib/b.o", "", 30)
    write("build/obj/lib/b.d", "b.o: lib/b.c\n", 30)
    assert newer() == ""
    write("lib/a.h", "", 40)
    assert newer() == "lib/a.h"
    write("lib/a.h", "", 20)
    write("lib/b.c", "", 40)
    assert newer() == "lib/b.c"
    os.remove(tmp_path / "lib/b.c")
    assert newer() == "lib/b.c"
    newer_source.cache_clear()


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


SAME = """
transport, zero_copy, dtype, layout, mode = sys.argv[1:]
asked = dict(dtype=dtype, layout=layout, fields=("image", "label", "index"),
             framework="numpy", batch_size=16)
host = tsock.DataLoader("toy", **asked)
mine = tsock.DataLoader("toy", device="cuda:1", zero_copy=zero_copy == "1",
                        transport=None if transport == "auto" else transport,
                        **asked)
assert mine.transport is None and host.transport is None
assert mine.device == "cuda:1"
seen, late = [], []
for epoch in range(2):
    # Both hear of the end: who doesn't has left in the middle.
    for theirs, ours in itertools.zip_longest(host, mine):
        # Looked at now, and by a copy that is queued and looked at later.
        copies = [t.copy(mine._cuda.current) for t in ours]
        late.append((theirs, copies, None if zero_copy == "1" else ours))
        if len(late) > 3:
            mine._cuda.wait()
            theirs, copies, _ = late.pop(0)
            for a, b in zip(theirs, copies):
                assert a.dtype == b.dtype and a.shape == b.shape
                assert (a == b).all()
            seen += copies[2].tolist()
        del theirs, ours, copies
    assert mine.epoch == host.epoch
mine._cuda.wait()
for theirs, copies, _ in late:
    for a, b in zip(theirs, copies):
        assert (a == b).all()
    seen += copies[2].tolist()
assert sorted(seen) == sorted(2 * list(range(int(os.environ["N"]))))
expected = "vmm" if transport == "auto" else transport
assert mine.transport == expected, mine.transport
del late, theirs, copies
mine.close()
"""

WAYS = [
    (transport, zero, dtype, layout)
    for transport in ("vmm", "legacy", "staged")
    for zero in "01"
    for dtype, layout in (("float32", "chw"), ("uint8", "hwc"))
] + [("auto", "0", "float16", "hwc"), ("auto", "1", "float16", "chw")]


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_a_loader_on_a_gpu_gives_what_one_on_the_host_gives(sim, ride, way):
    sim("--ring", 64, "--max-batch", 16, "--join-window", 32)
    mode = "late" if way[0] == "legacy" else "random"
    ride(SAME, *way, mode, N=str(N), SIMCUDA_MODE=mode, SIMCUDA_LATE_MS="20")


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


OVER_A_SWITCH = """
import time
way, said, go = sys.argv[1:]
asked = dict(dtype="uint8", layout="hwc", fields=("image", "index"),
             framework="numpy", batch_size=16, timeout=120)
if way != "host":
    asked.update(device="cuda:1", zero_copy=way[-1] == "1", transport=way[:-1])
mine = tsock.DataLoader("toy", **asked)
for epoch in range(2):
    seen = {}
    for images, index in mine:
        if way != "host":
            images, index = (t.copy(mine._cuda.current)
                             for t in (images, index))
            mine._cuda.wait()
        for image, i in zip(images, index.tolist()):
            seen[i] = int((image.astype("int64").ravel()
                           * (numpy.arange(image.size) % 251 + 1)).sum())
        if not epoch and not os.path.exists(go):
            open(said + way, "w").close()
            while not os.path.exists(go):
                time.sleep(0.01)
    print(mine.stream_epoch, sorted(seen.items()), flush=True)
    assert way == "host" or mine.transport == way[:-1]
"""


def test_loaders_on_a_gpu_go_on_with_the_files_that_were_added(
    sim, script, images, tmp_path
):
    tree = tmp_path / "tree"
    shutil.copytree(images, tree)
    served = sim("--grows", "--ring", 64, "--max-batch", 16, root=tree)
    go = tmp_path / "go"
    ways = ("host", "vmm1", "vmm0", "legacy1", "staged0")
    readers = [
        script(STAND_IN + OVER_A_SWITCH, way, "%s-" % go, go,
               LIBTSOCK_PATH=LIBRARY)
        for way in ways
    ]
    until(
        lambda: all(os.path.exists("%s-%s" % (go, way)) for way in ways),
        what="everybody's first batch",
    )
    shutil.copy(tree / "class1" / "001.jpg", tmp_path / "new.jpg")
    os.rename(tmp_path / "new.jpg", tree / "class1" / "new.jpg")
    until(
        lambda: "the data set has changed: " in served.log.read_text(),
        what="the change",
    )
    go.touch()
    host, *others = [finish(reader)[0] for reader in readers]
    epochs = [line.partition(" ") for line in host.splitlines()]
    assert [int(epoch) for epoch, _, _ in epochs] == [0, 1]
    assert [line.count("(") for _, _, line in epochs] == [N, N + 1]
    for other in others:
        assert other == host


# Arrays as CuPy's are, in memory that is filled late and, once nobody has the
# array any more, with other bytes.
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


N = int(os.environ["N"])


class Loader:
    batch_size = 10

    def __len__(self):
        return N // 10

    def __iter__(self):
        for at in range(0, N, 10):
            y = numpy.arange(at, at + 10)
            x = y[:, None] * numpy.ones(4, "float32") + numpy.arange(4)
            yield {"x": Array(x.astype("float32")), "y": y,
                   "z": Array(y.astype("int16")), "name": list(map(str, y))}
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
mine = tsock.DataLoader("mine", 9, device="cuda:" + sys.argv[1], zero_copy=True,
                        framework="numpy", fields=("x", "y"), wait=60)
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


def test_use_names_more_streams_for_the_batch_given_last(sim, ride):
    sim("--ring", 64, "--max-batch", 16, "--join-window", 16)
    ride(
        """
mine = tsock.DataLoader("toy", 16, device="cuda:0", zero_copy=True,
                        framework="numpy")
other = ctypes.c_void_p()
cu("cudaStreamCreateWithFlags", ctypes.byref(other), 1)
try:
    mine.use(other.value)
    raise SystemExit("used what isn't there")
except tsock.Error as e:
    assert "next()" in str(e)
n = 0
for images, labels in mine:
    mine.use(other.value)
    images.copy(other.value)
    n += images.shape[0]
    del images, labels
assert n == int(os.environ["N"]), n
private = tsock.DataLoader("toy", 16, device="cuda:0", framework="numpy")
private.use(other.value)  # nothing to do
""",
        N=str(N),
    )


def test_a_batch_survives_a_capture_that_refused_it(sim, ride):
    sim("--ring", 64, "--max-batch", 16, "--join-window", 16)
    ride(
        """
for zero_copy in (False, True):
    mine = tsock.DataLoader("toy", 16, device="cuda:0", zero_copy=zero_copy,
                            framework="numpy", fields=("index",))
    stream, graph = mine._cuda.current, ctypes.c_void_p()
    batches, seen = iter(mine), []
    for i in range(3):
        out = next(batches)[0].copy(stream)
        mine._cuda.wait()
        seen += out.tolist()
    cu("cudaStreamBeginCapture", P(stream), 2)
    try:
        next(batches)
        raise SystemExit("captured")
    except tsock.Error as e:
        assert e.code == "TSOCK_ENOTSUP" and "captur" in str(e), e
    cu("cudaStreamEndCapture", P(stream), ctypes.byref(graph))
    for index, in batches:
        out = index.copy(stream)
        mine._cuda.wait()
        seen += out.tolist()
        del index
    assert sorted(seen) == list(range(int(os.environ["N"])))
""",
        N=str(N),
    )


def test_a_loader_that_keeps_every_batch_of_its_own(sim, ride):
    sim("--ring", 64, "--max-batch", 16, "--join-window", 16)
    for transport in ("vmm", "staged"):
        ride(
            """
mine = tsock.DataLoader("toy", 16, device="cuda:0", transport=sys.argv[1],
                        framework="numpy", fields=("index", "image"))
kept = list(mine)
out = [b[0].copy(mine._cuda.current) for b in kept]
mine._cuda.wait()
assert sorted(int(i) for o in out for i in o) == list(
    range(int(os.environ["N"])))
""",
            transport,
            N=str(N),
            SIMCUDA_LATE_MS="10",
        )


def test_a_zero_copy_loader_that_keeps_too_much_is_told_so(sim, ride):
    sim("--ring", 64, "--max-batch", 16, "--join-window", 16)
    out = ride(
        """
mine = tsock.DataLoader("toy", 16, device="cuda:0", zero_copy=True,
                        framework="numpy")
kept = []
try:
    for batch in mine:
        kept.append(batch)
except tsock.Error as e:
    print(e.code, e)
"""
    )
    assert "TSOCK_EHELD" in out and "TSOCK_GPU_STORED" in out


def test_a_loader_leaves_when_its_iterator_goes(sim, ride):
    sim("--ring", 64, "--max-batch", 16, "--join-window", 16)
    ride(
        """
import time
for zero_copy in (False, True):
    mine = tsock.DataLoader("toy", 16, device="cuda:0", zero_copy=zero_copy,
                            framework="numpy")
    for batch in mine:
        break
    del batch
    while tsock.query("toy")["consumers"]:
        time.sleep(0.01)
    assert sum(len(b[1].shape) and b[1].shape[0] for b in mine) == int(
        os.environ["N"])
""",
        N=str(N),
        SIMCUDA_LATE_MS="100",
    )


def test_devices_are_listed(sim, ride):
    sim()
    out = ride("print(*tsock.devices(), sep=chr(10))", SIMCUDA_DEVICES="3")
    assert len(out.strip().split("\n")) == 3 and "Simulated" in out
    out = ride("print(*tsock.devices(), sep=chr(10))", SIMCUDA_DRIVER="none")
    assert len(out.strip().split("\n")) == 1 and "driver" in out


def test_query_tells_the_path_of_each_reader(sim, ride):
    sim()
    out = ride(
        """
mine = tsock.DataLoader("toy", 16, device="cuda:0", transport="legacy",
                        framework="numpy")
batches = iter(mine)
next(batches)
print([row["transport"] for row in tsock.query("toy")["rows"]])
"""
    )
    assert out.strip() == "[2]"


# ---- without any runtime --------------------------------------------------


def test_devices_that_make_no_sense_are_errors():
    pytest.importorskip("torch")
    for device in ("cpu:3x", "meta", "gpu0", 1.5):
        with pytest.raises(ValueError, match="cuda:0"):
            tsock.DataLoader("toy", 4, device=device)
    with pytest.raises(ValueError, match="numpy"):
        tsock.DataLoader("toy", 4, device="cuda", framework="numpy")
    with pytest.raises(ValueError, match="without a device"):
        tsock.DataLoader("toy", 4, transport="vmm")
    with pytest.raises(ValueError, match="'staged'"):
        tsock.DataLoader("toy", 4, device="cuda", transport="fast")


def test_a_torch_without_a_gpu_is_an_error_that_says_so():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ValueError, match="torch"):
        tsock.DataLoader("toy", 4, device="cuda:0")


def test_cpu_is_host_memory(serve):
    torch = pytest.importorskip("torch")
    serve()
    for device in ("cpu", torch.device("cpu"), None):
        loader = tsock.DataLoader("toy", 16, device=device, zero_copy=True)
        assert loader.device is None and loader.transport is None
        images, _ = next(iter(loader))
        assert images.shape == (16, 3, SIZE, SIZE) and loader.transport is None
        loader.use(7)  # nothing to do
        images.add_(1)


# ---- with a GPU -----------------------------------------------------------


@pytest.fixture
def torch():
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("no GPU")
    return found


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


@pytest.mark.parametrize("zero_copy", [False, True])
def test_torch_tensors_on_a_real_gpu(serve, torch, zero_copy):
    serve("--ring", 64, "--max-batch", 16, "--join-window", 16)
    mine = tsock.DataLoader("toy", 16, device="cuda", zero_copy=zero_copy)
    host = tsock.DataLoader("toy", 16)
    side = torch.cuda.Stream()
    for a, b in itertools.zip_longest(mine, host):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            mine.use(side)
            late = a[0] * 1
        assert all(x.is_cuda and torch.equal(x.cpu(), y) for x, y in zip(a, b))
        assert torch.equal(late.cpu(), b[0])
        if not zero_copy:
            a[0].zero_()
        del a, late
    assert mine.transport in ("vmm", "legacy", "staged")
