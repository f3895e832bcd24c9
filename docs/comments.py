# SPDX-License-Identifier: MIT
"""The comments of the public headers, as Doxygen takes them.

What stands right before a declaration, or behind a member, a value or a
constant, is told of that (comments.py FILE prints such a header: Doxygen's
INPUT_FILTER).  Comments with an empty line behind them, the header's own among
them, are of the header as a whole (alone()).
"""

import re
import sys

BLOCK = re.compile(r"^/\*.*?\*/\n", re.M | re.S)
BEHIND = re.compile(r"^((?:\t+|#define ).*\S.*)/\* ", re.M)


def _is_alone(text, match):
    return text[match.end() :].startswith(("\n", "#ifndef"))


def alone(text):
    """What those say that stand alone, without the licence's line."""
    said = []
    for match in BLOCK.finditer(text):
        if _is_alone(text, match) and "SPDX" not in match.group():
            lines = match.group().rstrip("\n").split("\n")
            lines = [re.sub(r"^ ?/?\*+/? ?", "", x) for x in lines]
            lines = [re.sub(r" ?\*/$", "", x) for x in lines]
            said.append("\n".join(lines).strip("\n"))
    return said


def marked(text):
    def mark(match):
        if _is_alone(text, match) or "SPDX" in match.group():
            return match.group()
        return "/**" + match.group()[2:]

    return BEHIND.sub(r"\1/**< ", BLOCK.sub(mark, text))


if __name__ == "__main__":
    with open(sys.argv[1]) as f:
        sys.stdout.write(marked(f.read()))
