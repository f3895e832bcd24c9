# SPDX-License-Identifier: MIT
"""The nest of a batch: the tuples, lists and dicts that its leaves lie in.

It travels as JSON, so that a consumer makes nothing but plain containers of
it: ["f", 3] is leaf number 3, ["c", x] a constant, ["l", [...]] a list,
["t", [...]] a tuple, ["d", [[key, part], ...]] a dict, and
["n", name, fields, [...]] a named tuple.
"""

from __future__ import annotations

import collections
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

Nest = list[Any]
Path = tuple[str, ...]

_PLAIN = (str, int, float, bool, type(None))


def name_of(path: Path) -> str:
    """"meta.boxes.0", as people are told it; "data" is the batch itself."""
    return ".".join(path) or "data"


def _parts(value: Any) -> Optional[Iterator[tuple[Any, Any]]]:
    """The keys and the values of a container; None if it is none."""
    if isinstance(value, Mapping):
        return iter(value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return zip(value._fields, value)
    if isinstance(value, (list, tuple)):
        return enumerate(value)
    return None


def walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Everything in a batch, containers before what they hold."""
    yield path, value
    for key, part in _parts(value) or ():
        yield from walk(part, path + (str(key),))


def take_apart(
    value: Any, find: Callable[[Path, Any], Optional[int]], path: Path = ()
) -> Nest:
    """The nest of a batch; find() gives the number of what is a leaf."""
    number = find(path, value)
    if number is not None:
        return ["f", number]
    parts = _parts(value)
    if parts is None:
        return ["c", _constant(value, path)]
    inner = [
        (key, take_apart(part, find, path + (str(key),)))
        for key, part in parts
    ]
    if isinstance(value, Mapping):
        for key, _ in inner:
            if type(key) not in _PLAIN:
                raise TypeError(
                    "the dict at %s has the key %r: keys may be strings and "
                    "numbers" % (name_of(path), key)
                )
        return ["d", [[key, part] for key, part in inner]]
    nests = [part for _, part in inner]
    if isinstance(value, list):
        return ["l", nests]
    if hasattr(value, "_fields"):
        return ["n", type(value).__name__, list(value._fields), nests]
    return ["t", nests]


def _constant(value: Any, path: Path) -> Any:
    if hasattr(value, "dtype") and hasattr(value, "item"):
        value = value.item()  # a scalar of numpy's
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return value if type(value) is kind else kind(value)
    if value is None:
        return None
    raise TypeError(
        "%s is a %s, which can't be served: tensors, arrays, numbers, "
        "strings, and tuples, lists and dicts of them can; pack= is given a "
        "function that makes those of it"
        % (name_of(path), type(value).__qualname__)
    )


Maker = Callable[[Sequence[Any]], Any]


def maker(nest: Nest) -> Maker:
    """The function that makes a batch of its leaves.

    The nest comes from another process: what isn't one is a ValueError.
    """
    try:
        return _maker(nest, 0)
    except (IndexError, KeyError, TypeError) as e:
        raise ValueError("a batch's nest can't be read: %s" % e) from e


def _maker(nest: Nest, depth: int) -> Maker:
    kind = nest[0]
    if depth > 100:
        raise ValueError("a batch's nest is more than 100 levels deep")
    if kind == "f":
        number = int(nest[1])
        return lambda leaves: leaves[number]
    if kind == "c":
        constant = nest[1]
        if type(constant) not in _PLAIN:
            raise ValueError("a batch's nest has an odd constant")
        return lambda leaves: constant
    if kind == "d":
        items = [(key, _maker(part, depth + 1)) for key, part in nest[1]]
        return lambda leaves: {key: make(leaves) for key, make in items}
    if kind in ("l", "t"):
        makers = [_maker(part, depth + 1) for part in nest[1]]
        if kind == "l":
            return lambda leaves: [make(leaves) for make in makers]
        return lambda leaves: tuple([make(leaves) for make in makers])
    if kind == "n":
        made = collections.namedtuple(nest[1], nest[2])  # type: ignore[misc]
        makers = [_maker(part, depth + 1) for part in nest[3]]
        return lambda leaves: made(*[make(leaves) for make in makers])
    raise ValueError("a batch's nest has the odd part %r" % (kind,))


def shown(nest: Nest) -> str:
    """A nest as people read it: {'image': *, 'meta': [*, 3]}."""
    kind = nest[0]
    if kind == "f":
        return "*"
    if kind == "c":
        return repr(nest[1])
    if kind == "d":
        return "{%s}" % ", ".join(
            "%r: %s" % (key, shown(part)) for key, part in nest[1]
        )
    inner = ", ".join(shown(part) for part in nest[-1])
    if kind == "l":
        return "[%s]" % inner
    return "%s(%s)" % (nest[1] if kind == "n" else "", inner)
