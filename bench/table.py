# SPDX-License-Identifier: MIT
"""The tables in docs/measured of make bench-compare, bench-jobs, bench-start and
bench-recipes, from what they appended to JSON=FILE: table.py FILE

Each must have run once into the file.
"""

import json
import re
import sys

COMPARE = re.compile(r"(.*?)(, beside packed)?, (u8|f32)$")
JOBS = re.compile(r"k=(\d+), (first|later), (.*)")


def number(value):
    return "{:,.0f}".format(value) if value >= 100 else "%.3g" % value


def ratio(row):
    if row["ratio"] is None:
        return ""
    return "%.2f (%.0f %%)" % (row["ratio"], 100 * row["spread"])


def table(header, lines):
    print("\n| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for line in lines:
        print("| " + " | ".join(line) + " |")


def compare(rows):
    cells, order = {}, []
    for row in rows:
        name, packed, form = COMPARE.match(row["case"]).groups()
        if row["unit"] != "per CPU s":
            continue
        if name not in order:
            order.append(name)
        cell = cells.setdefault((name, form), ["", "", ""])
        if packed:
            cell[2] = ratio(row)
        else:
            cell[:2] = number(row["value"]), ratio(row)
    header = ["one core"]
    for form in ("u8", "f32"):
        header += [form + ", images per CPU s"]
        header += ["tsock to this", "packed to this"]
    none = ("", "", "")
    table(
        header,
        [
            [name, *cells.get((name, "u8"), none)]
            + list(cells.get((name, "f32"), none))
            for name in order
        ],
    )


def jobs(rows, epochs):
    counts, names, cells = [], [], {}
    for row in rows:
        k, which, name = JOBS.match(row["case"]).groups()
        if which != epochs:
            continue
        if k not in counts:
            counts.append(k)
        if name not in names:
            names.append(name)
        cell = number(row["value"])
        if row["ratio"] is not None:
            cell += " (%.2f)" % row["ratio"]
        cells[name, k, row["unit"]] = cell
    for unit in ("images/s, all", "CPU s/1000"):
        table(
            ["%s epochs, %s" % (epochs, unit)] + ["k = " + k for k in counts],
            [
                [name] + [cells.get((name, k, unit), "") for k in counts]
                for name in names
            ],
        )


def start(rows):
    table(
        ["first batch of 32", "seconds", "to DataLoader with workers"],
        [
            [row["case"], "%.2f" % row["value"], ratio(row)]
            for row in rows
        ],
    )


def recipes(rows):
    """A table for each unit: tsock's values, and the ratios of the others."""
    for unit in ("us/sample", "ns/pixel"):
        cases, others = {}, []
        for row in rows:
            if row["unit"] != unit:
                continue
            case, _, other = row["case"].partition(": ")
            cells = cases.setdefault(case, {})
            cells[other] = ratio(row) or number(row["value"])
            if other and other not in others:
                others.append(other)
        table(
            ["", "tsock, " + unit] + others,
            [
                [case, cells[""]] + [cells.get(name, "") for name in others]
                for case, cells in cases.items()
            ],
        )


def main(path):
    rows = {}
    with open(path) as f:
        for line in f:
            row = json.loads(line)
            rows.setdefault(row["bench"], []).append(row)
    if "compare" in rows:
        compare(rows["compare"])
    if "jobs" in rows:
        jobs(rows["jobs"], "later")
        jobs(rows["jobs"], "first")
    if "start" in rows:
        start(rows["start"])
    if "recipes" in rows:
        recipes(rows["recipes"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main(sys.argv[1])
