# SPDX-License-Identifier: MIT
"""python -m tsock.run: a script whose loaders read shared streams.

The script isn't edited.  Its torch DataLoaders whose every part tsock-producer
can do read the stream that all such jobs on the machine share; the others stay
what they are.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from typing import NamedTuple, Optional

from .sharing.patch import Patch
from .sharing.spawned import log_to_stderr

USAGE = """\
usage: python -m tsock.run [--serve] [-v] SCRIPT [ARGUMENT ...]
       python -m tsock.run [--serve] [-v] -m MODULE [ARGUMENT ...]
"""
HELP = USAGE + """
Run a Python script.  Each torch.utils.data.DataLoader in it whose data set,
transform, sampler and collate_fn tsock-producer can do reads a stream that
all jobs with such a loader share; every other loader stays as it is.  A line
on standard error says which, and why.

  --serve        also share the other loaders: one process of Python's runs
                 each of them for all jobs
  -v, --explain  print what tsock.explain() says of each loader
  -m MODULE      run a module as a script, as python -m does
  -h, --help     print this

With torchrun: torchrun --nproc-per-node 2 -m tsock.run SCRIPT [ARGUMENT ...]
"""


class Wrong(Exception):
    """What is wrong with the command line."""


class Command(NamedTuple):
    """What is to be run, and how."""

    target: str  # a file or a module
    module: bool
    arguments: list[str]
    serve: bool = False
    table: bool = False


def parse(argv: list[str]) -> Optional[Command]:
    """The command; None: help was asked for."""
    serve = table = False
    left = list(argv)
    while left and left[0].startswith("-") and left[0] not in ("-m", "--"):
        word = left.pop(0)
        if word in ("-h", "--help"):
            return None
        if word not in ("--serve", "-v", "--explain"):
            raise Wrong(
                "no option %s; options of the script come behind its name"
                % word
            )
        serve = serve or word == "--serve"
        table = table or word != "--serve"
    module = left[:1] == ["-m"]
    if left[:1] in (["-m"], ["--"]):
        del left[0]
    if not left:
        raise Wrong("no module behind -m" if module else "no script to run")
    return Command(left[0], module, left[1:], serve, table)


def _check(command: Command) -> None:
    target = command.target
    if not command.module:
        if not os.path.exists(target):
            raise Wrong("no file %s" % target)
        if os.path.isdir(target) and not os.path.isfile(
            os.path.join(target, "__main__.py")
        ):
            raise Wrong("%s is a folder without a __main__.py" % target)
        return
    try:
        there = importlib.util.find_spec(target) is not None
    except ModuleNotFoundError as e:
        if not e.name or not (target + ".").startswith(e.name + "."):
            raise
        there = False
    except ValueError:  # "a..b"
        there = False
    if not there:
        raise Wrong("no module %s" % target)


def execute(command: Command) -> None:
    """Run it as Python would, in this process."""
    sys.argv = [command.target] + command.arguments
    if command.module:
        runpy.run_module(command.target, run_name="__main__", alter_sys=True)
        return
    if os.path.isfile(command.target) and not getattr(
        sys.flags, "safe_path", False
    ):
        # In place of the folder that python -m has put there.
        sys.path[0] = os.path.dirname(os.path.realpath(command.target))
    runpy.run_path(command.target, run_name="__main__")


def main(argv: list[str]) -> int:
    try:
        command = parse(argv)
        if command is None:
            print(HELP, end="")
            return 0
        _check(command)
    except Wrong as e:
        print("tsock.run: %s\n%s" % (e, USAGE), end="", file=sys.stderr)
        return 2
    log_to_stderr()
    patch = Patch(command.serve, command.table)
    patch.install()
    try:
        execute(command)
    finally:
        patch.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
