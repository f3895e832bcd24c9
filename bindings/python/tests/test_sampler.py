# SPDX-License-Identifier: MIT
"""sampler=: samples drawn by weights or by classes, repeated, or limited."""

import itertools
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import tsock
from conftest import INDEX, N, PRODUCER, SIZE, indices, until

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
pytest.importorskip("PIL")

numbers = itertools.count()
FIELDS = {"fields": ("image", "label", "index"), "framework": "numpy"}
RING = ("--ring", 64, "--max-batch", 16, "--join-window", 32)
WAYS = ["weighted", "balanced", "repeat:3", "limit:50", "weighted,limit:500"]


@pytest.fixture
def names(images):
    return [str(f.relative_to(images)) for f in sorted(images.glob("*/*"))]


@pytest.fixture
def weights():
    """Of all samples; each seventh is never drawn."""
    weight = np.random.default_rng(3).exponential(size=N).astype("float32")
    weight[::7] = 0
    return weight


@pytest.fixture
def chosen(names, weights, tmp_path):
    path = tmp_path / "weights"
    path.write_text(
        "".join("%s\t%r\n" % (n, float(w)) for n, w in zip(names, weights))
    )
    return path


def by(way, chosen):
    more = ("--select", chosen) if "weighted" in way else ()
    return ("--sampler", way, *more)


def said(batches):
    """What came, sample by sample."""
    return [
        (int(index), int(label), image.tobytes())
        for images, labels, indices in batches
        for image, label, index in zip(images, labels, indices)
    ]


def epochs_of(name="toy", epochs=2, batch=16, **more):
    with tsock.DataLoader(name, batch, **FIELDS, **more) as loader:
        return [said(loader) for _ in range(epochs)]


def far(first, second):
    """Do two samples of counts come from one distribution?  The chi-square
    statistic of both, in standard deviations from what it is then."""
    both = first + second
    assert first.sum() == second.sum()
    used = both > 0
    square = ((first - second) ** 2)[used] / both[used]
    freedom = used.sum() - 1
    return (square.sum() - freedom) / (2 * freedom) ** 0.5


def test_weighted_draws_as_often_as_torchs_sampler(serve, chosen, weights):
    draws = 20000
    options = ("--transform", "Resize((8, 8))")
    serve(*by("weighted,limit:%d" % draws, chosen), *options)
    with tsock.DataLoader("toy", 500, **INDEX) as loader:
        assert len(loader) == 40 and len(loader.sampler) == draws
        assert len(loader.dataset) == N
        ours = np.bincount(indices(loader), minlength=N)
        again = np.bincount(indices(loader), minlength=N)
    sampler = torch.utils.data.WeightedRandomSampler(
        torch.from_numpy(weights),
        draws,
        generator=torch.Generator().manual_seed(1),
    )
    torchs = np.bincount(list(sampler), minlength=N)
    # Chance exceeds five standard deviations once in 100,000 times.
    assert far(ours, torchs) < 5
    assert far(ours, again) < 5 and (ours != again).any()
    assert not ours[::7].any()
    # What is as large, and drawn by other weights, is found out.
    uniform = np.random.default_rng(1).multinomial(draws, np.full(N, 1 / N))
    assert far(ours, uniform) > 50


def test_balanced_draws_each_class_alike(serve, images, tmp_path):
    """Classes of 100, 10 and 1."""
    root = tmp_path / "uneven"
    for c, n in enumerate((100, 10, 1)):
        (root / str(c)).mkdir(parents=True)
        for i in range(n):
            (root / str(c) / ("%d.jpg" % i)).symlink_to(
                images / "class1" / "001.jpg"
            )
    serve("--sampler", "balanced,limit:9000", root=root)
    with tsock.DataLoader("toy", 500, fields=("label", "index")) as loader:
        labels, index = map(np.concatenate, zip(*loader))
    for count in np.bincount(labels, minlength=3):
        assert abs(count - 3000) < 5 * (9000 * 2 / 9) ** 0.5
    ten = np.bincount(index[labels == 1])[100:110]
    assert ten.min() > 200 and ten.max() < 400


@pytest.mark.parametrize("way", WAYS)
def test_samples_are_a_function_of_seed_and_epoch(serve, chosen, way):
    """Whatever the threads, the batches, and a producer that was killed."""
    options = by(way, chosen)
    served = serve(*options)
    want = epochs_of()
    served.stop()
    assert want[0] != want[1]
    served = serve(*options, "--threads", 3)
    assert epochs_of(batch=7) == want
    served.stop()
    served = serve(*options, *RING)
    with tsock.DataLoader("toy", 16, **FIELDS) as loader:
        got = []
        for _ in range(2):
            batches = []
            for i, batch in enumerate(loader):
                batches.append(batch)
                if i == 1:
                    served.kill()
                    served = serve(*options, *RING)
            got.append(said(batches))
            assert len(batches) == len(loader)
    assert got == want
    served.stop()
    serve(*options, "--seed", 1)
    assert epochs_of() != want


@pytest.mark.parametrize("way", WAYS)
def test_a_pack_has_the_same_samples(serve, images, chosen, tmp_path, way):
    pack = os.path.join(os.path.dirname(PRODUCER), "tsock-pack")
    subprocess.run(
        [pack, "--no-cache", images, tmp_path / "pack"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    served = serve(*by(way, chosen))
    want = epochs_of()
    served.stop()
    serve(*by(way, chosen), root=tmp_path / "pack")
    assert epochs_of() == want


@pytest.mark.parametrize("way", WAYS)
def test_a_state_is_resumed_in_the_middle_of_an_epoch(serve, chosen, way):
    options = by(way, chosen)
    served = serve(*options, *RING)
    with tsock.DataLoader("toy", 8, **FIELDS) as loader:
        said(loader)
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        state = loader.state_dict()
        want = said(batches)
    served.stop()
    serve(*options, *RING)
    with tsock.DataLoader("toy", 8, **FIELDS) as loader:
        loader.load_state_dict(state)
        assert said(loader) == want
    serve(name="other")
    with tsock.DataLoader("other", 8, **FIELDS) as loader:
        with pytest.raises(ValueError, match="sampler is .* there and not"):
            loader.load_state_dict(state)


@pytest.mark.parametrize("way", WAYS)
def test_ranks_share_each_position_of_an_epoch(serve, chosen, way):
    """Each once, but for those that make their batches alike."""
    options = by(way, chosen)
    served = serve(*options)
    want = [index for index, _, _ in epochs_of(epochs=1)[0]]
    served.stop()
    serve(*options)
    world, batch = 3, 8
    loaders = [
        tsock.DataLoader(
            "toy", batch, rank=r, world_size=world, job="it", **INDEX
        )
        for r in range(world)
    ]
    with ThreadPoolExecutor(world) as pool:
        parts = list(pool.map(indices, loaders))
    assert len({len(part) for part in parts}) == 1
    assert [len(part) for part in parts] == [len(a.sampler) for a in loaders]
    # Rank r has the r-th batch of each block; the last block is shared.
    full = len(want) // (world * batch)
    for k in range(full):
        for r, part in enumerate(parts):
            at = (k * world + r) * batch
            assert part[k * batch :][:batch] == want[at : at + batch]
    rest = [i for part in parts for i in part[full * batch :]]
    assert set(want[full * world * batch :]) == set(rest)
    assert len(rest) - len(want[full * world * batch :]) in range(world)


def test_what_is_repeated_differs_and_what_is_limited_changes(serve):
    served = serve()
    plain = epochs_of()
    served.stop()
    served = serve("--sampler", "repeat:3")
    for once, thrice in zip(plain, epochs_of()):
        assert [s[0] for s in thrice[::3]] == [s[0] for s in once]
        for k in range(3):
            assert [s[:2] for s in thrice[k::3]] == [s[:2] for s in once]
        assert thrice[::3] == once
        assert thrice[1::3] != once and thrice[1::3] != thrice[2::3]
    served.stop()
    serve("--sampler", "limit:50")
    limited = epochs_of()
    assert limited == [once[:50] for once in plain]


def test_a_sample_that_is_drawn_again_is_cropped_anew(serve, chosen):
    serve(*by("weighted,limit:500", chosen))
    seen = {}
    for index, _, image in epochs_of(epochs=1)[0]:
        seen.setdefault(index, []).append(image)
    again = [images for images in seen.values() if len(images) > 1]
    assert len(again) > 50
    assert sum(len(set(i)) == len(i) for i in again) > 0.9 * len(again)


def test_the_order_is_known_where_nothing_is_drawn(serve, chosen):
    serve("--sampler", "repeat:2,limit:300", name="known")
    serve("--sampler", "balanced", name="drawn")
    with tsock.DataLoader("known", 16, **INDEX) as loader:
        order = list(loader.sampler)
        assert indices(loader) == order and len(order) == 300
        assert list(loader.sampler.indices(5)) != order
    with tsock.DataLoader("drawn", 16, **INDEX) as loader:
        assert len(loader.sampler) == N
        with pytest.raises(ValueError, match="draws its samples.*'index'"):
            list(loader.sampler)


@pytest.mark.parametrize("way", WAYS)
def test_a_subset_of_them_is_refused(serve, chosen, way):
    serve(*by(way, chosen))
    with pytest.raises(ValueError, match="a stream with sampler=") as refusal:
        tsock.DataLoader("toy", 4, subset=range(10), **INDEX)
    assert repr(way) in str(refusal.value)


def test_another_sampler_is_another_stream(serve, images):
    serve("--sampler", "repeat:2")
    same = dict(dataset="imagefolder", root=images, size=SIZE)
    tsock.DataLoader("toy", 16, sampler="repeat:2", **same).close()
    for other in "repeat:3", "limit:7", "balanced", None:
        with pytest.raises(tsock.OtherStream, match="sampler"):
            tsock.DataLoader("toy", 16, sampler=other, **same)


def test_torchs_sampler_is_refused_with_a_way(images):
    sampler = torch.utils.data.WeightedRandomSampler([1.0, 2.0], 2)
    with pytest.raises(TypeError, match="'weighted'.*select="):
        tsock.DataLoader("toy", 16, root=images, sampler=sampler)


@pytest.mark.parametrize(
    "options, status, sentence",
    [
        (("--sampler", "weigted"), 2, "--sampler weigted: weighted, balanced"),
        (("--sampler", "weighted"), 78, "no weights are given"),
        (("--sampler", "limit:204"), 78, "more than the 203 samples"),
        (
            ("--sampler", "balanced", "--order", "torch"),
            2,
            "contradicts --order torch",
        ),
        (
            ("--sampler", "repeat:2", "--segments", 4),
            78,
            "repeated or limited can't have segments",
        ),
    ],
)
def test_what_cant_be_is_refused(serve, options, status, sentence):
    served = serve(*options)
    assert served.ended() == status
    assert sentence in served.log.read_text()


def table_of(images, to, field, values):
    files = sorted(images.glob("*/*"))
    tsock.index(
        [
            (f, {"label": f.parent.name, field: value})
            for f, value in zip(files, values)
        ],
        to,
    )
    return to


def of_table(table, **more):
    """Each epoch's fields, as arrays."""
    options = dict(
        dict(transform="Resize((8, 8))", threads=1, exit_when_idle=5), **more
    )
    options.setdefault("fields", ("label", "index"))
    with tsock.DataLoader(
        "t%d" % next(numbers), 16, root=table, framework="numpy", **options
    ) as loader:
        return [list(map(np.concatenate, zip(*loader))) for _ in range(2)]


def test_a_tables_column_weight_decides_the_draws(
    serve, images, place, weights, chosen, tmp_path
):
    """As the same weights in a selection do, which has the same order."""
    table = table_of(images, tmp_path / "t", "weight", map(float, weights))
    how = dict(sampler="weighted,limit:600")
    fields = ("label", "index", "weight")
    first, second = of_table(table, fields=fields, **how)
    for label, index, weight in first, second:
        assert (weight == weights[index]).all()
        assert (label == index // 68).all()
    serve(*by("weighted,limit:600", chosen))
    for (_, index, _), epoch in zip((first, second), epochs_of()):
        assert list(index) == [i for i, _, _ in epoch]
    # A selection of names alone leaves the table's weights as they are.
    files = sorted(images.glob("*/*"))
    few = tmp_path / "few"
    few.write_text("".join("%s\n" % f for f in files[:100:-1]))
    for _, index, weight in of_table(table, fields=fields, select=few, **how):
        assert (weight == weights[:100:-1][index]).all() and weight.all()
    few.write_text("".join("%s 2\n" % f for f in files[:9]))
    with pytest.raises(tsock.Error, match="field weight: leave out one"):
        of_table(table, select=few, **how)


def test_a_tables_weights_have_to_be_numbers_from_0_on(
    images, place, tmp_path
):
    bad = [1.0] * N
    bad[77] = -1.0
    table = table_of(images, tmp_path / "t", "weight", bad)
    assert len(of_table(table)[0][0]) == N  # a field as any other
    with pytest.raises(tsock.Error, match="weight of sample 77.* is -1"):
        of_table(table, sampler="weighted")


def test_arrays_and_records_are_drawn_repeated_and_limited(place, tmp_path):
    """The rows of all fields stay together."""
    root, n = tmp_path / "arrays", 300
    root.mkdir()
    weight = np.random.default_rng(5).exponential(size=n)
    weight[::3] = 0
    for k, part in enumerate(np.split(weight, [100, 170])):
        np.save(root / ("weight_%d.npy" % k), part)
    np.save(root / "emb.npy", np.arange(4 * n).reshape(n, 4))
    np.save(root / "labels.npy", np.arange(n) % 7)
    fields = ("emb", "label", "weight", "index")

    def read(sampler, fields=fields, root=root, **options):
        options.update(framework="numpy", exit_when_idle=5, sampler=sampler)
        name = "t%d" % next(numbers)
        with tsock.DataLoader(
            name, 50, root=root, fields=fields, **options
        ) as loader:
            return list(map(np.concatenate, zip(*loader)))

    for sampler, length in (
        ("weighted,limit:3000", 3000),
        ("repeat:2", 2 * n),
        ("limit:64", 64),
    ):
        emb, label, weights, index = read(sampler)
        assert len(index) == length
        assert (emb[:, 0] == 4 * index).all() and (label == index % 7).all()
        assert (weights == weight[index]).all()
        if "weighted" in sampler:
            expected = weight / weight.sum() * length
            count = np.bincount(index, minlength=n)
            used = expected > 0
            off = ((count - expected) ** 2)[used] / expected[used]
            assert not count[~used].any()
            assert abs(off.sum() - 199) < 5 * (2 * 199) ** 0.5
    dtype = np.dtype([("label", "<i8"), ("weight", "<f4")])
    records = np.zeros(n, dtype)
    records["label"], records["weight"] = np.arange(n), weight
    records.tofile(tmp_path / "r.bin")
    label, weights, index = read(
        "weighted,limit:3000",
        ("label", "weight", "index"),
        root=tmp_path / "r.bin",
        dataset="records",
        schema="label:int64,weight:float32",
    )
    assert (label == index).all()
    assert (weights == records["weight"][index]).all() and weights.all()


def test_balanced_wants_labels_that_are_classes(images, place, tmp_path):
    table = table_of(images, tmp_path / "t", "more", range(N))
    label, _ = of_table(table, sampler="balanced,limit:3000")[0]
    assert abs(np.bincount(label) - 1000).max() < 5 * (3000 * 2 / 9) ** 0.5
    tsock.index(
        [(f, i) for i, f in enumerate(sorted(images.glob("*/*")))],
        tmp_path / "numbers",
    )
    with pytest.raises(tsock.Error, match="samples have no classes"):
        of_table(tmp_path / "numbers", sampler="balanced")


def test_data_that_grows_is_limited_and_balanced_too(serve, images, tmp_path):
    """The epoch after a change is of the new files."""
    root = tmp_path / "tree"
    for name in "a", "b":
        (root / name).mkdir(parents=True)
    first = images / "class0" / "000.jpg"
    for i in range(40):
        os.link(first, root / "a" / ("%03d.jpg" % i))
    os.link(first, root / "b" / "0.jpg")
    served = serve(
        *("--sampler", "balanced,limit:64", "--grows"),
        *("--ring", 64, "--max-batch", 16),
        root=root,
    )
    with tsock.DataLoader("toy", 16, fields=("label",), timeout=60) as loader:
        batches = iter(loader)
        labels = [next(batches)[0]]
        os.kill(served.process.pid, signal.SIGSTOP)
        (root / "c").mkdir()
        os.link(first, root / "c" / "0.jpg")
        os.kill(served.process.pid, signal.SIGCONT)
        until(
            lambda: "the data set has changed: " in served.log.read_text(),
            what="the change",
        )
        labels += [batch[0] for batch in batches]
        assert len(labels) == 4 and int(np.max(labels)) == 1
        labels = np.concatenate([batch[0] for batch in loader])
        assert len(loader.classes) == 3
        assert len(labels) == 64 and labels.max() == 2
