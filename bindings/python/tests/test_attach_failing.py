# SPDX-License-Identifier: MIT
"""Loaders that can't start a producer, or that have nothing to start."""

import os
import subprocess
import sys

import pytest

import tsock
from conftest import CHECKOUT
from test_attach import INDEX, SMALL
from tsock import launch


@pytest.mark.parametrize(
    "wrong, why",
    [
        (dict(root="/no/such/folder"), "--root /no/such/folder: No such file"),
        (dict(size=99999), "--size 99999: a whole number from 1 to 4096"),
        (dict(order="torch", segments=2), "segments 2 contradicts --order"),
    ],
)
def test_one_that_fails_to_start_says_why(place, images, wrong, why):
    given = dict(SMALL, root=images, **INDEX)
    given.update(wrong)
    with pytest.raises(tsock.NoProducer) as caught:
        tsock.DataLoader("toy", **given)
    assert "was started for stream 'toy' and ended: " in str(caught.value)
    assert why in str(caught.value)
    assert os.path.join(place, "toy.log") in str(caught.value)
    assert tsock.streams() == []


def test_what_an_earlier_run_said_is_not_this_ones(place, images):
    with open(os.path.join(place, "toy.log"), "w") as log:
        log.write("tsock-producer: from another day\n")
    program = os.path.join(place, "silent")
    with open(program, "w") as f:
        f.write("#!/bin/sh\nexit 3\n")
    os.chmod(program, 0o700)
    old, os.environ["TSOCK_PRODUCER"] = os.environ["TSOCK_PRODUCER"], program
    try:
        with pytest.raises(tsock.NoProducer, match="ended: it said nothing;"):
            tsock.DataLoader("toy", root=images)
    finally:
        os.environ["TSOCK_PRODUCER"] = old


def test_one_that_another_was_quicker_than_is_no_failure(
    place, images, monkeypatch
):
    """Somebody else locked the name meanwhile: that one is waited for."""
    monkeypatch.setenv("TSOCK_PRODUCER", "/bin/false")
    # /bin/false says nothing, so that it is started three times in all.
    held, slept = [0, 7, 7, 7, 0] + [0, 0] * 2, []
    monkeypatch.setattr(launch, "holder", lambda *_: held.pop(0))
    monkeypatch.setattr(launch.time, "sleep", slept.append)
    with pytest.raises(tsock.NoProducer, match="was started .* and ended"):
        tsock.DataLoader("toy", root=images)
    assert not held and len(slept) == 3 and min(slept) >= 0.01


def test_a_folder_of_somebody_elses_is_refused(place, monkeypatch, images):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(tsock.Error, match="is not a folder of this user"):
        tsock.DataLoader("toy", root=images)


# ---- nothing is started ----


@pytest.mark.parametrize(
    "name, given, kind, text",
    [
        ("toy", dict(seed=3), ValueError, "seed is an option of the producer"),
        ("toy", dict(seed=3, size=8), ValueError, "seed, size are options"),
        (None, {}, TypeError, "needs the name of a stream"),
        ("toy", dict(rot="/"), TypeError, "no argument 'rot'.*mean 'root'"),
        ("toy", dict(root="/", order="b"), ValueError, "order 'b': it is"),
        ("toy", dict(root=""), ValueError, "root '': it is the folder"),
        ("to y", dict(root="/"), ValueError, "can't be a stream's name"),
        ("a/.b", dict(root="/"), ValueError, "can't be a stream's name"),
        ("toy", dict(root="/", batch=8), TypeError, "no argument 'batch'"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(
    place, name, given, kind, text
):
    with pytest.raises(kind, match=text):
        tsock.DataLoader(name, **given)
    assert os.listdir(place) == []


# ---- the program ----


def python_m(*words, **env):
    return subprocess.run(
        [sys.executable, "-m", "tsock"] + list(words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(
            os.environ,
            PYTHONPATH=os.path.join(CHECKOUT, "bindings", "python"),
            **env
        ),
    )


def test_python_m_tsock_is_the_producer():
    done = python_m("--version")
    assert done.returncode == 0 and "tsock-producer 0.1" in done.stdout
    assert python_m("--nonsense").returncode == 2


def test_python_m_tsock_does_not_start_itself_again():
    main = os.path.join(
        CHECKOUT, "bindings", "python", "tsock", "__main__.py"
    )
    done = python_m(TSOCK_PRODUCER=main)
    assert done.returncode == 1
    assert "was installed without it" in done.stderr
