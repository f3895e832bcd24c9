#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is written from options.def: `make generate` does it.

    generate.py            write it
    generate.py --check    fail if it isn't what would be written
    generate.py --self-test
                           fail if a changed option isn't found by --check

Of producer/tsock-producer.1 that is, under OPTIONS, which options there are,
their order and their head lines; and, where the mark below stands before it,
the text that --help has.  Any other text there is written by hand.
bindings/python/tsock/option_table.py is written whole.
"""

import ast
import os
import re
import subprocess
import sys
import textwrap
from collections import namedtuple

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAN = "producer/tsock-producer.1"
PYTHON = "bindings/python/tsock/option_table.py"
MARK = '.\\" from options.def'

Option = namedtuple("Option", "group kind name letter arg part help")

# ---- options.def ----------------------------------------------------------

SOURCE = """\
#include "data/format.h"
#include "recipe/preset.h"
#define GROUP(...) @GROUP, __VA_ARGS__@
#define OPTION(...) @OPTION, __VA_ARGS__@
#define ACTION(...) @ACTION, __VA_ARGS__@
#include "cli/options.def"
"""


def preprocessed():
    command = os.environ.get("CC", "cc").split()
    command += ["-E", "-P", "-x", "c", "-D_GNU_SOURCE"]
    command += ["-I" + folder for folder in ("include", "lib", "producer")]
    done = subprocess.run(
        command + ["-"],
        input=SOURCE.encode(),
        stdout=subprocess.PIPE,
        cwd=TOP,
        check=True,
    )
    return done.stdout.decode()


STRING = r'"(?:[^"\\]|\\.)*"'


def arguments(text):
    """What stands between the commas of a macro's arguments."""
    pieces, piece, depth = [], "", 0
    for token in re.findall(STRING + r"|'.'|\s+|.", text):
        depth += token in "([{"
        depth -= token in ")]}"
        if token == "," and not depth:
            pieces.append(piece.strip())
            piece = ""
        else:
            piece += " " if token.isspace() else token
    return pieces + [piece.strip()]


def string(text):
    """The value of a C string, or of &string[n]; None of NULL."""
    found = re.findall(STRING, text)
    if not found:
        return None
    value = "".join(ast.literal_eval(piece) for piece in found)
    begin = re.search(r"\[(\d+)\]\)$", text)
    return value[int(begin[1]) :] if begin else value


def read_options():
    options, group = [], None
    for row in re.findall("@((?:%s|[^@])*)@" % STRING, preprocessed()):
        what, *row = arguments(row)
        if what == "GROUP":
            group = string(row[0])
            continue
        if what == "OPTION":
            kind, _, name, letter, arg, _, _, _, part, text = row
        else:
            kind, part = "ACTION", "PROGRAM"
            _, name, letter, arg, text = row
        options.append(
            Option(
                group,
                kind,
                string(name),
                letter.strip("'") if letter != "0" else None,
                string(arg),
                part,
                # Where --help breaks a line, a text that is filled has none.
                " ".join(string(text).split()),
            )
        )
    return options


# ---- the manual page ------------------------------------------------------


def roff(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def head(option):
    """The macro that shows an option and its value."""
    name = "\\-\\-" + roff(option.name)
    letter = '\\-%s ", " ' % option.letter if option.letter else ""
    if not option.arg:
        return ".%s %s%s" % ("BR" if letter else "B", letter, name)
    if option.arg.isupper() and not letter:
        return '.BI %s " %s"' % (name, option.arg)
    # What stands for a value is in italics.
    value = re.sub(r"[A-Z]+", r"\\fI\g<0>\\fR", roff(option.arg))
    first, *others = value.split("|")
    return " | ".join(['.BR %s%s " %s"' % (letter, name, first), *others])


def filled(text):
    """A sentence of --help as one of the manual page."""
    text = text[0].upper() + text[1:] + "."
    text = re.sub(r" \(([^()]*)\)\.$", r" [\1].", text)
    lines = textwrap.wrap(
        roff(text), 80, break_on_hyphens=False, break_long_words=False
    )
    return "\n".join(re.sub(r"^(?=[.'])", r"\\&", line) for line in lines)


def entries(section):
    """What stands before the first option, and each option's own text."""
    before, *parts = re.split(r"(?m)^\.TP\n", section)
    texts = {}
    for part in parts:
        first, _, text = part.partition("\n")
        name = re.search(r"\\-\\-([a-z\\-]+)", first)[1].replace("\\", "")
        texts[name] = text
    return before, texts


def manual(page, options):
    begin = page.index(".SH OPTIONS\n")
    end = page.index(".SH", begin + 1)
    intro, *sections = re.split(r"(?m)^\.SS (.*)\n", page[begin:end])
    before, texts = {}, {}
    for title, section in zip(sections[::2], sections[1::2]):
        before[title], found = entries(section)
        texts.update(found)
    out, group = intro, None
    for option in options:
        if option.group != group:
            group = option.group
            out += ".SS %s\n%s" % (group, before.get(group, ""))
        text = texts.get(option.name, MARK)
        if text.startswith(MARK):
            text = "%s\n%s\n" % (MARK, filled(option.help))
        out += ".TP\n%s\n%s" % (head(option), text)
    return page[:begin] + out + page[end:]


# ---- Python ---------------------------------------------------------------

MODULE = '''\
# SPDX-License-Identifier: MIT
"""The options of tsock-producer: from options.def by `make generate`."""

from __future__ import annotations

import os
from typing import Any, Literal, TypedDict, Union

Path = Union[str, os.PathLike[str]]
Size = Union[int, str]  # bytes, or "4G"
Transform = Union[str, Any]  # a recipe's text, or torchvision's transforms


class ProducerOptions(TypedDict, total=False):
    """The options of tsock-producer as keywords: seed=3 is --seed 3.

    A hyphen is an underscore here, as in cache_dir=.  True gives an option
    that has no value; None is as if it wasn't there.  Defaults are in
    brackets.
%s
    """

%s
'''

TYPES = {
    "TEXT": "str",
    "PATH": "Path",
    "COUNT": "int",
    "AUTO": "int",
    "BYTES": "Size",
    "ROOM": "Size",
    "SWITCH": "bool",
    "QUIET": "bool",
    "SHARE": "float",
    "IDLE": "float",
    "SHARD": "Union[str, tuple[int, int]]",
    "START": "str",
    "SLOW": "str",
    "SAMPLING": "str",
}


def python_type(option):
    if option.name == "transform":
        return "Transform"
    if option.kind not in ("CHOICE", "AUTO"):
        return TYPES[option.kind]
    words = [word for word in option.arg.split("|") if not word.isupper()]
    words = "Literal[%s]" % ", ".join('"%s"' % word for word in words)
    if option.kind == "CHOICE":
        return words
    return "Union[%s, %s]" % (TYPES[option.kind], words)


def described(options):
    """The options with their texts, as people read them."""
    lines, group = [], None
    for option in options:
        if option.group != group:
            group = option.group
            lines += ["", "    %s:" % group]
        key = option.name.replace("-", "_")
        first = "    %-13s " % key
        if len(key) > 13:
            lines.append(first.rstrip())
            first = " " * 18
        lines += textwrap.wrap(
            option.help,
            79,
            initial_indent=first,
            subsequent_indent=" " * 18,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def module(_, options):
    options = [option for option in options if option.part != "PROGRAM"]
    return MODULE % (
        described(options).replace("\\", "\\\\"),
        "\n".join(
            "    %s: %s" % (option.name.replace("-", "_"), python_type(option))
            for option in options
        ),
    )


# ---- both -----------------------------------------------------------------


def stale(options):
    """The path and the new text of each file that isn't as it should be."""
    for path, make in ((MAN, manual), (PYTHON, module)):
        try:
            with open(os.path.join(TOP, path)) as file:
                there = file.read()
        except FileNotFoundError:
            there = ""
        text = make(there, options)
        if text != there:
            yield path, text


def self_test(options):
    """How many changes of an option's text or place are not found."""
    first, *others = options
    changes = (
        [first._replace(arg="mnist"), *others],
        [*others, first],
        others,
        [first, first._replace(name="another"), *others],
    )
    return sum(len(list(stale(change))) != 2 for change in changes)


def main():
    options = read_options()
    if sys.argv[1:] == ["--self-test"]:
        return self_test(options)
    found = list(stale(options))
    if sys.argv[1:] == ["--check"]:
        for path, _ in found:
            print("%s is stale: run make generate" % path)
        return len(found)
    for path, text in found:
        with open(os.path.join(TOP, path), "w") as file:
            file.write(text)
        print("  WRITE   " + path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
