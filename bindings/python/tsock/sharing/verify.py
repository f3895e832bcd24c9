# SPDX-License-Identifier: MIT
"""The first samples of an evaluation recipe, compared with the script's own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from typing import Any, Mapping, Optional

from .. import errors
from ..indexing.automatic import cache_folder
from ..loader import DataLoader
from ..streams import stop
from . import generators, tables
from .datasets import known
from .plan import UNKNOWN, Plan

COUNT = 8  # samples
# Of floats: the program and torch may round the last bit differently.
_CLOSE = 1e-6
_LEFT_OUT = ("order", "seed", "sampler")


def _note(plan: Plan, cache: Optional[str], options: Mapping[str, Any]) -> str:
    """The file that is there once this recipe of this data set was compared."""
    version = getattr(known("torchvision.version"), "__version__", "")
    what = json.dumps(
        [options, plan.keywords.get("dtype"), version], default=str
    )
    digest = hashlib.sha256(what.encode()).hexdigest()[:16]
    return os.path.join(cache_folder(cache), "compared", digest)


def _made(options: Mapping[str, Any], dtype: str, n: int) -> tuple[Any, Any]:
    """Images and labels of the first samples, by a producer of their own."""
    folder = tempfile.mkdtemp(prefix="tsock-")
    name = os.path.join(folder, "compare")
    more: dict[str, Any] = {"dtype": dtype} if dtype else {}
    more.update(options)
    more.update(
        order="sequential", sampler="limit:%d" % n, threads=1, exit_when_idle=5
    )
    try:
        with DataLoader(
            name,
            n,
            rank=0,
            world_size=1,
            framework="torch",
            **more,
        ) as loader:
            images, labels = next(iter(loader))
            made = images.clone(), labels.clone()
        stop(name, force=True)
        return made
    except errors.NoProducer as e:
        # Its name and its log say nothing to the user: the folder goes.
        why = str(e).partition(" and ended: ")[2].rpartition("; its log is")[0]
        raise errors.NoProducer(
            "tsock.share: tsock-producer can't make the first %d samples, which "
            "are compared with the script's own: %s" % (n, why or e)
        ) from e
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _differs(i: int, mine: Any, its: Any) -> Optional[str]:
    """How the script's image differs from the program's."""
    if mine.dtype != its.dtype or mine.shape != its.shape:
        return "is %s %s in the script and %s %s in the recipe" % (
            str(mine.dtype).rpartition(".")[2],
            list(mine.shape),
            str(its.dtype).rpartition(".")[2],
            list(its.shape),
        )
    apart = (mine.double() - its.double()).abs()
    if float(apart.max()) <= _CLOSE * max(
        1.0, float(mine.double().abs().max())
    ):
        return None
    at = int(apart.argmax())
    place = []
    for size in reversed(mine.shape):
        place.append(at % size)
        at //= size
    where = tuple(reversed(place))
    return (
        "has %g in the script and %g in the recipe at %s, and differs in %d of "
        "%d values"
        % (
            float(mine[where]),
            float(its[where]),
            where,
            int((apart > 0).sum()),
            mine.numel(),
        )
    )


def _masks_differ(mine: Any, its: Any) -> Optional[str]:
    if mine.numel() != its.numel():
        return "has a mask of %s in the script and of %s in the recipe" % (
            list(mine.shape),
            list(its.shape),
        )
    apart = int((mine.reshape(its.shape) != its).sum())
    if not apart:
        return None
    return "has another mask in the script, in %d of %d pixels" % (
        apart,
        its.numel(),
    )


def compare(
    plan: Plan, options: Mapping[str, Any], cache: Optional[str]
) -> None:
    """Raise an Error that shows both, if the program makes others than the
    script of its first samples.  A recipe that draws numbers is not compared.
    """
    data = plan.data
    there = data.at_hand if data.length == UNKNOWN else data.length
    if plan.random or not there:
        return
    options = {k: v for k, v in options.items() if k not in _LEFT_OUT}
    note = _note(plan, cache, options)
    if os.path.exists(note):
        return
    n = min(COUNT, there)
    images, labels = _made(options, plan.keywords.get("dtype", ""), n)
    with generators.undisturbed():
        for i in range(n):
            mine, label = plan.data.pair(plan.data.get(i))
            mine = known("torch:as_tensor")(mine)
            why = _differs(i, mine, images[i])
            if not why and plan.data.masks:
                why = _masks_differ(label, labels[i])
            elif not why and int(label) != int(labels[i]):
                why = "has label %d in the script and %d in the recipe" % (
                    int(label),
                    int(labels[i]),
                )
            if why:
                raise errors.Error(
                    "tsock.share: sample %d of %s %s; the recipe is %s.  "
                    "native=False serves the loader as it is"
                    % (i, plan.data.what, why, options["transform"])
                )
    tables.remember(note, "%s\n" % options["transform"])
