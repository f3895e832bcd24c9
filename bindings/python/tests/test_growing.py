# SPDX-License-Identifier: MIT
"""Files that are added to a data set, or removed, while it is served."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import tsock
from conftest import INDEX, N, SIZE, finish, indices, runs, until
from tsock import errors, growing

pytest.importorskip("numpy")

# A ring that is shorter than an epoch, so that the running one is the last.
GROWS = ("--grows", "--ring", 64, "--max-batch", 16)


@pytest.fixture
def tree(images, tmp_path):
    """The images, in a folder of the test's own."""
    root = tmp_path / "tree"
    shutil.copytree(images, root)
    return root


def add(tree, count, to="class0"):
    """Add so many images, by renaming."""
    source = sorted((tree / "class1").glob("*.jpg"))[0]
    hidden = tree.parent / "hidden"
    hidden.mkdir(exist_ok=True)
    (tree / to).mkdir(exist_ok=True)
    for i in range(count):
        shutil.copy(source, hidden / "new.jpg")
        at = len(list((tree / to).iterdir()))
        os.rename(hidden / "new.jpg", tree / to / ("new%04d.jpg" % at))


@contextlib.contextmanager
def at_once(producer):
    """The producer sees all that is done meanwhile as one change."""
    os.kill(producer, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(producer, signal.SIGCONT)


def said(log, text):
    return log.read_text(errors="replace").count(text)


def changes(served):
    return said(served.log, "the data set has changed: ")


class Epoch:
    """An epoch of a loader that is read in two parts."""

    def __init__(self, loader):
        self._batches = iter(loader)
        self.seen = [int(i) for i in next(self._batches)[0]]

    def more(self, batches):
        for _ in range(batches):
            self.seen += [int(i) for i in next(self._batches)[0]]

    def rest(self):
        for (index,) in self._batches:
            self.seen += [int(i) for i in index]
        return sorted(self.seen)


def each(function, things):
    """function() of each, at the same time."""
    with ThreadPoolExecutor(len(things)) as pool:
        return list(pool.map(function, things))


def read_over_change(served, loaders, change):
    """An epoch in whose middle the files change."""
    before = changes(served)
    epochs = each(Epoch, loaders)
    with at_once(served.process.pid):
        change()
    until(lambda: changes(served) > before, what="the change")
    return each(Epoch.rest, epochs)


def test_each_epoch_has_the_files_of_before_or_those_of_now(serve, tree):
    served = serve(*GROWS, root=tree)
    loaders = [
        tsock.DataLoader("toy", batch, timeout=60, **INDEX)
        for batch in (7, 16)
    ]
    # Nobody misses an epoch, and no epoch comes twice.
    sizes = N, N + 20, N + 30, N + 29
    adding = [
        lambda: add(tree, 20),
        lambda: add(tree, 10, to="class9"),
        lambda: os.unlink(tree / "class0" / "new0070.jpg"),
    ]
    for epoch, change in enumerate(adding):
        size = sizes[epoch]
        for seen in read_over_change(served, loaders, change):
            assert seen == list(range(size))
        for loader in loaders:
            assert (loader.epoch, loader.stream_epoch) == (epoch, epoch)
            assert len(loader.dataset) == size
    assert each(lambda loader: sorted(indices(loader)), loaders) == [
        list(range(sizes[-1]))
    ] * 2
    for loader in loaders:
        assert loader.stream_epoch == len(adding)
        assert loader.classes == ["class0", "class1", "class2", "class9"]
        assert len(loader) == -(-sizes[-1] // loader.batch_size)
        assert len(loader.dataset.samples) == sizes[-1]
        assert loader.dataset.targets.count(3) == 10
        # Every epoch has an order of its own.
        assert list(loader.sampler.indices(3)) != list(
            loader.sampler.indices(0)
        )
    assert changes(served) == len(adding)


def test_the_folder_itself_is_replaced(serve, tree, tmp_path):
    """By renaming, or by a link that leads elsewhere."""
    link = tmp_path / "link"
    link.symlink_to(tree)

    def another(name, count):
        shutil.copytree(tree, tmp_path / name)
        add(tmp_path / name, count)
        return tmp_path / name

    def replace_link(to):
        (tmp_path / "link2").symlink_to(to)
        os.rename(tmp_path / "link2", link)

    def replace_folder():
        os.rename(second, tmp_path / "old")
        os.rename(third, second)

    second, third = another("second", 6), another("third", 9)
    served = serve(*GROWS, root=link)
    loaders = [tsock.DataLoader("toy", 16, timeout=60, **INDEX)]
    for change, size in (
        (lambda: replace_link(second), N),
        (replace_folder, N + 6),
    ):
        seen = read_over_change(served, loaders, change)
        assert seen == [list(range(size))]
        # None of its files is needed any more, once the next stream runs.
        first = iter(loaders[0])
        next(first)
        shutil.rmtree(tree if size == N else tmp_path / "old")
        first.close()
    assert sorted(indices(loaders[0])) == list(range(N + 9))
    assert changes(served) == 2 and not said(served.log, "bad")


def test_a_job_that_has_left_in_between_reads_the_new_files(serve, tree):
    served = serve("--grows", "--preset", "eval", root=tree)
    idle = tsock.DataLoader("toy", 48, timeout=60, **INDEX)
    loader = tsock.DataLoader("toy", 48, timeout=60, **INDEX)
    assert indices(loader) == list(range(N))
    with at_once(served.process.pid):
        add(tree, 5)
    # Nobody reads: the stream ends at once, and the next one begins.
    until(lambda: said(served.log, 'serving "toy"') == 2, what="a new stream")
    assert indices(loader) == list(range(N + 5))
    assert loader.epoch == 1 and len(loader) == -(-(N + 5) // 48)
    assert indices(idle) == list(range(N + 5))
    assert loader.missed == 0


def test_who_is_through_waits_until_it_is_interrupted(serve, tree):
    served = serve(*GROWS, root=tree)
    fast = tsock.DataLoader("toy", 16, timeout=60, **INDEX)
    slow = tsock.DataLoader("toy", 16, timeout=60, **INDEX)
    first, held = each(Epoch, (fast, slow))
    state = fast.state_dict()
    add(tree, 1)
    until(lambda: changes(served) == 1, what="the change")
    # All but the last batch.
    first, _ = each(lambda f: f(), (first.rest, lambda: held.more(11)))
    assert first == list(range(N))
    fast.timeout = 2
    with pytest.raises(errors.TimedOut, match="data set has changed"):
        next(iter(fast))
    fast.timeout = 0
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        next(iter(fast))
    timer.join()
    assert held.rest() == list(range(N))
    # Interrupted or not, it begins the new files with the other one.
    for epoch in each(indices, (fast, slow)):
        assert sorted(epoch) == list(range(N + 1))
    assert fast.stream_epoch == slow.stream_epoch == 1
    differs = "samples is %d there and %d here" % (N, N + 1)
    with pytest.raises(ValueError, match=differs):
        fast.load_state_dict(state)


def test_a_loader_starts_such_a_producer_and_others_attach(place, tree):
    options = dict(
        root=tree, size=SIZE, threads=1, no_cache=True, timeout=60, **INDEX
    )
    loader = tsock.DataLoader("toy", 48, grows=True, **options)
    assert sorted(indices(loader)) == list(range(N))
    pid = tsock.query("toy", 60)["pid"]
    with at_once(pid):
        add(tree, 3)
    seen = N
    while seen == N:
        seen = len(indices(loader))
    assert seen == len(loader.sampler) == N + 3
    assert loader.dataset.classes == loader.classes
    other = tsock.DataLoader("toy", 16, grows=True, **options)
    assert len(other.sampler) == N + 3
    assert tsock.query("toy", 60)["pid"] == pid and runs(pid)
    with pytest.raises(tsock.OtherStream, match="grows"):
        tsock.DataLoader("toy", 16, **options)
    with pytest.raises(ValueError, match="subset: the data set"):
        tsock.DataLoader("toy", 16, grows=True, subset=[1, 2], **options)
    loader.close()
    other.close()


def lines_of(process, count):
    """So many lines of growing.c: epoch, samples, of how many, classes."""
    found = []
    for _ in range(count):
        line = process.stdout.readline()
        numbers = [int(n) for n in re.findall(r"\d+", line)]
        epoch, samples, data_set, classes, total = numbers
        assert samples == data_set and total == samples * (samples - 1) // 2
        found.append((epoch, samples, classes))
    return found


def test_a_c_program_goes_on_with_the_new_files(serve, tree, build, run):
    served = serve(*GROWS, root=tree)
    mine = tsock.DataLoader("toy", 16, timeout=60, **INDEX)
    epoch = Epoch(mine)
    process = run(build("growing.c"), "toy", 7, 3)
    until(lambda: tsock.query("toy", 60)["consumers"] == 2)
    with at_once(served.process.pid):
        add(tree, 12, to="class9")
    until(lambda: changes(served) == 1, what="the change")
    # The process waits for this one, by opening the name again and again.
    epoch.more(11)
    assert lines_of(process, 1) == [(0, N, 3)]
    epoch.rest()
    assert sorted(indices(mine)) == list(range(N + 12))
    mine.close()
    assert lines_of(process, 2) == [(1, N + 12, 4), (2, N + 12, 4)]
    finish(process)


def test_a_c_program_ends_with_a_stream_that_has_no_next(
    serve, tree, build, run
):
    serve("--grows", "--epochs", 1, root=tree)
    process = run(build("growing.c"), "toy", 16, 5)
    assert lines_of(process, 1) == [(0, N, 3)]
    assert finish(process)[0] == ""


def test_the_end_of_such_a_stream_is_its_end(serve, tree):
    serve("--grows", "--epochs", 1, root=tree)
    loader = tsock.DataLoader("toy", 48, timeout=60, **INDEX)
    assert sorted(indices(loader)) == list(range(N))
    with pytest.raises(tsock.StreamEnded):
        next(iter(loader))


def test_a_signal_ends_a_stream_that_is_ending(serve, tree):
    served = serve(*GROWS, root=tree)
    loader = tsock.DataLoader("toy", 16, timeout=60, rejoin_timeout=0, **INDEX)
    epoch = Epoch(loader)
    add(tree, 1)
    until(lambda: changes(served) == 1, what="the change")
    served.process.terminate()
    assert served.ended() == 0
    with pytest.raises(tsock.ProducerLost):
        epoch.rest()


def through_before_the_first(tree, changed, loaders):
    """The files change, and all but the first loader read their epoch's end,
    for which that one has a batch to read still.  Its epoch, to be kept: it
    leaves when that is dropped."""
    first, *others = each(Epoch, loaders)
    add(tree, 1)
    until(changed, what="the change")
    each(lambda f: f(), [lambda: first.more(11)] + [e.rest for e in others])
    return first


def last_epoch(loader):
    with loader:
        return indices(loader)


@pytest.mark.kills
def test_who_is_through_waits_for_the_next_producer(serve, tree):
    """One that was killed before the slowest job had read the old files."""
    served = serve(*GROWS, root=tree)
    options = dict(timeout=60, **INDEX)
    slow = tsock.DataLoader("toy", 16, **options)
    fast = tsock.DataLoader("toy", 16, **options)
    short = tsock.DataLoader("toy", 16, rejoin_timeout=0.3, **options)
    held = through_before_the_first(
        tree, lambda: changes(served) == 1, (slow, fast, short)
    )
    served.kill()
    with pytest.raises(tsock.ProducerLost, match="came within 0.3 s"):
        next(iter(short))
    with ThreadPoolExecutor(1) as pool:
        reads = pool.submit(last_epoch, fast)
        serve(*GROWS, root=tree)
        assert sorted(reads.result()) == list(range(N + 1))
    assert fast.epoch == 1
    assert held.rest() == list(range(N))


@pytest.mark.kills
def test_so_does_who_came_when_the_stream_was_ending(serve, tree, monkeypatch):
    served = serve(*GROWS, root=tree)
    options = dict(timeout=60, **INDEX)
    slow = tsock.DataLoader("toy", 16, **options)
    fast = tsock.DataLoader("toy", 16, **options)
    held = through_before_the_first(
        tree, lambda: changes(served) == 1, (slow, fast)
    )
    fast.close()
    late = tsock.DataLoader("toy", 16, **options)
    waits, misses = threading.Event(), threading.Event()
    is_there = growing._is_there

    def look(name):
        found = is_there(name)
        (waits if found else misses).set()
        return found

    monkeypatch.setattr(growing, "_is_there", look)
    with ThreadPoolExecutor(1) as pool:
        reads = pool.submit(last_epoch, late)
        assert waits.wait(60)
        served.kill()
        assert misses.wait(60)
        serve(*GROWS, root=tree)
        assert sorted(reads.result()) == list(range(N + 1))
    assert held.rest() == list(range(N))


def test_who_is_through_has_the_next_producer_started(place, tree):
    options = dict(
        root=tree, size=SIZE, threads=1, no_cache=True, grows=True, ring=64
    )
    options.update(max_batch=16, timeout=60, **INDEX)
    slow, fast = (tsock.DataLoader("toy", 16, **options) for _ in range(2))
    pid = tsock.query("toy", 60)["pid"]
    with open(os.path.join(place, "toy.log"), errors="replace") as log:
        held = through_before_the_first(
            tree, lambda: "data set has changed" in log.read(), (slow, fast)
        )
    os.kill(pid, signal.SIGKILL)
    assert sorted(indices(fast)) == list(range(N + 1))
    assert tsock.query("toy", 60)["pid"] != pid
    assert held.rest() == list(range(N))


RANK = """
import json, os, sys, time
import tsock
rank, go = int(sys.argv[1]), sys.argv[2]
loader = tsock.DataLoader("toy", 8, fields=("index",), dtype="uint8",
                          layout="hwc", rank=rank, world_size=2, timeout=120)
for epoch in range(2):
    seen = []
    for (index,) in loader:
        if not seen and not epoch:
            open(go + str(rank), "w").close()
            while not os.path.exists(go):
                time.sleep(0.01)
        seen += index.tolist()
    print(json.dumps([loader.stream_epoch, seen, len(loader)]))
"""


def test_ranks_begin_the_new_files_together(serve, tree, script, tmp_path):
    served = serve(*GROWS, root=tree)
    go = tmp_path / "go"
    ranks = [script(RANK, rank, go) for rank in range(2)]
    until(
        lambda: all(os.path.exists("%s%d" % (go, r)) for r in range(2)),
        what="both ranks' first batch",
    )
    with at_once(served.process.pid):
        add(tree, 21)
    until(lambda: changes(served) == 1, what="the change")
    go.touch()
    lines = [
        [json.loads(line) for line in finish(rank)[0].splitlines()]
        for rank in ranks
    ]
    for epoch, size in enumerate((N, N + 21)):
        assert [line[epoch][0] for line in lines] == [epoch, epoch]
        assert lines[0][epoch][2] == lines[1][epoch][2] == -(-size // 16)
        seen = lines[0][epoch][1] + lines[1][epoch][1]
        assert set(seen) == set(range(size))
        assert len(lines[0][epoch][1]) == len(lines[1][epoch][1])


def test_tar_files_are_added_too(serve, images, tmp_path):
    root = tmp_path / "tars"
    root.mkdir()
    files = sorted(images.glob("*/*.jpg"))

    def shard(first, count):
        hidden = tmp_path / "hidden.tar"
        with tarfile.open(hidden, "w") as tar:
            for i, file in enumerate(files[first : first + count], first):
                tar.add(file, "%06d.jpg" % i)
                label = tarfile.TarInfo("%06d.cls" % i)
                label.size = 1
                tar.addfile(label, io.BytesIO(b"1"))
        os.rename(hidden, root / ("images-%03d.tar" % first))

    shard(0, 100)
    served = serve(*GROWS, "--dataset", "webdataset", root=root)
    loader = tsock.DataLoader("toy", 16, timeout=60, **INDEX)
    seen = read_over_change(served, [loader], lambda: shard(100, 50))
    assert seen == [list(range(100))]
    assert sorted(indices(loader)) == list(range(150))
    assert len(loader) == -(-150 // 16)


def table_of(tree, to):
    """A table of the tree, which takes the place of the one before."""
    files = sorted(tree.glob("*/*"))
    tsock.index([(f, f.parent.name) for f in files], str(to) + ".new")
    os.rename(str(to) + ".new", to)
    return to


def test_a_table_that_is_replaced_is_a_change(serve, tree, tmp_path):
    table = table_of(tree, tmp_path / "t")
    served = serve(*GROWS, "--dataset", "table", root=table)
    loader = tsock.DataLoader("toy", 16, timeout=60, **INDEX)

    def change():
        add(tree, 20)
        add(tree, 10, to="class9")
        table_of(tree, table)

    (seen,) = read_over_change(served, [loader], change)
    assert seen == list(range(N))
    assert sorted(indices(loader)) == list(range(N + 30))
    assert loader.classes[-1] == "class9" and loader.stream_epoch == 1
    loader.close()
    # What a table can't be read as is waited for.
    with open(str(table) + ".new", "wb") as f:
        f.write(b"tsocktbl")
    os.rename(str(table) + ".new", table)
    until(
        lambda: said(served.log, "can't be opened as it is"),
        what="the warning",
    )
    assert served.process.poll() is None


def test_arrays_are_added_file_by_file(serve, tmp_path):
    np = pytest.importorskip("numpy")
    folder, made = tmp_path / "arrays", tmp_path / "made.npy"
    folder.mkdir()

    def put(name, values):
        np.save(made, values)
        os.rename(made, folder / (name + ".npy"))

    def part(k, count, side=5):
        put("x_%d" % k, np.full((count, side, side), k, "u1"))
        put("labels_%d" % k, np.arange(count))

    part(0, 100)
    served = serve(
        *GROWS,
        *("--dataset", "npy", "--transform", "RandomHorizontalFlip()"),
        root=folder,
    )
    loader = tsock.DataLoader("toy", 16, timeout=60, **INDEX)
    (seen,) = read_over_change(served, [loader], lambda: part(1, 50))
    assert seen == list(range(100))
    assert sorted(indices(loader)) == list(range(150))
    # Images of another size are none of this stream's.
    with at_once(served.process.pid):
        part(0, 100, side=6)
        part(1, 50, side=6)
    until(
        lambda: said(served.log, "have 6 x 6 pixels now, and had 5 x 5"),
        what="the warning",
    )
    assert served.process.poll() is None
    assert sorted(indices(loader)) == list(range(150))


def test_a_subset_of_a_table_that_grows_is_refused(serve, tree, tmp_path):
    serve(*GROWS, "--dataset", "table", root=table_of(tree, tmp_path / "t"))
    with pytest.raises(ValueError, match="subset.*grows"):
        tsock.DataLoader("toy", 16, subset=range(9), **INDEX)
