# SPDX-License-Identifier: MIT
"""A job that another one holds up says so, and everybody who can be asked."""

import subprocess

import pytest

import tsock
from conftest import INDEX, PRODUCER, until

numpy = pytest.importorskip("numpy")

# What waits long is said after that time: 10 s is too long for a test.
PATIENCE = 300

HOLDS = """
import time, tsock
loader = tsock.DataLoader("toy", 16)
iterator = iter(loader)
batch = next(iterator)
print("holds", flush=True)
time.sleep(600)
"""

WAITS = """
import tsock
for batch in tsock.DataLoader("toy", 16):
    pass
"""


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setenv("TSOCK_PATIENCE_MS", str(PATIENCE))


@pytest.fixture
def held(impatient, serve, script):
    """A stream that a script keeps from going on with a batch in hand."""
    serve("--ring", "64", "--max-batch", "16")
    until(tsock.streams)
    # Both get the same epoch from its start.
    process = script(HOLDS)
    assert process.stdout.readline().strip() == "holds"
    return process


def named(process):
    return "process %d (" % process.pid


def test_a_job_that_another_one_holds_up_says_so(held, script):
    waits = script(WAITS)
    line = waits.stderr.readline()
    assert line.startswith("'toy': this consumer has waited ")
    assert " s for " + named(held) in line
    assert "which holds 1 batch (16 samples) and has given none back" in line
    assert "--slow=detach:SEC" in line
    stats = tsock.query("toy")
    assert [w["pid"] for w in stats["waits"]] == [waits.pid]
    wait = stats["waits"][0]
    assert wait["kind"] == "reader" and wait["for_pid"] == held.pid
    assert wait["held_batches"] == 1 and wait["held_samples"] == 16
    assert wait["waited_ms"] >= PATIENCE
    assert wait["who"] in line and ", which holds 1 batch" in wait["why"]
    listed = subprocess.run(
        [PRODUCER, "--list"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()
    assert listed[0].endswith("WAITS FOR")
    assert named(held) in listed[1]
    assert listed[1].endswith("consumer %d" % waits.pid)
    waits.kill()
    waits.communicate()
    until(lambda: tsock.query("toy")["consumers"] == 1)
    assert tsock.query("toy")["waits"] == []


def test_a_time_limit_says_for_whom_it_was(held):
    loader = tsock.DataLoader("toy", 16, timeout=0.5, **INDEX)
    with pytest.raises(tsock.TimedOut) as caught:
        for _ in loader:
            pass
    text = str(caught.value)
    assert text.startswith("tsock.DataLoader timed out after 0.5 seconds: ")
    assert "it waited for " + named(held) in text
    assert "which holds 1 batch" in text
    loader.close()


def test_the_producers_log_has_it_once(held, script, tmp_path):
    waits = script(WAITS)
    # The consumer says it again after six times as long.
    for _ in range(2):
        assert named(held) in waits.stderr.readline()
    waits.kill()
    waits.communicate()
    until(lambda: tsock.query("toy")["consumers"] == 1)
    with open(tmp_path / "producer0.log") as log:
        lines = [l for l in log if "has waited" in l]
    assert len(lines) == 1 and "warning: consumer %d" % waits.pid in lines[0]
    assert named(held) in lines[0]
