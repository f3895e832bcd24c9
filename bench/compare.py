# SPDX-License-Identifier: MIT
"""Two sets of results side by side: compare.py BEFORE.json AFTER.json

Each file holds what JSON=FILE appended, of any number of runs.  Of each case
the median of all runs is taken; "noise" is how far the runs of one side lie
apart, in parts of the median.  A change below the noise is none.
"""

import json
import statistics
import sys


def load(path):
    cases = {}
    with open(path) as f:
        for line in f:
            row = json.loads(line)
            # An arm that isn't ours is there to be divided by.
            value = row["value"] if row["ratio"] is None else row["ratio"]
            what = row["unit"] if row["ratio"] is None else "ratio"
            key = (row["bench"], row["case"], what, row["against"] or "")
            cases.setdefault(key, []).append(value)
    return cases


def noise(values):
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def main(before, after):
    old, new = load(before), load(after)
    print(
        "%-50s %-14s %11s %11s %8s %6s"
        % ("case", "unit", "before", "after", "change", "noise")
    )
    for key in old:
        if key not in new:
            continue
        a, b = statistics.median(old[key]), statistics.median(new[key])
        change = "%+.1f%%" % ((b / a - 1) * 100) if a else "-"
        apart = max(noise(old[key]), noise(new[key]))
        print(
            "%-50s %-14s %11.5g %11.5g %8s %5.1f%%"
            % (
                "%s: %s" % key[:2],
                key[2],
                a,
                b,
                change,
                apart * 100,
            )
        )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    main(*sys.argv[1:])
