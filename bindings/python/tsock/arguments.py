# SPDX-License-Identifier: MIT
"""The arguments of tsock.DataLoader, checked before anybody is asked.

Each function takes what a user wrote and gives what C wants, or a ValueError
that says what it may be.  Nothing here knows a stream.
"""

import math
import os
import sys
from ctypes import c_float

from . import _ffi

DEFAULT = object()  # where None means something else

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

# What people bring along from torch, and where it has gone.
ELSEWHERE = {
    "shuffle": "the producer's --order decides it",
    "sampler": "the producer's --order decides it",
    "batch_sampler": "the producer's --order decides it",
    "generator": "the producer's --seed decides it",
    "num_workers": "the producer's --threads decides it",
    "persistent_workers": "the producer's threads persist",
    "prefetch_factor": "the producer's --ring decides it",
    "worker_init_fn": "the producer decodes",
    "multiprocessing_context": "the producer decodes",
    "collate_fn": "batches are made in place; work on what next() returns",
    "in_order": "batches always come in stream order",
    "pin_memory_device": "pin_memory=True is for the current device",
}


def choice(what, value, choices):
    """The C value of a choice by name."""
    try:
        return choices[value]
    except (KeyError, TypeError):
        names = [repr(c) for c in choices]
        raise ValueError(
            "%s %r: it is %s or %s"
            % (what, value, ", ".join(names[:-1]), names[-1])
        ) from None


def ranks(rank, world_size):
    """(rank, world_size) of this process, (0, 1) where it is alone.

    What torch.distributed says, if it was initialised, unless both are given.
    """
    if (rank is None) != (world_size is None):
        raise ValueError("rank and world_size belong together: give both")
    if rank is not None:
        if not 0 <= rank < world_size:
            raise ValueError(
                "rank %r of world_size %r: there is no such rank"
                % (rank, world_size)
            )
        return rank, world_size
    # Not imported for this: who uses it has done so.
    distributed = sys.modules.get("torch.distributed")
    if (
        distributed is None
        or not distributed.is_available()
        or not distributed.is_initialized()
    ):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def check_shard(name, rank, world_size, shard, shards):
    """Refuse what would give several ranks the same samples."""
    if world_size == 1 or (shard, shards) == (rank, world_size):
        return
    have = (
        "all of the data set" if not shards else "shard %d/%d" % (shard, shards)
    )
    raise ValueError(
        "rank %d of %d reads %r, a stream of %s: ranks would get the same "
        "samples, or the wrong ones; start a producer for each rank with "
        "--shard R/%d (here: --shard %d/%d) and a --name of its own, or pass "
        "rank=0, world_size=1 if this is what you want"
        % (rank, world_size, name, have, world_size, rank, world_size)
    )


def dtype_name(dtype):
    """'float32' for 'float32', torch.float32, numpy.float32, numpy.dtype."""
    if isinstance(dtype, type):
        return dtype.__name__
    return str(dtype).rpartition(".")[2]


def stream_name(value):
    """A stream's name, or its path, as C takes it."""
    name = os.fsencode(value)
    if b"\0" in name:
        # C would look for what stands before it.
        raise ValueError(
            f"{value!r} can't be a stream's name: it has a NUL character "
            "(\\0) in it"
        )
    return name


def seconds(what, value, least):
    """A number of seconds; booleans and NaN are none."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not value >= least
    ):
        raise ValueError(
            "%s %r: it is a number of seconds, %g or more"
            % (what, value, least)
        )
    return value


def _three(what, value, least):
    try:
        numbers = [float(v) for v in value]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != 3 or not all(
        math.isfinite(v) and v > least for v in numbers
    ):
        raise ValueError(
            "normalize: its %s is %r, where three numbers%s are needed"
            % (what, value, " above 0" if least == 0 else "")
        )
    return numbers


def set_normalize(opts, dtype, normalize):
    if dtype == "uint8":
        if normalize is not DEFAULT and normalize is not None:
            raise ValueError(
                "normalize %r with dtype 'uint8': raw bytes aren't "
                "normalized; leave normalize out, or ask for a float dtype"
                % (normalize,)
            )
        opts.normalize = _ffi.RAW
        return None
    if normalize is None:
        opts.normalize = _ffi.UNIT
        return None
    if normalize is DEFAULT or (
        isinstance(normalize, str) and normalize == "imagenet"
    ):
        mean, std = IMAGENET_MEAN, IMAGENET_STD
        result = "imagenet"
    else:
        if isinstance(normalize, (str, bytes)):
            mean = std = None
        else:
            try:
                mean, std = normalize
            except (TypeError, ValueError):
                mean = std = None
        if mean is None:
            raise ValueError(
                "normalize %r: it is 'imagenet', None for [0, 1], or "
                "(mean, std) of three numbers each" % (normalize,)
            )
        mean = _three("mean", mean, -math.inf)
        std = _three("std", std, 0)
        result = (tuple(mean), tuple(std))
    opts.normalize = _ffi.MEAN_STD
    opts.mean = (c_float * 3)(*mean)
    opts.std = (c_float * 3)(*std)
    return result


def batch_size(value):
    if (
        isinstance(value, bool)
        or not hasattr(value, "__index__")
        or not 0 < value.__index__() < 2**32
    ):
        raise ValueError(
            "batch_size %r: it is a whole number of samples, 1 or more"
            % (value,)
        )
    return value.__index__()


def field_names(fields):
    if isinstance(fields, str):
        fields = (fields,)
    try:
        names = tuple(fields)
    except TypeError:
        names = ()
    if not names or not all(isinstance(n, str) for n in names):
        raise ValueError(
            "fields %r: it is a tuple of the stream's fields, such as "
            "('image', 'label')" % (fields,)
        )
    return names
