# SPDX-License-Identifier: MIT
"""The table of the producer's options, against the producer itself."""

import inspect
import pydoc
import re
import subprocess

import pytest

import tsock
from conftest import PRODUCER
from tsock import options

# What prints something and exits, and what a loader has its own name for.
NOT_KEYWORDS = {
    "check-config",
    "describe",
    "devices",
    "dry-run",
    "help",
    "list",
    "force",
    "name",
    "stop",
    "supervise",  # a loader does that for its own producer
    "version",
}


def producers_own():
    """Its options: a value's description, or None, by the option's name."""
    said = subprocess.run(
        [PRODUCER, "--help"], stdout=subprocess.PIPE, check=True
    ).stdout.decode()
    said = re.sub(r"\|\n +", "|", said)  # more choices than a line has room for
    rows = re.findall(
        r"^  (?:-\w,|   ) --([a-z-]+)(?: (\S+))?(?:  |$)", said, re.MULTILINE
    )
    return {name: value or None for name, value in rows}


def test_the_table_has_the_producers_options_and_no_others():
    own = producers_own()
    assert len(own) > 30 and own["seed"] == "N" and own["rescan"] is None
    keywords = {key.replace("_", "-") for key in options.TYPES}
    assert keywords == set(own) - NOT_KEYWORDS


def test_the_table_has_their_values():
    own = producers_own()
    for key, kind in options.TYPES.items():
        value = own[key.replace("_", "-")]
        assert (kind is bool) == (value is None), key
        words = options.words_of(key)
        if words:
            kinds = options.kinds_of(key)
            number = ["SIZE" if str in kinds else "N"] if int in kinds else []
            assert "|".join(number + list(words)) == value
        else:
            assert "|" not in (value or "") or kind is str, key


def producers_texts():
    """What its --help says of each option, by group and by option's name."""
    said = subprocess.run(
        [PRODUCER, "--help"], stdout=subprocess.PIPE, check=True
    ).stdout.decode()
    groups, texts, key = {}, {}, None
    for line in said.split("\n"):
        row = re.match(r"  (?:-\w,|   ) --([a-z-]+)(?: \S+)?(?:  +(.*))?$", line)
        if re.match(r"\S.*:$", line):
            texts = groups.setdefault(line[:-1], {})
        elif row:
            key = row[1].replace("-", "_")
            texts[key] = row[2] or ""
        elif key and line.startswith(26 * " "):
            texts[key] += " " + line.strip()
        else:
            key = None
    return {
        group: {
            key: text.strip()
            for key, text in texts.items()
            if key.replace("_", "-") not in NOT_KEYWORDS
        }
        for group, texts in groups.items()
    }


def test_help_has_the_producers_texts():
    shown = pydoc.plain(pydoc.render_doc(tsock.ProducerOptions))
    shown = " ".join(shown.replace("|", " ").split())
    for group, texts in producers_texts().items():
        assert not texts or " %s: " % group in shown
        for key, text in texts.items():
            assert " %s %s" % (key, " ".join(text.split())) in shown


def test_values_become_a_command_line(tmp_path):
    checked = options.check(
        "f",
        dict(
            root=tmp_path,
            seed=3,
            shard=(1, 4),
            no_cache=True,
            rescan=False,
            memory="4G",
            threads="auto",
            size=None,
        ),
    )
    assert options.command_line("p", "n", checked) == [
        "p",
        "--name",
        "n",
        "--root",
        str(tmp_path),
        "--seed",
        "3",
        "--shard",
        "1/4",
        "--no-cache",
        "--memory",
        "4G",
        "--threads",
        "auto",
    ]


@pytest.mark.parametrize(
    "given, error, text",
    [
        ({"sead": 1}, TypeError, "no such option; did you mean 'seed'"),
        ({"preset": "evel"}, ValueError, "'train', 'eval', .*; did you mean 'ev"),
        ({"size": "64"}, TypeError, "size '64': it is a whole number"),
        ({"seed": True}, TypeError, "seed True: it takes a value"),
        ({"threads": "aut"}, TypeError, "'aut': it is a whole number or 'auto'"),
        ({"rescan": 1}, TypeError, "rescan 1: it is True or False"),
    ],
)
def test_what_is_none_is_refused_by_name(given, error, text):
    with pytest.raises(error, match=text):
        options.check("f", given)


def test_every_option_is_an_argument_of_the_loader_and_of_the_producer():
    shown = set(inspect.signature(tsock.DataLoader).parameters)
    assert set(options.TYPES) < shown
    for key in options.TYPES:
        with pytest.raises(TypeError, match="tsock.Producer needs"):
            tsock.Producer(**{key: None})


def test_paths_may_begin_with_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    found = options.check("here", dict(root="~/x", select="~/y", slow="~"))
    assert found == dict(
        root=str(tmp_path / "x"), select=str(tmp_path / "y"), slow="~"
    )
    with pytest.raises(TypeError, match="^root 3: it is a path$"):
        options.check("here", dict(root=3))
