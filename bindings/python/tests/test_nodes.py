# SPDX-License-Identifier: MIT
"""The ranks of a job on several nodes.

Nodes are folders of sockets, ranks are threads, and a barrier is the engine.
"""

import json
import os
import signal
import threading

import pytest

import tsock
from cluster import Cluster, Group, batches, checked, steps
from conftest import N, end_all, finish
from tsock import nodes
from tsock.agreement import Agreement
from tsock.gathering import ByFunction
from tsock.order import Order
from tsock.parts import Part

numpy = pytest.importorskip("numpy")
pytest.importorskip("PIL")

# By node of each rank: equal, unequal, not in the order of the ranks, one rank
# a node, and all on one.
PLACES = {
    "2 + 2": (0, 0, 1, 1),
    "1 + 3": (0, 1, 1, 1),
    "mixed": (1, 0, 1, 0, 0),
    "1 + 1 + 1": (0, 1, 2),
}
FACTS = {"tsock's version": "1.0"}


@pytest.fixture
def cluster(place, images):
    made = Cluster(place, images)
    yield made
    for folder in made.nodes:
        end_all(folder)


def order_of(loader, epoch):
    """The whole order of an epoch, as a stream without parts has it."""
    identity = {k: v for k, v in loader.identity.items() if k != "shard"}
    return Order("toy", identity).indices(epoch).tolist()


def two_epochs(rank, loader):
    order = [order_of(loader, epoch) for epoch in (0, 1)]
    said = [
        (
            loader.sampler.indices(epoch).tolist()
            if hasattr(loader.sampler.indices(epoch), "tolist")
            else list(loader.sampler.indices(epoch))
        )
        for epoch in (0, 1)
    ]
    epochs = [batches(loader), batches(loader)]
    return (
        order,
        epochs,
        said,
        len(loader),
        len(loader.sampler),
        loader.state_dict(),
    )


def blocks(order, size):
    return [sorted(order[at : at + size]) for at in range(0, len(order), size)]


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_nodes_have_together_what_one_stream_has(cluster, places):
    world = len(places)
    for seed in range(5):
        found = checked(
            cluster.run(places, two_epochs, "toy%d" % seed, seed=seed)
        )
        # To find the nodes, to meet, and once an epoch.
        assert cluster.group.gathered == 4
        for epoch in (0, 1):
            ranks = [rank[1][epoch] for rank in found]
            order = found[0][0][epoch]
            assert order == found[-1][0][epoch]
            whole = N // (world * 8)
            assert steps(ranks)[:whole] == blocks(order, world * 8)[:whole]
            each = -(-N // world)
            assert {sum(map(len, rank)) for rank in ranks} == {each}
            assert {i for rank in ranks for b in rank for i in b} == {
                *range(N)
            }
            for rank, mine in zip(found, ranks):
                assert sum(mine, []) == rank[2][epoch]
                assert (len(mine), each) == (rank[3], rank[4])
        assert all(rank[5] == found[0][5] for rank in found)


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_nodes_evaluate_each_sample_once(cluster, places):
    found = checked(
        cluster.run(places, two_epochs, preset="eval", batch_size=7)
    )
    for epoch in (0, 1):
        ranks = [rank[1][epoch] for rank in found]
        everything = sorted(i for rank in ranks for b in rank for i in b)
        assert everything == list(range(N))
        for rank, mine in zip(found, ranks):
            assert sum(mine, []) == rank[2][epoch]
            assert len(mine) == rank[3] and len(mine) in (
                rank[4] // 7,
                -(-rank[4] // 7),
            )


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_nodes_evaluate_evenly_if_they_are_asked(cluster, places):
    found = checked(
        cluster.run(places, two_epochs, preset="eval", batch_size=7, even=True)
    )
    sizes = {tuple(map(len, rank[1][0])) for rank in found}
    assert len(sizes) == 1 and sum(*sizes) == -(-N // len(places))
    assert {i for r in found for b in r[1][0] for i in b} == {*range(N)}


@pytest.mark.parametrize("batch", [7, 17])
def test_nodes_drop_what_one_stream_would_drop(cluster, batch):
    """Also where each node's part would have another batch, of its padding."""
    places = PLACES["1 + 3"]
    found = checked(
        cluster.run(places, two_epochs, batch_size=batch, drop_last=True)
    )
    whole = N // (4 * batch)
    for epoch in (0, 1):
        ranks = [rank[1][epoch] for rank in found]
        assert {len(rank) for rank in ranks} == {whole}
        assert steps(ranks) == blocks(found[0][0][epoch], 4 * batch)[:whole]
    assert {rank[3] for rank in found} == {whole}


def test_nodes_without_a_full_batch_are_refused(cluster):
    """As of one stream; a node's part alone would have one, of its padding."""
    assert N < 4 * 51 <= 4 * -(-N // 4)
    found = cluster.run(
        PLACES["1 + 3"], two_epochs, batch_size=51, drop_last=True
    )
    for error in found:
        assert isinstance(error, tsock.errors.Refused)
        assert "no epoch would have a batch" in str(error)


def test_bytes_are_those_of_one_stream(cluster):
    def pictures(rank, loader):
        return [
            [
                {int(i): image.tobytes() for i, image in zip(index, images)}
                for images, index in loader
            ]
            for _ in range(2)
        ]

    keywords = dict(fields=("image", "index"))
    one = checked(cluster.run((0,), pictures, batch_size=32, **keywords))[0]
    for places in PLACES["2 + 2"], PLACES["1 + 3"]:
        found = checked(cluster.run(places, pictures, **keywords))
        for epoch in (0, 1):
            for t, whole in enumerate(one[epoch][: N // 32]):
                together = {}
                for rank in found:
                    together.update(rank[epoch][t])
                assert together == whole


# ---- agreement ----


def test_two_jobs_on_the_same_nodes_begin_the_same_epochs(cluster):
    """Rings are smaller than parts.  While job B joins, A goes on so far that
    its epoch can't be begun any more on the second node: without agreement the
    jobs stop each other, or B has other samples on each node."""
    ring = dict(ring=16, max_batch=4, join_window=8, batch_size=4)
    found, begun = {}, threading.Event()
    waits, has_joined, goes_on = (threading.Event() for _ in range(3))

    def train(engine, loader, look=lambda step: None):
        indices = []
        for step, (index,) in enumerate(loader):
            indices += index.tolist()
            engine.wait(30)
            look(step)
        return loader.stream_epoch, indices

    def a(rank, loader):
        def look(step):
            if step == 0:
                waits.set()
                assert has_joined.wait(30)
            if step == 3:
                goes_on.set()

        first = train(engines["A"], loader)
        return [first] + [
            train(engines["A"], loader, look if e == 0 else lambda step: None)
            for e in range(3)
        ]

    def b(rank, loader):
        join = loader._progress._join

        def late(stream, timeout):
            if not has_joined.is_set() or rank == 1:
                assert (goes_on if rank == 1 else waits).wait(30)
            join(stream, timeout)
            has_joined.set()

        loader._progress._join = late
        return [train(engines["B"], loader) for _ in range(2)]

    def job(name, work):
        own = Cluster(cluster._folder, cluster._root)
        found[name] = own.run((0, 1), work, **ring)
        cluster.nodes |= own.nodes

    engines = {name: threading.Barrier(2) for name in "AB"}
    jobs = [threading.Thread(target=job, args=n) for n in (("A", a), ("B", b))]
    for thread in jobs:
        thread.start()
    for thread in jobs:
        thread.join()
    for name, epochs in ("A", [0, 1, 2, 3]), ("B", [2, 3]):
        ranks = checked(found[name])
        for at, epoch in enumerate(epochs):
            assert [rank[at][0] for rank in ranks] == [epoch, epoch]
            seen = ranks[0][at][1] + ranks[1][at][1]
            assert {*seen} == {*range(N)} and len(seen) == N + 1


def test_a_node_whose_stream_is_ahead_takes_the_others_along(cluster):
    ahead = {}

    def alone(rank, loader):
        for _ in range(3):
            batches(loader)
        ahead[0] = loader.stream_epoch

    # Another job, of one rank, has read this node's part alone.
    with cluster.loader(
        0, "toy.0to0of2", 8, 0, 1, None, shard="0/2"
    ) as loader:
        alone(0, loader)

    def work(rank, loader):
        return batches(loader), loader.stream_epoch, loader.epoch

    found = checked(cluster.run((0, 1), work))
    assert ahead[0] == 2
    assert [rank[1:] for rank in found] == [(3, 0), (3, 0)]
    assert {i for rank in found for b in rank[0] for i in b} == {*range(N)}
    # All had to be asked once more.
    assert cluster.group.gathered == 4


def together(*jobs):
    """The results of jobs, each in a thread."""
    found = [None] * len(jobs)

    def one(at):
        found[at] = jobs[at]()

    threads = [
        threading.Thread(target=one, args=(at,)) for at in range(len(jobs))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [checked(ranks) for ranks in found]


def test_two_jobs_that_meet_at_one_port_are_two_jobs(cluster, monkeypatch):
    """As in two containers, whose MASTER_ADDR is localhost."""
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", "29500")
    places = (0, 0, 1, 1)
    jobs = [Cluster(cluster._folder, cluster._root) for _ in range(2)]
    found = together(
        *(lambda j=j: j.run(places, lambda r, one: batches(one)) for j in jobs)
    )
    cluster.nodes |= jobs[0].nodes
    for ranks in found:
        assert {i for rank in ranks for b in rank for i in b} == {*range(N)}
        assert sum(len(b) for rank in ranks for b in rank) == 204


def test_jobs_share_equal_parts_and_no_others(cluster):
    def work(rank, loader):
        seen = batches(loader)
        return seen, os.path.basename(loader.name), tsock.query(loader.name)

    def names(folder):
        return {s for s in os.listdir(folder) if s.endswith(".door")}

    ring = dict(ring=32, max_batch=8, join_window=16)
    a = checked(cluster.run((0, 1), work, **ring))
    b = checked(cluster.run((0, 1, 2), work, **ring))
    again = checked(cluster.run((0, 1), work, **ring))
    for ranks in a, b, again:
        assert {i for r in ranks for bs in r[0] for i in bs} == {*range(N)}
    assert [rank[1] for rank in b] == [
        "toy.%dto%dof3" % (r, r) for r in range(3)
    ]
    for one, other in zip(a, again):
        assert one[1] == other[1] and one[2]["pid"] == other[2]["pid"]
    assert names(cluster.node(0)) == {"toy.0to0of2.door", "toy.0to0of3.door"}
    # Each node makes its part, and no more.
    for rank in a:
        assert rank[2]["epoch_len"] == -(-N // 2)
        assert rank[2]["produced"] <= rank[2]["epoch_len"] + 2 * 32


def test_what_a_launcher_says_is_not_asked_for(cluster, monkeypatch):
    for key, value in dict(
        RANK=7, WORLD_SIZE=8, LOCAL_RANK=0, LOCAL_WORLD_SIZE=8, GROUP_RANK=3
    ).items():
        monkeypatch.setenv(key, str(value))
    found = checked(cluster.run((0, 0, 1), lambda r, one: batches(one)))
    assert {i for rank in found for b in rank for i in b} == {*range(N)}
    # Nor is a clock: those of nodes may differ.
    for said in cluster.group._said:
        assert said["value"] == {
            "epoch": 0,
            "batch_size": 8,
            "drop_last": False,
            "even": False,
            "tsock's version": tsock.__version__,
            "begins": said["value"]["begins"],
            "stream": said["value"]["stream"],
        }


def test_ranks_of_other_releases_hear_of_it():
    agreement = Agreement(ByFunction(0, 2, print), "k", "'toy'", FACTS, {})
    with pytest.raises(
        tsock.Error,
        match="tsock's version is 1.0 on rank 0, and 1.1 on rank 1",
    ):
        agreement._compare([FACTS, {"tsock's version": "1.1"}], 1)


@pytest.mark.parametrize(
    "key, values, said",
    [
        ("drop_last", (False, True), "drop_last is False on rank 0, and True"),
        ("seed", (1, 2), "seed is 1 on rank 0, and 2 on rank 1"),
    ],
)
def test_ranks_that_disagree_all_hear_of_what(cluster, key, values, said):
    def first(rank, loader):
        with pytest.raises(tsock.Error, match=said) as error:
            next(iter(loader))
        return str(error.value)

    found = checked(
        cluster.run((0, 1), first, of=lambda rank: {key: values[rank]})
    )
    assert found[0] == found[1] and "'toy'" in found[0]


def test_ranks_with_other_batch_sizes_all_hear_of_it(cluster):
    group_of = {}

    def one(rank):
        with cluster.loader(
            rank, "toy", 8 + rank, rank, 2, group_of["group"].gather(rank)
        ) as loader:
            with pytest.raises(tsock.Error) as error:
                next(iter(loader))
            said.append(str(error.value))

    said, group_of["group"] = [], Group(2)
    threads = [threading.Thread(target=one, args=(r,)) for r in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == 2 * [
        "the ranks of 'toy' disagree: batch_size is 8 on rank 0, and 9 on "
        "rank 1"
    ]


def test_nodes_with_other_data_all_hear_of_it(cluster, images, tmp_path):
    import shutil

    other = tmp_path / "other"
    shutil.copytree(images, other)
    (other / "class0" / "000.jpg").unlink()

    def first(rank, loader):
        with pytest.raises(tsock.OtherStream, match="samples is") as error:
            next(iter(loader))
        return str(error.value)

    found = checked(
        cluster.run((0, 1), first, of=lambda r: {"root": (images, other)[r]})
    )
    assert found[0] == found[1]
    assert "203 on rank 0, and 202 on rank 1" in found[0]
    # The same data at another path is no other.
    same = tmp_path / "same"
    shutil.copytree(images, same)
    found = checked(
        cluster.run(
            (0, 1),
            lambda rank, loader: batches(loader),
            "same",
            of=lambda r: {"root": (images, same)[r]},
        )
    )
    assert {i for rank in found for b in rank for i in b} == {*range(N)}


def test_a_rank_that_cannot_begin_is_said_to_all(cluster):
    def work(rank, loader):
        batches(loader)
        with pytest.raises(tsock.StreamEnded) as error:
            batches(loader)
        return str(error.value)

    found = checked(
        cluster.run(
            (0, 1),
            work,
            of=lambda r: {"epochs": 1 + r} if r else {"epochs": 1},
        )
    )
    assert "has ended" in found[0]
    assert "rank 0 can't begin an epoch of 'toy', so no rank does" in found[1]


# ---- streams that others have started ----


def test_a_name_alone_is_that_of_the_nodes_part(cluster):
    def work(rank, loader):
        named = cluster.loader(
            rank,
            "toy",
            8,
            rank,
            2,
            groups.gather(rank),
            root=None,
            size=None,
            threads=None,
            exit_when_idle=None,
        )
        with named:
            assert named.name == loader.name
            return batches(named)

    groups = Group(2)
    found = checked(cluster.run((0, 1), work))
    assert {i for rank in found for b in rank for i in b} == {*range(N)}


def refusal(make):
    with pytest.raises(ValueError) as error:
        make()
    return str(error.value)


def test_a_stream_of_all_samples_is_refused(cluster):
    def named(rank):
        return cluster.loader(
            rank,
            "toy",
            8,
            rank,
            2,
            groups.gather(rank),
            root=None,
            size=None,
            threads=None,
            exit_when_idle=None,
        )

    groups = Group(2)
    with cluster.loader(0, "toy", 8, 0, 1, None):
        with cluster.loader(1, "toy", 8, 0, 1, None):
            found = together(
                *(lambda r=r: [refusal(lambda: named(r))] for r in (0, 1))
            )
    assert "the 2 ranks of" in found[0][0] and "on 2 nodes" in found[0][0]
    assert "start one with --shard 1-1/2" in found[1][0]


def test_a_served_stream_is_refused(cluster, served):
    def named(rank):
        return tsock.DataLoader(
            cluster.node(rank) + "/mine",
            4,
            rank=rank,
            world_size=2,
            gather=groups.gather(rank),
        )

    groups = Group(2)
    data = [numpy.arange(8)] * 4
    for node in (0, 1):
        served(data, cluster.node(node) + "/mine")
    found = together(
        *(lambda r=r: [refusal(lambda: named(r))] for r in (0, 1))
    )
    for (text,) in found:
        assert "a program serves, with all samples" in text


# ---- states ----


@pytest.mark.parametrize(
    "worlds", [(4, 1), (4, 2), (4, 3), (4, 6), (1, 4), (3, 2)]
)
def test_a_state_goes_on_in_another_world(cluster, worlds):
    before, after = worlds
    size = 6  # of which 4 * 6 * 3 is no multiple of each world's

    def save(rank, loader):
        batches(loader)
        seen = []
        for (index,) in loader:
            seen.extend(index.tolist())
            if len(seen) >= 3 * size:
                break
        return (
            seen,
            loader.state_dict(),
            order_of(loader, 1),
            order_of(loader, 2),
        )

    def load(rank, loader):
        loader.load_state_dict(state)
        rest = batches(loader)
        return rest, batches(loader), loader.epoch, loader.state_dict()

    found = checked(
        cluster.run([r % 2 for r in range(before)], save, batch_size=size)
    )
    state = found[0][1]
    assert all(rank[1] == state for rank in found)
    read = sorted(i for rank in found for i in rank[0])
    position = before * 3 * size
    assert read == sorted(found[0][2][:position])
    assert state["samples_yielded"] == position
    found2 = checked(
        cluster.run([r % 2 for r in range(after)], load, batch_size=5)
    )
    rest = sorted(i for rank in found2 for b in rank[0] for i in b)
    missing = sorted(found[0][2][position:])
    # Each once, and the first ones of the epoch fill up the last row.
    assert {*missing} <= {*rest}
    more = list(rest)
    for index in missing:
        more.remove(index)
    assert {*more} <= {*found[0][2][:after]} and len(more) < after
    each = -(-len(missing) // after)
    assert [sum(map(len, rank[0])) for rank in found2] == after * [each]
    following = [rank[1] for rank in found2]
    assert {i for rank in following for b in rank for i in b} == {*range(N)}
    whole = N // (5 * after)
    assert steps(following)[:whole] == blocks(found[0][3], 5 * after)[:whole]
    assert {rank[2] for rank in found2} == {2}
    assert all(rank[3] == found2[0][3] for rank in found2)


def test_a_state_goes_on_in_evaluation(cluster):
    def save(rank, loader):
        reading = iter(loader)
        seen = [next(reading)[0].tolist() for _ in range(2)]
        return seen, loader.state_dict()

    def load(rank, loader):
        loader.load_state_dict(found[0][1])
        return batches(loader)

    found = checked(cluster.run((0, 0, 1, 1), save, preset="eval"))
    rest = checked(cluster.run((0, 1, 1), load, preset="eval"))
    seen = [i for rank in found for b in rank[0] for i in b]
    seen += [i for rank in rest for b in rank for i in b]
    assert sorted(seen) == list(range(N))


def test_a_producer_is_killed_and_the_rank_goes_on(cluster):
    def work(rank, loader):
        seen = []
        for at, (index,) in enumerate(loader):
            seen.append(index.tolist())
            if at == 1 and rank == 3:
                os.kill(tsock.query(loader.name)["pid"], signal.SIGKILL)
        return seen, order_of(loader, 0)

    found = checked(
        cluster.run(
            (0, 0, 1, 1), work, rejoin_timeout=60, ring=64, max_batch=16
        )
    )
    ranks = [rank[0] for rank in found]
    whole = N // 32
    assert steps(ranks)[:whole] == blocks(found[0][1], 32)[:whole]
    assert {i for rank in ranks for b in rank for i in b} == {*range(N)}
    for folder in cluster.nodes:
        end_all(folder)


# ---- a process group ----

PROCESS = """
import json, sys
import torch.distributed as dist
import tsock
from tsock.gathering import ByCollective

root, meet, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
loader = tsock.DataLoader("toy", 16, root=root, size=32, threads=1,
                          fields=("index",), exit_when_idle="5")
# A framework makes the process group after the loader.
dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=2)
said = [len(loader)]
for _ in range(2):
    said.append([index.tolist() for (index,) in loader])
said += [len(loader), loader.state_dict(), loader.name]
# As of a group without a store.
assert ByCollective(rank, 2).gather("x", [rank], "meet") == [[0], [1]]
print(json.dumps(said))
dist.barrier()
dist.destroy_process_group()
"""


def test_ranks_of_a_process_group_on_two_nodes(cluster, script, tmp_path):
    pytest.importorskip("torch.distributed")
    meet = "file://%s" % (tmp_path / "ranks")
    ranks = [
        script(
            PROCESS,
            cluster._root,
            meet,
            rank,
            TSOCK_DIR=cluster.node(rank),
            GLOO_SOCKET_IFNAME="lo",
            # What isn't so.
            WORLD_SIZE="2",
            LOCAL_WORLD_SIZE="2",
            RANK=str(rank),
        )
        for rank in range(2)
    ]
    found = [json.loads(finish(rank)[0]) for rank in ranks]
    for epoch in (1, 2):
        parts = [rank[epoch] for rank in found]
        assert [len(part) for part in parts] == [7, 7]
        assert [sum(map(len, part)) for part in parts] == [102, 102]
        assert {i for part in parts for b in part for i in b} == {*range(N)}
    assert [(rank[0], rank[3]) for rank in found] == [(7, 7)] * 2
    assert found[0][4] == found[1][4]
    assert [rank[5] for rank in found] == ["toy.0to0of2", "toy.1to1of2"]


# ---- the layout ----


@pytest.mark.parametrize(
    "places, parts",
    [
        ("aaaa", [(0, 3, 4)] * 4),
        ("aabb", [(0, 1, 4)] * 2 + [(2, 3, 4)] * 2),
        ("abab", [(0, 1, 4), (2, 3, 4)] * 2),
        ("baa", [(0, 0, 3), (1, 2, 3), (1, 2, 3)]),
    ],
)
def test_ranks_are_numbered_anew_by_node(places, parts):
    found = [nodes.laid_out(r, places, "t") for r in range(len(places))]
    assert [layout.part for layout in found] == [Part(*p) for p in parts]
    assert sorted(layout.slot for layout in found) == list(range(len(places)))
    for layout in found:
        assert layout.part.first <= layout.slot <= layout.part.last
        assert layout.nodes == len({*places})


def test_a_place_is_a_folder_since_a_boot(place, monkeypatch, tmp_path):
    here = nodes.place_of("toy")
    assert here == nodes.place_of(place + "/toy")
    os.symlink(place, str(tmp_path / "link"))
    assert here == nodes.place_of(str(tmp_path / "link" / "toy"))
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    assert here != nodes.place_of(str(other / "toy"))
    # The same numbers on a machine that was started at another time.
    monkeypatch.setattr(nodes, "_BOOT", str(tmp_path / "boot"))
    (tmp_path / "boot").write_text("another\n")
    assert here.split()[1:] == nodes.place_of("toy").split()[1:]
    assert here != nodes.place_of("toy")


@pytest.mark.parametrize(
    "kind", ["nfs4", "cifs", "lustre", "beegfs", "gpfs", "fuse.sshfs", "ceph"]
)
def test_a_folder_that_machines_share_is_refused(
    place, monkeypatch, tmp_path, kind
):
    status = os.stat(place)
    mounts = tmp_path / "mounts"
    line = "36 35 %d:%d / /mnt rw - %s server:/export rw\n"
    number = os.major(status.st_dev), os.minor(status.st_dev)
    mounts.write_text(
        "35 1 9:9 / / rw - ext4 /dev/sda rw\n" + line % (*number, kind)
    )
    monkeypatch.setattr(nodes, "_MOUNTS", str(mounts))
    with pytest.raises(tsock.Error, match=r"%s.*TSOCK_DIR" % kind) as error:
        nodes.refuse_shared(place)
    assert place in str(error.value)
    mounts.write_text(line % (*number, "fuse.fuse-overlayfs"))
    nodes.refuse_shared(place)
