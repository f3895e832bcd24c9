# SPDX-License-Identifier: MIT
"""Annotations: mypy --strict on the package, and on what users write."""

import glob
import importlib.util
import os
import shutil
import subprocess
import sys

import pytest

from conftest import CHECKOUT, finish

PACKAGE = os.path.join(CHECKOUT, "bindings", "python", "tsock")

USER = """
from __future__ import annotations

import tsock


def train(name: str) -> int:
    loader = tsock.DataLoader(name, batch_size=256, drop_last=True)
    seen = 0
    for epoch in range(3):
        loader.set_epoch(epoch)
        for images, labels in loader:
            seen += len(labels)
    weights = [loader.dataset.targets.count(i) for i in range(10)]
    print(len(loader), loader.epoch, weights, loader.classes[0].upper())
    return seen


def save(loader: tsock.DataLoader) -> dict[str, object]:
    state = loader.state_dict()
    loader.load_state_dict(state)
    batch = next(iter(loader))
    return {"state": state, "count": batch["labels"].shape[0]}


def count(loader: tsock.DataLoader[list[int]]) -> int:
    return sum(len(batch) for batch in loader)


class Doubled(tsock.DataLoader):
    factor = 2


def run() -> None:
    count(tsock.DataLoader[list[int]]("toy"))
    count(Doubled("toy", 8))
    try:
        with tsock.DataLoader("toy", as_dict={"label": "labels"}) as loader:
            save(loader)
    except tsock.Error as e:
        print(e.code)
    for name, folder in tsock.streams():
        print(name, folder, tsock.query(name)["head"])
    with tsock.Producer(dataset="imagefolder", root="/x", size=32) as producer:
        print(producer.pid + 1)
"""

WRONG = """
import tsock

tsock.DataLoader("toy", batch_sise=3)
tsock.DataLoader(7)
tsock.DataLoader("toy", batch_size="8")
tsock.DataLoader("toy").epochs
length: str = len(tsock.DataLoader("toy"))
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """What mypy has read of the standard library and of numpy, once."""
    return tmp_path_factory.mktemp("mypy")


def mypy(*arguments, cwd, cache):
    if importlib.util.find_spec("mypy"):
        command = [sys.executable, "-m", "mypy"]
    elif shutil.which("mypy"):
        command = ["mypy"]
    else:
        pytest.skip("no mypy")
    return subprocess.run(
        command
        + ["--strict", "--cache-dir", str(cache)]
        + [str(a) for a in arguments],
        cwd=cwd,
        env=dict(os.environ, MYPYPATH=os.path.dirname(PACKAGE)),
        capture_output=True,
        text=True,
    )


def test_the_package_is_clean(tmp_path, cache):
    done = mypy(PACKAGE, cwd=tmp_path, cache=cache)
    assert done.returncode == 0, done.stdout


def test_what_users_write_is_clean_and_what_is_wrong_is_found(tmp_path, cache):
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text(WRONG)
    done = mypy("user.py", cwd=tmp_path, cache=cache)
    assert done.returncode == 0, done.stdout
    done = mypy("wrong.py", cwd=tmp_path, cache=cache)
    lines = {
        int(line.split(":")[1])
        for line in done.stdout.splitlines()
        if ": error: " in line
    }
    assert lines == {4, 5, 6, 7, 8}, done.stdout


def test_examples_are_clean(tmp_path, cache):
    """What users copy; frameworks are not read, which would take a minute.

    (Where torch is read, its own backward() is the one untyped call.)
    """
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\n"
        "[mypy-torch.*,lightning.*,transformers.*,pyarrow.*]\n"
        "follow_imports = skip\n"
        "ignore_missing_imports = true\n"
    )
    examples = sorted(glob.glob(os.path.join(CHECKOUT, "examples", "*.py")))
    assert examples
    done = mypy("--allow-subclassing-any", *examples, cwd=tmp_path, cache=cache)
    assert done.returncode == 0, done.stdout


def test_the_package_says_that_it_is_annotated():
    assert os.path.exists(os.path.join(PACKAGE, "py.typed"))


def test_every_function_is_annotated(script):
    process = script(
        "import importlib.util, inspect, pkgutil, typing, tsock\n"
        "for found in pkgutil.iter_modules(tsock.__path__):\n"
        "    if found.name == 'ray' and not importlib.util.find_spec('ray'):\n"
        "        continue  # which imports Ray\n"
        "    module = importlib.import_module('tsock.' + found.name)\n"
        "    things = [t for t in vars(module).values()\n"
        "              if getattr(t, '__module__', '') == module.__name__]\n"
        "    for c in [t for t in things if inspect.isclass(t)]:\n"
        "        things += [f for f in vars(c).values()\n"
        "                   if inspect.isfunction(f)]\n"
        "    for f in filter(inspect.isfunction, things):\n"
        "        if f.__module__ != module.__name__:\n"
        "            continue  # a NamedTuple's\n"
        "        s = inspect.signature(f)\n"
        "        bare = [p.name for p in s.parameters.values()\n"
        "                if p.annotation is p.empty\n"
        "                and p.name != 'self']\n"
        "        if bare or s.return_annotation is s.empty:\n"
        "            print(f.__qualname__, bare)\n"
    )
    assert finish(process)[0] == ""
