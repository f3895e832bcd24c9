# SPDX-License-Identifier: MIT
"""Two agents of torchrun on one machine, each with a folder of sockets.

For the suite "nodes", make check-nodes: torch takes seconds to load.
"""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

import audit
from conftest import CHECKOUT, N, end_all, until

pytest.importorskip("torch.distributed")
pytest.importorskip("numpy")
ALL = os.environ.get("TSOCK_TEST_NODES") == "1"
pytestmark = [
    pytest.mark.minutes(10),
    pytest.mark.skipif(not ALL, reason="make check-nodes has it"),
]

COMMON = """
import datetime, json, os, sys, time
import torch
import torch.distributed as dist
import tsock

torch.set_num_threads(1)
HERE, ROOT = sys.argv[1:3]
# Gloo may wait for addresses of an attempt before: it is tried again then.
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=TIMEOUT))
RANK, WORLD = dist.get_rank(), dist.get_world_size()


def loader(batch_size=8, name="toy", **more):
    keywords = dict(root=ROOT, size=32, threads=1, dtype="uint8",
                    layout="hwc", fields=("index",), exit_when_idle="10",
                    timeout=120, **more)
    return tsock.DataLoader(name, batch_size, **keywords)


def step():
    # What a training step has: all ranks wait for all.
    dist.all_reduce(torch.zeros(1))


def epoch(loader):
    found = []
    for (index,) in loader:
        found.append(index.tolist())
        step()
    return found


def say(**what):
    with open(os.path.join(HERE, "said%d" % RANK), "a") as f:
        f.write(json.dumps(what) + "\\n")

"""

END = """
dist.barrier()
dist.destroy_process_group()
"""


class Torchrun:
    """Agents, each on a node of its own: a folder of sockets."""

    def __init__(self, place, folder, root):
        self._place, self._folder, self._root = place, folder, root
        self.agents = []
        self.nodes = {}

    def node(self, number):
        folder = os.path.join(self._place, "n%d" % number)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.nodes[number] = folder
        return folder

    def start(self, text, ranks, elastic=None, **environment):
        """A job of so many ranks on each node; elastic is its --rdzv-conf."""
        script = self._folder / "script.py"
        timeout = "20" if elastic else "300"
        script.write_text(COMMON.replace("TIMEOUT", timeout) + text + END)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        agents = []
        for number, count in enumerate(ranks):
            env = dict(
                os.environ,
                PYTHONPATH=os.path.join(CHECKOUT, "bindings", "python"),
                TSOCK_DIR=self.node(number),
                GLOO_SOCKET_IFNAME="lo",
                OMP_NUM_THREADS="1",
            )
            for key in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT"):
                env.pop(key, None)
            env.update(environment)
            how = [
                "--nnodes=%d" % len(ranks),
                "--node-rank=%d" % number,
                "--master-addr=127.0.0.1",
                "--master-port=%d" % port,
            ]
            if elastic:
                how = [
                    "--nnodes=1:%d" % len(ranks),
                    "--max-restarts=9",
                    "--rdzv-backend=c10d",
                    "--rdzv-id=mine",
                    "--rdzv-endpoint=127.0.0.1:%d" % port,
                    "--rdzv-conf=is_host=%d,%s" % (number == 0, elastic),
                ]
            agents.append(
                subprocess.Popen(
                    [
                        *(sys.executable, "-m", "torch.distributed.run"),
                        *how,
                        "--nproc-per-node=%d" % count,
                        *(str(script), str(self._folder), str(self._root)),
                    ],
                    env=env,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    start_new_session=True,
                )
            )
        self.agents += agents
        return agents

    def run(self, text, ranks, **environment):
        """What each rank said: a list of dicts."""
        agents = self.start(text, ranks, **environment)
        outputs = [agent.communicate(timeout=500)[0] for agent in agents]
        assert [a.returncode for a in agents] == [0] * len(agents), outputs
        return self.said(sum(ranks))

    def said(self, world):
        found = []
        for rank in range(world):
            path = self._folder / ("said%d" % rank)
            found.append(
                [json.loads(l) for l in path.read_text().splitlines()]
            )
            path.unlink()
        return found

    def close(self):
        for agent in self.agents:
            try:
                os.killpg(agent.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            agent.communicate()
        for folder in self.nodes.values():
            end_all(folder)


@pytest.fixture
def torchrun(place, tmp_path, images):
    made = Torchrun(place, tmp_path, images)
    yield made
    made.close()


EPOCHS = """
for seed in range(SEEDS):
    with loader(name="toy%d" % seed, seed=seed) as one:
        for _ in range(2):
            say(epoch=epoch(one), number=one.stream_epoch, batches=len(one),
                state=one.state_dict(), name=os.path.basename(one.name))
with loader(name="val", preset="eval") as one:
    for _ in range(2):
        say(epoch=epoch(one), number=one.stream_epoch, batches=len(one),
            state=one.state_dict(), name=os.path.basename(one.name))
"""


def check_epochs(said, world, seeds):
    each = -(-N // world)
    for at in range(2 * seeds + 2):
        ranks = [rank[at] for rank in said]
        assert {rank["number"] for rank in ranks} == {at % 2}
        assert all(rank["state"] == ranks[0]["state"] for rank in ranks)
        assert all(len(r["epoch"]) == r["batches"] for r in ranks)
        counts = [sum(map(len, rank["epoch"])) for rank in ranks]
        seen = [i for rank in ranks for b in rank["epoch"] for i in b]
        assert {*seen} == {*range(N)}
        if at < 2 * seeds:
            assert counts == world * [each]
        else:
            assert len(seen) == N


def test_two_agents_of_two_ranks(torchrun):
    """LOCAL_WORLD_SIZE lies, and nobody reads it."""
    text = EPOCHS.replace("SEEDS", "2")
    text = 'os.environ["LOCAL_WORLD_SIZE"] = "4"\n' + text
    said = torchrun.run(text, (2, 2))
    check_epochs(said, 4, 2)
    assert [rank[0]["name"] for rank in said] == (
        2 * ["toy0.0to1of4"] + 2 * ["toy0.2to3of4"]
    )


@pytest.mark.parametrize("ranks", [(1, 3), (3, 1), (1, 1)])
def test_agents_of_other_numbers_of_ranks(torchrun, ranks):
    said = torchrun.run(EPOCHS.replace("SEEDS", "10"), ranks)
    check_epochs(said, sum(ranks), 10)


# Each step is saved, and a step that hasn't been saved is as if it had not been.
RESUMED = """
path = os.path.join(HERE, "state")
with loader(4) as one:
    read, state = [], {}
    if os.path.exists(path):
        with open(path) as f:
            read, state = json.load(f)
    one.load_state_dict(state)
    while not (state and state["number"] == 1 and state["finished"]):
        for (index,) in one:
            every = [None] * WORLD
            dist.all_gather_object(every, index.tolist())
            state = one.state_dict()
            read.append([one.epoch, sum(every, [])])
            if RANK == 0:
                with open(path + ".new", "w") as f:
                    json.dump([read, state], f)
                os.replace(path + ".new", path)
            step()
"""


def read(folder):
    found = {}
    for epoch, indices in saved(folder)[0]:
        found.setdefault(epoch, []).extend(indices)
    return found


def saved(folder):
    return json.loads((folder / "state").read_text())


def check_rest(folder, worlds):
    """All of both epochs was read, and what came twice fills up rows."""
    found = read(folder)
    for epoch in (0, 1):
        seen = found[epoch]
        assert {*seen} == {*range(N)}
        assert len(seen) - N < sum(worlds)


def processes(folder, word):
    """Those of a node, whose command has that word."""
    return [
        pid
        for pid, command in audit.of_folder(folder).items()
        if word in command.decode(errors="replace")
    ]


@pytest.mark.parametrize(
    "victim, after",
    [
        ("rank", (1, 1)),
        ("rank", (3, 3)),
        ("agent", (2,)),
        ("agent", (1, 2)),
        ("producer", (1, 2)),
    ],
)
def test_a_job_goes_on_after_a_death(torchrun, tmp_path, victim, after):
    agents = torchrun.start(RESUMED, (2, 2))
    began(tmp_path)
    if victim == "agent":
        for agent in agents:  # a node, and what the engine does to the rest
            os.killpg(agent.pid, signal.SIGKILL)
    elif victim == "rank":
        workers = processes(torchrun.nodes[1], "script.py")
        os.kill(next(w for w in workers if w != agents[1].pid), signal.SIGKILL)
    else:
        os.kill(
            *processes(torchrun.nodes[1], "tsock-producer"), signal.SIGKILL
        )
    codes = [agent.wait(300) for agent in agents]
    assert (codes == [0, 0]) == (victim == "producer")
    for agent in torchrun.start(RESUMED, after):
        out = agent.communicate(timeout=300)[0]
        assert agent.returncode == 0, out
    check_rest(tmp_path, (4, sum(after)))


def began(folder):
    path = folder / "state"
    until(
        lambda: path.exists() and len(saved(folder)[0]) > 4,
        what="the first steps",
    )


def test_torchelastic_goes_on_with_the_nodes_that_are_left(torchrun, tmp_path):
    """The node that is left has other ranks then, and its producer of before
    another part: it isn't in the way."""
    agents = torchrun.start(
        RESUMED,
        (2, 2),
        elastic="timeout=120,last_call_timeout=2,keep_alive_interval=1,"
        "keep_alive_max_attempt=3",
    )
    began(tmp_path)
    os.killpg(agents[1].pid, signal.SIGKILL)
    for worker in processes(torchrun.nodes[1], "script.py"):
        os.kill(worker, signal.SIGKILL)
    out = agents[0].communicate(timeout=300)[0]
    assert agents[0].returncode == 0, out
    check_rest(tmp_path, (4, 2))
    until(
        lambda: not processes(torchrun.nodes[0], "tsock-producer"),
        what="the producers' end by themselves",
    )
