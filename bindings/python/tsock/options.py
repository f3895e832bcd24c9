# SPDX-License-Identifier: MIT
"""The options of tsock-producer as keywords: what fits.

What there is stands in option_table.py, for people, type checkers and the
checks here.
"""

from __future__ import annotations

import os
from typing import (
    Any,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from . import addresses
from .keywords import OF_IMAGES, did_you_mean, one_of
from .keywords import what_is_meant
from .option_table import ProducerOptions
from .recipe import text_of

TYPES = get_type_hints(ProducerOptions)
_OF_DATA = frozenset(("root", "dataset", "select", "masks"))
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
    return (
        "; images of other shapes are made by a recipe, such as transform="
        "'RandomResizedCrop(%r) RandomHorizontalFlip()'"
        % (tuple(value) if len(value) == 2 else (288, 512),)
    )


_SAMPLER = (
    "sampler %r: it is 'weighted', 'balanced', 'repeat:K' or 'limit:N', since "
    "all jobs of a stream have the same samples; weights, such as those of "
    "torch's WeightedRandomSampler, stand in the file of select= or in the "
    "column weight of a table, and subset= chooses samples for one job"
)


def _text(key: str, value: Any) -> str:
    """The option's value as it is written on a command line."""
    if key == "transform" and not isinstance(value, bytes):
        return text_of(value)
    if key in _OF_DATA and isinstance(value, (str, bytes)):
        addresses.refuse(key, os.fsdecode(value))
    kinds, words = kinds_of(key), words_of(key)
    if isinstance(value, str) and value in words:
        return value
    if words and int not in kinds:
        raise ValueError(
            "%s %r: it is %s%s"
            % (key, value, one_of(words), did_you_mean(value, words))
        )
    if key == "sampler" and not isinstance(value, (str, bytes)):
        raise TypeError(_SAMPLER % (value,))
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


def absolute(checked: Mapping[str, str]) -> dict[str, str]:
    """The options for a program that has another working folder."""

    def of(key: str, value: str) -> str:
        if os.PathLike[str] in kinds_of(key):
            return os.path.abspath(value)
        # The text of a file.
        if key == "transform" and value.startswith("@"):
            return "@" + os.path.abspath(os.path.expanduser(value[1:]))
        return value

    return {key: of(key, value) for key, value in checked.items()}


def command_line(
    program: str, name: Optional[str], checked: Mapping[str, str]
) -> list[str]:
    """The program with options that check() has seen."""
    command = [program] if name is None else [program, "--name", name]
    for key, value in checked.items():
        command.append("--" + key.replace("_", "-"))
        if TYPES[key] is not bool:
            command.append(value)
    return command
