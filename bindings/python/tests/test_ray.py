# SPDX-License-Identifier: MIT
"""tsock.ray on a cluster of Ray's with two nodes, on this machine.

For the suite "ray", make check-ray: Ray takes a quarter of a minute to start.
"""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

import audit
from conftest import N, SIZE, runs, until

if os.environ.get("TSOCK_TEST_RAY") != "1":
    pytest.skip("make check-ray has it", allow_module_level=True)

import ray  # noqa: E402
import ray.cluster_utils  # noqa: E402
import ray.train.torch  # noqa: E402
from ray import tune  # noqa: E402
from ray.train.v2.api.data_parallel_trainer import (  # noqa: E402
    DataParallelTrainer,
)
from ray.util.scheduling_strategies import (  # noqa: E402
    NodeAffinitySchedulingStrategy,
)

import tsock  # noqa: E402
import tsock.ray  # noqa: E402

pytestmark = pytest.mark.minutes(10)

# Else workers would have to import this file.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

CPUS = 5  # of each node
NODE = dict(num_cpus=CPUS, object_store_memory=80 << 20)
KEYWORDS = dict(
    size=SIZE,
    threads=1,
    dtype="uint8",
    layout="hwc",
    fields=("index",),
    framework="numpy",
    timeout=120,
    exit_when_idle="10",
    ring=64,  # so that a producer has to go on while somebody reads
    max_batch=16,
)


@pytest.fixture(scope="module")
def cluster():
    before = dict(os.environ)
    # Ray's sockets have long names, and the folder for tests may have one.
    folder = tempfile.mkdtemp(prefix="tsock-", dir="/tmp")
    package = os.path.dirname(os.path.dirname(tsock.__file__))
    os.environ.update(
        TSOCK_DIR=folder,
        RAY_TMPDIR=folder,
        PYTHONPATH=package,
        RAY_USAGE_STATS_ENABLED="0",
    )
    os.mkdir(os.path.join(folder, "ray"))
    made = ray.cluster_utils.Cluster()
    made.add_node(include_dashboard=False, **NODE)
    made.add_node(**NODE)
    ray.init(address=made.address)
    nodes = alive()
    yield made
    ray.shutdown()
    made.shutdown()
    # The producers end with their actors.
    until(lambda: not left_of(nodes), what="the end of all that nodes ran")
    shutil.rmtree(folder)
    os.environ.clear()
    os.environ.update(before)


def alive():
    return [node["NodeID"] for node in ray.nodes() if node["Alive"]]


def left_of(nodes):
    return [
        pid
        for node in nodes
        for pid in audit.of_folder(tsock.ray.folder_of(node))
    ]


@pytest.fixture
def streams(cluster, request):
    """A name for a stream, which is ended after the test."""
    name = request.node.name.partition("[")[0][5:35]
    until(
        lambda: free() == ray.cluster_resources()["CPU"],
        what="the end of what ran before",
    )
    yield name
    try:
        tsock.ray.stop(name, force=True)
    except tsock.NoProducer:
        pass
    until(lambda: not actors(name), what="the actors' end")


def actors(name):
    found = ray.util.list_named_actors(all_namespaces=True)
    return [a["name"] for a in found if a["name"].startswith(name)]


def on(node):
    return NodeAffinitySchedulingStrategy(node, soft=False)


def free():
    """CPUs in Ray's account that nobody has."""
    return ray.available_resources().get("CPU", 0)


@ray.remote(num_cpus=0)
class Job:
    """A job that reads when it is told to."""

    def __init__(self, name, **keywords):
        self._loader = tsock.ray.DataLoader(name, 16, **keywords)
        self._batches = iter(self._loader)

    def ready(self):
        return self._loader.name, os.getpid()

    def read(self, batches=None):
        found = []
        while batches is None or len(found) < batches:
            try:
                found.append(next(self._batches)[0].tolist())
            except StopIteration:
                break
        return found

    def producer(self):
        return tsock.query(self._loader.name)["pid"]

    def close(self):
        self._loader.close()


def jobs_on(nodes, name, root, **more):
    keywords = dict(KEYWORDS, root=str(root), **more)
    made = [
        Job.options(scheduling_strategy=on(node)).remote(name, **keywords)
        for node in nodes
    ]
    ray.get([job.ready.remote() for job in made])
    return made


def ask(jobs, method, *arguments):
    return ray.get([getattr(job, method).remote(*arguments) for job in jobs])


def parent(pid):
    with open("/proc/%d/stat" % pid) as f:
        return int(f.read().rpartition(")")[2].split()[1])


def joined(batches):
    return sorted(i for batch in batches for i in batch)


def test_jobs_of_a_node_share_its_producer(streams, images):
    nodes, before = alive(), free()
    jobs = jobs_on(nodes + nodes, streams, images)
    pids = ask(jobs, "producer")
    assert pids[0] != pids[1] and pids[:2] == pids[2:]
    names = {"%s on %s" % (streams, node) for node in nodes}
    assert {*actors(streams)} == names
    until(lambda: free() == before - 2, what="Ray's account of the threads")
    # Ray kills a job: the producer isn't concerned.
    for job in jobs[:2]:
        ray.kill(job)
    for found in ask(jobs[2:], "read"):
        assert joined(found) == [*range(N)]
    assert ask(jobs[2:], "producer") == pids[:2]


def test_the_death_of_a_producer_or_an_actor(streams, images):
    nodes = alive()
    jobs = jobs_on(nodes, streams, images)
    pids = ask(jobs, "producer")
    found = [ask(jobs, "read", 2)]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    # More than the ring had.
    found.append(ask(jobs, "read", 5))
    second = ask(jobs, "producer")
    assert not {*pids} & {*second}
    # One by Ray, which ends what it has started, and one as by the kernel.
    ray.kill(ray.get_actor("%s on %s" % (streams, nodes[0]), "tsock"))
    os.kill(parent(second[1]), signal.SIGKILL)
    until(lambda: not any(map(runs, second)), what="the producers' end")
    found.append(ask(jobs, "read", None))
    for ranks in zip(*found):
        read = sum(ranks, [])
        assert joined(read) == [*range(N)]


def test_the_actor_ends_after_the_last_job(streams, images):
    before = free()
    (job,) = jobs_on(alive()[:1], streams, images, exit_when_idle="1")
    assert joined(ask([job], "read")[0]) == [*range(N)]
    assert actors(streams)
    ask([job], "close")
    until(lambda: not actors(streams), what="the actor's end")
    until(lambda: free() == before, what="Ray's account")
    # The process is used again for others, and a new actor is made.
    (job,) = jobs_on(alive()[:1], streams, images)
    assert joined(ask([job], "read")[0]) == [*range(N)]


def test_streams_are_started_and_stopped_by_hand(streams, images):
    before, nodes = free(), alive()
    options = dict(root=str(images), size=SIZE, threads=2)
    paths = tsock.ray.start(streams, **options)
    assert {*paths} == {*nodes}
    assert tsock.ray.start(streams, **options) == paths
    until(lambda: free() == before - 4, what="Ray's account of the threads")
    with pytest.raises(tsock.OtherStream, match=r"size=32 \(asked for: 40\)"):
        tsock.ray.start(streams, **dict(options, size=40))
    # A bare name is that of a stream that runs, and here is a node, too.
    with tsock.ray.DataLoader(streams, 16, fields="index") as loader:
        assert loader.name == paths[tsock.ray.this_node()]
        assert joined(i.tolist() for (i,) in loader) == [*range(N)]
        with pytest.raises(
            tsock.Refused, match="reads the stream: %d" % os.getpid()
        ):
            tsock.ray.stop(streams)
    tsock.ray.stop(streams, force=True)
    assert not actors(streams)
    until(lambda: free() == before, what="Ray's account")
    with pytest.raises(tsock.NoProducer, match="no actor of Ray's"):
        tsock.ray.stop(streams)
    # A task that runs in a process which has read it is no job of then.
    read = ray.remote(_read).options(scheduling_strategy=on(nodes[0]))
    for _ in range(2):
        found = ray.get(read.remote(streams, dict(KEYWORDS, **options)))
        assert found == [*range(N)]
        # Whose batches were its own is no other stream for that.
        same = dict(options, ring=KEYWORDS["ring"], max_batch=16)
        assert {*tsock.ray.start(streams, **same)} == {*nodes}
        tsock.ray.stop(streams)


def _read(name, keywords):
    with tsock.ray.DataLoader(name, 16, **keywords) as loader:
        return joined(i.tolist() for (i,) in loader)


def test_a_loader_says_that_it_waits_for_cpus(
    streams, images, monkeypatch, caplog
):
    node = tsock.ray.this_node()
    busy = ray.remote(Busy).options(
        num_cpus=CPUS, scheduling_strategy=on(node)
    )
    actor = busy.remote()
    ray.get(actor.ready.remote())
    monkeypatch.setattr(tsock.ray.asking, "FIRST_WORD", 0.2)
    with pytest.raises(
        tsock.NoProducer,
        match="Ray hasn't started the actor with 2 CPUs, one for each thread "
        ".*0 are free: leave CPUs to it",
    ):
        tsock.ray.DataLoader(streams, root=str(images), threads=2, wait=1)
    assert "waiting for the producer of '%s': Ray hasn't" % streams in (
        caplog.text
    )
    # It gets them.
    ray.kill(actor)
    keywords = dict(KEYWORDS, root=str(images), threads=2)
    assert _read(streams, keywords) == [*range(N)]


class Busy:
    def ready(self):
        pass


def test_what_cannot_be_right(streams, images, tmp_path, monkeypatch):
    root = str(images)
    make = tsock.ray.DataLoader
    with pytest.raises(ValueError, match="has %d CPUs in all" % CPUS):
        make(streams, root=root, threads=CPUS + 1)
    with pytest.raises(ValueError, match="is a path"):
        make("/tmp/" + streams, root=root)
    with pytest.raises(tsock.NoProducer, match="missing: No such file"):
        make(streams, root=str(tmp_path / "missing"), threads=1)
    with pytest.raises(TypeError, match="needs root="):
        tsock.ray.start(streams)
    with pytest.raises(ValueError, match="'f00' is no node of Ray's"):
        tsock.ray.start(streams, root=root, nodes=["f00"])
    with monkeypatch.context() as patch:
        patch.setattr(tsock.ray.asking, "VERSION", "0.0.1")
        with pytest.raises(tsock.NoProducer, match="and this process 0.0.1"):
            make(streams, root=root, threads=1)
    with monkeypatch.context() as patch:
        # Short, since the names of sockets are.
        other = os.path.join(os.environ["TSOCK_DIR"], "o")
        patch.setenv("TSOCK_DIR", other)
        with pytest.raises(tsock.NoProducer, match="looks in %s/" % other):
            make(streams, root=root, threads=1)
    with monkeypatch.context() as patch:
        patch.setattr(ray, "is_initialized", lambda: False)
        with pytest.raises(tsock.Error, match="isn't connected to Ray"):
            make(streams, root=root)
    with monkeypatch.context() as patch:
        client = importlib.import_module("ray.util.client").ray
        patch.setattr(client, "is_connected", lambda: True)
        with pytest.raises(tsock.Error, match="is a client of Ray"):
            make(streams, root=root)


WITHOUT = """
import sys, ray, tsock.ray
ray.init(address=sys.argv[1], runtime_env={"env_vars": {"PYTHONPATH": "/"}})
try:
    tsock.ray.start("lacking", root=sys.argv[2], threads=1)
except tsock.NoProducer as e:
    print(e)
"""


def test_a_node_without_tsock(cluster, images):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, cluster.address, str(images)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert "tsock has to be installed there" in done.stdout
    assert "No module named 'tsock'" in done.stdout


# ---- Ray Tune ----


def _trial(config):
    number, keywords = config["number"], config["keywords"]
    with tsock.ray.DataLoader(config["name"], 4 + number, **keywords) as one:
        pid = tsock.query(one.name)["pid"]
        for epoch in range(2):
            found = []
            for (index,) in one:
                found.append(index.tolist())
                if epoch and len(found) == 5 and number % 4 == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
            assert joined(found) == [*range(N)]
        tune.report({"name": one.name, "producer": pid})


def test_trials_come_go_and_die(streams, images, tmp_path):
    options = dict(KEYWORDS, root=str(images))
    # By default those of start() stay while no trial reads.
    del options["exit_when_idle"]
    keywords = {
        key: options.pop(key)
        for key in "dtype layout fields framework timeout".split()
    }
    paths = tsock.ray.start(streams, **options)
    pids = {path: tsock.query(path)["pid"] for path in paths.values()}
    space = dict(
        number=tune.grid_search([*range(8)]),
        name=streams,
        keywords=dict(keywords, **options),
    )
    found = tune.Tuner(
        tune.with_resources(_trial, {"CPU": 2}),
        param_space=space,
        run_config=tune.RunConfig(storage_path=str(tmp_path)),
    ).fit()
    ended = [one.metrics for one in found if not one.error]
    assert len(ended) == 6 and len(found.errors) == 2
    assert {one["producer"] for one in ended} == {*pids.values()}
    assert all(one["producer"] == pids[one["name"]] for one in ended)


# ---- Ray Train ----


def _epochs(config):
    """Two epochs, without a process group."""
    rank = ray.train.get_context().get_world_rank()
    with tsock.ray.DataLoader(config["name"], 8, **config["keywords"]) as one:
        said = dict(name=os.path.basename(one.name))
        for epoch in range(2):
            said[epoch] = joined(index.tolist() for (index,) in one)
    with open("%s/rank%d" % (config["folder"], rank), "w") as f:
        json.dump(said, f)


def _fit(kind, loop, config, tmp_path, workers, failures=0):
    return kind(
        loop,
        train_loop_config=config,
        scaling_config=ray.train.ScalingConfig(
            num_workers=workers,
            resources_per_worker={"CPU": 1},
            placement_strategy="SPREAD",
        ),
        run_config=ray.train.RunConfig(
            storage_path=str(tmp_path),
            failure_config=ray.train.FailureConfig(max_failures=failures),
        ),
    ).fit()


def test_workers_of_train_without_a_process_group(streams, images, tmp_path):
    config = dict(
        name=streams,
        folder=str(tmp_path),
        keywords=dict(KEYWORDS, root=str(images)),
    )
    _fit(DataParallelTrainer, _epochs, config, tmp_path, 3)
    said = [
        json.loads((tmp_path / ("rank%d" % rank)).read_text())
        for rank in range(3)
    ]
    assert len({rank["name"] for rank in said}) == 2
    for epoch in "01":
        parts = [rank[epoch] for rank in said]
        assert [len(part) for part in parts] == 3 * [-(-N // 3)]
        assert {i for part in parts for i in part} == {*range(N)}


def _resumed(config):
    """Each step is saved, and one that hasn't been is as if it had not been."""
    import torch.distributed as dist

    world, path = dist.get_world_size(), config["path"]
    with tsock.ray.DataLoader(config["name"], 4, **config["keywords"]) as one:
        read, state = [], {}
        if os.path.exists(path):
            with open(path) as f:
                read, state = json.load(f)
        resumed = bool(read)
        one.load_state_dict(state)
        while not (state and state["number"] == 1 and state["finished"]):
            for (index,) in one:
                every = [None] * world
                dist.all_gather_object(every, index.tolist())
                state = one.state_dict()
                read.append([one.epoch, sum(every, [])])
                if dist.get_rank() == 0:
                    with open(path + ".new", "w") as f:
                        json.dump([read, state], f)
                    os.replace(path + ".new", path)
                dist.barrier()
                while len(read) == 6 and not resumed:
                    time.sleep(0.1)  # until a node is lost


def test_a_job_goes_on_after_a_node_was_lost(
    streams, cluster, images, tmp_path
):
    before = alive()
    lost = cluster.add_node(**NODE)
    (third,) = {*alive()} - {*before}
    path = str(tmp_path / "state")
    config = dict(
        name=streams, path=path, keywords=dict(KEYWORDS, root=str(images))
    )

    def saved():
        with open(path) as f:
            return json.load(f)[0]

    def lose():
        until(
            lambda: os.path.exists(path) and len(saved()) == 6,
            what="the first steps",
        )
        assert left_of([third])
        cluster.remove_node(lost, allow_graceful=False)

    thread = threading.Thread(target=lose)
    thread.start()
    _fit(ray.train.torch.TorchTrainer, _resumed, config, tmp_path, 4, 3)
    thread.join()
    until(lambda: not left_of([third]), what="the end of the node's producer")
    read = saved()
    for epoch in (0, 1):
        seen = [i for at, indices in read if at == epoch for i in indices]
        assert {*seen} == {*range(N)}
        assert len(seen) - N < 8
