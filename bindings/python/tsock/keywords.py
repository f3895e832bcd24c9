# SPDX-License-Identifier: MIT
"""Keywords that a class doesn't have: what was meant, or where it has gone."""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import Any, Callable, Iterable, Mapping, TypeVar, cast

# What people bring along from torch, and where it has gone.
ELSEWHERE = {
    "shuffle": "the producer's --order decides it",
    "sampler": "the producer's --order decides it; subset= chooses samples",
    "batch_sampler": "the producer's --order decides it",
    "generator": "the producer's --seed decides it",
    "num_workers": "the producer's --threads decides it",
    "persistent_workers": "the producer's threads persist",
    "prefetch_factor": "the producer's --ring decides it",
    "worker_init_fn": "the producer decodes",
    "multiprocessing_context": "the producer decodes",
    "collate_fn": "batches are made in place; work on what next() returns",
    "in_order": "batches always come in stream order",
    "pin_memory_device": "pin_memory=True is for the current device",
}

_Function = TypeVar("_Function", bound=Callable[..., Any])


def did_you_mean(word: object, words: Iterable[str]) -> str:
    """"; did you mean 'x'?" where one of the words is like it, else ""."""
    close = difflib.get_close_matches(str(word), list(words), 1, 0.6)
    return "; did you mean %r?" % close[0] if close else ""


def one_of(words: Iterable[object]) -> str:
    """'a', 'b' or 'c'."""
    *others, last = map(repr, words)
    return "%s or %s" % (", ".join(others), last) if others else last


def _what_is_meant(key: str, known: Iterable[str]) -> str:
    """What to say of a keyword that isn't known."""
    if key in ELSEWHERE:
        return ": " + ELSEWHERE[key]
    words = [*known, *ELSEWHERE]
    # One that only goes on is nearer than any that is as long.
    meant = [word for word in words if word.startswith(key)]
    if len(meant) != 1:
        meant = difflib.get_close_matches(key, words, 1, 0.6)
    if meant and meant[0] in ELSEWHERE:
        return "; did you mean %r? (%s)" % (meant[0], ELSEWHERE[meant[0]])
    return did_you_mean(key, known)


def helpful(
    who: str, others: Mapping[str, Any] = {}
) -> Callable[[_Function], _Function]:
    """Of a function's keywords: say what an unknown one may mean.

    Known are its parameters, and for its ** the others, which have types.
    For type checkers the function keeps its signature; people are shown all.
    """

    def wrap(function: _Function) -> _Function:
        own = inspect.signature(function)
        shown = [
            parameter
            for parameter in own.parameters.values()
            if parameter.kind != parameter.VAR_KEYWORD
        ] + [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=kind,
            )
            for name, kind in others.items()
        ]
        known = [p.name for p in shown if p.name != "self"]

        @functools.wraps(function)
        def wrapper(*args: Any, **keywords: Any) -> Any:
            unknown = [
                "%r%s" % (key, _what_is_meant(key, known))
                for key in keywords
                if key not in known
            ]
            if unknown:
                raise TypeError(
                    "%s has no argument %s" % (who, "; nor ".join(unknown))
                )
            return function(*args, **keywords)

        setattr(wrapper, "__signature__", own.replace(parameters=shown))
        return cast(_Function, wrapper)

    return wrap
