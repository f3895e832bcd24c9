# SPDX-License-Identifier: MIT
"""Signals, forks and the end of the interpreter: each in its own process."""

import os
import signal

import pytest

import tsock
from conftest import N, finish, until

pytest.importorskip("numpy")

SMALL = ("--ring", 64, "--max-batch", 16, "--join-window", 16)
OPEN = (
    "import gc, os, sys, time\n"
    "import tsock\n"
    "loader = tsock.DataLoader('toy', batch_size=16, dtype='uint8',\n"
    "                          framework='numpy', timeout=60,\n"
    "                          fields=('image', 'label', 'index'))\n"
)


def interrupt(process):
    """Ctrl-C; what it said, long before it would have waited enough."""
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=150)


def joined():
    return tsock.query("toy")["consumers"] == 1


def test_ctrl_c_ends_a_wait_for_a_batch_at_once(serve, script):
    serve("--min-consumers", 2)
    process = script(
        OPEN.replace("timeout=60", "timeout=1000")
        + "print('ready', flush=True)\n"
        "try:\n"
        "    for batch in loader: pass\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    assert process.stdout.readline() == "ready\n"
    until(joined)
    out, err = interrupt(process)
    assert out == "interrupted\n", err


def test_ctrl_c_ends_a_wait_for_a_producer_at_once(place, script):
    process = script(
        "import tsock\n"
        "try:\n"
        "    tsock.DataLoader('toy', framework='numpy', wait=1000)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    assert "waiting for producer" in process.stderr.readline()
    assert interrupt(process) == ("interrupted\n", "")
    assert process.returncode == 0


def test_after_ctrl_c_the_loader_can_be_used_again(serve, script):
    served = serve("--min-consumers", 2)
    process = script(
        OPEN + "print('ready', flush=True)\n"
        "try:\n"
        "    next(iter(loader))\n"
        "except KeyboardInterrupt:\n"
        "    pass\n"
        "print('again', flush=True)\n"
        "print(sorted(int(i) for b in loader for i in b[2])\n"
        "      == list(range(%d)))\n" % N
    )
    assert process.stdout.readline() == "ready\n"
    until(joined)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "again\n"
    other = tsock.DataLoader(
        "toy", batch_size=16, dtype="uint8", timeout=60, fields=("index",)
    )
    assert sum(len(b) for (b,) in other) == N
    other.close()
    assert finish(process)[0] == "True\n"
    assert served.process.poll() is None


@pytest.mark.parametrize("timeout", [0, 60])
@pytest.mark.parametrize("function", ["tsock_begin_timed", "tsock_next"])
def test_no_call_of_the_library_waits_longer_than_a_tenth_of_a_second(
    serve, monkeypatch, function, timeout
):
    """Ctrl-C is seen between two of them."""
    if function == "tsock_begin_timed":
        # One of two ranks, which has had an epoch; the other one never comes.
        serve()
        ranks = dict(rank=0, world_size=2, between="leave")
    else:
        serve("--min-consumers", 2)
        ranks = {}
    loader = tsock.DataLoader(
        "toy", 16, framework="numpy", timeout=timeout, **ranks
    )
    if ranks:
        assert sum(1 for _ in loader) == len(loader)
    plain, waits = getattr(tsock._ffi.lib, function), []

    def counted(handle, ms, *rest):
        waits.append(ms)
        if len(waits) == 4:
            raise KeyboardInterrupt
        return plain(handle, ms, *rest)

    monkeypatch.setattr(tsock._ffi.lib, function, counted)
    with pytest.raises(KeyboardInterrupt):
        next(iter(loader))
    assert len(waits) == 4 and max(waits) <= 100


# A job whose producer is stopped when argv[1] is there, in one of its phases.
# Leaving is waited for nearly for ever.
STOPPED = (
    OPEN.replace("timeout=60", "timeout=1000")
    + """
go, phase, said = sys.argv[1], sys.argv[2], []
tsock.connection.LEAVE_MS = 1000000


def tell_waiting(name):
    plain = getattr(tsock._ffi.lib, name)

    def told(handle, ms, *rest):
        code = plain(handle, ms, *rest)
        if ms and code == tsock.errors.EAGAIN and not said:
            said.append(print("waits", flush=True))
        return code

    setattr(tsock._ffi.lib, name, told)


some = [iter(loader) for _ in range(2 if phase == "leave_timed" else 1)]
if phase != "begin":
    held = [next(iterator) for iterator in some]
print("ready", flush=True)
while not os.path.exists(go):
    time.sleep(0.01)
tell_waiting("tsock_begin_timed" if phase == "begin" else "tsock_" + phase)
try:
    if phase == "leave_timed":
        loader.close()
    while True:
        next(some[0])
except KeyboardInterrupt:
    print("interrupted", flush=True)
    del some
    loader.close()
    print("closed", flush=True)
time.sleep(1000)
"""
)


def stop(served):
    """A producer, that stands still when this returns."""
    os.kill(served.process.pid, signal.SIGSTOP)
    _, status = os.waitpid(served.process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)


@pytest.mark.parametrize("phase", ["begin", "next", "leave_timed"])
def test_ctrl_c_ends_a_wait_for_a_stopped_producer_at_once(
    serve, script, phase, tmp_path
):
    served = serve(*SMALL)
    go = tmp_path / "go"
    job = script(STOPPED, go, phase)
    assert job.stdout.readline() == "ready\n"
    stop(served)
    try:
        go.touch()
        assert job.stdout.readline() == "waits\n"
        job.send_signal(signal.SIGINT)
        assert job.stdout.readline() == "interrupted\n"
        assert job.stdout.readline() == "closed\n"
    finally:
        served.process.send_signal(signal.SIGCONT)
    # The job lives, and is no longer a reader.
    until(lambda: tsock.query("toy", 60)["consumers"] == 0)
    assert job.poll() is None


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_with_batches_in_hand_harms_nobody(
    serve, script, end
):
    serve(*SMALL)
    process = script(
        OPEN + "iterator = iter(loader)\n"
        "held = [next(iterator), next(iterator)]\n"
        "right = [b[0].copy() for b in held]\n"
        "index = [int(i) for b in held for i in b[2]]\n"
        "for _ in range(3):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        assert all((b[0] == r).all()\n"
        "                   for b, r in zip(held, right))\n"
        "        for use in (lambda: iter(loader),\n"
        "                    lambda: next(iterator)):\n"
        "            try:\n"
        "                use()\n"
        "                os._exit(1)\n"
        "            except RuntimeError as e:\n"
        "                assert 'before a fork' in str(e)\n"
        "                assert 'in the child' in str(e)\n"
        "        held.clear()\n"
        "        del iterator\n"
        "        loader.close()\n"
        "        gc.collect()\n"
        "        mine = tsock.DataLoader('toy', batch_size=16,\n"
        "                                dtype='uint8', timeout=60,\n"
        "                                framework='numpy')\n"
        "        assert len(mine) == 13\n"
        "        mine.close()\n"
        "        " + end + "\n"
        "    _, status = os.waitpid(pid, 0)\n"
        "    assert status == 0, status\n"
        "    held.append(next(iterator))\n"
        "    right.append(held[-1][0].copy())\n"
        "    index += [int(i) for i in held[-1][2]]\n"
        "for batch in iterator:\n"
        "    index += [int(i) for i in batch[2]]\n"
        "assert sorted(index) == list(range(%d)), len(index)\n"
        "assert all((b[0] == r).all() for b, r in zip(held, right))\n"
        "print('fine')\n" % N
    )
    assert finish(process)[0] == "fine\n"


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_the_interpreter_ends_cleanly_with_everything_in_hand(
    serve, script, framework
):
    pytest.importorskip(framework)
    # A loader that waits for a producer says so, where nothing is to be said.
    until(serve(*SMALL).begun)
    process = script(
        "import tsock\n"
        "loader = tsock.DataLoader('toy', batch_size=16, framework='%s')\n"
        "iterator = iter(loader)\n"
        "held = [next(iterator), next(iterator)]\n"
        "cycle = [held, loader, iterator]\n"
        "cycle.append(cycle)\n"
        "tsock.keep = cycle\n"
        "print('fine')\n" % framework
    )
    assert finish(process) == ("fine\n", "")


def test_old_numpys_arrays_outlive_the_interpreter(serve, script):
    until(serve(*SMALL).begun)
    process = script(
        OPEN + "loader._tensors._dlpack = False\n"
        "held = next(iter(loader))\n"
        "held.append(held)\n"
        "print('fine')\n"
    )
    assert finish(process) == ("fine\n", "")


def test_a_thread_that_reads_does_not_keep_the_interpreter(serve, script):
    serve("--min-consumers", 2)
    process = script(
        "import threading\n"
        + OPEN
        + "threading.Thread(target=lambda: next(iter(loader)),\n"
        "                 daemon=True).start()\n"
        "while tsock.query('toy', 60)['consumers'] < 1:\n"
        "    time.sleep(0.01)\n"
        "print('fine')\n"
    )
    assert finish(process)[0] == "fine\n"


def test_torch_works_where_numpy_is_missing(serve, script):
    pytest.importorskip("torch")
    serve()
    process = script(
        "import sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "sys.modules['numpy'] = None\n"
        "import tsock\n"
        "loader = tsock.DataLoader('toy', batch_size=48)\n"
        "assert loader.framework == 'torch'\n"
        "print(sum(len(labels) for images, labels in loader))\n"
    )
    assert finish(process)[0] == "%d\n" % N


def test_numpy_works_where_torch_is_missing(serve, script):
    serve()
    process = script(
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import tsock\n"
        "loader = tsock.DataLoader('toy', batch_size=48)\n"
        "assert loader.framework == 'numpy'\n"
        "print(sum(len(labels) for images, labels in loader))\n"
    )
    assert finish(process)[0] == "%d\n" % N


def test_a_killed_consumer_costs_the_others_nothing(serve, script):
    serve(*SMALL)
    process = script(
        OPEN + "iterator = iter(loader)\n"
        "held = next(iterator)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    assert process.stdout.readline() == "ready\n"
    loader = tsock.DataLoader(
        "toy", batch_size=16, dtype="uint8", timeout=60, fields=("index",)
    )
    iterator = iter(loader)  # of the next epoch, maybe: it holds this one
    os.kill(process.pid, signal.SIGKILL)
    for _ in iterator:
        pass
    for _ in range(2):
        index = [int(i) for (b,) in loader for i in b]
        assert sorted(index) == list(range(N))


def test_a_spawned_child_gets_a_loader_of_its_own(serve, script):
    serve()
    process = script(
        "import multiprocessing\n"
        "import tsock\n"
        "def read(loader, queue):\n"
        "    queue.put(sorted(int(i) for b in loader for i in b['index']))\n"
        "if __name__ == '__main__':\n"
        "    loader = tsock.DataLoader('toy', 16, framework='numpy',\n"
        "        dtype='uint8', fields=('index',), as_dict=True)\n"
        "    spawn = multiprocessing.get_context('spawn')\n"
        "    queue = spawn.Queue()\n"
        "    child = spawn.Process(target=read, args=(loader, queue))\n"
        "    child.start()\n"
        "    print(queue.get() == list(range(%d)))\n"
        "    child.join()\n"
        "    print(child.exitcode, sum(len(b['index']) for b in loader))\n" % N
    )
    assert finish(process)[0] == "True\n0 %d\n" % N


def test_a_child_can_not_use_any_of_a_loaders_connections(serve, script):
    serve()
    process = script(
        OPEN + "one, two, unused = iter(loader), iter(loader), iter(loader)\n"
        "next(one), next(two)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    for iterator in (one, two, unused):\n"
        "        try:\n"
        "            next(iterator)\n"
        "            os._exit(1)\n"
        "        except RuntimeError as e:\n"
        "            assert 'before a fork' in str(e)\n"
        "            assert e.code == 'TSOCK_EFORK'\n"
        "    del iterator, one, two, unused\n"
        "    gc.collect()\n"
        "    loader.close()\n"
        "    os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "for iterator in (one, two):\n"
        "    assert sum(len(b[2]) for b in iterator) == %d - 16\n"
        "print('fine')\n" % N
    )
    assert finish(process)[0] == "fine\n"
