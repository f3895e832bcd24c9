# SPDX-License-Identifier: MIT
"""tsock.share(): a script's loader, natively where that is exact, else served."""

from __future__ import annotations

import logging
import operator
import os
from typing import Any, Optional, Union

from ..attach import check_name
from ..loader import DataLoader
from . import native, served
from .explain import table
from .hooks import hook, methods_of
from .inside import attribute_of, put_inside
from .look import check, look
from .plan import Plan

_log = logging.getLogger("tsock")

# What was said once in this process isn't said again.
_said: set[str] = set()


def _say(line: str) -> None:
    if line not in _said:
        _said.add(line)
        _log.warning("%s", line)


def _seed(value: Any) -> int:
    try:
        seed = operator.index(value)
    except TypeError:
        raise TypeError("seed %r: it is a whole number" % (value,)) from None
    if not 0 <= seed < 1 << 63:
        raise ValueError("seed %d: it is from 0 to 2^63 - 1" % seed)
    return seed


def _name(value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError("name %r: a stream's name is a string" % (value,))
    text = os.fspath(value)
    check_name(text)
    return text


def _native(
    plan: Plan, name: Optional[str], more: dict[str, Any]
) -> DataLoader[Any]:
    loader = native.opened(plan, name, more)
    differs = plan.differs
    line = "tsock.share: stream %r of %s is native" % (
        loader.name,
        plan.data.what,
    )
    if differs:
        _say("%s; it differs from the script in this: it %s" % (line, differs))
    else:
        _log.info("%s", line)
    return loader


def share(
    loader: Any,
    *,
    name: Union[str, os.PathLike[str], None] = None,
    native: Union[bool, str] = "auto",
    seed: Optional[int] = None,
    **more: Any,
) -> Any:
    """The loader that a script has, shared with all jobs on this machine.

        loader = torch.utils.data.DataLoader(ImageFolder(DIR, transform), ...)
        loader = tsock.share(loader)

    loader      torch's DataLoader, or any other iterable of batches; or an
                object whose methods make loaders, see below
    name        of the stream; None is one that follows from what the loader
                reads and does, so that jobs with the same loader meet
    native      "auto": tsock-producer makes the stream where it can do what
                the loader does, and else a process of Python's runs the loader;
                True: ValueError, with explain()'s table, where it can't;
                False: the loader is served in any case
    seed        of the order and of what is drawn at random; None is the seed
                of the loader's generator, if it has one, or else 0
    more        of tsock.DataLoader, such as device= or between=; of a native
                stream also options of tsock-producer, such as threads=.
                rank= and world_size= stand in place of the sampler's, and None
                for what torch.distributed says at the first batch

    Returns a tsock.DataLoader with the batches, the batch size, the length and
    the part of a rank that the loader has; of timm's PrefetchLoader, and of a
    loader that accelerate has prepared, that loader itself, which reads such a
    one.  The first job starts what serves the stream, detached from the job; it
    ends a minute after the last job.

    A native stream has the loader's samples, labels and order kind (shuffled,
    sequential, weighted), and each operation of the transform is torchvision's
    or timm's to the last bit, as the documents say; random numbers are other
    ones.  What differs is said once in the log.  Of a recipe that draws no
    numbers the first eight samples are compared with the script's own.

    What isn't known is served: one process, made as multiprocessing's spawn
    makes one, runs the loader with its workers for all jobs.  The loader is
    pickled for that, so its functions and classes have to be at the top level
    of a module; a script has to begin its work under
    ``if __name__ == "__main__":`` if they are its own.

    Of Lightning's modules and data modules, and of Hugging Face's Trainer, the
    object itself is returned, and the loaders that its methods make from then
    on (train_dataloader(), get_train_dataloader() and so on) are shared.  What
    Lightning would divide among its ranks is divided among them.
    """
    if native not in ("auto", True, False):
        raise ValueError("native=%r: it is 'auto', True or False" % (native,))
    if seed is not None:
        seed = _seed(seed)
    text = None if name is None else _name(name)
    if isinstance(loader, DataLoader):
        return loader
    served.refuse_inside_host("tsock.share")
    more_of_all = dict(name=name, native=native, seed=seed, **more)
    if methods_of(loader):
        hook(loader, share, more_of_all)
        return loader
    if attribute_of(loader):
        return put_inside(loader, lambda inner: share(inner, **more_of_all))
    check(loader, "tsock.share()")
    if native is False:
        return served.opened(loader, text, seed, more)
    plan = look(loader, seed)
    if plan.native:
        return _native(plan, text, more)
    if native is True:
        raise ValueError(
            "tsock.share(native=True): tsock-producer can't make this stream:\n%s"
            % table(plan)
        )
    made = served.opened(loader, text, seed, more)
    _say(
        "tsock.share: stream %r is made by the script's own loader, in one "
        "process for all jobs, since its %s (tsock.explain(loader) has more)"
        % (made.name, plan.why)
    )
    return made
