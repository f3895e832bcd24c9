# SPDX-License-Identifier: MIT
"""Random jobs over random nodes that die and go on, without any process."""

import os
import random

from tsock.order import Order
from tsock.parts import NodeRanks, PartOf, start_for
from tsock.ranks import Ranks

SEEDS = 10000 if os.environ.get("TSOCK_TEST_NODES") == "1" else 100
KINDS = ("philox", "sequential")


def identity(kind, length, seed, part=None):
    said = dict(order=kind, seed=str(seed), samples=str(length), segments="1")
    if part:
        said["shard"] = part.part.option
        if part.start:
            said["start"] = "%d:%d" % (part.start_epoch, part.start)
    return said


def layout(draw):
    """How many ranks each node has."""
    return [draw.randint(1, 4) for _ in range(draw.randint(1, 5))]


def ranks_of(draw, sizes, length, epoch, position, how):
    """The ranks of all nodes, and the orders of their nodes' streams."""
    world, first = sum(sizes), 0
    for size in sizes:
        whole = PartOf(first, size, world, length, 0, 0)
        start = start_for(whole, epoch, position)
        part = (
            whole._replace(start_epoch=start[0], start=start[1])
            if start
            else whole
        )
        assert part.samples(epoch, position) is not None
        order = Order("x", identity(how["kind"], length, how["seed"], part))
        for local in range(size):
            rank = NodeRanks(
                part,
                local,
                sizes[-1],
                how["batch"],
                how["drops"],
                how["once"],
                how.get("even", False),
            )
            yield rank, order.indices(epoch)
        first += size


def read(rank, order, epoch, position):
    """What the rank reads from there on, batch by batch."""
    of, size = rank.of, rank.batch
    here = Ranks(
        rank.rank - of.first,
        of.ranks,
        size,
        rank.drops,
        rank.once,
        padding=of.padding(epoch, rank.drops),
    )
    mine = list(here.part(order[rank.here(epoch, position) :]))
    return [mine[at : at + size] for at in range(0, len(mine), size)]


def life(seed):
    draw = random.Random(seed)
    length = draw.randint(1, 120)
    epoch = draw.randint(0, 2)
    kind = draw.choice(KINDS)
    once = kind == "sequential" and draw.random() < 0.7
    how = dict(kind=kind, seed=seed, once=once, drops=False)
    whole = Order("x", identity(kind, length, seed)).indices(epoch)
    position, seen = 0, []
    while position < length:
        sizes = layout(draw)
        world = sum(sizes)
        how["batch"] = draw.randint(1, 6)
        parts = [
            read(rank, order, epoch, position)
            for rank, order in ranks_of(
                draw, sizes, length, epoch, position, how
            )
        ]
        block = world * how["batch"]
        full = (length - position) // block
        steps = draw.randint(0, full) if draw.random() < 0.7 else None
        for t in range(full):
            together = sorted(sum((part[t] for part in parts), []))
            at = position + t * block
            assert together == sorted(whole[at : at + block])
        if steps is not None:  # and then they die
            for part in parts:
                seen += sum(part[:steps], [])
            position += steps * block
            continue
        rest = sum((sum(part, []) for part in parts), [])
        if not once:
            assert len({sum(map(len, part)) for part in parts}) == 1
            assert len(rest) - (length - position) < world
        seen += rest
        position = length
    if once:
        assert sorted(seen) == list(range(length))
    else:
        assert {*seen} == {*range(length)}
        assert len(seen) - length < 20


def test_random_lives_read_each_sample():
    for seed in range(SEEDS):
        try:
            life(seed)
        except AssertionError as e:
            raise AssertionError("seed %d" % seed) from e


def test_ranks_drop_what_one_stream_would_drop():
    for seed in range(SEEDS // 10):
        draw = random.Random(seed)
        length, sizes = draw.randint(1, 90), layout(draw)
        world, batch = sum(sizes), draw.randint(1, 6)
        how = dict(
            kind="philox", seed=seed, once=False, drops=True, batch=batch
        )
        counts = {
            rank.batches(0)
            for rank, _ in ranks_of(draw, sizes, length, 0, 0, how)
        }
        assert counts == {length // (world * batch)}


def test_what_comes_twice_comes_last_where_that_is_said():
    """As gather_for_metrics() needs it, for the last batches of all ranks."""
    said = set()
    for seed in range(SEEDS):
        draw = random.Random(seed)
        sizes, batch = layout(draw), draw.randint(1, 6)
        length = draw.randint(1, 90)
        how = dict(
            kind="sequential",
            seed=seed,
            once=False,
            drops=False,
            even=True,
            batch=batch,
        )
        left = length % (sum(sizes) * batch)
        if not left:
            continue
        gathered = []
        for rank, order in ranks_of(draw, sizes, length, 0, 0, how):
            last = read(rank, order, 0, 0)[-1]
            assert len(last) == -(-left // sum(sizes))
            gathered += last
            comes_last = rank.ends_with_twice(left)
        said.add(comes_last)
        if comes_last:
            rest = range(length - left, length)
            assert sorted(gathered[:left]) == list(rest)
    assert said == {True, False}
