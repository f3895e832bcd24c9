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

from .. import errors

Nest = list[Any]
Path = tuple[str, ...]

_PLAIN = (str, int, float, bool, type(None))


def name_of(path: Path) -> str:
    """"meta.boxes.0", as people are told it; "data" is the batch itself."""
    return ".".join(path) or "data"


def _parts(value: Any) -> Optional[Iterator[tuple[Any, Any]]]:
    """The keys and values of a container; None if node isn't one."""
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


def maker(nest: Nest, leaves: Optional[int] = None) -> Maker:
    """The function that makes a batch of its leaves, of so many if given.

    The nest comes from another process: what isn't one is Unreadable.
    """
    try:
        return _maker(nest, leaves, 0)
    except errors.Unreadable:
        raise
    except (IndexError, KeyError, TypeError, ValueError) as e:
        raise errors.Unreadable("a batch's nest can't be read: %s" % e) from e


def _maker(nest: Nest, leaves: Optional[int], depth: int) -> Maker:
    if depth > 100:
        raise errors.Unreadable("a batch's nest is more than 100 levels deep")
    if type(nest) is not list:
        raise errors.Unreadable(
            "a batch's nest has the odd part %.80r" % (nest,)
        )
    kind = nest[0]

    def made_of(parts: list[Nest]) -> list[Maker]:
        return [_maker(part, leaves, depth + 1) for part in parts]

    if kind == "f":
        return _leaf(nest[1], leaves)
    if kind == "c":
        constant = nest[1]
        if type(constant) not in _PLAIN:
            raise errors.Unreadable("a batch's nest has an odd constant")
        return lambda leaves: constant
    if kind == "d":
        keys = [key for key, _ in nest[1]]
        if not all(type(key) in _PLAIN for key in keys):
            raise errors.Unreadable("a batch's nest has an odd key")
        items = list(zip(keys, made_of([part for _, part in nest[1]])))
        return lambda leaves: {key: make(leaves) for key, make in items}
    if kind == "l":
        makers = made_of(nest[1])
        return lambda leaves: [make(leaves) for make in makers]
    if kind == "t":
        makers = made_of(nest[1])
        return lambda leaves: tuple([make(leaves) for make in makers])
    if kind == "n":
        return _named(nest[1], nest[2], made_of(nest[3]))
    raise errors.Unreadable("a batch's nest has the odd part %.80r" % (kind,))


def _leaf(number: Any, leaves: Optional[int]) -> Maker:
    if type(number) is not int:
        raise errors.Unreadable(
            "a batch's nest has an array of number %.80r" % (number,)
        )
    if leaves is not None and not 0 <= number < leaves:
        raise errors.Unreadable(
            "a batch has %d arrays, and its nest has number %d"
            % (leaves, number)
        )
    return lambda leaves: leaves[number]


def _named(name: Any, fields: Any, makers: list[Maker]) -> Maker:
    if type(fields) is not list or len(fields) != len(makers):
        raise errors.Unreadable(
            "a batch's nest has a named tuple without a name for each part"
        )
    made: Any = collections.namedtuple(name, fields)  # type: ignore[misc]
    return lambda leaves: made(*[make(leaves) for make in makers])


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
