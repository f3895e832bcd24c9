# SPDX-License-Identifier: MIT
"""The arguments of tsock.DataLoader, checked before any producer is asked.

Each function takes a value as the user wrote it and returns it as C wants it,
or raises a ValueError that says which values are allowed.  Nothing here knows a
stream.
"""

from __future__ import annotations

import math
import os
from ctypes import c_float
from typing import Any, Mapping, Optional, Union

from . import _ffi, addresses
from .keywords import did_you_mean, one_of


class _Default:
    """The default of parameters for which None means something else."""

    def __repr__(self) -> str:
        return "default"


DEFAULT: Any = _Default()

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def choice(what: str, value: Any, choices: Mapping[Any, int]) -> int:
    """The C value of a choice by name."""
    try:
        return choices[value]
    except (KeyError, TypeError):
        meant = did_you_mean(value, filter(None, choices))
        raise ValueError(
            "%s %r: it is %s%s" % (what, value, one_of(choices), meant)
        ) from None


def dtype_name(dtype: Any) -> str:
    """'float32' for 'float32', torch.float32, numpy.float32, numpy.dtype."""
    if isinstance(dtype, type):
        return dtype.__name__
    return str(dtype).rpartition(".")[2]


_YOUR_OWN = (
    "a folder of images is read by root=DIR, and a data set of your own is "
    "shared by tsock.serve(torch.utils.data.DataLoader(...), name)"
)


def check_name(name: Any, dataset: Any) -> None:
    """Refuse a data set, which is what torch's loader takes first."""
    if name is not None and not isinstance(name, (str, os.PathLike)):
        raise TypeError(
            "tsock.DataLoader's name is %r: it takes the name of a "
            "stream, such as 'imagenet', not a data set; %s"
            % (name, _YOUR_OWN)
        )
    if dataset is not None and not isinstance(dataset, str):
        raise TypeError(
            "dataset %r: it is the kind of a data set, such as "
            "'imagefolder'; %s" % (dataset, _YOUR_OWN)
        )


def check_path(name: Union[str, os.PathLike[str], None]) -> None:
    """Refuse a data set's path where that of a stream is wanted."""
    path = os.fspath(name or "")
    if "/" not in path or os.path.lexists(path + ".door"):
        return
    is_folder = os.path.isdir(path)
    if not os.path.exists(path):
        addresses.refuse("data set", path)
    else:
        raise ValueError(
            "tsock.DataLoader's first argument is a stream's name, or the "
            "path of its sockets, and %r is %s: a data set is given as "
            "root=%r"
            % (
                path,
                "a folder" if is_folder else "a file",
                path,
            )
        )


def stream_name(value: Union[str, os.PathLike[str]]) -> bytes:
    """A stream's name, or its path, as C takes it."""
    name = os.fsencode(value)
    if b"\0" in name:
        # C would look for what stands before it.
        raise ValueError(
            f"{value!r} can't be a stream's name: it has a NUL character "
            "(\\0) in it"
        )
    return name


def seconds(what: str, value: Any, least: float) -> float:
    """A number of seconds; booleans and NaN are refused."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not value >= least
    ):
        raise ValueError(
            "%s %r: it is a number of seconds, %g or more"
            % (what, value, least)
        )
    return float(value)


def rejoin(value: Optional[float]) -> int:
    """The milliseconds of rejoin_timeout=."""
    if value is None:
        return 2**32 - 1
    wait = seconds("rejoin_timeout", value, 0)
    return min(math.ceil(min(wait, 2**32) * 1000), 2**32 - 1)


def _three(what: str, value: Any, least: float) -> list[float]:
    """A number for each channel; one is that of all."""
    try:
        numbers = [float(v) for v in value]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) == 1:
        numbers *= 3
    if len(numbers) != 3 or not all(
        math.isfinite(v) and v > least for v in numbers
    ):
        raise ValueError(
            "normalize: its %s is %r, where one number or three%s are needed"
            % (what, value, " above 0" if least == 0 else "")
        )
    return numbers


def set_normalize(opts: _ffi.Opts, dtype: str, normalize: Any) -> Any:
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
        mean: Any = IMAGENET_MEAN
        std: Any = IMAGENET_STD
        result: Any = "imagenet"
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
                "(mean, std) of one number each, or three" % (normalize,)
            )
        mean = _three("mean", mean, -math.inf)
        std = _three("std", std, 0)
        result = (tuple(mean), tuple(std))
    opts.normalize = _ffi.MEAN_STD
    opts.mean = (c_float * 3)(*mean)
    opts.std = (c_float * 3)(*std)
    return result


def options(
    dtype: Any,
    layout: str,
    normalize: Any,
    join: str,
    between: Optional[str],
    drop_last: bool,
    even: bool,
) -> tuple[_ffi.Opts, str, Any]:
    """tsock_open()'s options, for batches in host memory whose size isn't set
    yet; the name of dtype, and normalize as a loader tells it."""
    opts = _ffi.Opts(device=-1)
    name = dtype_name(dtype)
    opts.dtype = choice("dtype", name, _ffi.DTYPES)
    opts.layout = choice("layout", layout, _ffi.LAYOUTS)
    told = set_normalize(opts, name, normalize)
    opts.join = choice("join", join, _ffi.JOINS)
    opts.between = choice("between", between, _ffi.BETWEENS)
    if drop_last:
        opts.flags |= _ffi.DROP_LAST
    if even:
        opts.flags |= _ffi.EVEN
    return opts, name, told


def batch_size(value: Any) -> int:
    if (
        isinstance(value, bool)
        or not hasattr(value, "__index__")
        or not 0 < value.__index__() < 2**32
    ):
        raise ValueError(
            "batch_size %r: it is a whole number of samples, 1 or more"
            % (value,)
        )
    return int(value.__index__())


def field_names(fields: Any) -> tuple[str, ...]:
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


def dict_keys(as_dict: Any, fields: tuple[str, ...]) -> Optional[list[str]]:
    """What a batch's dict calls the fields; None: a batch is a list."""
    if as_dict is None or as_dict is False:
        return None
    if as_dict is True:
        names: Mapping[str, Any] = {}
    elif isinstance(as_dict, Mapping):
        names = as_dict
    else:
        raise ValueError(
            "as_dict %r: it is True, False, or names for fields such as "
            "{'image': 'pixel_values', 'label': 'labels'}" % (as_dict,)
        )
    for name in names:
        if name not in fields:
            raise ValueError(
                "as_dict has a name for %r, which isn't one of the loader's "
                "fields: they are %s%s"
                % (name, ", ".join(fields), did_you_mean(name, fields))
            )
    keys = [names.get(name, name) for name in fields]
    if len(set(keys)) < len(keys) or not all(isinstance(k, str) for k in keys):
        raise ValueError(
            "as_dict %r: fields %s would be called %s; each needs a name of "
            "its own" % (as_dict, ", ".join(fields), ", ".join(map(str, keys)))
        )
    return keys


def check_framework(dtype: str, framework: str) -> None:
    """Refuse a dtype that the framework doesn't have."""
    if dtype == "bfloat16" and framework == "numpy":
        raise ValueError(
            "dtype 'bfloat16' with framework 'numpy': numpy has no "
            "bfloat16; use torch, or 'float16' or 'float32'"
        )


def channels_last(memory_format: Any, layout: str, framework: str) -> bool:
    """Does memory_format ask for torch's channels_last?"""
    name = str(memory_format).rpartition(".")[2]
    if memory_format is None or name == "contiguous_format":
        return False
    if name != "channels_last":
        raise ValueError(
            "memory_format %r: it is None, 'channels_last' or "
            "'contiguous_format'" % (memory_format,)
        )
    if framework != "torch":
        raise ValueError(
            "memory_format 'channels_last' with framework %r: it is torch's; "
            "layout='hwc' has the same bytes" % framework
        )
    if layout != "chw":
        raise ValueError(
            "memory_format 'channels_last' with layout %r: it is a way to "
            "store layout 'chw'" % layout
        )
    return True
