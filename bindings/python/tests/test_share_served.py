# SPDX-License-Identifier: MIT
"""tsock.share: loaders that a process of Python's serves for all jobs."""

import contextlib
import os
import subprocess
import sys
import textwrap

import pytest

import tsock
from conftest import until
from test_share import cache  # noqa: F401 - a fixture

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from tsock.sharing import parcel  # noqa: E402

PACKAGES = os.path.dirname(os.path.dirname(tsock.__file__))
N = 60
PYTHON = sys.executable

pytestmark = pytest.mark.usefixtures("warm")

MODULE = """
import torch

class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, i):
        return torch.full((3,), float(i * i)), i

class Broken(Squares):
    def __getitem__(self, i):
        if i == 5:
            raise KeyError("sample 5 is lost")
        return super().__getitem__(i)

class Numbers(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(10))

def padded(samples):
    most = max(i for _, i in samples) + 1
    return {"x": torch.zeros(len(samples), most), "n": len(samples)}
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A module of the script's, which is found by sys.path."""
    (tmp_path / "of_script.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("of_script", None)
    yield __import__("of_script")
    sys.modules.pop("of_script", None)


@pytest.fixture
def shared(cache, place):  # noqa: F811
    made = []

    def share(loader, **more):
        made.append(tsock.share(loader, **more))
        return made[-1]

    yield share
    for loader in made:
        loader.close()
    for stream in tsock.streams():
        # One whose loader is broken may just have ended by itself.
        with contextlib.suppress(tsock.NoProducer):
            tsock.stop(stream.name, force=True)


def test_jobs_share_a_data_set_of_the_script_s_own(
    code, shared, caplog, monkeypatch
):
    loader = DataLoader(code.Squares(), 7, num_workers=2)
    mine = shared(loader)
    assert len(mine) == len(loader)
    for (x, i), (u, v) in zip(mine, loader, strict=True):
        assert torch.equal(x, u) and torch.equal(i, v)
    assert "made by the script's own loader" in caplog.text
    assert "makes its samples by code of its own" in caplog.text
    # The stream runs, so nothing is sent.
    monkeypatch.setattr(parcel.Parcel, "data", None)
    other = shared(DataLoader(code.Squares(), 20, num_workers=2))
    assert mine.name == other.name  # another batch size doesn't matter
    assert len(next(iter(other))[0]) == 20


def test_each_epoch_is_shuffled_anew(code, shared):
    mine = shared(DataLoader(code.Squares(), 7, shuffle=True))
    seen = [i for _, index in mine for i in index.tolist()]
    again = [i for _, index in mine for i in index.tolist()]
    assert sorted(seen) == sorted(again) == list(range(N)) and seen != again


def digest(loader):
    return parcel.packed(loader, 0).digest


def test_another_data_set_is_another_stream():
    assert digest(numbers(1.0)) == digest(numbers(1.0)) != digest(numbers(2.0))


def numbers(x):
    return DataLoader(TensorDataset(torch.full((8,), x)), 4)


def test_changed_code_is_another_stream(code, tmp_path):
    before = digest(DataLoader(code.Squares(), 7))
    (tmp_path / "of_script.py").write_text(MODULE.replace("i * i", "i + i"))
    assert digest(DataLoader(code.Squares(), 7)) != before


def test_batches_of_a_collate_fn_come_as_they_are(code, shared):
    loader = DataLoader(code.Squares(), 7, collate_fn=code.padded)
    mine = shared(loader)
    for batch, its in zip(mine, loader, strict=True):
        assert torch.equal(batch["x"], its["x"]) and batch["n"] == its["n"]


def test_a_stream_without_length_is_counted(code, shared, place):
    loader = DataLoader(code.Numbers(), 4, num_workers=2)
    mine = shared(loader, exit_when_idle=0.5)
    # Each worker has a short batch at its end.
    assert [x.tolist() for x in mine] == [x.tolist() for x in loader]
    mine.close()
    until(lambda: not tsock.streams())
    with open(os.path.join(place, mine.name + ".log")) as f:
        said = f.read()
    assert "importing what the script's loader needs" in said
    assert "waiting for the loader's first batch" in said
    assert "no consumer" in said


def test_a_lambda_can_t_be_sent(code, shared):
    loader = DataLoader(code.Squares(), 7, collate_fn=lambda batch: batch)
    with pytest.raises(ValueError, match="the collate function can't be sent"):
        shared(loader)

    class Local(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return i

    with pytest.raises(ValueError, match="the data set can't be sent"):
        shared(DataLoader(Local(), 2))


def test_an_error_of_the_data_set_is_told(code, shared):
    with pytest.raises(tsock.Error, match="sample 5 is lost"):
        list(shared(DataLoader(code.Broken(), 2)))
    with pytest.raises(tsock.NoProducer, match="sample 5 is lost"):
        shared(DataLoader(code.Broken(), 10), name="broken")


def test_other_versions_of_packages_are_named(shared, monkeypatch, caplog):
    mine = shared([torch.arange(4)])
    found = parcel._code
    monkeypatch.setattr(
        parcel, "_code", lambda names: (found(names)[0], {"torch": "1.0"})
    )
    other = shared([torch.arange(4)])
    assert mine.name != other.name
    assert "none here" in caplog.text and "and 1.0 here" in caplog.text


def test_a_name_of_another_loader_is_refused(shared):
    """Any iterable of batches is served."""
    mine = shared([torch.arange(4), torch.arange(4, 8)], name="mine")
    assert [batch.tolist() for batch in mine] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(tsock.OtherStream, match="is of another loader"):
        shared(numbers(1.0), name="mine")


def run(path, text, *args):
    path.write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, str(path), *args],
        env=dict(os.environ, PYTHONPATH=PACKAGES),
        capture_output=True,
        text=True,
    )


SCRIPT = """
import torch, tsock

class Mine(torch.utils.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return i

def main():
    loader = tsock.share(torch.utils.data.DataLoader(Mine(), 5))
    print(sorted(int(i) for batch in loader for i in batch))
    loader.close()
    tsock.stop(loader.name)
"""


def test_a_script_s_own_classes_are_found(cache, tmp_path):  # noqa: F811
    guarded = SCRIPT + '\nif __name__ == "__main__":\n    main()\n'
    done = run(tmp_path / "train.py", guarded)
    assert done.stdout == "%s\n" % list(range(10)), done.stderr


def test_a_script_without_a_guard_hears_of_it(cache, tmp_path):  # noqa: F811
    done = run(tmp_path / "train.py", SCRIPT + "\nmain()\n")
    assert done.returncode == 1
    assert "if __name__ == '__main__'" in done.stderr.splitlines()[-1]


def test_a_class_that_the_guard_hides_is_named(cache, tmp_path):  # noqa: F811
    hidden = 'if __name__ == "__main__":\n' + textwrap.indent(
        SCRIPT + "\nmain()\n", "    "
    )
    done = run(tmp_path / "train.py", hidden)
    assert done.returncode == 1
    assert "Mine isn't there when the script is imported" in done.stderr


SETS = """
import torch, of_script
from torch.utils.data import DataLoader
from tsock.sharing import parcel
data = of_script.Squares()
data.words = {"one", "two", "three", "four", "five"}, frozenset("abcdef")
loader = DataLoader(data, 7, collate_fn=of_script.padded)
print(parcel.packed(loader, 0).digest)
"""


def test_sets_have_one_order_in_the_name(code, tmp_path):
    path = os.pathsep.join([PACKAGES, str(tmp_path)])
    said = {
        subprocess.run(
            [PYTHON, "-c", SETS],  # a warm one has its hash seed
            env=dict(os.environ, PYTHONPATH=path, PYTHONHASHSEED=seed),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
