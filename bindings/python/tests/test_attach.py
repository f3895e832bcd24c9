# SPDX-License-Identifier: MIT
"""Loaders that start their producer, or attach to it."""

import os
import pickle
import shutil
import signal
import subprocess
import sys

import pytest

import tsock
from conftest import CHECKOUT, N, SIZE, finish, runs, until
from tsock import attach, errors, launch

numpy = pytest.importorskip("numpy")

pytestmark = pytest.mark.usefixtures("warm")

INDEX = dict(fields=("index",), dtype="uint8", layout="hwc", timeout=60)
SMALL = dict(size=SIZE, threads=1, no_cache=True)


def indices(loader):
    return [int(i) for (index,) in loader for i in index]


def pid_of(name="toy"):
    return tsock.query(name, 60)["pid"]


@pytest.fixture
def start(place, images):
    """start(**more) is a loader of "toy"; place ends what it started."""
    loaders = []

    def make(name="toy", **more):
        more = dict(dict(SMALL, root=images, batch_size=48), **more)
        loaders.append(tsock.DataLoader(name, **INDEX, **more))
        return loaders[-1]

    yield make
    for loader in loaders:
        loader.close()


# ---- starting ----


def test_a_loader_starts_its_producer_and_reads_all(start, place):
    loader = start()
    assert sorted(indices(loader)) == list(range(N))
    log = os.path.join(place, "toy.log")
    with open(log) as f:
        assert 'serving "toy"' in f.read()


def test_what_was_started_is_nobodys_child_and_inherits_nothing(
    start, place, monkeypatch
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    start()
    pid = pid_of()
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rpartition(")")[2].split()
    parent, session = int(fields[1]), int(fields[3])
    assert parent != os.getpid() and session != os.getsid(0)
    assert os.readlink("/proc/%d/cwd" % pid) == "/"
    folder = "/proc/%d/fd" % pid
    targets = {}
    for fd in os.listdir(folder):
        try:
            targets[int(fd)] = os.readlink(os.path.join(folder, fd))
        except FileNotFoundError:
            pass  # it was closed just then
    assert targets[0] == "/dev/null"
    assert targets[1] == targets[2] == os.path.join(place, "toy.log")
    pipe = os.readlink("/proc/self/fd/%d" % writer)
    assert pipe not in targets.values()
    with open("/proc/%d/environ" % pid) as f:
        assert "CUDA_VISIBLE_DEVICES" not in f.read()
    os.close(reader)
    os.close(writer)


def test_a_mig_instance_is_passed_on(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-12")
    assert launch.environment(None)["CUDA_VISIBLE_DEVICES"] == "MIG-12"


def test_a_second_loader_attaches(start):
    first = start()
    pid = pid_of()
    second = start()
    assert pid_of() == pid
    iterators = iter(first), iter(second)
    assert (next(iterators[0])[0] == next(iterators[1])[0]).all()


def test_the_name_may_be_left_out(place, images, start):
    loader = start(None)
    assert loader.name == images.name
    assert [s.name for s in tsock.streams()] == [images.name]


def test_a_name_may_be_a_path(place, start, monkeypatch):
    other = os.path.join(place, "other")
    loader = start(os.path.join(other, "toy"))
    assert sorted(indices(loader)) == list(range(N))
    assert sorted(os.listdir(other))[:1] == ["toy.bus"]
    assert tsock.streams() == []
    again = start(os.path.join(other, "toy"))
    assert again.name == loader.name
    pid = pid_of(loader.name)
    os.kill(pid, signal.SIGTERM)
    until(lambda: not runs(pid), what="the producer's end")


def test_a_keeper_has_the_producers_of_its_loaders(place, images):
    """As that of tsock.ray."""
    asked = []

    class Keeper:
        def path_of(self, name):
            return os.path.join(place, "kept", name)

        def start(self, path, checked, wait):
            asked.append((path, checked["threads"], wait))
            attach.run_producer(launch.Launch, path, checked)

    class Kept(tsock.DataLoader):
        _keeper = Keeper()

    options = dict(SMALL, root=images, batch_size=16, wait=70)
    # So that the next epochs need a producer.
    options.update(ring=64, max_batch=16)
    with Kept("toy", **options, **INDEX) as loader:
        path = os.path.join(place, "kept", "toy")
        assert loader.name == path and asked == [(path, "1", 70)]
        # A copy is a loader of the name, wherever its keeper has it.
        assert loader.__reduce__()[1][:2] == (Kept, "toy")
        assert len(indices(loader)) == N
        os.kill(pid_of(path), signal.SIGKILL)
        for _ in range(2):
            assert sorted(indices(loader)) == list(range(N))
        assert asked[1:] == [(path, "1", attach.WAIT)]
        pid = pid_of(path)
    os.kill(pid, signal.SIGTERM)
    until(lambda: not runs(pid), what="the producer's end")
    assert tsock.streams() == []


def test_it_starts_the_producer_and_nothing_else(start, images, script):
    out, _ = finish(
        script(
            "import sys, tsock\n"
            "def hook(event, arguments):\n"
            "    if event in ('subprocess.Popen', 'os.system', 'os.exec',\n"
            "        'os.fork', 'os.forkpty', 'os.posix_spawn'):\n"
            "        words = list(arguments[1])\n"
            "        words = words[-1:] if '--describe' in words else words[:5]\n"
            "        print(event, words, flush=True)\n"
            "sys.addaudithook(hook)\n"
            "for _ in range(2):\n"
            "    loader = tsock.DataLoader('toy', root=sys.argv[1], size=%d,\n"
            "        threads=1, no_cache=True, batch_size=48, timeout=60,\n"
            "        fields='index', dtype='uint8', framework='numpy')\n"
            "    print(sum(len(i) for (i,) in loader), flush=True)\n" % SIZE,
            images,
        )
    )
    log = os.path.join(os.environ["TSOCK_DIR"], "toy.log")
    command = ["/bin/sh", "-c", launch._DETACH, log]
    command.append(os.environ["TSOCK_PRODUCER"])
    # The second loader attaches.  Both ask the program what they want.
    asked = "subprocess.Popen ['--describe']"
    assert out.splitlines() == [
        "subprocess.Popen %r" % command,
        asked,
        str(N),
        asked,
        str(N),
    ]


def test_several_processes_at_once_start_one(start, place, images, script):
    text = (
        "import sys, tsock\n"
        "sys.stdin.readline()\n"
        "loader = tsock.DataLoader('toy', root=sys.argv[1], size=%d,\n"
        "    threads=1, no_cache=True, batch_size=48, fields='index',\n"
        "    dtype='uint8', framework='numpy', timeout=60)\n"
        "print(tsock.query('toy', 60)['pid'], flush=True)\n"
        "print(sum(len(i) for (i,) in loader), flush=True)\n" % SIZE
    )
    command = [sys.executable, "-c", text, str(images)]
    env = dict(
        os.environ, PYTHONPATH=os.path.join(CHECKOUT, "bindings", "python")
    )
    jobs = [
        subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for job in jobs:
        job.stdin.write("\n")
        job.stdin.flush()
    said = [finish(job)[0].split() for job in jobs]
    assert len({pid for pid, _ in said}) == 1
    assert [count for _, count in said] == [str(N)] * 3
    with open(os.path.join(place, "toy.log")) as f:
        assert f.read().count("scanning") == 1


def test_it_waits_while_another_process_starts_it(place, monkeypatch):
    """The process that has the lock starts the producer; others look on."""
    asked = []
    holder = launch.Launch(None, "toy", [])
    monkeypatch.setattr(launch.Launch, "_start", lambda *_: asked.append(1))

    def serves():
        asked.append("looked")
        if len(asked) < 3:
            return False
        monkeypatch.setattr(launch.Launch, "_lock", lambda *_: True)
        return True

    monkeypatch.setattr(launch.Launch, "_lock", lambda *_: False)
    holder.until(serves)
    assert asked == ["looked"] * 3


def test_it_ends_when_nobody_reads_any_more(start, place):
    loader = start(exit_when_idle=5)  # in which it has to be found
    first = pid_of()
    indices(loader)
    loader.close()
    until(lambda: not runs(first), what="the idle end")
    assert tsock.streams() == []
    line = launch.last_line(os.path.join(place, "toy.log"))
    assert line.startswith("made "), line
    again = start()
    assert sorted(indices(again)) == list(range(N))
    assert pid_of() != first


def test_what_was_added_to_the_folder_is_read_by_the_next_producer(
    place, images, tmp_path
):
    """A stream that runs stays what it is; the scan that was kept is no
    reason to miss anything."""
    root = tmp_path / "growing"
    shutil.copytree(images, root)
    keywords = dict(
        root=root, size=SIZE, threads=1, cache_dir=tmp_path / "scans", **INDEX
    )
    first = tsock.DataLoader("toy", 48, **keywords)
    shutil.copy(root / "class0" / "000.jpg", root / "class2" / "more.jpg")
    beside = tsock.DataLoader("toy", 48, **keywords)
    for loader in first, beside:
        assert len(indices(loader)) == N
        loader.close()
    os.kill(pid_of(), signal.SIGTERM)
    until(lambda: not tsock.streams())
    with tsock.DataLoader("toy", 48, **keywords) as again:
        assert sorted(indices(again)) == list(range(N + 1))


def test_it_ends_after_a_minute_if_nothing_else_was_said(start):
    start()
    with open("/proc/%d/cmdline" % pid_of()) as f:
        words = f.read().split("\0")
    assert words[words.index("--exit-when-idle") + 1] == "60"


def test_one_that_ends_in_between_is_started_again(monkeypatch):
    there, told = [True, False], []
    monkeypatch.setattr(attach, "is_running", lambda name: there.pop(0))

    class Want:
        def start(self, batch_size, wait):
            told.append("started")

    def connect(seconds):
        told.append("connected")
        if len(told) == 1:
            raise errors.ProducerLost("gone")
        return "stream"

    assert attach.attached(Want(), "toy", 1, 60, connect) == "stream"
    assert told == ["connected", "started", "connected"]


@pytest.fixture
def killed_while_it_starts(place, monkeypatch):
    """So many of the next producers are killed, before or after they log."""
    made = [os.path.join(place, n) for n in ("dies", "starts", "mute")]
    program, starts, mute = made
    with open(program, "w") as f:
        f.write(
            "#!/bin/sh\n"
            "if grep -qs x %s; then\n"
            "  sed -i 1d %s\n"
            "  [ -e %s ] || echo 'tsock-producer: 2026-01-01 00:00:00 info: "
            "scanning' >&2\n"
            "  kill -9 $$\n"
            "fi\n"
            'exec %s "$@"\n'
            % (starts, starts, mute, os.environ["TSOCK_PRODUCER"])
        )
    os.chmod(program, 0o700)
    monkeypatch.setenv("TSOCK_PRODUCER", program)

    def kill(times, silent=False):
        with open(starts, "w") as f:
            f.write("x\n" * times)
        if silent:
            open(mute, "w").close()

    yield kill
    for path in filter(os.path.exists, made):
        os.unlink(path)


@pytest.mark.parametrize("silent", [False, True])
def test_one_that_is_killed_while_it_starts_is_started_again(
    start, killed_while_it_starts, silent
):
    killed_while_it_starts(2, silent)
    assert sorted(indices(start())) == list(range(N))


def test_one_that_is_killed_each_time_is_given_up(
    start, place, killed_while_it_starts
):
    killed_while_it_starts(4)
    with pytest.raises(tsock.NoProducer, match="perhaps killed; .*: scanning;"):
        start()
    with open(os.path.join(place, "starts")) as f:
        assert f.read() == "x\n"


def test_a_job_goes_on_though_its_next_producer_is_killed_too(
    start, killed_while_it_starts
):
    killed_while_it_starts(0)
    loader = start(batch_size=10, ring=64, max_batch=16)
    whole = indices(loader)
    iterator = iter(loader)
    seen = [int(i) for i in next(iterator)[0]]
    killed_while_it_starts(2)
    os.kill(pid_of(), signal.SIGKILL)
    assert sorted(seen + indices(iterator)) == sorted(whole)


def test_a_large_batch_is_what_the_producer_is_started_for(start):
    loader = start(batch_size=700)
    assert [len(b) for (b,) in loader] == [N]


def test_one_that_never_stays_is_given_up(monkeypatch):
    told = []
    monkeypatch.setattr(attach, "is_running", lambda name: False)

    class Want:
        def start(self, batch_size, wait):
            told.append("started")

    def connect(seconds):
        raise errors.NoProducer("it has ended")

    with pytest.raises(tsock.NoProducer, match="it has ended"):
        attach.attached(Want(), "toy", 1, None, connect)
    assert told == ["started"] * 3


def test_a_job_that_dies_while_it_starts_one_costs_the_next_nothing(
    start, place, images, script
):
    """Two are started then: one gets the name, and both jobs that one."""
    program, go = os.path.join(place, "slow"), os.path.join(place, "go")
    with open(program, "w") as f:
        f.write(
            "#!/bin/sh\necho begun\n"
            "while [ ! -e %s ]; do sleep 0.02; done\n"
            'exec %s "$@"\n' % (go, os.environ["TSOCK_PRODUCER"])
        )
    os.chmod(program, 0o700)
    text = (
        "import sys, tsock\n"
        "loader = tsock.DataLoader('toy', root=sys.argv[1], size=%d,\n"
        "    threads=1, no_cache=True, batch_size=48, fields='index',\n"
        "    dtype='uint8', framework='numpy', timeout=60)\n"
        "print(sum(len(i) for (i,) in loader))\n" % SIZE
    )

    def begun():
        try:
            with open(os.path.join(place, "toy.log")) as f:
                return f.read().count("begun")
        except FileNotFoundError:
            return 0

    first = script(text, images, TSOCK_PRODUCER=program)
    until(lambda: begun() == 1)
    first.kill()
    first.wait()
    second = script(text, images, TSOCK_PRODUCER=program)
    until(lambda: begun() == 2)
    open(go, "w").close()
    assert finish(second)[0] == "%d\n" % N
    assert len(tsock.streams()) == 1


def test_who_waits_long_is_told_what_for(place, caplog):
    start = launch.Launch(None, "toy", [])
    start._tell("it scans")
    assert not caplog.records
    start._told = 0
    start._tell("it scans")
    start._tell("it scans")
    assert [record.getMessage() for record in caplog.records] == [
        "waiting for the producer of stream 'toy': it scans; its log is "
        + os.path.join(place, "toy.log")
    ]


def test_a_long_log_of_earlier_runs_is_emptied(start, place):
    log = os.path.join(place, "toy.log")
    with open(log, "w") as f:
        f.write("an old line\n" * 100000)
    start()
    with open(log) as f:
        assert "an old line" not in f.read()


def test_ctrl_c_ends_the_wait_for_a_start_at_once(place, script):
    program = os.path.join(place, "slow")
    with open(program, "w") as f:
        f.write("#!/bin/sh\necho $$\nexec sleep 170\n")
    os.chmod(program, 0o700)
    process = script(
        "import tsock\n"
        "try:\n"
        "    tsock.DataLoader('toy', root='/')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n",
        TSOCK_PRODUCER=program,
    )
    log = os.path.join(place, "toy.log")
    until(lambda: os.path.exists(log) and launch.last_line(log).isdigit())
    process.send_signal(signal.SIGINT)
    out, err = finish(process)
    assert out == "interrupted\n" and "Traceback" not in err
    # What was started goes on by itself; nothing holds its name.
    pid = int(launch.last_line(log))
    assert runs(pid)
    os.kill(pid, signal.SIGTERM)


def test_a_pickled_loader_attaches_again(start):
    loader = start()
    pid = pid_of()
    again = pickle.loads(pickle.dumps(loader))
    assert sorted(indices(again)) == list(range(N)) and pid_of() == pid
    again.close()


@pytest.mark.kills
def test_a_loader_whose_producer_dies_names_its_log(start, place):
    loader = start(min_consumers=2, rejoin_timeout=0)
    os.kill(pid_of(), signal.SIGKILL)
    with pytest.raises(tsock.ProducerLost) as caught:
        indices(loader)
    log = os.path.join(place, "toy.log")
    assert str(caught.value).endswith("the producer's log is " + log)
