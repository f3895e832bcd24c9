# SPDX-License-Identifier: MIT
"""Loaders round a loader of torch: timm's PrefetchLoader, accelerate's shard."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional

from .datasets import known

_AROUND = (
    ("timm.data.loader:PrefetchLoader", "loader"),
    ("accelerate.data_loader:DataLoaderShard", "base_dataloader"),
)


def attribute_of(loader: Any) -> Optional[str]:
    """Where such a loader has the one that it reads."""
    for path, name in _AROUND:
        kind = known(path)
        # Not isinstance(): accelerate's says that it is torch's.
        if kind is not None and issubclass(type(loader), kind):
            return name
    return None


class Inner:
    """accelerate's inner loader, whose batches alone come from the stream.

    accelerate counts by its batch sampler and data set, so those stay.
    """

    def __init__(self, own: Any, made: Any) -> None:
        self._own, self._made = own, made

    def __iter__(self) -> Iterator[Any]:
        made: Iterator[Any] = iter(self._made)
        made.tells = False  # type: ignore[attr-defined]
        return made

    def __len__(self) -> int:
        return len(self._own)

    def __getattr__(self, name: str) -> Any:
        if name in ("_own", "_made"):
            raise AttributeError(name)
        return getattr(self._own, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._own)

    def close(self) -> None:
        """Leave the stream."""
        self._made.close()


def put_inside(loader: Any, share: Callable[[Any], Any]) -> Any:
    """The loader itself, which reads the shared one from here on."""
    name = attribute_of(loader)
    assert name
    own = getattr(loader, name)
    if type(own) is Inner:
        return loader
    made = share(own)
    keeps = name == "base_dataloader"
    setattr(loader, name, Inner(own, made) if keeps else made)
    return loader
