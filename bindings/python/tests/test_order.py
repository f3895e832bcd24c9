# SPDX-License-Identifier: MIT
"""A loader's samplers give the order that the producer has."""

import ast
import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

import tsock
from conftest import N, finish, until
from tsock import order, state

pytest.importorskip("numpy")
INDEX = dict(fields=("index",), dtype="uint8")


def visited(loader):
    return [int(i) for (index,) in loader for i in index]


ORDERS = [
    (),
    ("--seed", 4711),
    ("--seed", 2**64 - 1),
    ("--segments", 7, "--seed", 3),
    ("--shard", "1/3"),
    ("--shard", "2/3", "--segments", 5, "--seed", 9),
    ("--order", "torch"),
    ("--order", "torch", "--seed", 99),
    ("--order", "torch", "--shard", "1/2", "--seed", 5),
    ("--order", "sequential"),
    ("--order", "sequential", "--shard", "1/2", "--segments", 3),
]


@pytest.mark.parametrize("options", ORDERS, ids=lambda o: " ".join(map(str, o)))
def test_a_samplers_order_is_the_streams(serve, options):
    serve(*options)
    loader = tsock.DataLoader(
        "toy", 10, rank=0, world_size=1, **INDEX
    )
    for epoch in range(3):
        before = list(loader.sampler)  # of the epoch that comes
        seen = visited(loader)
        assert before == seen
        assert list(loader.sampler.indices(epoch)) == seen
    assert len(loader.sampler) == len(seen)


def test_it_is_the_same_without_numpy(script):
    """In a process that can't import it, and where it isn't the main thread."""
    identity = dict(order="philox", seed="8", samples="1000", segments="1")
    out, _ = finish(
        script(
            """
import sys
sys.modules["numpy"] = None
from tsock import order
print(order.Order("toy", %r).indices(5).tolist())
"""
            % identity
        )
    )
    with ThreadPoolExecutor(1) as other:
        ours = other.submit(order.Order("toy", identity).indices, 5).result()
    assert ast.literal_eval(out) == ours.tolist()
    assert sorted(ours) == list(range(1000))


# A producer each: while one finishes what it has begun for a loader that left,
# the epoch that the next one gets can only be guessed.
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_batch_sampler_goes_with_the_batches(serve, drop_last):
    serve()
    loader = tsock.DataLoader("toy", 48, drop_last=drop_last, **INDEX)
    pairs = itertools.zip_longest(loader.batch_sampler, loader)
    batches = 0
    for wanted, (index,) in pairs:
        assert index.tolist() == wanted
        batches += 1
    assert batches == len(loader) == len(loader.batch_sampler)
    # While an epoch is read its order is that of this epoch.
    iterator = iter(loader)
    first = next(iterator)[0].tolist()
    assert list(loader.sampler)[:48] == first
    # And when it was broken off, of the epoch that is begun again.
    del iterator
    assert next(iter(loader.batch_sampler)) == first
    loader.close()


def test_a_newcomer_is_told_the_epoch_that_others_read(serve):
    serve("--ring", 64, "--max-batch", 16, "--join-window", 32)
    early = tsock.DataLoader("toy", 16, **INDEX)
    visited(early)
    running = iter(early)
    next(running)
    late = tsock.DataLoader("toy", 16, **INDEX)
    assert list(late.sampler)[:16] == next(iter(late))[0].tolist()
    assert late.stream_epoch == 1


def test_a_stream_that_does_not_say_its_order_says_so():
    with pytest.raises(ValueError, match="'index'"):
        order.Order("mine", {})
    with pytest.raises(ValueError, match="'index'"):
        order.Order("mine", {"order": "backwards"})


def said(kind, seed, samples, **more):
    """What a stream says about its order."""
    version = {}
    if kind == "philox" and samples >= 1 << 16:
        version["order-version"] = "2"
    return dict(
        dict(order=kind, seed=str(seed), samples=str(samples), segments="1"),
        **version, **more,
    )


def test_large_shuffles_are_permutations():
    items = order.Order("toy", said("philox", 1, 300000)).indices(0)
    assert sorted(items) == list(range(300000))


@pytest.mark.parametrize(
    "kind, samples, more",
    [
        ("philox", 70000, {}),
        ("philox", 140001, dict(segments="2")),
        ("philox", 70000, dict(segments="3")),  # arrays
        ("philox", 140001, dict(shard="1/3")),
        ("philox", 1000, {}),
        ("torch", 1000, {}),
        ("sequential", 1000, dict(shard="1/3")),
    ],
)
def test_places_are_those_of_the_order(kind, samples, more):
    known = order.Order("toy", said(kind, 5, samples, **more))
    places, whole = known.places(3), known.indices(3)
    assert len(places) == len(whole)
    assert list(places) == whole.tolist()
    for where in (slice(0), slice(10, 20), slice(-7, None), slice(5, 999, 33),
                  slice(900, 30, -41), slice(30, 900, -1), slice(None)):
        assert list(places[where]) == list(whole[where]), where
    for i in (0, 999 % len(whole), -1):
        assert places[i] == whole[i]
    with pytest.raises(IndexError):
        places[len(whole)]


def test_a_place_of_a_vast_epoch_is_known_at_once():
    samples = 1 << 48
    places = order.Order("toy", said("philox", 1, samples)).places(7)
    assert len(places) == samples
    some = places[samples - 1000 :]
    assert len(set(some)) == 1000 and max(some) < samples
    assert places[-1] == some[-1]
    assert next(iter(places)) == places[0]


def test_an_order_of_another_release_is_refused_by_name():
    for version, samples in (("none", 70000), ("3", 70000), ("2", 100)):
        identity = said("philox", 1, samples)
        identity["order-version"] = version
        if version == "none":
            del identity["order-version"]
        with pytest.raises(ValueError, match="order-version=" + version):
            order.Order("toy", identity)


def test_a_state_from_before_the_order_changed_is_refused_by_name():
    now = said("philox", 1, 70000)
    then = dict(now)
    del then["order-version"]
    kept = state.State(then, 3, 3, 640).as_dict()
    with pytest.raises(ValueError, match="order-version is not said there and "
                       "2 here; .*begun anew"):
        state.from_dict(kept, "toy", now)
    assert state.from_dict(dict(kept, order=now), "toy", now).samples == 640


def test_torchs_generator_is_torchs():
    torch = pytest.importorskip("torch")
    for seed in (0, 1, 2**32 + 7):
        generator = torch.Generator().manual_seed(seed)
        wanted = torch.randperm(10000, generator=generator).tolist()
        # The order of a shard's epoch is drawn from a new generator.
        ours = order.Order("toy", said("torch", seed, 10000, shard="0/1"))
        assert ours.indices(0).tolist() == wanted
        torch.as_tensor(ours.indices(0))


def test_an_order_that_there_is_not_is_an_error():
    toy = order.Order("toy", said("torch", 1, 100))
    for epoch in (-1, 2**64):
        with pytest.raises(ValueError, match="epoch %d" % epoch):
            toy.indices(epoch)
    with pytest.raises(tsock.Error, match="epoch %d" % (2**64 - 1)):
        toy.indices(2**64 - 1)
    assert sorted(toy.indices(5)) == list(range(100))
    with pytest.raises(tsock.Error, match="4611686018427387905"):
        order.Order("toy", said("philox", 1, 2**62 + 1)).places(0)
    for kind in ("philox", "sequential"):
        with pytest.raises(ValueError, match="empty"):
            order.Order("toy", said(kind, 1, 0)).places(0)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_iterators_come_and_go_each_has_an_epoch_in_order(serve, seed):
    import random

    chance = random.Random(seed)
    serve("--ring", 96, "--max-batch", 16, "--join-window", 48)
    loader = tsock.DataLoader("toy", 16, timeout=60, **INDEX)
    living, finished = [], 0
    for _ in range(200):
        if len(living) < 4 and chance.random() < 0.2:
            living.append([iter(loader), None, []])
        if not living:
            continue
        entry = chance.choice(living)
        if chance.random() < 0.05:
            living.remove(entry)  # broken off
            continue
        for _ in range(chance.randrange(1, 6)):
            try:
                (index,) = next(entry[0])
            except StopIteration:
                assert sorted(entry[2]) == list(range(N))
                finished += 1
                living.remove(entry)
                break
            except tsock.Error as e:
                assert "left behind" in str(e)
                living.remove(entry)
                break
            if entry[1] is None:
                entry[1] = loader.stream_epoch
            entry[2] += index.tolist()
            order = loader.sampler.indices(entry[1])
            assert entry[2] == list(order[: len(entry[2])])
        del entry
    assert finished
    living.clear()
    assert sorted(visited(loader)) == list(range(N))
    assert len(loader._pool._all) <= 4
    until(lambda: tsock.query("toy")["consumers"] == 1)
