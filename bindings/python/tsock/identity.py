# SPDX-License-Identifier: MIT
"""What a stream says about itself: lines of key=value, by tsock_identity()."""

from __future__ import annotations

import re
from typing import Iterator

# A key of what tsock.serve(identity=) says.  Errors show it: "its first
# batch's checksum was A and is B".
FIRST_BATCH = "its first batch's checksum"


def lines(text: str) -> Iterator[tuple[str, str]]:
    """Key and value of each line; others are left out."""
    for line in text.split("\n"):
        key, equals, value = line.partition("=")
        if equals:
            yield key, re.sub(
                r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], value
            )


def parse(text: str) -> dict[str, str]:
    """The values by key."""
    return dict(lines(text))


def line(key: str, value: str) -> str:
    """A line that parse() reads as that."""
    return "%s=%s\n" % (key, value.replace("\\", "\\\\").replace("\n", "\\n"))
