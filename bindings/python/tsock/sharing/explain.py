# SPDX-License-Identifier: MIT
"""tsock.explain(): which parts of a loader are native, and what they cost."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import textwrap
import time
from typing import Any, Callable, Iterator, Optional, TextIO

from .. import options
from ..loader import DataLoader
from ..producer import find_program
from . import generators, tables
from .datasets import known
from .inside import attribute_of
from .look import check, look
from .plan import Plan

SAMPLES = 32  # that are measured
_WIDTH = 78
_COST = re.compile(r"^cost\s+([\d,.]+) us", re.M)


def _micros(
    function: Callable[[Any], Any], values: list[Any]
) -> tuple[float, list[Any]]:
    """The median time of a call in us, and what the calls returned."""
    times, made = [], []
    for value in values:
        begin = time.perf_counter()
        made.append(function(value))
        times.append(time.perf_counter() - begin)
    return 1e6 * sorted(times)[len(times) // 2], made


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """As in a worker of torch's loader."""
    torch = known("torch:set_num_threads")
    before = known("torch:get_num_threads")() if torch else 1
    if torch:
        torch(1)
    try:
        yield
    finally:
        if torch:
            torch(before)


def _script_costs(plan: Plan) -> list[tuple[str, float]]:
    """What reading and each step of the transform cost the script."""
    data = plan.data
    n = min(SAMPLES, data.reach)
    which = [data.place(i * data.reach // n) for i in range(n)]

    def image(i: int) -> Any:
        found = data.image(i)
        load = getattr(found, "load", None)
        if load:
            load()
        return found

    with generators.undisturbed(), _one_thread():
        cost, images = _micros(image, which)
        costs = [("read and decode", cost)]
        for name, step in plan.steps:
            cost, images = _micros(step, images)
            costs.append((name, cost))
    return costs


def _native_cost(plan: Plan) -> Optional[float]:
    """What a sample costs tsock-producer; None: it can't say."""
    given = dict(plan.options)
    given.pop("sampler", None)
    if plan.data.table:
        given["root"] = tables.written(plan.data, None)
    else:
        given.update(plan.data.options)
    checked = options.absolute(options.check("tsock.explain", given))
    command = options.command_line(
        find_program(), None, {**checked, "threads": "1"}
    )
    done = subprocess.run(
        command + ["--dry-run"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    found = _COST.search(done.stdout.decode("utf-8", "replace"))
    return float(found[1].replace(",", "")) if found else None


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head)
    )


def table(plan: Plan) -> str:
    """The parts, each native or not, and why."""
    lines = []
    for part in plan.parts:
        mark = "native" if part.native else "Python"
        lines += _wrapped("%-10s  %s  " % (part.name, mark), part.what)
        more = ""
        if not part.native:
            more = part.why
            if part.instead:
                more += "; native would be: " + part.instead
        elif part.differs:
            more = "but " + part.differs
        if more:
            lines += _wrapped(" " * 22, more)
    return "\n".join(lines)


def _costs(plan: Plan) -> list[str]:
    costs = _script_costs(plan)
    lines = [
        "",
        "A sample costs the script, in us of one core (median of %d):"
        % min(SAMPLES, plan.data.reach),
    ]
    for name, cost in costs:
        lines.append("%10s  %s" % ("{:,.0f}".format(cost), name))
    whole = sum(cost for _, cost in costs)
    lines.append("%10s  together" % "{:,.0f}".format(whole))
    if plan.native:
        mine = _native_cost(plan)
        if mine:
            lines.append(
                "%10s  natively, once for all jobs: %.1f times less"
                % ("{:,.0f}".format(mine), whole / mine)
            )
    return lines


def explain(
    loader: Any, *, seed: Optional[int] = None, file: Optional[TextIO] = None
) -> None:
    """Print what tsock.share(loader) would do with each part, and why.

    Each part of the loader is native, or Python's, with the reason and with
    what would make it native; then what a sample costs the script, step by
    step, and natively, as measured on 32 samples.  Starts no stream, reads no
    batch, and draws none of the script's random numbers.

    file        where it is printed; None is standard output
    """
    if isinstance(loader, DataLoader):
        print(
            "The loader reads stream %r: tsock.share() returns it as it is."
            % loader.name,
            file=file or sys.stdout,
        )
        return
    around = attribute_of(loader)
    if around:
        loader = getattr(loader, around)
    check(loader, "tsock.explain()")
    plan = look(loader, seed)
    lines = [table(plan), ""]
    if plan.native:
        lines.append("tsock.share() makes a native stream of it.")
    else:
        lines += textwrap.wrap(
            "tsock.share() serves it: one process runs the loader, with its "
            "workers, for all jobs.",
            _WIDTH,
        )
    if plan.source is not None and plan.data.reach and plan.steps:
        lines += _costs(plan)
    print("\n".join(lines), file=file or sys.stdout)
