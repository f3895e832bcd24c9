# SPDX-License-Identifier: MIT
"""subset=: full batches of the samples that one job wants."""

import itertools
import pickle
from concurrent import futures

import pytest

import tsock
from conftest import N, until
from tsock import subset

numpy = pytest.importorskip("numpy")
RAW = dict(dtype="uint8", layout="hwc")
INDEX = dict(fields=("index",), timeout=100, **RAW)
FOLDS = [list(range(k, N, 5)) for k in range(5)]
EVENS = range(0, N, 2)


def rest_of(fold):
    return [i for i in range(N) if i not in fold]


def indices(loader):
    return [int(i) for (index,) in loader for i in index]


def as_bytes(tensor):
    return numpy.asarray(tensor).tobytes()


def whole_epochs(count, **more):
    """By epoch and index: the samples as a loader without subset has them."""
    more = dict(dict(RAW, timeout=100), **more)
    loader = tsock.DataLoader(
        "toy", 16, fields=("image", "label", "index"), **more
    )
    epochs = {}
    for _ in range(count):
        found = {}
        for image, label, index in loader:
            for k, i in enumerate(index.tolist()):
                found[i] = as_bytes(image[k]), int(label[k])
        epochs[loader.stream_epoch] = found
    loader.close()
    return epochs


def in_threads(functions):
    """Run each in a thread of its own; their results."""
    with futures.ThreadPoolExecutor(len(functions)) as pool:
        running = [pool.submit(function) for function in functions]
        return [future.result() for future in running]


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_five_folds_of_one_stream(serve, framework):
    pytest.importorskip(framework)
    epochs = 3
    # So small a ring that all have to go through the stream together; a
    # job that comes late would make it longer for those that wait.
    serve("--ring", 64, "--max-batch", 32, "--join-window", 32,
          "--min-consumers", 11)
    fields = ("image", "label", "index")
    more = dict(RAW, timeout=100, framework=framework)

    def job(subset, size):
        def run():
            loader = tsock.DataLoader(
                "toy", size, fields=fields, subset=subset, **more
            )
            made = [
                (loader.stream_epoch, batch)
                for _ in range(epochs)
                for batch in loader
            ]
            assert len(made) == epochs * len(loader)
            loader.close()
            return made

        return run

    jobs = [job(rest_of(fold), 16) for fold in FOLDS]
    jobs += [job(fold, 7) for fold in FOLDS]
    *made, whole = in_threads(jobs + [lambda: whole_epochs(epochs, **more)])
    assert sorted(whole) == list(range(epochs))
    for epoch in range(epochs):
        sets = []
        for k, batches in enumerate(made):
            size, total = (16, N - len(FOLDS[k])) if k < 5 else (
                7, len(FOLDS[k - 5]))
            mine = [batch for at, batch in batches if at == epoch]
            sizes = [len(batch[2]) for batch in mine]
            assert sizes == [size] * (total // size) + [total % size] * (
                total % size > 0
            )
            found = []
            for image, label, index in mine:
                assert tuple(image.shape) == (len(index), 32, 32, 3)
                for j, i in enumerate(index.tolist()):
                    found.append(i)
                    assert (as_bytes(image[j]), int(label[j])) == whole[
                        epoch
                    ][i]
            assert len(set(found)) == len(found)
            sets.append(set(found))
        for train, val, fold in zip(sets, sets[5:], FOLDS):
            assert val == set(fold) and train == set(range(N)) - val
        assert set.union(*sets[5:]) == set(range(N))


@pytest.mark.parametrize("size", [1, 7, 16, 101, 102, 150])
def test_order_and_lengths_are_those_of_torchs_subset_sampler(serve, size):
    serve()
    for drop_last in (False, True):
        if drop_last and size > len(EVENS):
            continue
        loader = tsock.DataLoader(
            "toy", size, subset=EVENS, drop_last=drop_last, **INDEX
        )
        whole = tsock.DataLoader("toy", 64, **INDEX)
        for _ in range(2):
            # A newcomer knows only when it joins which epoch it gets.
            known = loader.stream_epoch is not None
            before = list(loader.sampler)
            batches = list(loader.batch_sampler)
            seen = [index.tolist() for (index,) in loader]
            order = whole.sampler.indices(loader.stream_epoch)
            wanted = [i for i in order if i % 2 == 0]
            assert before == wanted or not known
            assert len(seen) == len(loader) == len(loader.batch_sampler)
            if drop_last:
                wanted = wanted[: len(loader) * size]
            assert sum(seen, []) == wanted
            assert seen == batches or not known
            assert all(len(b) == size for b in seen[:-1])
        assert len(loader.sampler) == len(EVENS) == 102
        assert len(loader.dataset) == N
        loader.close()
        whole.close()


def test_every_kind_of_indices(serve):
    serve()
    torch = pytest.importorskip("torch")
    wanted = [3, 200, 7, 7 + 32, 100]
    for given in (
        wanted,
        tuple(wanted),
        set(wanted),
        (i for i in wanted),
        numpy.array(wanted),
        numpy.array(wanted, dtype="uint8"),
        [numpy.int32(i) for i in wanted],
        torch.tensor(wanted),
        torch.utils.data.Subset(range(N), wanted).indices,
    ):
        loader = tsock.DataLoader("toy", 2, subset=given, **INDEX)
        assert sorted(indices(loader)) == sorted(wanted)
        assert sorted(loader.subset) == sorted(wanted)
        loader.close()
    assert sorted(
        indices(tsock.DataLoader("toy", 9, subset=range(40, 60), **INDEX))
    ) == list(range(40, 60))


WRONG = [
    ([], "no samples"),
    ([1, 2, 1], "index 1 twice"),
    ([-1, 4], "begin with 0"),
    ([4, N], "index 203, and the data set .* has 203"),
    ([1.5], "list, array, range or tensor"),
    ("abc", "list, array, range or tensor"),
    (7, "list, array, range or tensor"),
    ([[1], [2]], "list, array, range or tensor"),
    (numpy.zeros((2, 2), int), "list, array, range or tensor"),
    ([2**70], "list, array, range or tensor"),
    ([True, False] * 3, "mask"),
    (numpy.ones(N, bool), "mask"),
]


def test_what_is_no_subset_says_so(serve):
    serve()
    for subset, why in WRONG:
        with pytest.raises(ValueError, match=why):
            tsock.DataLoader("toy", 4, subset=subset, **INDEX)
    with pytest.raises(ValueError, match=r"indices\[rank::world_size\]"):
        tsock.DataLoader(
            "toy", 4, subset=EVENS, rank=0, world_size=2, **INDEX
        )
    with pytest.raises(ValueError, match="no batch would be left"):
        tsock.DataLoader("toy", 4, subset=[1, 2], drop_last=True, **INDEX)
    with pytest.raises(tsock.Refused, match="--max-batch 600"):
        tsock.DataLoader("toy", 600, subset=EVENS, **INDEX)
    loader = tsock.DataLoader("toy", 4, subset=EVENS, **INDEX)
    with pytest.raises(ValueError, match="subset can't be set"):
        loader.subset = [1]
    with pytest.raises(TypeError, match="sampler.*subset="):
        tsock.DataLoader("toy", 4, sampler=[1])


def test_a_shard_has_no_subsets(serve):
    serve("--shard", "0/2")
    with pytest.raises(ValueError, match="shard 0/2"):
        tsock.DataLoader("toy", 4, subset=EVENS, **INDEX)


def test_dicts_dtypes_and_layouts(serve):
    torch = pytest.importorskip("torch")
    serve()
    for more in (
        dict(dtype="float32"),
        dict(dtype="float16", layout="hwc", normalize=None),
        dict(dtype="bfloat16", memory_format="channels_last"),
        dict(dtype="uint8"),
        dict(dtype="float32", framework="numpy"),
    ):
        fields = ("label", "image", "box", "index")
        whole = tsock.DataLoader("toy", N, fields=fields, **more)
        loader = tsock.DataLoader(
            "toy", 30, fields=fields, subset=FOLDS[3], **more,
            as_dict={"image": "pixel_values"},
        )
        iterator = iter(loader)
        batch, wanted = next(iterator), next(iter(whole))
        assert loader.stream_epoch == whole.stream_epoch
        assert list(batch) == ["label", "pixel_values", "box", "index"]
        rows = [wanted[3].tolist().index(i) for i in batch["index"].tolist()]
        assert len(rows) == 30
        for theirs, mine in zip(wanted, batch.values()):
            assert mine.dtype == theirs.dtype
            assert mine.shape[1:] == theirs.shape[1:]
            if "memory_format" in more and mine.ndim == 4:
                assert mine.is_contiguous(memory_format=torch.channels_last)
            if loader.framework == "torch":
                assert torch.equal(mine, theirs[rows])
            else:
                assert (mine == theirs[rows]).all()
        whole.close()
        loader.close()


def test_the_index_needs_not_be_a_field(serve):
    serve()
    loader = tsock.DataLoader("toy", 64, subset=FOLDS[0], dtype="uint8")
    ((images, labels),) = loader
    assert images.shape == (41, 3, 32, 32) and labels.shape == (41,)


def test_batches_are_ones_own(serve):
    serve()
    fields = ("image", "index")
    whole = tsock.DataLoader("toy", N, fields=fields, **RAW)
    images, _ = next(iter(whole))
    before = as_bytes(images)
    loader = tsock.DataLoader("toy", 10, subset=EVENS, fields=fields, **RAW)
    kept = []
    for mine, _ in loader:
        mine[:] = len(kept)
        kept.append(mine)
    assert all((mine == k).all() for k, mine in enumerate(kept))
    assert as_bytes(images) == before


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_memory_is_used_again_when_nobody_has_it(serve, framework):
    pytest.importorskip(framework)
    serve()
    loader = tsock.DataLoader(
        "toy", 10, subset=EVENS, framework=framework, fields=("image",), **RAW
    )

    def address(tensor):
        return numpy.asarray(tensor).ctypes.data

    kept, parts, dropped = [], [], set()
    for batches, (images,) in enumerate(itertools.chain(loader, loader)):
        # A view of a batch keeps it, too.
        if batches % 7 == 3:
            kept.append((images, as_bytes(images)))
        elif batches % 7 == 5:
            parts.append((images[2:4, 5], as_bytes(images[2:4, 5])))
        else:
            dropped.add(address(images))
    assert len(dropped) < 10 and len(kept) + len(parts) == 6
    assert all(as_bytes(a) == b for a, b in kept + parts)
    loader.close()
    del loader
    assert all(as_bytes(a) == b for a, b in kept + parts)


def test_several_iterators_side_by_side(serve):
    serve()
    loader = tsock.DataLoader("toy", 10, subset=FOLDS[1], **INDEX)
    for one, two in zip(loader, loader):
        assert one[0].tolist() == two[0].tolist()
    seen = indices(loader)
    assert sorted(seen) == FOLDS[1]
    # A look at the first batch costs nothing.
    first = next(iter(loader))[0].tolist()
    assert next(iter(loader))[0].tolist() == first
    assert indices(loader)[:10] == first


def test_it_is_pickled_with_its_subset(serve):
    serve()
    loader = tsock.DataLoader(
        "toy", 10, subset=(i for i in FOLDS[2]), **INDEX
    )
    other = pickle.loads(pickle.dumps(loader))
    assert sorted(indices(other)) == FOLDS[2] and "41 samples" in repr(other)


def test_nobody_waits_for_who_has_all_it_wants(serve):
    serve("--ring", 64, "--max-batch", 16, "--join-window", 32)
    # Its order is known, so a subset of an epoch's beginning can be made.
    whole = tsock.DataLoader("toy", 16, **INDEX)
    first = list(whole.sampler.indices(0))[:10]
    loader = tsock.DataLoader("toy", 10, subset=first, **INDEX)
    running, reader = iter(loader), iter(whole)
    start = next(reader)[0].tolist()
    assert next(running)[0].tolist() == first == start[:10]
    # The loader isn't asked again, and the ring is a third of the epoch.
    assert sorted(start + indices(reader)) == list(range(N))
    with pytest.raises(StopIteration):
        next(running)
    assert loader.state_dict()["finished"]


@pytest.mark.parametrize("after", [False, True])
def test_ctrl_c_while_a_batch_is_gathered_loses_nothing(
    serve, monkeypatch, after
):
    serve()
    loader = tsock.DataLoader("toy", 10, subset=EVENS, **INDEX)
    copy, calls = subset.Gather._copy, itertools.count()

    def interrupted(self, *arguments):
        if after:
            copy(self, *arguments)
        if next(calls) % 3 == 0:
            raise KeyboardInterrupt
        return copy(self, *arguments)

    monkeypatch.setattr(subset.Gather, "_copy", interrupted)
    iterator, seen, interrupts = iter(loader), [], 0
    while len(seen) < len(EVENS):
        try:
            seen += next(iterator)[0].tolist()
        except KeyboardInterrupt:
            interrupts += 1
    assert sorted(seen) == list(EVENS) and interrupts > 10
    assert loader.state_dict()["finished"]


def test_ranks_may_each_have_a_part_of_their_own(serve):
    serve()
    loaders = [
        tsock.DataLoader(
            "toy", 10, subset=EVENS[k::2], rank=0, world_size=1, **INDEX
        )
        for k in range(2)
    ]
    pairs = list(zip(*loaders))
    seen = [int(i) for pair in pairs for (index,) in pair for i in index]
    assert sorted(seen) == list(EVENS)


@pytest.mark.parametrize("join", ["segment", "now"])
def test_joining_within_an_epoch(serve, join):
    serve("--segments", 7, "--ring", 64, "--max-batch", 16,
          "--join-window", 16)
    leading = tsock.DataLoader("toy", 16, **INDEX)
    leader = iter(leading)
    for _ in range(5):
        next(leader)
    loader = tsock.DataLoader("toy", 16, subset=EVENS, join=join, **INDEX)
    running = iter(loader)

    def lead():
        indices(leader)
        indices(leading)
        leading.close()

    def follow():
        seen = indices(running)
        loader.close()
        return seen

    _, seen = in_threads([lead, follow])
    assert len(set(seen)) == len(seen) and set(seen) <= set(EVENS)
    if join == "segment":
        assert sorted(seen) == list(EVENS)
        # With "now" the first epoch is as long as what is left of it.


def test_a_loader_of_ones_own_may_have_indices(served):
    batches = [
        {
            "x": numpy.arange(k, k + 10, dtype="float32").reshape(10, 1),
            "index": numpy.arange(k, k + 10),
            "name": ["sample %d" % i for i in range(k, k + 10)],
        }
        for k in range(0, 100, 10)
    ]
    served(batches)
    wanted = [3, 4, 5, 37, 99]
    loader = tsock.DataLoader(
        "mine", 4, subset=wanted + [1000], framework="numpy"
    )
    got = list(itertools.islice(loader, 1))[0]
    assert got["index"].tolist() == wanted[:4]
    assert got["name"] == ["sample %d" % i for i in wanted[:4]]
    assert got["x"].ravel().tolist() == wanted[:4]
    loader.close()
    loader = tsock.DataLoader(
        "mine", None, subset=wanted, framework="numpy", fields=("x",)
    )
    assert [b[0].ravel().tolist() for b in loader] == [wanted]


def test_a_loader_without_indices_has_no_subsets(served):
    served([numpy.zeros((10, 2), "float32")])
    with pytest.raises(ValueError, match="field 'index'"):
        tsock.DataLoader("mine", 4, subset=[1], framework="numpy")


def test_others_read_what_they_would_without_it(serve):
    serve("--ring", 64, "--max-batch", 16, "--join-window", 32,
          "--min-consumers", 3)

    def plain():
        loader = tsock.DataLoader("toy", 16, **INDEX)
        seen = [index.tolist() for _ in range(2) for (index,) in loader]
        sampler = loader.sampler
        wanted = [list(sampler.indices(e)) for e in range(2)]
        loader.close()
        return sum(seen, []) == sum(wanted, [])

    def chosen():
        loader = tsock.DataLoader("toy", 5, subset=FOLDS[4], **INDEX)
        seen = [sorted(indices(loader)) for _ in range(2)]
        loader.close()
        return seen == [FOLDS[4]] * 2

    assert all(in_threads([plain, chosen, chosen]))
    until(lambda: tsock.query("toy")["consumers"] == 0)


def test_samples_are_not_taken_for_indices():
    """Only a torch Subset's first sample is looked at; it may be decoded."""
    looked_at = []

    class Part:
        indices = [3, 5]

        def __getitem__(self, i):
            looked_at.append(i)
            return "image"

        def __len__(self):
            return len(self.indices)

    with pytest.raises(ValueError, match="its attribute indices"):
        subset.Subset(Part())
    assert looked_at == [0]
    # And where they are indices, they are taken.
    Part.__getitem__ = lambda self, i: [10, 12][i]
    assert list(subset.Subset(Part()).indices) == [10, 12]
