# SPDX-License-Identifier: MIT
"""torch's DataLoader in a script that can't be edited: tsock.run.

The class and its objects stay what they are.  __iter__ alone is another
function, which reads the shared stream in the process that runs the script if
all parts of the loader are native, and else is torch's own.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import sys
import threading
import types
import weakref
from typing import Any, Callable, Optional, Sequence

from .. import errors
from ..loader import DataLoader
from . import cuts, datasets, native, served, spawned, webdataset
from .datasets import known
from .explain import explain
from .look import is_torchs, look
from .orders import is_random
from .seen import seen

_MODULE = "torch.utils.data.dataloader"
_ATTRIBUTE = "_tsock"  # of a loader
# Reasons that the ranks of a job needn't have in common: one of them can't
# leave the others alone with the stream.
_OF_ONE_RANK = (
    errors.NoProducer,
    errors.ProducerLost,
    errors.TimedOut,
    errors.OutOfMemory,
    OSError,
)

_log = logging.getLogger("tsock")


class _Untouched(Exception):
    """Why a loader stays the script's own."""


class _Kept:
    """What became of a loader, kept as an attribute of it.

    seen    what the loader was
    made    the stream's loader; None: the script's own stays
    key     equal for loaders of the same batches
    """

    def __init__(
        self, seen: list[Any], made: Optional[DataLoader[Any]], key: Any
    ) -> None:
        self.seen, self.made, self.key = seen, made, key

    def __reduce__(self) -> Any:
        return type(None), ()  # it isn't sent or copied with the loader


def _say(line: str, *values: Any) -> None:
    """Once for all ranks of a job."""
    level = logging.INFO if spawned.is_first() else logging.DEBUG
    _log.log(level, line, *values)


def _named(loader: Any) -> str:
    return "loader of " + datasets.describe(getattr(loader, "dataset", loader))


def _draw(loader: Any) -> None:
    """Draw what torch's iterator draws when it is made, so that the script's
    other random numbers stay what they are."""
    torch = sys.modules["torch"]
    sampler = cuts.cut_of(loader).sampler
    for drawn in (loader, sampler if is_random(sampler) else None):
        if drawn is not None and drawn.generator is None:
            torch.empty((), dtype=torch.int64).random_()


class Patch:
    """DataLoader.__iter__ in this process, until close().

    serve       also loaders that aren't native, by a process of Python's
    table       print tsock.explain()'s table for each loader
    """

    def __init__(self, serve: bool = False, table: bool = False) -> None:
        self._serve, self._table = serve, table
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._open: weakref.WeakSet[DataLoader[Any]] = weakref.WeakSet()
        self._finder = _Finder()
        self._patched = {_MODULE: self.apply, spawned.MODULE: self.apply_ranks}
        self._kind: Any = None
        self._own: Callable[[Any], Any] = iter

    def install(self) -> None:
        """Now, or when the script imports torch."""
        for name, apply in self._patched.items():
            if name in sys.modules:
                apply(sys.modules[name])
            else:
                self._finder.wait_for(name, apply)

    def apply(self, module: types.ModuleType) -> None:
        kind: Any = module.DataLoader
        own = kind.__iter__

        @functools.wraps(own)
        def __iter__(loader: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            package = caller.partition(".")[0]
            if package == "tsock" or not self._is_here():
                return own(loader)
            return self._iterator(loader, package != "accelerate")

        self._kind, self._own = kind, own
        kind.__iter__ = __iter__

    def apply_ranks(self, module: types.ModuleType) -> None:
        spawned.patch(module, self._serve, self._table, self._is_here)

    def close(self) -> None:
        """Leave all streams; torch's own iterators from here on."""
        self._finder.close()
        if self._kind is not None:
            self._kind.__iter__ = self._own
        spawned.restore()
        for made in list(self._open):
            made.close()

    def _is_here(self) -> bool:
        """Is this the process that runs the script, and no worker's?"""
        return os.getpid() == self._pid and (
            known("torch.utils.data:get_worker_info")() is None
        )

    def _iterator(self, loader: Any, tells: bool) -> Any:
        with self._lock:
            made = self._kept(loader).made
        if made is None:
            return self._own(loader)
        _draw(loader)
        iterator = iter(made)
        iterator.tells = tells
        return iterator

    def _kept(self, loader: Any) -> _Kept:
        """What became of the loader, looked at anew if something was replaced."""
        now = seen(loader)
        before: Optional[_Kept] = vars(loader).get(_ATTRIBUTE)
        if before is not None and before.seen == now:
            return before
        made, key = self._shared(loader)
        if made is not None and before is not None and before.key == key:
            made.close()
            made = before.made  # which knows how far it has read
        if made is not None:
            self._open.add(made)
        kept = vars(loader)[_ATTRIBUTE] = _Kept(now, made, key)
        return kept

    def _shared(self, loader: Any) -> tuple[Optional[DataLoader[Any]], Any]:
        try:
            return self._opened(loader)
        except _Untouched as e:
            why = str(e)
        except Exception as e:  # noqa: BLE001 - of the script's own code, too
            if _is_of_one_rank(loader, e):
                raise
            why = "%s: %s" % (type(e).__name__, e)
        _say("%s stays the script's own: %s", _named(loader), why)
        return None, None

    def _opened(self, loader: Any) -> tuple[DataLoader[Any], Any]:
        if not is_torchs(loader) or type(loader).__iter__ is not (
            self._kind.__iter__
        ):
            raise _Untouched(
                "%s iterates by code of its own" % type(loader).__qualname__
            )
        if self._table:
            explain(loader, file=sys.stderr)
        plan = look(loader)
        more: dict[str, Any] = {}
        if plan.native:
            several = plan.keywords["world_size"] > 1
            if several and not webdataset.is_pipeline(loader.dataset):
                more["even"] = True  # as torch's ranks are
            made = native.opened(plan, None, more)
            how = "is native"
            if plan.differs:
                how += "; it differs from the script in this: it "
                how += plan.differs
        elif self._serve:
            made = served.opened(loader, None, None, more)
            how = "is served, since its %s" % plan.why
        else:
            raise _Untouched("its " + plan.why)
        _check_length(made, loader)
        _say("%s reads stream %r, which %s", _named(loader), made.name, how)
        return made, (made.name, {**plan.keywords, **more})


def _check_length(made: DataLoader[Any], loader: Any) -> None:
    try:
        wanted = len(loader)
    except TypeError:  # of samples that come by iteration
        return
    if len(made) != wanted:
        made.close()
        raise _Untouched(
            "it has %d batches, and a shared stream would give %d"
            % (wanted, len(made))
        )


def _is_of_one_rank(loader: Any, error: Exception) -> bool:
    if not isinstance(error, _OF_ONE_RANK):
        return False
    cut = cuts.cut_of(loader)
    return (
        cut.ranks.get("world_size", 1) > 1
        or getattr(cut.sampler, "num_replicas", 1) > 1
        or webdataset.ranks_of(loader) > 1
    )


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules of torch once, and has them patched when they are there."""

    def __init__(self) -> None:
        self._wanted: dict[str, Callable[[types.ModuleType], None]] = {}

    def wait_for(
        self, name: str, apply: Callable[[types.ModuleType], None]
    ) -> None:
        if not self._wanted:
            sys.meta_path.insert(0, self)
        self._wanted[name] = apply

    def close(self) -> None:
        self._wanted.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self,
        name: str,
        path: Optional[Sequence[str]],
        target: Optional[types.ModuleType] = None,
    ) -> Optional[importlib.machinery.ModuleSpec]:
        apply = self._wanted.pop(name, None)
        if apply is None:
            return None
        # This finder has nothing of that name any more, the next ones have.
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run: Any = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                run(module)
                apply(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
