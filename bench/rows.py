# SPDX-License-Identifier: MIT
"""The table and the JSON lines of the benchmarks in Python, see README.md."""

import json
import os
import statistics


def spread(values):
    if len(values) < 2:
        return 0.0
    q = statistics.quantiles(values, n=4, method="inclusive")
    median = statistics.median(values)
    return (q[2] - q[0]) / median if median else 0.0


def show(bench, case, values, unit, against=None, others=None, pairs=None):
    """A row: the median of the values, beside that of others.

    Where both were measured in turns, pairs are the ratios of the turns; the
    row then has their median and their spread.
    """
    if not values or (against and not (others or pairs)):
        return
    row = {
        "bench": bench,
        "case": case,
        "value": statistics.median(values),
        "unit": unit,
        "against": against,
        "ratio": None,
        "spread": spread(values),
    }
    text = ""
    if against:
        if pairs:
            row["ratio"] = statistics.median(pairs)
            row["spread"] = spread(pairs)
        else:
            row["ratio"] = row["value"] / statistics.median(others)
        text = "%.3f" % row["ratio"]
    print(
        "%-34s %12.5g %-12s %8s %6.1f%%  %s"
        % (case, row["value"], unit, text, row["spread"] * 100, against or ""),
        flush=True,
    )
    if os.environ.get("JSON"):
        for key in ("value", "ratio", "spread"):
            if row[key] is not None:
                row[key] = float("%.6g" % row[key])
        with open(os.environ["JSON"], "a") as f:
            f.write(json.dumps(row) + "\n")


def head(title):
    print("\n" + title)
    print(
        "%-34s %12s %-12s %8s %7s  %s"
        % ("case", "value", "unit", "ratio", "spread", "against"),
        flush=True,
    )
