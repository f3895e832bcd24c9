# SPDX-License-Identifier: MIT
"""What torchrun and srun say to a rank, and what a loader makes of it."""

import warnings

import pytest

import tsock
from conftest import N
from tsock import launchers

TORCHRUN = "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"
ACCELERATE = "FORK_LAUNCHED", "NPROC"
SRUN = (
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE",
)


@pytest.fixture
def says(monkeypatch):
    """says(RANK=1, ...): what the launcher has put into the environment."""
    monkeypatch.setattr(launchers, "_warned", set())
    for key in TORCHRUN + ACCELERATE + SRUN:
        monkeypatch.delenv(key, raising=False)

    def say(**environment):
        for key, value in environment.items():
            monkeypatch.setenv(key, str(value))

    return say


@pytest.fixture
def group(monkeypatch):
    """group(rank, world): what torch.distributed says."""
    distributed = pytest.importorskip("torch.distributed")

    def initialise(rank, world):
        monkeypatch.setattr(distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(distributed, "get_rank", lambda: rank)
        monkeypatch.setattr(distributed, "get_world_size", lambda: world)

    return initialise


LAUNCHERS = {
    "torchrun": dict(RANK=1, WORLD_SIZE=2),
    "srun": dict(SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=2),
}
# Rank 3 of 4, the second of this machine's two.
NODES = {
    "torchrun": dict(RANK=3, LOCAL_RANK=1, WORLD_SIZE=4, LOCAL_WORLD_SIZE=2),
    "srun": dict(
        SLURM_PROCID=3,
        SLURM_LOCALID=1,
        SLURM_NODEID=1,
        SLURM_STEP_NUM_TASKS=4,
        SLURM_STEP_TASKS_PER_NODE="2(x2)",
    ),
}


@pytest.mark.parametrize("by", LAUNCHERS)
def test_ranks_without_a_process_group_are_warned_once(serve, says, by):
    says(**LAUNCHERS[by])
    serve()
    loader = tsock.DataLoader("toy", 16)
    with pytest.warns(UserWarning, match="init_process_group") as said:
        next(iter(loader))
    text = str(said[0].message)
    assert "such as %s has made this process rank 1 of 2" % by in text
    assert ", ".join(LAUNCHERS[by]) in text
    assert "all samples of 'toy'" in text
    assert "rank=0, world_size=1" in text
    assert (len(said), said[0].filename) == (1, __file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sum(len(labels) for _, labels in loader) == N


def test_who_knows_its_rank_is_not_warned(serve, says, group):
    says(**LAUNCHERS["torchrun"])
    serve("--shard", "1/2", name="shard")
    serve()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(iter(tsock.DataLoader("toy", 16, rank=0, world_size=1)))
        next(iter(tsock.DataLoader("shard", 16)))
        says(WORLD_SIZE=1)
        next(iter(tsock.DataLoader("toy", 16)))
        says(WORLD_SIZE=2)
        group(0, 1)
        next(iter(tsock.DataLoader("toy", 16)))
    assert not launchers._warned


def test_who_has_one_task_or_torchrun_in_it_is_not_srun(says):
    assert launchers.launched() is None
    # What a batch script sees, and a step of one task.
    says(SLURM_PROCID=0, SLURM_NTASKS=4)
    assert launchers.launched() is None
    says(SLURM_STEP_NUM_TASKS=1)
    assert launchers.launched().world == 1
    says(RANK=3, WORLD_SIZE=8)
    assert launchers.launched()[:4] == ("torchrun", "RANK, WORLD_SIZE", 3, 8)
    assert not launchers.launched().spread


@pytest.mark.parametrize(
    "said, node, tasks",
    [("3", 0, 3), ("2(x2)", 1, 2), ("4(x2),3", 2, 3), ("4,3(x2)", 2, 3)],
)
def test_the_tasks_of_a_node(says, said, node, tasks):
    says(**NODES["srun"])
    says(SLURM_NODEID=node, SLURM_STEP_TASKS_PER_NODE=said)
    assert launchers.launched().local_world == tasks


@pytest.mark.parametrize("by", NODES)
def test_ranks_elsewhere_that_cannot_be_asked_are_refused(serve, says, group, by):
    """There is no process group, or one that can't be asked."""
    says(**NODES[by])
    group(3, 4)
    serve()
    serve("--shard", "3/4", name="shard")
    with pytest.raises(ValueError, match="rank 3 of 4 of 'toy'") as error:
        tsock.DataLoader("toy", 16)
    text = str(error.value)
    assert "%s has started 2 of these ranks on this machine" % by in text
    assert "rank=0, world_size=1" in text
    assert "init_process_group() before" in text and "gather=" in text
    with pytest.raises(ValueError, match="can't be asked where"):
        tsock.DataLoader("toy", 16, rank=3, world_size=4)
    tsock.DataLoader("shard", 16).close()
    tsock.DataLoader("toy", 16, rank=0, world_size=1).close()
    # Two launchers on this machine, say: a caller that names the job knows.
    tsock.DataLoader("toy", 16, rank=3, world_size=4, job="mine").close()
    # A group of some ranks may well be here.
    group(1, 2)
    tsock.DataLoader("toy", 16).close()


@pytest.mark.parametrize("by", NODES)
def test_ranks_elsewhere_without_a_group_do_not_all_read_everything(
    serve, says, by
):
    says(**NODES[by])
    serve()
    # A framework may make the process group yet.
    with tsock.DataLoader("toy", 16) as loader:
        assert len(loader) == 13
        with pytest.raises(ValueError, match="rank 3 of 4") as error:
            next(iter(loader))
    text = str(error.value)
    assert by in text and "all samples of 'toy'" in text
    assert "init_process_group() before" in text and "gather=" in text
    with tsock.DataLoader("toy", 16, rank=0, world_size=1) as loader:
        assert sum(len(labels) for _, labels in loader) == N


def test_a_group_that_comes_after_the_loader_is_refused(serve, says, group):
    says(**NODES["torchrun"])
    serve()
    loader = tsock.DataLoader("toy", 16)
    group(3, 4)
    with pytest.raises(ValueError, match="can't be asked where"):
        iter(loader)
    with pytest.raises(ValueError, match="can't be asked where"):
        len(loader)


@pytest.mark.parametrize("by", NODES)
def test_ranks_of_each_machine_are_warned_once(serve, says, by):
    says(**NODES[by])
    serve()
    loader = tsock.DataLoader("toy", 16, rank=1, world_size=2, timeout=60)
    other = tsock.DataLoader("toy", 16, rank=0, world_size=2, timeout=60)
    with pytest.warns(UserWarning, match="all samples of 'toy'") as said:
        for one in (loader, other):
            try:
                next(iter(one))
            except tsock.Error:
                pass  # ranks of one thread, if they don't begin alone
    text = str(said[0].message)
    assert "%s has started 4 on several machines" % by in text
    assert "rank=1, world_size=2" in text
    assert (len(said), said[0].filename) == (1, __file__)


def test_what_accelerate_forked_is_on_this_machine(says):
    """Its PartialState sets LOCAL_WORLD_SIZE=1 where nobody has said it."""
    says(RANK=1, LOCAL_RANK=0, WORLD_SIZE=2, LOCAL_WORLD_SIZE=1)
    assert launchers.launched().spread
    says(FORK_LAUNCHED=1)
    assert not launchers.launched().spread
    says(WORLD_SIZE=4, NPROC=2)  # notebook_launcher() on two nodes
    assert launchers.launched().spread


def test_ranks_that_are_all_here_are_not_warned(serve, says):
    says(RANK=1, LOCAL_RANK=1, WORLD_SIZE=2, LOCAL_WORLD_SIZE=2)
    serve()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = tsock.DataLoader("toy", 16, rank=1, world_size=2, timeout=0.5)
        try:
            next(iter(one))
        except tsock.TimedOut:
            pass  # for the other rank
    assert not launchers._warned
