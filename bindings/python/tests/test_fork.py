# SPDX-License-Identifier: MIT
"""A child that multiprocessing forks keeps the batch that it was given."""

import pytest

pytest.importorskip("numpy")

pytestmark = pytest.mark.usefixtures("warm")

SCRIPT = """
import multiprocessing, sys
import numpy
import tsock

def save(go, path, images, labels):
    go.wait()
    numpy.savez(path, images=numpy.asarray(images),
                labels=numpy.asarray(labels))

def own(array):
    return numpy.array(numpy.asarray(array))

fork = multiprocessing.get_context("fork")
go = fork.Event()
loader = tsock.DataLoader("toy", batch_size=16, dtype="uint8", timeout=100,
                          framework=sys.argv[2])
batches = iter(loader)
held, children = [], []
for n in range(3):
    held.append(next(batches))
    children.append(fork.Process(
        target=save, args=(go, "%s%d.npz" % (sys.argv[1], n), *held[-1])))
    children[-1].start()
right = [[own(a) for a in batch] for batch in held]
held.clear()
del batches
for epoch in range(2):
    for batch in loader:
        pass
go.set()
for n, child in enumerate(children):
    child.join()
    assert child.exitcode == 0, child.exitcode
    saved = numpy.load("%s%d.npz" % (sys.argv[1], n))
    assert (saved["labels"] == right[n][1]).all()
    wrong = (saved["images"] != right[n][0]).any(axis=(1, 2, 3)).sum()
    assert wrong == 0, "%d of 16 samples" % wrong
print("good")
"""


GATHERS = """
import os, sys
import tsock

loader = tsock.DataLoader("toy", 48, subset=range(97), fields=("index",),
                          dtype="uint8", framework="numpy", timeout=100)
batches = iter(loader)
for _ in range(int(sys.argv[1])):
    next(batches)
child = os.fork()
if child == 0:
    try:
        next(batches)
    except tsock.Error as e:
        os._exit(0 if "before a fork" in str(e) else 2)
    except StopIteration:
        os._exit(3)
    os._exit(1)
print(os.waitpid(child, 0)[1] >> 8, len(list(batches)))
"""


@pytest.mark.parametrize("taken", range(4))
def test_a_child_takes_nothing_that_its_parent_has_gathered(
    serve, script, taken
):
    """After the second of three batches the last one, which is short, may be
    there already."""
    serve()
    out, err = script(GATHERS, taken).communicate(timeout=150)
    assert out == "0 %d\n" % (3 - taken), err


READS = """
import os, sys
import tsock

def index(loader):
    return [int(i) for (batch,) in loader for i in batch]

loader = tsock.DataLoader("toy", 16, fields=("index",), dtype="uint8",
                          framework="numpy", timeout=100)
looks = sys.argv[1]
if looks == "has looked":
    next(iter(loader))
if looks == "was told":
    loader.set_epoch(7)
    sampler = loader.sampler
if looks == "has a state":
    loader.load_state_dict(dict(loader.state_dict(), epoch=0, number=5,
                                samples_yielded=160))
if looks == "reads":
    batches = iter(loader)
    next(batches)
children = []
for _ in range(2):
    children.append(os.fork())
    if children[-1] == 0:
        try:
            seen = index(loader)
            assert len(seen) == len(set(seen)), seen
            print(len(loader), len(seen), loader.epoch, flush=True)
            if looks == "was told":
                assert len(list(loader.sampler)) == 203
                assert len(list(loader.batch_sampler)) == 13
            loader.close()
        except tsock.Error as e:
            print("before a fork" in str(e), flush=True)
        os._exit(0)
    os.waitpid(children[-1], 0)
if looks == "reads":
    print(sum(len(b[0]) for b in batches), loader.epoch)
else:
    print(len(index(loader)), loader.epoch)
"""


@pytest.mark.parametrize(
    "what, child, parent",
    [
        ("has read nothing", "13 203 0", "203 0"),
        ("has looked", "13 203 0", "203 1"),
        ("was told", "13 203 7", "203 7"),
        ("has a state", "13 43 5", "43 5"),
        ("reads", "True", "187 0"),
    ],
)
def test_a_child_reads_by_a_loader_of_which_its_parent_reads_nothing(
    serve, script, what, child, parent
):
    """The child connects anew, as a copy of the loader does."""
    serve()
    out, err = script(READS, what).communicate(timeout=150)
    assert out.splitlines() == [child, child, parent], err


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_a_process_keeps_its_batch(serve, script, tmp_path, framework):
    pytest.importorskip(framework)
    # So large that batches aren't copied.
    serve("--size", 96, "--ring", 64, "--max-batch", 16, "--join-window", 16)
    process = script(SCRIPT, str(tmp_path / "saved"), framework)
    out, err = process.communicate(timeout=150)
    assert (out, process.returncode) == ("good\n", 0), err
