# SPDX-License-Identifier: MIT
"""What somebody asks of tsock.DataLoader, checked before anybody is asked."""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional, Union

from . import _ffi, arguments, attach, gpu, nodes, recipe, tensors
from .subset import Subset

_USUAL = ("image", "label")  # fields, if nothing is said, ...
_MASKED = ("image", "mask")  # ... and with masks=

# Keywords that a loader has as attributes, as they were given.
_TOLD = "layout join between as_dict rejoin_timeout memory_format".split()


def _with_ends(given: Mapping[str, Any], ends: recipe.Ends) -> dict[str, Any]:
    """The keywords with what the end of a recipe says, where nothing is."""
    dtype, normalize = given["dtype"], given["normalize"]
    if dtype is arguments.DEFAULT:
        dtype = ends.dtype or "float32"
    if (
        normalize is arguments.DEFAULT
        and ends.normalize is not None
        and arguments.dtype_name(dtype) != "uint8"
    ):
        normalize = ends.normalize or None
    return {**given, "dtype": dtype, "normalize": normalize}


class Request:
    """The keywords of a loader, and what they mean.

    given   what makes the same loader again, as in another process
    told    the loader's attributes, by name
    asked   the stream's name, as it was given or is by default
    opts    those of tsock_open(), but for the batch size of a served loader
    """

    def __init__(
        self,
        name: Union[str, os.PathLike[str], None],
        given: Mapping[str, Any],
        producer: Mapping[str, Any],
        keeper: Optional[attach.Keeper] = None,
    ) -> None:
        arguments.check_name(name, producer.get("dataset"))
        transform = producer.get("transform")
        if transform is not None:
            # In words, since it may have to be pickled.
            transform = recipe.text_of(transform)
            producer = {**producer, "transform": transform}
        given = _with_ends(given, recipe.ends_of(transform))
        self.want = attach.wanted(name, producer)
        self.asked = self.want.name if self.want else os.fspath(name or "")
        self.name = self.asked
        if keeper:
            self.name = keeper.path_of(self.asked)
            if self.want:
                self.want.name, self.want.keeper = self.name, keeper
        # Which part of the epochs to read was said, so ranks don't decide it.
        self.has_part = producer.get("shard") is not None
        arguments.stream_name(self.name)
        self._usual = _MASKED if producer.get("masks") else _USUAL
        self.told = {key: given[key] for key in _TOLD}
        self.told.update(name=self.name, timeout=given["timeout"])
        self._set_batches(given)
        self._set_ranks(given)
        self._set_tensors(given)
        self._set_subset(given)
        self.unpack = given["unpack"]
        self.opts.rejoin_ms = arguments.rejoin(given["rejoin_timeout"])
        self.wait = given["wait"]
        if self.wait is not None:
            arguments.seconds("wait", self.wait, 0)
        self.given = {
            **given,
            **producer,
            "subset": self.told["subset"],
            "dtype": self.dtype,
            "normalize": self.normalize,
            "fields": None if self.all_fields else self.fields,
        }

    def _set_batches(self, given: Mapping[str, Any]) -> None:
        size = given["batch_size"]
        self.batch_size = None if size is None else arguments.batch_size(size)
        self.drop_last = bool(given["drop_last"])
        self.even = bool(given["even"])
        self.opts, self.dtype, self.normalize = arguments.options(
            given["dtype"],
            given["layout"],
            given["normalize"],
            given["join"],
            given["between"],
            self.drop_last,
            self.even,
        )
        if self.want:
            self.opts.flags |= _ffi.CONTINUE
        fields = given["fields"]
        self.all_fields = fields is None
        self.fields = arguments.field_names(
            self._usual if fields is None else fields
        )
        # Where fields weren't chosen, the stream says which there are.
        self.keys = (
            None
            if self.all_fields and isinstance(given["as_dict"], Mapping)
            else arguments.dict_keys(given["as_dict"], self.fields)
        )
        self.told.update(
            drop_last=self.drop_last,
            even=self.even,
            dtype=self.dtype,
            normalize=self.normalize,
            fields=self.fields,
        )

    def _set_ranks(self, given: Mapping[str, Any]) -> None:
        self.said = given["rank"], given["world_size"]
        self.job: Optional[str] = given["job"]
        self.ranks = nodes.Job(self.said, given["gather"], self.name)

    def _set_tensors(self, given: Mapping[str, Any]) -> None:
        self.tensors = tensors.framework(given["framework"])
        framework = self.tensors.name
        arguments.check_framework(self.dtype, framework)
        self.channels_last = arguments.channels_last(
            given["memory_format"], given["layout"], framework
        )
        if self.channels_last:
            self.opts.layout = _ffi.LAYOUTS["hwc"]
        self.zero_copy = bool(given["zero_copy"])
        self.cuda = gpu.choose(
            self.opts,
            given["device"],
            given["transport"],
            self.tensors,
            self.zero_copy,
        )
        self.told.update(
            framework=framework,
            zero_copy=self.zero_copy,
            device=self.cuda.device if self.cuda else None,
            pin_memory=given["pin_memory"],
        )

    def _set_subset(self, given: Mapping[str, Any]) -> None:
        subset = given["subset"]
        self.subset = None if subset is None else Subset(subset)
        self.told["subset"] = self.subset and self.subset.indices
        if self.subset:
            self.subset.set_opts(self.opts)
            self.subset.check_world(self.ranks.now(ask=False).world)
