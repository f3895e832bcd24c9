# SPDX-License-Identifier: MIT
"""Docstrings as help() shows them best, made reStructuredText for autodoc.

In a paragraph whose lines are "name     what it is", and lines in the second
column that go on, each name is a term of a definition list.  Lines that are all
indented are code.
"""

import re

TERM = re.compile(r"(\S+(?: \S+)*) {2,}(\S.*)")


def paragraphs(lines):
    paragraph = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield paragraph
            paragraph = []


def second_column(paragraph):
    """The column where a table's texts begin; 0 if this isn't a table."""
    starts = [indent(line) for line in paragraph if indent(line) >= 8]
    starts += [m.start(2) for m in map(TERM.fullmatch, paragraph) if m]
    column = max(set(starts), key=starts.count, default=0)
    below = [*paragraph[1:], ""]
    fits = (
        indent(line) or line.endswith(":") or row(line, column) or indent(after)
        for line, after in zip(paragraph, below)
    )
    return column if not indent(paragraph[0]) and all(fits) else 0


def indent(line):
    return len(line) - len(line.lstrip())


def row(line, column):
    """The term and the text of a line that has both."""
    if column and line[column - 1 : column] == " " and line[column:].strip():
        return line[:column].strip(), line[column:]
    return None


def table(paragraph, column):
    rest = list(paragraph)
    while rest:
        line = rest.pop(0)
        if line.endswith(":") and not row(line, column) and not indent(line):
            yield from ("", "*%s*" % line[:-1], "")
            continue
        if indent(line) == column:
            yield "    " + line.strip()
        elif indent(line):
            nested = [line[4:]]
            while rest and 0 < indent(rest[0]) != column:
                nested.append(rest.pop(0)[4:])
            yield ""
            yield from ("    " + text for text in table(nested, column))
        else:
            term, text = row(line, column) or (line.strip(), "")
            yield from ("", "**%s**" % term)
            if text:
                yield "    " + text


def restructured(lines):
    for paragraph in paragraphs(lines):
        column = second_column(paragraph)
        if column:
            yield from table(paragraph, column)
        elif all(line.startswith(" ") for line in paragraph):
            yield from ("::", "", *paragraph)
        else:
            yield from paragraph
        yield ""


def process(app, what, name, obj, options, lines):
    lines[:] = restructured(lines)
