# SPDX-License-Identifier: MIT
"""Sphinx: the pages of docs/ as a site.  test/site.sh builds it.

Three pages are filled here: the options from the manual pages, Python's
reference from its docstrings, C's from the headers.
"""

import os
import re
import sys

TREE = os.environ["TSOCK_TREE"]
sys.path.insert(0, os.path.join(TREE, "docs"))

import comments  # noqa: E402
import docstrings  # noqa: E402

project = "libtsock"
author = "libtsock"
extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe"]
root_doc = "docs/index"
source_suffix = {".md": "markdown"}
exclude_patterns = ["docs/conf.py"]
html_theme = "furo"
html_title = "libtsock"
html_show_copyright = False
myst_heading_anchors = 4
# Two hyphens stay two hyphens.
smartquotes = False
# A struct and the typedef of its name.
suppress_warnings = ["duplicate_declaration.c"]
breathe_projects = {"tsock": os.environ["TSOCK_DOXYGEN"]}
breathe_default_project = "tsock"
breathe_domain_by_extension = {"h": "c"}
c_id_attributes = ["TSOCK_API"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"

# ---- the manual pages ----------------------------------------------------

FONTS = {"B": "b", "I": "i", "R": ""}


def _plain(text):
    """What roff writes in another way, as Markdown takes it."""
    text = re.sub(r"\\f[BIRP]", "", text)
    for old, new in (("\\-", "-"), ("\\&", ""), ("\\(dq", '"'), ("\\e", "\\")):
        text = text.replace(old, new)
    text = re.sub(r"\\\((aq|cq|oq)", "'", text)
    return re.sub(r"([*_`<>{}\[\]\\|])", r"\\\1", text)


def _words(line):
    return [
        quoted or word
        for quoted, word in re.findall(r'"((?:[^"]|"")*)"|(\S+)', line)
    ]


def _set(font, text):
    core = text.strip()
    if not core or not FONTS[font]:
        return _plain(text)
    # Markdown's asterisks don't take every character beside them.
    tag = FONTS[font]
    return text.replace(core, "<%s>%s</%s>" % (tag, _plain(core), tag), 1)


def _inline(macro, rest):
    """A line of .B, .IR and the like."""
    if len(macro) == 1:
        return _set(macro, " ".join(_words(rest)))
    return "".join(
        _set(macro[i % 2], word) for i, word in enumerate(_words(rest))
    )


def man_page(path):
    """Markdown of a manual page, whose sections become parts of a page."""
    out, indent, tag = [], "", False
    with open(path) as f:
        lines = f.read().split("\n")
    literal = False
    for line in lines:
        macro, rest = "", line
        match = re.match(r"\.([A-Za-z]+)\s*(.*)", line)
        if match:
            macro, rest = match.groups()
        elif line.startswith((".\\", "'\\")):
            continue
        if macro in ("nf", "EX"):
            out += ["", indent + "```text"]
            literal = True
        elif macro in ("fi", "EE"):
            out += [indent + "```", ""]
            literal = False
        elif literal:
            out.append(
                indent + re.sub(r"\\(.)", r"\1", rest if macro else line)
            )
        elif macro in ("SH", "SS"):
            text = " ".join(_words(rest)).capitalize()
            out += ["", "#" * (3 if macro == "SH" else 4) + " " + text, ""]
            indent = ""
        elif macro in ("PP", "P", "LP"):
            out.append("")
            indent = ""
        elif macro in ("TP", "TQ"):
            out.append("")
            tag = True
        elif macro == "IP":
            out += ["", "- " + " ".join(_plain(w) for w in _words(rest)[:1])]
            indent = "  "
        elif macro == "br":
            out.append("")
        elif macro in ("RS", "RE", "TH", "ad", "hy", "sp", "ft", "ie", "el"):
            continue
        else:
            if macro and set(macro) <= set("BIR"):
                text = _inline(macro, rest)
            elif macro:
                raise ValueError("%s: what is .%s?" % (path, macro))
            else:
                text = _plain(line)
            if tag:
                out += ["- " + text, ""]
                indent, tag = "  ", False
            elif text.strip():
                # What roff begins a line with Markdown may take for a list.
                text = re.sub(r"^(\d+)([.)])", r"\1\\\2", text)
                text = re.sub(r"^([-+#])", r"\\\1", text)
                out.append(indent + text)
    return "\n".join(out)


def options():
    return "\n\n".join(
        "## %s\n%s" % (name, man_page(os.path.join(TREE, "producer", name + ".1")))
        for name in ("tsock-producer", "tsock-pack")
    )


# ---- Python --------------------------------------------------------------


def python():
    import tsock

    out = ["```{eval-rst}", ".. currentmodule:: tsock", ""]
    kinds = {"class": [], "function": []}
    for name in sorted(tsock.__all__):
        thing = getattr(tsock, name)
        if isinstance(thing, type):
            kinds["class"].append(name)
        elif callable(thing):
            kinds["function"].append(name)
    for kind, names in kinds.items():
        for name in names:
            out.append(".. auto%s:: tsock.%s" % (kind, name))
            if kind == "class" and not issubclass(
                getattr(tsock, name), BaseException
            ):
                out.append("   :members:")
            out.append("")
    out += [".. automodule:: tsock.mix", "   :members:", "", "```"]
    return "\n".join(out)


# ---- C -------------------------------------------------------------------


def headers():
    out = []
    for name in ("tsock", "common", "consumer", "serve", "stats", "order", "ragged"):
        with open(os.path.join(TREE, "include/tsock", name + ".h")) as f:
            said = comments.alone(f.read())
        out += ["## tsock/%s.h" % name, ""]
        for text in said:
            out += ["```text", text, "```", ""]
        out += [
            "```{eval-rst}",
            ".. doxygenfile:: %s.h" % name,
            "   :sections: briefdescription detaileddescription innerclass"
            " define enum typedef func public-attrib",
            "```",
            "",
        ]
    return "\n".join(out)


DECISIONS = "docs/inside/decisions/README"
FILLED = {
    "<!-- man pages -->": options,
    "<!-- autodoc -->": python,
    "<!-- headers -->": headers,
}


def fill(app, docname, source):
    if docname == root_doc:
        # The lists of links are the table of contents, too.
        source[0] = re.sub(r"(?m)^(## .*)\n\n((?:- .*\n)+)", contents, source[0])
        source[0] += toctree("", [("README", "../README")])
    if docname == DECISIONS:
        pages = re.findall(r"\[([^]]*)\]\(([a-z]+)\.md\)", source[0])
        source[0] += toctree("", [(t, "inside/decisions/" + p) for t, p in pages])
    for mark, make in FILLED.items():
        if mark in source[0]:
            source[0] = source[0].replace(mark, make())


def contents(match):
    pages = re.findall(r"\[([^]]*)\]\(([^)]*)\.md\)", match.group(2))
    return match.group(0) + toctree(match.group(1)[3:], pages)


def toctree(caption, pages):
    """Pages, named from docs/, in the list at the side."""
    return "\n```{toctree}\n:hidden:\n%s\n%s\n```\n" % (
        ":caption: %s\n" % caption if caption else "",
        "\n".join(
            "%s </%s>" % (t, os.path.normpath("docs/" + p)) for t, p in pages
        ),
    )


def setup(app):
    app.connect("source-read", fill)
    app.connect("autodoc-process-docstring", docstrings.process)
