# SPDX-License-Identifier: MIT
"""Loaders on a GPU.  Without one: on the simulated runtime, with a stand-in
for torch's tensors and streams, in processes of their own."""

import itertools
import os
import shutil

import pytest

import tsock
from conftest import N, SIZE, finish, until
from simulated import LIBRARY, STAND_IN, newer_source, ride, sim, torch

FIXTURES = (ride, sim, torch)


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
    # Both loaders get to the end; leaving earlier would be another case.
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

# Each pair of two columns.
WAYS = [
    ("vmm", "0", "float32", "chw"),
    ("vmm", "1", "uint8", "hwc"),
    ("legacy", "0", "uint8", "hwc"),
    ("legacy", "1", "float32", "chw"),
    ("staged", "0", "float32", "chw"),
    ("staged", "1", "uint8", "hwc"),
    ("auto", "0", "float16", "hwc"),
    ("auto", "1", "float16", "chw"),
]


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_a_loader_on_a_gpu_gives_what_one_on_the_host_gives(sim, ride, way):
    sim("--ring", 64, "--max-batch", 16, "--join-window", 32)
    mode = "late" if way[0] == "legacy" else "random"
    ride(SAME, *way, mode, N=str(N), SIMCUDA_MODE=mode, SIMCUDA_LATE_MS="20")


MASKS = """
asked = dict(fields=("image", "mask", "index"), framework="numpy",
             batch_size=16, timeout=120, dtype="float32")
mine = tsock.DataLoader("toy", device="cuda:1", zero_copy=sys.argv[1] == "1",
                        **asked)
host = tsock.DataLoader("toy", **asked)
iterators = iter(mine), iter(host)
for ours, theirs in zip(*iterators):
    copies = [t.copy(mine._cuda.current) for t in ours]
    mine._cuda.wait()
    for a, b in zip(theirs, copies):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert (a == b).all()
    assert copies[1].dtype == numpy.uint8 and copies[1].max() > 0
    del ours, theirs
"""


@pytest.mark.parametrize("zero_copy", "01")
def test_masks_are_on_the_gpu_with_their_images(
    sim, ride, images, tmp_path, zero_copy
):
    image = pytest.importorskip("PIL.Image")
    for path in images.glob("*/*.jpg"):
        mask = tmp_path / path.relative_to(images).with_suffix(".png")
        mask.parent.mkdir(exist_ok=True)
        with image.open(path) as picture:
            picture.convert("L").save(mask)
    sim("--ring", 64, "--max-batch", 16, "--join-window", 32, "--masks", tmp_path)
    ride(MASKS, zero_copy)


@pytest.mark.parametrize(
    "transport, layout", [("vmm", "chw"), ("legacy", "hwc"), ("staged", "hwc")]
)
def test_one_channel_on_a_gpu_is_that_of_the_host(sim, ride, transport, layout):
    sim("--ring", 64, "--max-batch", 16, "--join-window", 32, "--transform",
        "Resize((31, 30)) Grayscale(1)")
    normalize = "asked.update(normalize=((0.5,), (0.3,)))\nhost ="
    ride(SAME.replace("host =", normalize, 1), transport, "1", "float16",
         layout, "random", N=str(N), SIMCUDA_MODE="random")


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


RAGGED = """
transport, zero_copy = sys.argv[1:]
asked = dict(fields=("tokens", "spots", "tokens_length", "spots_length", "n"),
             framework="numpy", batch_size=4, timeout=120)
host = tsock.DataLoader("toy", **asked)
mine = tsock.DataLoader("toy", device="cuda:1", zero_copy=zero_copy == "1",
                        transport=transport, **asked)
seen, late, widths = [], [], set()
for theirs, ours in itertools.zip_longest(host, mine):
    # The copies are late, and the widths are those of the batch all the same.
    copies = [t.copy(mine._cuda.current) for t in ours]
    late.append((theirs, copies, None if zero_copy == "1" else ours))
    for a, b in zip(theirs, ours):
        assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, b.shape)
    widths.add(ours[0].shape[1])
    del theirs, ours, copies
mine._cuda.wait()
for theirs, copies, _ in late:
    for a, b in zip(theirs, copies):
        assert (a == b).all()
    tokens, spots, n, m, which = copies
    for k, i in enumerate(which.tolist()):
        assert n[k] == i % 11 and m[k] == (i + 2) % 4
        assert tokens[k].tolist() == (
            [i * 100 + t for t in range(n[k])] + [-7] * (tokens.shape[1] - n[k])
        )
        assert (spots[k, : m[k]] == i).all() and not spots[k, m[k] :].any()
        seen.append(i)
assert sorted(seen) == list(range(int(os.environ["N"]))), sorted(seen)
assert len(widths) > 1 and max(widths) == 10, widths
assert mine.transport == transport
del late, theirs, copies
mine.close()
"""


@pytest.mark.parametrize("transport", ["vmm", "legacy", "staged"])
@pytest.mark.parametrize("zero_copy", "01")
def test_ragged_fields_on_a_gpu_are_cut_to_the_longest(
    sim, ride, images, tmp_path, transport, zero_copy
):
    np = pytest.importorskip("numpy")
    n = 70
    paths = itertools.cycle(sorted(images.glob("*/*.jpg")))
    rows = (
        (
            next(paths),
            {
                "n": i,
                "tokens": np.int32([100 * i + k for k in range(i % 11)]),
                "spots": np.full(((i + 2) % 4, 2), i, "float32"),
            },
        )
        for i in range(n)
    )
    tsock.index(rows, tmp_path / "t", pad={"tokens": -7})
    sim("--dataset", "table", "--ring", 64, "--max-batch", 16,
        "--join-window", 32, root=tmp_path / "t")
    ride(RAGGED, transport, zero_copy, N=str(n), SIMCUDA_MODE="random",
         SIMCUDA_LATE_MS="20")
