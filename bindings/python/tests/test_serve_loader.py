# SPDX-License-Identifier: MIT
"""tsock.serve(): a loader's batches arrive as they were, in any batch size."""

import collections
import threading

import pytest

import tsock
from conftest import finish, until

numpy = pytest.importorskip("numpy")

N = 103


def cut(make, n=N, size=16):
    """make(indices) of each batch, as a list."""
    return [make(range(i, min(i + size, n))) for i in range(0, n, size)]


def images(indices):
    return numpy.stack(
        [numpy.full((3, 4, 5), i, "float32") + 0.25 for i in indices]
    )


def labels(indices):
    return numpy.array([i * 7 for i in indices], "int64")


def loader_of(**keywords):
    keywords.setdefault("framework", "numpy")
    return tsock.DataLoader("mine", **keywords)


def read_side_by_side(sizes, epochs):
    """The batches of each epoch, by batch size."""
    seen = {}

    def read(size):
        loader = loader_of(batch_size=size)
        seen[size] = [list(loader) for _ in range(epochs)]

    threads = [threading.Thread(target=read, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


# ---- samples of fixed shapes ----


@pytest.mark.parametrize("size", [1, 16, 33, None])
def test_bytes_are_the_loaders(served, size):
    batches = cut(lambda at: [images(at), labels(at)])
    served(batches, epochs=1)
    loader = loader_of(batch_size=size)
    assert loader.batch_size == (size or 16)
    got = list(loader)
    assert len(got) == len(loader) and type(got[0]) is list
    for i, which in enumerate((images, labels)):
        everything = numpy.concatenate([batch[i] for batch in got])
        assert everything.dtype == which(range(2)).dtype
        assert (everything == which(range(N))).all()


def test_consumers_with_other_batch_sizes_see_the_same(served):
    batches = cut(lambda at: (images(at), labels(at)))
    served(batches, epochs=2, min_consumers=3)
    seen = read_side_by_side((7, 16, 50), 2)
    assert sorted(seen) == [7, 16, 50]
    for epochs in seen.values():
        for epoch in epochs:
            got = numpy.concatenate([batch[1] for batch in epoch])
            assert (got == labels(range(N))).all()


def test_a_ring_smaller_than_the_epoch_wraps(served):
    batches = cut(lambda at: {"x": images(at), "y": labels(at)})
    server = served(batches, epochs=3, ring=40, max_batch=10, threads=3)
    loader = loader_of(batch_size=10)
    for _ in range(3):
        got = list(loader)
        assert (numpy.concatenate([b["x"] for b in got]) == images(
            range(N))).all()
        assert (numpy.concatenate([b["y"] for b in got]) == labels(
            range(N))).all()
    loader.close()
    server.run()
    assert server.stats()["produced"] == 3 * N and server.closed


def test_the_loader_runs_ahead_of_those_who_read(served):
    """The loader has filled the ring, and given one more batch, which waits."""
    given = []

    class Counted:
        def __iter__(self):
            for batch in cut(labels, 400, 10):
                given.append(batch)
                yield batch

    server = served(Counted(), length=400, ring=40, max_batch=10)
    loader = loader_of(batch_size=10)
    iterator = iter(loader)
    kept = next(iterator)

    def is_full():
        stats = server.stats()
        return (
            stats["produced"] == stats["limit"]
            and len(given) * 10 == stats["produced"] + 10
        )

    for _ in range(9):
        until(is_full)
        kept = next(iterator)
    assert kept.tolist() == labels(range(90, 100)).tolist()


Point = collections.namedtuple("Point", "x y")


def nested(at):
    return {
        "image": images(at),
        "meta": {
            "path": ["/data/%d ä.jpg" % i for i in at],
            "raw": tuple(b"\0%d\0" % i for i in at),
            7: [labels(at), (labels(at) + 1, None)],
        },
        "point": Point(labels(at) * 2, [i / 3 for i in at]),
        "ids": [i << 40 for i in at],
        "odd": tuple(bool(i % 2) for i in at),
        "even": [numpy.bool_(i % 2 == 0) for i in at],
        "kind": "train",
        "scale": 0.5,
    }


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_nests_strings_and_numbers_come_back(served, framework):
    pytest.importorskip(framework)
    served(cut(nested))
    loader = loader_of(batch_size=10, framework=framework)
    at = 0
    for batch in loader:
        n = len(batch["ids"])
        right = nested(range(at, at + n))
        assert list(batch) == list(right)
        meta, wanted = batch["meta"], right["meta"]
        assert meta["path"] == wanted["path"] and meta["raw"] == wanted["raw"]
        assert type(meta[7]) is list and type(meta[7][1]) is tuple
        assert (numpy.asarray(meta[7][1][0]) == wanted[7][1][0]).all()
        assert meta[7][1][1] is None
        assert type(batch["point"]).__name__ == "Point"
        assert batch["point"]._fields == ("x", "y")
        assert (numpy.asarray(batch["point"].x) == right["point"].x).all()
        assert batch["even"] == right["even"]
        for key in ("ids", "odd", "kind", "scale"):
            assert batch[key] == right[key]
            assert type(batch[key]) is type(right[key])
        assert batch["point"].y == right["point"].y
        at += n
    assert at == N


DTYPES = (
    "bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 float32 "
    "float64 complex64 complex128"
).split()


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_dtypes_and_dimensions_come_back(served, framework):
    pytest.importorskip(framework)
    batch = {
        name: (numpy.arange(8 * 6).reshape(8, 2, 3) % 5).astype(name)
        for name in DTYPES[:13]
    }
    batch["deep"] = numpy.arange(8 * 32.0).reshape(8, 2, 2, 2, 2, 2)
    served([batch, batch], string_bytes=8)
    for got in loader_of(batch_size=4, framework=framework):
        for name, right in batch.items():
            here = numpy.asarray(got[name])
            assert here.dtype == right.dtype and here.shape[1:] == (
                right.shape[1:]
            )
            assert (here == right[:4]).all() or (here == right[4:]).all()
            got[name][0] = 1  # as any other's


def test_torch_tensors_of_every_layout(served):
    torch = pytest.importorskip("torch")
    x = torch.rand(12, 3, 4, 5)
    batches = [
        {
            "plain": x,
            "last": x.contiguous(memory_format=torch.channels_last),
            "half": x.bfloat16().transpose(1, 2),
            "grad": x[:, 0].requires_grad_(),
            "conj": torch.conj(x.to(torch.complex64)),
        }
    ]
    served(batches)
    got = next(iter(loader_of(batch_size=12, framework="torch")))
    for name, right in batches[0].items():
        assert torch.equal(got[name], right.detach().resolve_conj())
        assert got[name].dtype is right.dtype


def test_fields_may_be_chosen_and_flat(served):
    served(cut(nested))
    loader = loader_of(batch_size=9, fields=("meta.path", "point.x"))
    paths, xs = next(iter(loader))
    assert paths == nested(range(9))["meta"]["path"] and len(xs) == 9
    flat = next(iter(loader_of(batch_size=9, as_dict=True)))
    assert flat["meta.7.0"].tolist() == labels(range(9)).tolist()
    with pytest.raises(ValueError, match="has image, meta.path"):
        loader_of(fields=("label",))


def test_a_batch_may_be_one_tensor(served):
    served(cut(labels))
    assert next(iter(loader_of(batch_size=3))).tolist() == [0, 7, 14]


@pytest.mark.parametrize("ragged", [False, True])
def test_the_ranks_of_a_job_read_it_together(served, script, ragged):
    """N samples, or 7 batches of them, are cut into two equal parts."""
    served(cut(lambda at: [labels(at)]), ragged=ragged, epochs=1)
    ranks = [
        script(
            "import sys, tsock\n"
            "loader = tsock.DataLoader('mine', %s, rank=int(sys.argv[1]),\n"
            "    world_size=2, job='both', framework='numpy')\n"
            "print(*[int(v) for (b,) in loader for v in b])\n"
            % (None if ragged else 10),
            rank,
        )
        for rank in (0, 1)
    ]
    one, two = (
        [int(v) for v in finish(process)[0].split()] for process in ranks
    )
    assert set(one) | set(two) == {7 * i for i in range(N)}
    assert len(set(one) & set(two)) <= (16 if ragged else 1)


def test_transform_runs_once_for_all(served):
    calls = []

    def double(batch):
        calls.append(1)
        return [batch[0] * 2, batch[1]]

    batches = cut(lambda at: [images(at), labels(at)])
    served(batches, transform=double, epochs=1, min_consumers=2)
    for (epoch,) in read_side_by_side((8, 20), 1).values():
        got = numpy.concatenate([batch[0] for batch in epoch])
        assert (got == images(range(N)) * 2).all()
    assert len(calls) == len(batches)


# ---- torch's DataLoader ----


class Squares:
    def __len__(self):
        return N

    def __getitem__(self, i):
        return numpy.full((4,), i * i, "float32"), i


def torch_loader(**keywords):
    torch = pytest.importorskip("torch")
    return torch.utils.data.DataLoader(Squares(), **keywords)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_torchs_loader_with_workers(served, drop_last, workers):
    loader = torch_loader(
        batch_size=10, num_workers=workers, drop_last=drop_last
    )
    served(loader, epochs=2)
    mine = loader_of(batch_size=7, framework="torch")
    n = N - N % 10 if drop_last else N
    for _ in range(2):
        got = [int(i) for _, index in mine for i in index]
        assert got == list(range(n))


def test_set_epoch_is_called_with_the_epochs(served):
    class Sampler:
        epochs = []

        def set_epoch(self, epoch):
            self.epochs.append(epoch)

        def __len__(self):
            return N

        def __iter__(self):
            first = self.epochs[-1]
            return iter([(first + i) % N for i in range(N)])

    sampler = Sampler()
    served(torch_loader(batch_size=10, sampler=sampler), epochs=3)
    mine = loader_of(batch_size=50)
    for epoch in range(3):
        got = [int(i) for _, index in mine for i in index]
        assert got == [(epoch + i) % N for i in range(N)]
    assert sampler.epochs[:3] == [0, 1, 2]
    with pytest.raises(tsock.StreamEnded):
        next(iter(mine))


def test_two_loaders_in_one_process(served):
    train = served(cut(labels), "train", epochs=2)
    val = served(cut(lambda at: [images(at)]), "val", epochs=1)
    with tsock.DataLoader("train", 20, framework="numpy") as loader:
        for _ in range(2):
            assert sum(len(b) for b in loader) == N
    with tsock.DataLoader("val", 20, framework="numpy") as loader:
        assert sum(len(x) for (x,) in loader) == N
    train.run()
    val.run()
    assert train.stats()["epoch"] == 1 and val.stats()["batches"] == 7


def test_who_comes_late_gets_the_next_epoch_from_its_start(served):
    """Nobody reads the rest of the first epoch: the loader is begun anew."""
    batches = cut(lambda at: [labels(at)], n=1000, size=8)
    server = served(batches, ring=64, max_batch=16)
    with loader_of(batch_size=10) as first:
        iterator = iter(first)
        for _ in range(60):
            next(iterator)
        del iterator
    with loader_of(batch_size=16) as second:
        got = [int(v) for (b,) in second for v in b]
        assert got == [7 * i for i in range(1000)]
        assert second.stream_epoch == 1
    assert server.error is None


def test_a_state_goes_on_in_the_middle_of_an_epoch(served):
    """Nobody reads what lies between: the loader's batches are left out."""
    server = served(cut(lambda at: [labels(at)]), ring=40, max_batch=10)
    with loader_of(batch_size=10) as first:
        iterator = iter(first)
        for _ in range(7):
            next(iterator)
        state = first.state_dict()
        del iterator
    with loader_of(batch_size=4) as second:
        second.load_state_dict(dict(state, epoch=state["epoch"] + 1))
        got = [int(v) for (b,) in second for v in b]
    assert got == [7 * i for i in range(70, N)]
    assert server.error is None


def test_a_function_makes_a_loader_for_each_epoch(served):
    def generate():
        for i in range(4):
            yield numpy.full((5, 2), i)

    served(generate, length=20, epochs=2)
    mine = loader_of(batch_size=20)
    for _ in range(2):
        (batch,) = list(mine)
        assert batch[:, 0].tolist() == [i for i in range(4) for _ in range(5)]


# ---- batches of any shapes ----


def words(at):
    longest = max(i % 9 + 1 for i in at)
    ids = numpy.zeros((len(at), longest), "int64")
    for row, i in enumerate(at):
        ids[row, : i % 9 + 1] = i
    return {
        "ids": ids,
        "text": ["w" * (i % 5) for i in at],
        "boxes": [numpy.full((i % 3, 4), i, "float32") for i in at],
        "blob": b"\0x" * (at[0] % 4),
        "step": at[0],
    }


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_ragged_batches_arrive_as_they_were(served, framework):
    pytest.importorskip(framework)
    batches = cut(words)
    served(batches, ragged=True, epochs=2, ring=4)
    mine = loader_of(batch_size=None, framework=framework)
    assert len(mine) == len(batches)
    for _ in range(2):
        count = 0
        for batch, right in zip(mine, batches):
            assert list(batch) == list(right)
            ids = numpy.asarray(batch["ids"])
            assert ids.dtype == right["ids"].dtype
            assert (ids == right["ids"]).all()
            for key in ("text", "blob", "step"):
                assert batch[key] == right[key]
            assert len(batch["boxes"]) == len(right["boxes"])
            for here, there in zip(batch["boxes"], right["boxes"]):
                assert tuple(here.shape) == there.shape
                assert (numpy.asarray(here) == there).all()
            count += 1
        assert count == len(batches)


def test_ragged_batches_are_views_that_may_be_kept(served):
    batches = cut(words)
    served(batches, ragged=True, ring=4, epochs=1)
    mine = loader_of(batch_size=None)
    kept = list(mine)
    for batch, right in zip(kept, batches):
        assert (batch["ids"] == right["ids"]).all()
        assert batch["ids"].base is not None and batch["ids"].flags.writeable
        assert batch["ids"].ctypes.data % 64 == 0
        batch["ids"][:] = -1


def test_a_batch_that_is_too_large_says_so(served):
    batches = [numpy.zeros((n, 1000)) for n in (1, 2, 60)]
    served(batches, ragged=True)
    with pytest.raises(tsock.StreamFailed, match="batch_bytes=480"):
        list(loader_of(batch_size=None))


def test_ragged_streams_have_no_batch_size_and_no_fields(served):
    served(cut(words), ragged=True)
    for size in (1, 32):
        with pytest.raises(ValueError, match="give batch_size=None"):
            loader_of(batch_size=size)
    with pytest.raises(ValueError, match="no fields"):
        loader_of(batch_size=None, fields=("batch",))


class Graph:
    def __init__(self, nodes):
        self.nodes = nodes


def pack_graph(graph):
    return {"nodes": graph.nodes, "n": len(graph.nodes)}


def unpack_graph(parts):
    return Graph(parts["nodes"])


def test_objects_of_ones_own_by_pack_and_unpack(served):
    graphs = [Graph(numpy.arange(n + 1)) for n in range(9)]
    served(graphs, ragged=True, pack=pack_graph, unpack=unpack_graph)
    with pytest.raises(ValueError, match="unpack_graph"):
        loader_of(batch_size=None)
    mine = loader_of(batch_size=None, unpack=unpack_graph)
    for here, right in zip(mine, graphs):
        assert type(here) is Graph and (here.nodes == right.nodes).all()
    raw = next(iter(loader_of(batch_size=None, unpack=False)))
    assert raw["n"] == 1
