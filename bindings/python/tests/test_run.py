# SPDX-License-Identifier: MIT
"""python -m tsock.run: scripts whose loaders read shared streams, unedited."""

import copy
import json
import os
import pickle
import subprocess
import sys

import pytest

import tsock
from conftest import CHECKOUT, N, everything, running
from tsock import run
from tsock.sharing.patch import Patch

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
from torch.utils.data import DataLoader  # noqa: E402
from torchvision import transforms as T  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

pytestmark = pytest.mark.usefixtures("warm")
PYTHON = sys.executable

EVAL = T.Compose([T.Resize(40), T.CenterCrop(32), T.ToTensor()])

COMMON = """
import json, os, sys
import torch
from torch.utils.data import DataLoader, Subset
from torchvision import transforms as T
from torchvision.datasets import ImageFolder

EVAL = T.Compose([T.Resize(40), T.CenterCrop(32), T.ToTensor()])
TRAIN = T.Compose([T.RandomResizedCrop(32), T.ToTensor()])


class Odd(ImageFolder):
    def __getitem__(self, index):
        image, label = super().__getitem__(index)
        return 1 - image, label


def say(**what):
    print(json.dumps(what))
"""


@pytest.fixture
def job(tmp_path, monkeypatch, place):
    """job(text) runs it by tsock.run; what it said, and its standard error."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(
        "PYTHONPATH", os.path.join(CHECKOUT, "bindings", "python")
    )

    def start(text, *arguments, options=(), launcher=(), code=0):
        path = tmp_path / "scripts" / "train.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(COMMON + text)
        done = subprocess.run(
            [sys.executable, *launcher, "-m", "tsock.run", *options, str(path)]
            + [str(a) for a in arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=150,
        )
        assert done.returncode == code, done.stderr
        return [
            json.loads(x) for x in done.stdout.split("\n") if x
        ], done.stderr

    yield start
    for name in running():
        tsock.stop(name, force=True)


@pytest.fixture
def patched(tmp_path, monkeypatch, place):
    """patched() patches torch in this process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = []

    def patch(**how):
        made.append(Patch(**how))
        made[-1].install()
        return made[-1]

    yield patch
    for one in made:
        one.close()


def same(mine, its):
    return all(
        type(a) is type(b)
        and all(torch.equal(x, y) and x.dtype == y.dtype for x, y in zip(a, b))
        for a, b in zip(mine, its, strict=True)
    )


def copied(loader):
    return [type(b)(x.clone() for x in b) for b in loader]


LOOP = """
loader = DataLoader(ImageFolder(sys.argv[1], TRAIN), 32, shuffle=True,
                    num_workers=2)
assert isinstance(loader, torch.utils.data.DataLoader)
for epoch in range(2):
    batches = [len(y) for x, y in loader]
    say(batches=batches, length=len(loader), name=__name__, argv=sys.argv,
        path=sys.path[0], main=sys.modules["__main__"].__file__)
"""


def test_a_script_s_loader_reads_the_stream(images, job, monkeypatch):
    # Here torch is imported while tsock.run waits for that.
    monkeypatch.setattr(sys, "executable", PYTHON)
    said, log = job(LOOP, images, "--more")
    assert [sum(s["batches"]) for s in said] == [N, N]
    assert all(len(s["batches"]) == s["length"] for s in said)
    assert said[0]["name"] == "__main__"
    assert said[0]["argv"][1:] == [str(images), "--more"]
    assert said[0]["path"] == os.path.dirname(said[0]["main"])
    (line,) = [x for x in log.split("\n") if "is native" in x]
    assert line.startswith("tsock.run: loader of ImageFolder of %s" % images)
    (name,) = running()
    assert repr(name) in line


def test_jobs_share_one_stream(images, job):
    job(LOOP, images)
    job(LOOP, images)
    assert len(running()) == 1


ODD = """
data = Odd(sys.argv[1], EVAL)
for part in (data, Subset(data, range(40))):
    loader = DataLoader(part, 20)
    say(count=sum(len(y) for x, y in loader))


if __name__ == "__main__":
    say(done=True)
"""


def test_what_isn_t_native_is_the_script_s_own(images, job):
    said, log = job(ODD, images, options=["-v"])
    assert "Python  Odd" in log and "code of its own" in log
    assert [s.get("count") for s in said] == [N, 40, None]
    assert log.count("stays the script's own: its data set (Odd") == 1
    assert log.count("stays the script's own: its data set (Subset") == 1
    assert not running()


SERVED = """
class Halves(ImageFolder):
    def __getitem__(self, index):
        image, label = super().__getitem__(index)
        return image / 2, label


def main():
    loader = DataLoader(Halves(sys.argv[1], EVAL), 20, shuffle=True)
    say(count=sum(len(y) for x, y in loader),
        high=max(float(x.max()) for x, y in loader))


"""


def test_other_loaders_are_served_when_that_is_asked_for(images, job):
    guarded = SERVED + "if __name__ == '__main__':\n    main()\n"
    said, log = job(guarded, images, options=["--serve"])
    assert said[0]["count"] == N and said[0]["high"] <= 0.5
    assert "is served, since its data set (Halves" in log
    assert len(running()) == 1


def test_a_script_without_a_guard_is_not_served(images, job):
    said, log = job(SERVED + "main()\n", images, options=["--serve"])
    # Its own loader goes on, and its loop ran once.
    assert [s["count"] for s in said] == [N]
    assert "if __name__ == '__main__':" in log
    assert not running()


def test_the_table_is_printed(images, job):
    _, log = job(LOOP, images, options=["--explain"])
    assert "native  RandomResizedCrop" in log


RANKS = """
def main(number, folder, **group):
    torch.distributed.init_process_group("gloo", **group)
    data = ImageFolder(folder, EVAL)
    said = []
    for shuffle in (True, False):
        sampler = torch.utils.data.DistributedSampler(data, shuffle=shuffle)
        loader = DataLoader(data, 16, sampler=sampler)
        for epoch in range(2):
            loader.sampler.set_epoch(epoch)
            batches = [y.tolist() for x, y in loader]
            assert len(batches) == len(loader)
            said.append(sum(batches, []))
    with open(os.path.join(sys.argv[2], "rank%d" % number), "w") as f:
        json.dump([said, data.targets], f)
    torch.distributed.destroy_process_group()


def spawned(rank, folder, meet):
    main(rank, folder, init_method=meet, rank=rank, world_size=2)


if __name__ == "__main__":
    if "RANK" in os.environ:
        main(int(os.environ["RANK"]), sys.argv[1])
    else:
        meet = "file://" + os.path.join(sys.argv[2], "meet")
        torch.multiprocessing.spawn(spawned, (sys.argv[1], meet), nprocs=2)
"""
TORCHRUN = (
    *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
)


@pytest.mark.parametrize("launcher", [TORCHRUN, ()], ids=["torchrun", "spawn"])
def test_ranks_read_a_stream_together(
    launcher, images, job, tmp_path, monkeypatch
):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    _, log = job(RANKS, images, tmp_path, launcher=launcher)
    ranks = [
        json.loads((tmp_path / ("rank%d" % i)).read_text()) for i in (0, 1)
    ]
    wanted = ranks[0][1]
    for mine, its in zip(ranks[0][0], ranks[1][0], strict=True):
        assert len(mine) == len(its) == 102  # one sample comes twice
        both = mine + its
        for label in wanted:
            both.remove(label)
        assert len(both) == 1
    assert ranks[0][0][0] != ranks[0][0][1]
    assert log.count("is native") == 2  # said by one rank


MODULE = """
import argparse, sys

if __name__ == "__main__":
    print(sys.argv[1:], __package__, sys.modules["__main__"].__name__)
"""


def test_a_module_runs_as_python_would_run_it(tmp_path, monkeypatch):
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "go.py").write_text(MODULE)
    (package / "__main__.py").write_text("from . import go\nimport nowhere\n")
    monkeypatch.setenv(
        "PYTHONPATH", os.path.join(CHECKOUT, "bindings", "python")
    )

    def out(*command, code=0):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        return done.stdout, done.stderr

    words = ("mine.go", "a", "--serve")
    assert out("-m", *words) == out("-m", "tsock.run", "-m", *words)
    assert (
        "no module mine.other"
        in out(*("-m", "tsock.run", "-m", "mine.other"), code=2)[1]
    )
    # What the module itself lacks is its own error.
    assert (
        "No module named 'nowhere'"
        in out(*("-m", "tsock.run", "-m", "mine"), code=1)[1]
    )


@pytest.mark.parametrize(
    "argv, wrong",
    [
        ([], "no script to run"),
        (["-m"], "no module behind -m"),
        (["--sever", "x.py"], "no option --sever"),
        (["nowhere/x.py"], "no file nowhere/x.py"),
        (["."], ". is a folder without a __main__.py"),
        (["-m", "tsock_nowhere"], "no module tsock_nowhere"),
        (["-m", "a..b"], "no module a..b"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_the_usage(
    argv, wrong, capsys
):
    assert run.main(argv) == 2
    said = capsys.readouterr().err
    assert said.startswith("tsock.run: %s" % wrong)
    assert said.endswith(run.USAGE)


def test_help_says_what_it_does(capsys):
    assert run.main(["-h"]) == 0
    assert capsys.readouterr().out == run.HELP


def test_the_script_s_exit_status_is_the_run_s(tmp_path):
    script = tmp_path / "x.py"
    script.write_text("import sys\nsys.exit(7)\n")
    with pytest.raises(SystemExit) as e:
        keep = sys.argv, sys.path[0]
        try:
            run.execute(run.Command(str(script), False, []))
        finally:
            sys.argv, sys.path[0] = keep
    assert e.value.code == 7


# ---- in this process ----


def test_batches_and_random_numbers_are_the_script_s(images, patched):
    loader = DataLoader(ImageFolder(images, EVAL), 20)
    torch.manual_seed(3)
    wanted = [copied(loader), torch.rand(2)]
    patched()
    torch.manual_seed(3)
    mine = copied(loader)
    assert torch.equal(torch.rand(2), wanted[1])
    assert same(mine, wanted[0])
    assert len(running()) == 1


def test_a_shuffled_loader_draws_as_many_numbers(images, patched):
    loader = DataLoader(ImageFolder(images, EVAL), 20, shuffle=True)
    torch.manual_seed(3)
    list(loader)
    wanted = torch.rand(2)
    patched()
    torch.manual_seed(3)
    assert sum(len(y) for _, y in loader) == N
    assert torch.equal(torch.rand(2), wanted)


def test_what_was_replaced_is_looked_at_again(images, patched):
    patched()
    data = ImageFolder(images, EVAL)
    loader = DataLoader(data, 20)
    first = copied(loader)
    assert same(copied(loader), first) and len(running()) == 1
    data.transform = T.Compose([T.Resize(44), T.CenterCrop(32), T.ToTensor()])
    second = copied(loader)
    assert not same(second, first) and len(running()) == 2
    vars(loader)["dataset"] = ImageFolder(images, EVAL)
    assert same(copied(loader), first) and len(running()) == 2


def test_an_attribute_of_no_effect_keeps_the_stream_s_place(images, patched):
    patched()
    data = ImageFolder(images, EVAL)
    loader = DataLoader(data, 20, shuffle=True)
    labels = [y.tolist() for _, y in loader]
    made = loader._tsock.made
    data.note = "mine"
    assert [y.tolist() for _, y in loader] != labels
    assert loader._tsock.made is made and made.epoch == 1


def test_a_loader_is_pickled_without_the_stream(images, patched):
    patched()
    loader = DataLoader(ImageFolder(images, EVAL), 20)
    wanted = copied(loader)
    data = pickle.dumps(loader)
    assert b"tsock.sharing" not in data and b"tsock.loader" not in data
    assert same(copied(pickle.loads(data)), wanted)
    assert same(copied(copy.deepcopy(loader)), wanted)


class Own(DataLoader):
    def __iter__(self):
        yield from super().__iter__()


def test_a_loader_with_an_iterator_of_its_own_is_left_alone(images, patched):
    patched()
    loader = Own(ImageFolder(images, EVAL), 20)
    assert sum(len(y) for _, y in loader) == N
    assert not running()


def test_loops_of_tsock_s_are_left_alone(images, patched, served):
    patched()
    loader = DataLoader(ImageFolder(images, EVAL), 20)
    served(loader, identity="mine")
    with tsock.DataLoader("mine", 20) as mine:
        assert sum(len(y) for _, y in mine) == N
    assert running() == {"mine"}


class Nested(torch.utils.data.Dataset):
    """Samples that a worker takes from a loader."""

    def __init__(self, inner):
        self.inner = inner

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return sum(len(y) for _, y in self.inner)


def test_workers_read_as_before(images, patched):
    patched()
    inner = DataLoader(ImageFolder(images, EVAL), 20)
    assert list(DataLoader(Nested(inner), 1, num_workers=1)) == [N, N]
    assert not running()


def test_a_producer_that_fails_leaves_the_script_its_loader(
    images, patched, monkeypatch, caplog
):
    caplog.set_level("INFO", "tsock")
    patched()
    monkeypatch.setenv("TSOCK_PRODUCER", "/bin/false")
    loader = DataLoader(ImageFolder(images, EVAL), 20)
    assert sum(len(y) for _, y in loader) == N
    assert "stays the script's own" in caplog.text


def test_torch_s_iterators_are_back_when_the_script_ends(images, patched):
    before = DataLoader.__iter__
    patch = patched()
    assert DataLoader.__iter__ is not before
    patch.close()
    assert DataLoader.__iter__ is before


def test_timm_s_loader_reads_the_stream(images, patched):
    timm = pytest.importorskip("timm.data")
    data = timm.create_dataset("", root=str(images), split="")
    loader = timm.create_loader(
        data, (3, 32, 32), 20, device=torch.device("cpu"), num_workers=0
    )
    wanted = copied(loader)
    patched()
    assert same(copied(loader), wanted)
    assert len(running()) == 1
