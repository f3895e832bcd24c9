# SPDX-License-Identifier: MIT
"""The loader of a stream that tsock-producer makes as the script's loader."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from typing import Any, Mapping, Optional

from .. import errors
from ..loader import DataLoader
from . import segmentation, tables, verify
from .plan import UNKNOWN, Plan

_log = logging.getLogger("tsock")
_STALE = "since it was indexed"


def _name(base: str, options: Mapping[str, Any]) -> str:
    text = json.dumps(options, sort_keys=True, default=os.fspath)
    return "%s-%s" % (base, hashlib.sha256(text.encode()).hexdigest()[:10])


def _opened(
    plan: Plan,
    name: Optional[str],
    more: Mapping[str, Any],
    again: bool,
) -> DataLoader[Any]:
    options = dict(plan.options)
    cache = more.get("cache_dir")
    if plan.data.table:
        options["root"] = tables.written(plan.data, cache, again)
    else:
        options.update(plan.data.options)
    verify.compare(plan, options, cache)
    base = tables.base_name(plan.data)
    keywords: dict[str, Any] = {**options, **plan.keywords, **more}
    if name is None:
        name = _name(base, options)
    if plan.mask:
        return segmentation.WithMasks(name, kind=plan.mask, **keywords)
    return DataLoader(name, **keywords)


def _fits(plan: Plan, loader: DataLoader[Any]) -> bool:
    """Has the folder the samples that the script's data set has?"""
    if plan.data.length not in (UNKNOWN, len(loader.dataset)):
        return False
    classes = plan.data.classes
    return not classes or not loader.classes or loader.classes == classes


def opened(
    plan: Plan, name: Optional[str], more: Mapping[str, Any]
) -> DataLoader[Any]:
    """A loader of that stream, which is started if nobody serves it."""
    try:
        loader = _opened(plan, name, more, False)
    except errors.NoProducer as e:
        if plan.data.length == UNKNOWN:
            raise errors.NoProducer(
                "%s; native=False serves the loader as it is" % e
            ) from e
        if not plan.data.table or _STALE not in str(e):
            raise
        _log.warning("%s: its table is written again", e)
        loader = _opened(plan, name, more, True)
    if not plan.data.table and plan.data.samples and not _fits(plan, loader):
        # Files that the script left out, or has found elsewhere.
        loader.close()
        plan.data.table = True
        loader = _opened(plan, name, more, False)
    if not _fits(plan, loader):
        loader.close()
        raise errors.Error(
            "tsock.share: stream %r has %d samples of %d classes, and the "
            "script's data set has %d samples; native=False serves the loader "
            "as it is"
            % (
                loader.name,
                len(loader.dataset),
                len(loader.classes),
                plan.data.length,
            )
        )
    return loader
