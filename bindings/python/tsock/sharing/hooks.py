# SPDX-License-Identifier: MIT
"""Objects of frameworks whose methods make loaders: those loaders are shared.

Lightning's modules and data modules, and Hugging Face's Trainer.
"""

from __future__ import annotations

from typing import Any, Callable

from .datasets import known
from .inside import attribute_of
from .look import TORCH
from .orders import is_all_ranks

_LIGHTNING = tuple(
    "%s_dataloader" % stage for stage in ("train", "val", "test", "predict")
)
_TRAINER = tuple(
    "get_%s_dataloader" % stage for stage in ("train", "eval", "test")
)
_METHODS = (
    ("pytorch_lightning:LightningDataModule", _LIGHTNING),
    ("pytorch_lightning:LightningModule", _LIGHTNING),
    ("lightning.pytorch:LightningDataModule", _LIGHTNING),
    ("lightning.pytorch:LightningModule", _LIGHTNING),
    ("transformers.trainer:Trainer", _TRAINER),
)


def methods_of(owner: Any) -> tuple[str, ...]:
    """The names of the methods that make loaders; none: it is no such object."""
    for path, names in _METHODS:
        kind = known(path)
        if kind is not None and isinstance(owner, kind):
            return names
    return ()


def _divides(owner: Any) -> bool:
    """Does Lightning divide loaders of torch among its ranks?"""
    trainer = vars(owner).get("_trainer") or vars(owner).get("trainer")
    connector = getattr(trainer, "_accelerator_connector", None)
    return bool(getattr(connector, "use_distributed_sampler", True))


def _each(value: Any, share: Callable[[Any], Any]) -> Any:
    """What a method has returned, with every loader of torch in it shared."""
    if isinstance(value, (list, tuple)):
        return type(value)(_each(one, share) for one in value)
    if isinstance(value, dict):
        return {key: _each(one, share) for key, one in value.items()}
    kind = known(TORCH)
    if attribute_of(value) or (kind is not None and isinstance(value, kind)):
        return share(value)
    if type(value).__name__ == "CombinedLoader":  # Lightning's
        value.flattened = [_each(one, share) for one in value.flattened]
    return value


class Method:
    """A method that makes loaders, which are shared then."""

    def __init__(
        self,
        owner: Any,
        name: str,
        share: Callable[..., Any],
        more: dict[str, Any],
    ) -> None:
        # What frameworks look at to see whether a script has the method.
        self.__wrapped__ = getattr(owner, name)
        self._owner, self._name = owner, name
        self._share, self._more = share, more

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return _each(self.__wrapped__(*arguments, **keywords), self._shared)

    def _shared(self, loader: Any) -> Any:
        return self._share(loader, **{**self._ranks(loader), **self._more})

    def _ranks(self, loader: Any) -> dict[str, Any]:
        """Lightning's ranks are known by the first batch."""
        if self._name in _TRAINER or not _divides(self._owner):
            return {}
        if is_all_ranks(getattr(loader, "sampler", None)):
            return {}
        even = self._name != "predict_dataloader"
        return {"rank": None, "world_size": None, "even": even}


def hook(owner: Any, share: Callable[..., Any], more: dict[str, Any]) -> None:
    """Have those methods of the object share what they make."""
    for name in methods_of(owner):
        if not isinstance(getattr(owner, name), Method):
            setattr(owner, name, Method(owner, name, share, more))
