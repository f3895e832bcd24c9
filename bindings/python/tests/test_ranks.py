# SPDX-License-Identifier: MIT
"""The ranks of a job: several processes that read one stream together."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

import tsock
from conftest import CHECKOUT, N, finish
from tsock.ranks import Ranks, job_of

pytestmark = pytest.mark.usefixtures("warm")

# What every rank runs: reads EPOCHS epochs, prints a line of JSON for each.
# In a process group it trains a model, too.
SCRIPT = """
import json, os, sys
import tsock
how, rank, world = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ranks, fields, weights = {}, ("index",), []
if how == "gloo":
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method=sys.argv[6], rank=rank,
                            world_size=world)
    fields = ("index", "image", "label")
    torch.manual_seed(rank)
    model = torch.nn.Linear(3, 3)
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
else:
    ranks = dict(rank=rank, world_size=world, even=how == "even")
loader = tsock.DataLoader("toy", int(sys.argv[4]), fields=fields,
                          timeout=120, **ranks)


def train(images, labels):
    optimizer.zero_grad()
    said = model(images.mean((2, 3)))
    torch.nn.functional.cross_entropy(said, labels).backward()
    optimizer.step()


for epoch in range(int(sys.argv[5])):
    loader.set_epoch(epoch)
    batches = []
    for index, *rest in loader:
        batches.append(index.tolist())
        if rest:
            train(*rest)
    assert len(batches) == len(loader), (len(batches), len(loader))
    if how == "gloo":
        weights = model.module.weight.flatten().tolist()
    print(json.dumps([loader.stream_epoch, sum(batches, []),
                      list(loader.sampler.indices(loader.stream_epoch)),
                      weights]))
if how == "gloo":
    dist.destroy_process_group()
"""


def run(how, world, batch, epochs=2):
    """What each rank printed."""
    env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    env["PYTHONPATH"] = os.path.join(CHECKOUT, "bindings", "python")
    # A file, since a port that is free now may be taken by then.
    meet = "file://" + os.path.join(env["TSOCK_DIR"], "ranks")
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SCRIPT), how]
            + [str(n) for n in (rank, world, batch, epochs, meet)],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    try:
        said = [job.communicate(timeout=300)[0] for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    assert [job.returncode for job in jobs] == [0] * world
    return [[json.loads(line) for line in text.splitlines()] for text in said]


def check_epochs(said, epochs):
    """All ranks have one epoch, and what the sampler says; yields the parts."""
    for e in range(epochs):
        assert len({rank[e][0] for rank in said}) == 1
        for rank in said:
            assert rank[e][1] == rank[e][2]
        yield [rank[e][1] for rank in said]


def test_ranks_of_a_process_group_train_on_equal_parts(serve):
    pytest.importorskip("torch.distributed")
    serve()
    said = run("gloo", 2, 16)
    for parts in check_epochs(said, 2):
        assert [len(part) for part in parts] == [102, 102]
        assert set(parts[0] + parts[1]) == set(range(N))
    # DistributedDataParallel's weights, after each epoch.
    one, other = ([epoch[3] for epoch in rank] for rank in said)
    assert one == other
    assert len(one[0]) == 9 and one[0] != one[1]


def test_ranks_evaluate_each_sample_once(serve):
    serve("--preset", "eval", "--order", "sequential")
    for parts in check_epochs(run("said", 3, 10), 2):
        assert sorted(sum(parts, [])) == list(range(N))


def test_ranks_that_evaluate_have_equal_parts_if_they_ask(serve):
    serve("--preset", "eval")
    for parts in check_epochs(run("even", 3, 10), 2):
        assert [len(part) for part in parts] == [68, 68, 68]
        assert set(sum(parts, [])) == set(range(N))


def test_samples_that_ranks_have_twice_come_last():
    """What is gathered begins with each sample of the epoch once."""
    for length in range(1, 40):
        for world in range(1, 6):
            for batch in range(1, 6):
                order = list(range(length))
                parts = [
                    list(Ranks(r, world, batch, False, False, True).part(order))
                    for r in range(world)
                ]
                gathered = []
                while parts[0]:
                    for part in parts:
                        gathered += part[:batch]
                        del part[:batch]
                assert gathered[:length] == order
                assert not any(parts)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
def test_the_parts_of_an_epoch(once, drop_last):
    for length in range(1, 40):
        for world in range(1, 5):
            for batch in range(1, 6):
                order = range(length)
                ranks = [
                    Ranks(rank, world, batch, drop_last, once)
                    for rank in range(world)
                ]
                parts = [list(rank.part(order)) for rank in ranks]
                most = max(map(len, parts))
                for rank, part in zip(ranks, parts):
                    assert rank.samples(length) == most
                    # What scripts take for samples that nobody has read.
                    assert drop_last or most * world >= length
                    short = not drop_last and len(part) % batch > 0
                    assert rank.batches(length) == len(part) // batch + short
                if drop_last and world > 1:
                    whole = length // (world * batch) * batch
                    assert {len(part) for part in parts} == {whole}
                elif world > 1:
                    assert {*sum(parts, [])} == {*order}
                    if once:
                        assert len(sum(parts, [])) == length
                    else:
                        assert len({len(part) for part in parts}) == 1


def test_jobs_are_told_apart(monkeypatch):
    for key in list(os.environ):
        if key.startswith(("MASTER_", "TORCHELASTIC_")):
            monkeypatch.delenv(key)
    of_the_parent = job_of(None, "toy", 2, 1)
    assert len(of_the_parent) == 16
    monkeypatch.setenv("MASTER_PORT", "29500")
    there = job_of(None, "toy", 2, 1)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    others = [
        job_of(None, "toy", 2, 1),
        job_of(None, "toy", 2, 2),
        job_of(None, "toy", 3, 1),
        job_of(None, "other", 2, 1),
        job_of("mine", "toy", 2, 1),
    ]
    assert len({of_the_parent, there, *others}) == 7
    assert job_of("mine", "toy", 2, 1) == others[-1]


@pytest.fixture
def two_ranks(monkeypatch):
    """torch.distributed as rank 1 of 2 sees it."""
    distributed = pytest.importorskip("torch.distributed")
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)


def test_the_first_rank_begins_at_once_and_then_waits(serve, two_ranks):
    serve("--ring", "512", "--join-window", "128", "--max-batch", "64")
    loader = tsock.DataLoader("toy", 16, timeout=0.5)
    assert len(loader.sampler) == 102
    next(iter(loader))
    # As far as the ring goes.
    with pytest.raises(tsock.TimedOut, match="rank 0 of 2 of its job"):
        for _ in range(9):
            assert sum(len(labels) for _, labels in loader) == 102
    loader.close()
    loader = tsock.DataLoader("toy", 16, rank=0, world_size=1)
    assert sum(len(labels) for _, labels in loader) == len(loader.sampler)
    with pytest.raises(ValueError, match="both"):
        tsock.DataLoader("toy", 16, rank=0)
    with pytest.raises(ValueError, match="no such rank"):
        tsock.DataLoader("toy", 16, rank=2, world_size=2)


def test_a_rank_reads_its_own_shard_and_no_other(serve, two_ranks):
    serve("--shard", "1/2", name="one")
    serve("--shard", "0/2", name="zero")
    loader = tsock.DataLoader("one", 16)
    assert sum(len(labels) for _, labels in loader) == len(loader.sampler)
    with pytest.raises(ValueError, match="shard 0/2"):
        tsock.DataLoader("zero", 16)
    tsock.DataLoader("zero", 16, rank=0, world_size=2).close()


def test_ranks_that_come_after_the_loader_are_seen(serve, monkeypatch):
    serve()
    loader = tsock.DataLoader("toy", 16, timeout=0.5)
    late = tsock.DataLoader("toy", 16)
    part = tsock.DataLoader("toy", 16, subset=range(20))
    next(iter(late))
    assert len(loader.sampler) == N
    distributed = pytest.importorskip("torch.distributed")
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_rank", lambda: 0)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 4)
    # The others aren't there, and may come later.
    next(iter(loader))
    assert len(loader.sampler) == 51
    assert len(loader) == 4
    with pytest.raises(ValueError, match="rank 0 of 4 now"):
        iter(late)
    with pytest.raises(ValueError, match="subset with world_size 4"):
        iter(part)


def test_what_a_loader_was_told_is_kept_when_the_ranks_come(
    serve, monkeypatch, connections
):
    serve()
    loader = tsock.DataLoader("toy", 10)
    sampler, state = loader.sampler, tsock.DataLoader("toy", 10).state_dict()
    loader.load_state_dict(dict(state, epoch=0, number=7, samples_yielded=40))
    made = len(connections)
    distributed = pytest.importorskip("torch.distributed")
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_rank", lambda: 0)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)
    iter(loader)
    assert len(loader.sampler) == 102 and loader.sampler is sampler
    assert loader.state_dict()["samples_yielded"] == 40
    assert len(connections) == made


@pytest.fixture
def connections(monkeypatch):
    """Every connection that loaders make."""
    made = []

    class Counted(tsock.connection.Stream):
        def __init__(self, *arguments):
            made.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(tsock.connection, "Stream", Counted)
    return made


def test_a_shard_is_connected_to_once(serve, two_ranks, connections):
    serve("--shard", "1/2")
    loader = tsock.DataLoader("toy", 16)
    assert sum(len(labels) for _, labels in loader) == len(loader.sampler)
    assert len(connections) == 1


# Both ranks in one process: in a thread each, or in one that reads them side
# by side, or one after the other.
ONE_PROCESS = """
import sys, threading
import tsock
how = sys.argv[1]
tsock.ranks.SLOW = 100.0  # the producer may have little of a loaded machine
loaders = [
    tsock.DataLoader("toy", 10, rank=rank, world_size=2, fields=("index",),
                     timeout=100 if how == "threads" else 0)
    for rank in range(2)
]
seen = [[], []]


def read(rank):
    for (index,) in loaders[rank]:
        seen[rank] += index.tolist()


try:
    if how == "threads":
        other = threading.Thread(target=read, args=(1,))
        other.start()
        read(0)
        other.join()
    elif how == "zip":
        for (one,), (other,) in zip(*loaders):
            seen[0] += one.tolist()
            seen[1] += other.tolist()
    elif how == "in turn":
        read(0)
        read(1)
    else:
        tsock.ranks.SLOW = 0.5
        while True:
            read(0)
    print(len(seen[0]), len(seen[1]), len(set(seen[0] + seen[1])))
except tsock.Error as e:
    print(e.code, e)
"""


@pytest.mark.parametrize("how", ["threads", "zip", "in turn"])
def test_ranks_of_one_process(serve, script, how):
    serve()
    out, _ = finish(script(ONE_PROCESS, how))
    assert out.split() == ["102", "102", str(N)]


def test_ranks_of_one_thread_are_told_that_they_never_meet(serve, script):
    serve()
    out, _ = finish(script(ONE_PROCESS, "alone"))
    assert out.startswith("TSOCK_EHELD rank 0 of 2 waits for rank 1")
    assert "a process or a thread of its own" in out


def test_a_forked_childs_rank_is_not_the_parents(serve, script):
    """What the parent made before is no loader of the child's."""
    serve()
    out, _ = finish(
        script(
            """
import os, sys
import tsock
zero = tsock.DataLoader("toy", 10, rank=0, world_size=2, job="both")
iter(zero)
child = os.fork()
if not child:
    tsock.ranks.SLOW = 0.1
    try:
        other = tsock.DataLoader("toy", 10, rank=1, world_size=2, job="both",
                                 timeout=2)
        while True:
            for batch in other:
                pass
    except tsock.Error as e:
        print(type(e).__name__, flush=True)
    os._exit(0)
os.wait()
"""
        )
    )
    assert out.split() == ["TimedOut"]
