# SPDX-License-Identifier: MIT
"""What a loader was when it was looked at, so that a change is noticed.

Cheap enough for each epoch: the attributes of the loader, its sampler and its
data sets are compared, and not the samples in them.
"""

from __future__ import annotations

from typing import Any, Iterator

_LOADER = (
    "dataset sampler batch_sampler collate_fn batch_size drop_last generator "
    "pin_memory"
).split()
# A number, counted up by the epoch.
_EPOCH = "epoch"
_VALUES = (bool, int, float, str, bytes, type(None))


def _inner(part: Any) -> list[Any]:
    """The data sets or samplers in one of them."""
    found = [
        getattr(part, key, None)
        for key in ("dataset", "batch_sampler", "sampler")
    ]
    several = getattr(part, "datasets", None)
    return found + (
        list(several) if isinstance(several, (list, tuple)) else []
    )


def _parts(loader: Any) -> Iterator[Any]:
    """Data sets and samplers, one in the other, each once."""
    left, known = [loader], {id(loader)}
    while left:
        for part in _inner(left.pop()):
            if hasattr(part, "__dict__") and id(part) not in known:
                known.add(id(part))
                left.append(part)
                yield part


def _mark(value: Any) -> tuple[Any, ...]:
    """Equal for one that wasn't replaced: the same object, or the same value.

    The object is kept, so that no other one gets its address.
    """
    if isinstance(value, _VALUES):
        return (value,)
    length = len(value) if isinstance(value, (list, dict)) else 0
    return _Same(value), length


class _Same:
    """Equal to itself by what it refers to."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value

    __hash__ = None  # type: ignore[assignment]


def seen(loader: Any) -> list[Any]:
    """Equal to what it was before, as long as nothing was replaced."""
    marks: list[Any] = [_mark(getattr(loader, key, None)) for key in _LOADER]
    for part in _parts(loader):
        for key, value in sorted(vars(part).items()):
            if key != _EPOCH:
                marks.append((key, _mark(value)))
            if key in ("transform", "target_transform"):
                marks.append(repr(value))
    return marks
