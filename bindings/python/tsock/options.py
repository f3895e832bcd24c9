# SPDX-License-Identifier: MIT
"""The options of tsock-producer as keywords: what there is, and what fits.

One table, ProducerOptions, for people, type checkers and the checks here;
tests/test_options.py compares it with ``tsock-producer --help``.
"""

from __future__ import annotations

import os
import textwrap
from typing import (
    Any,
    Literal,
    Mapping,
    Sequence,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from .keywords import OF_IMAGES, SERVED, did_you_mean, one_of
from .keywords import what_is_meant
from .option_texts import TEXTS

Path = Union[str, os.PathLike[str]]
Size = Union[int, str]  # bytes, or "4G"


class ProducerOptions(TypedDict, total=False):
    """The options of tsock-producer as keywords: seed=3 is --seed 3.

    A hyphen is an underscore here, as in cache_dir=.  True gives an option
    that has no value; None is as if it wasn't there.  Defaults are in
    brackets.
    """

    dataset: Literal["imagenet", "imagefolder", "webdataset", "packed"]
    root: Path
    split: Literal["train", "val"]
    select: Path
    keys: bool
    grows: bool
    seed: int
    order: Literal["philox", "torch", "sequential"]
    segments: int
    shard: Union[str, tuple[int, int]]
    allow_empty: bool
    rescan: bool
    cache_dir: Path
    no_cache: bool
    on_error: Literal["substitute", "raise"]
    allow_bad: float
    preset: Literal["train", "eval"]
    size: int
    resize: int
    pillow: int
    fast: bool
    ring: int
    max_batch: int
    join_window: int
    memory: Size
    image_memory: Size
    index_memory: Size
    no_index: bool
    cache: Size
    slow: str
    min_consumers: int
    epochs: int
    exit_when_idle: float
    threads: Union[int, Literal["auto"]]
    numa_node: int
    io: Literal["auto", "uring", "pread"]
    direct: bool
    read_ahead: Union[Size, Literal["auto", "off"]]
    gpu_memory: Size
    fanout: Literal["auto", "peer", "nccl", "host"]
    gpu_transport: Literal["auto", "vmm", "legacy", "staged"]
    quiet: bool
    log_level: Literal["error", "warn", "info", "debug"]


def described() -> str:
    """The options with their texts, as people read them."""
    lines = []
    for group, texts in TEXTS.items():
        lines += ["", "    %s:" % group]
        for key, text in texts.items():
            first = "    %-13s " % key
            if len(key) > 13:
                lines.append(first)
                first = " " * 18
            lines += textwrap.wrap(
                text,
                79,
                initial_indent=first,
                subsequent_indent=" " * 18,
                break_on_hyphens=False,
            )
    return "\n".join(lines) + "\n    "


TYPES = get_type_hints(ProducerOptions)
ProducerOptions.__doc__ = "%s\n%s" % (
    (ProducerOptions.__doc__ or "").rstrip(),
    described(),
)
IMAGE_FOLDERS = ("imagenet", "imagefolder")  # datasets that read trees alike


def kinds_of(key: str) -> tuple[Any, ...]:
    """The types of the option's values: one, or those of its union."""
    kind = TYPES[key]
    return get_args(kind) if get_origin(kind) is Union else (kind,)


def words_of(key: str) -> tuple[str, ...]:
    """The words that the option may have for its value."""
    literals = [k for k in kinds_of(key) if get_origin(k) is Literal]
    return tuple(word for kind in literals for word in get_args(kind))


def _of_a_square(key: str, value: Sequence[Any]) -> str:
    """What to say where height and width were given."""
    if key not in ("size", "resize"):
        return ""
    if len(set(value)) == 1 and hasattr(value[0], "__index__"):
        return ", such as %s=%d" % (key, value[0])
    return "; images are square here: for others " + SERVED


def _text(key: str, value: Any) -> str:
    """The option's value as it is written on a command line."""
    kinds, words = kinds_of(key), words_of(key)
    if isinstance(value, str) and value in words:
        return value
    if words and int not in kinds:
        raise ValueError(
            "%s %r: it is %s%s"
            % (key, value, one_of(words), did_you_mean(value, words))
        )
    if isinstance(value, bool):
        raise TypeError(
            "%s %r: it takes a value, see tsock-producer --help" % (key, value)
        )
    if int in kinds and str not in kinds:
        if not hasattr(value, "__index__"):
            kind = " or ".join(["a whole number", *map(repr, words)])
            if isinstance(value, (tuple, list)):
                kind += _of_a_square(key, value)
            raise TypeError("%s %r: it is %s" % (key, value, kind))
        return str(value.__index__())
    if key == "shard" and isinstance(value, tuple):
        return "%d/%d" % value
    if os.PathLike[str] in kinds:
        if not isinstance(value, (str, bytes, os.PathLike)):
            raise TypeError("%s %r: it is a path" % (key, value))
        # As torchvision's data sets do, and a shell for tsock-producer.
        return os.path.expanduser(os.fsdecode(value))
    if isinstance(value, bytes):
        return os.fsdecode(value)
    return str(value)


def check(who: str, options: Mapping[str, Any]) -> dict[str, str]:
    """The options that are given, as text; "" for those without a value.

    TypeError for one that tsock-producer doesn't have, ValueError for a word
    that it doesn't know.  Numbers it judges itself.
    """
    checked = {}
    for key, value in options.items():
        if key not in TYPES:
            raise TypeError(
                "%s has no argument %r, and tsock-producer no such option%s"
                % (who, key, what_is_meant(key, TYPES, OF_IMAGES))
            )
        if value is None:
            continue
        if TYPES[key] is bool:
            if not isinstance(value, bool):
                raise TypeError("%s %r: it is True or False" % (key, value))
            if value:
                checked[key] = ""
        else:
            checked[key] = _text(key, value)
    return checked


def command_line(
    program: str, name: str, checked: Mapping[str, str]
) -> list[str]:
    """The program with options that check() has seen."""
    command = [program, "--name", name]
    for key, value in checked.items():
        command.append("--" + key.replace("_", "-"))
        if TYPES[key] is not bool:
            command.append(value)
    return command
