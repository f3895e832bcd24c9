# SPDX-License-Identifier: MIT
"""The script's functions, tried on samples: which transform do they apply?

A function whose code isn't known counts as a transform that it has, if both
make the same of several samples from the same random numbers, and draw equally
many of them.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Callable, Iterable, Iterator

from . import generators
from .datasets import known
from .plan import Source

SAMPLES = 8  # that are tried
_DEPTH = 3  # functions that call each other


def rows(source: Source) -> list[int]:
    """Indices of the data set's samples that are tried."""
    n = min(SAMPLES, source.reach)
    return [source.place(i * source.reach // n) for i in range(n)]


def is_transform(value: Any) -> bool:
    """torchvision's, or torch's Sequential of some?"""
    if isinstance(value, type) or not callable(value):
        return False
    module = type(value).__module__ or ""
    if module.startswith("torchvision.transforms"):
        return not isinstance(value, types.FunctionType)
    return module.startswith("torch.nn.modules.container") and any(
        is_transform(child) for child in value.children()
    )


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _names(const)


def _of_function(function: types.FunctionType) -> Iterator[Any]:
    """What a function's code can name, of the script's values."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            pass  # not assigned so far
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]


def _has(value: Any) -> Iterator[Any]:
    """What a callable has in it."""
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, types.MethodType):
        yield value.__func__
        yield from getattr(value.__self__, "__dict__", {}).values()
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif not isinstance(value, (type, types.BuiltinFunctionType)):
        yield from getattr(value, "__dict__", {}).values()
        yield from (getattr(value, "_modules", None) or {}).values()
        yield getattr(type(value), "__call__", None)


def transforms_in(function: Any, depth: int = _DEPTH) -> list[Any]:
    """The transforms that a callable has, each once."""
    found: dict[int, Any] = {}
    for value in _has(function):
        if is_transform(value):
            found[id(value)] = value
        elif depth and isinstance(
            value,
            (types.FunctionType, types.MethodType, functools.partial),
        ):
            for one in transforms_in(value, depth - 1):
                found[id(one)] = one
    return list(found.values())


def equal(a: Any, b: Any) -> bool:
    """Are these the same tensors, or images?"""
    tensor, image = known("torch:Tensor"), known("PIL.Image:Image")
    if tensor and isinstance(a, tensor):
        return (
            isinstance(b, tensor)
            and a.dtype == b.dtype
            and a.shape == b.shape
            and bool((a == b).all())
        )
    if image and isinstance(a, image):
        return (
            isinstance(b, image)
            and (a.mode, a.size) == (b.mode, b.size)
            and a.tobytes() == b.tobytes()
        )
    return type(a) is type(b) and bool(a == b)


def agree(
    mine: Callable[[Any], Any],
    its: Callable[[Any], Any],
    given: Iterable[Any],
    same: Callable[[Any, Any], bool] = equal,
) -> bool:
    """Do both make the same of what is given, with the same random numbers?
    False, too, if one of them raises."""
    with generators.undisturbed():
        try:
            for value in given:
                before = generators.states()
                made = mine(value)
                after = generators.comparable(generators.states())
                generators.restore(before)
                wanted = its(value)
                if generators.comparable(generators.states()) != after:
                    return False
                if not same(made, wanted):
                    return False
        except Exception:  # noqa: BLE001 - of the script's own code
            return False
    return True


def the_one_in(
    function: Any, given: Iterable[Any], image: Callable[[Any], Any]
) -> Any:
    """The transform that a callable of the script's applies to images, and
    nothing else; None: it has several, or does something else."""
    found = transforms_in(function)
    if len(found) != 1:
        return None
    one = found[0]
    same = agree(lambda i: function(image(i)), lambda i: one(image(i)), given)
    return one if same else None
