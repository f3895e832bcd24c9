# SPDX-License-Identifier: MIT
"""A stream of tsock.serve() at a consumer: its batches, as the loader's were.

What the stream says of itself decides which views of its fields are made, and
how they are nested.  Nothing is run that comes from there.
"""

from __future__ import annotations

import ctypes
import importlib
import json
from array import array
from typing import Any, Callable, Optional, Sequence, Union

from .. import _ffi, errors
from ..about import About
from ..connection import Pool
from . import nest
from .fixed import LENGTH, Spec, spec_of
from .ragged import Reader

Decoder = Callable[[list[Any]], Any]
Unpack = Union[Callable[[Any], Any], None, bool]


# ---- tensors as other tensors --------------------------------------------


class _Torch:
    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def dtype(self, name: str) -> Any:
        return getattr(self._torch, name, None)

    def view(self, tensor: Any, dtype: str, shape: tuple[int, ...]) -> Any:
        """A contiguous tensor of bytes as another one."""
        kind = self.dtype(dtype)
        if 0 in shape:
            return self._torch.empty(shape, dtype=kind, device=tensor.device)
        return tensor.view(kind).view(shape)

    def data(
        self, tensor: Any, begin: int = 0, end: Optional[int] = None
    ) -> bytes:
        """The bytes of a contiguous tensor of bytes, or some of them."""
        if tensor.is_cuda:
            tensor = (tensor if end is None else tensor[:end]).cpu()
        if end is None:
            end = tensor.numel() * tensor.element_size()
        return ctypes.string_at(tensor.data_ptr() + begin, end - begin)


class _Numpy:
    def __init__(self, numpy: Any) -> None:
        self._numpy = numpy

    def dtype(self, name: str) -> Any:
        return None if name == "bfloat16" else self._numpy.dtype(name)

    def view(self, tensor: Any, dtype: str, shape: tuple[int, ...]) -> Any:
        if 0 in shape:
            return self._numpy.empty(shape, dtype)
        return tensor.view(dtype).reshape(shape)

    def data(
        self, tensor: Any, begin: int = 0, end: Optional[int] = None
    ) -> bytes:
        part = tensor if end is None else tensor[begin:end]
        return bytes(part.tobytes())


def _views(importer: Any) -> Union[_Torch, _Numpy]:
    if importer.name == "torch":
        return _Torch(importer.torch)
    return _Numpy(importlib.import_module("numpy"))


def bytes_of(importer: Any) -> Callable[[Any], bytes]:
    """What gives the bytes of a contiguous tensor of bytes."""
    data: Callable[[Any], bytes] = _views(importer).data
    return data


# ---- what the stream says ------------------------------------------------


class Description:
    """What a stream of tsock.serve() says of its batches."""

    def __init__(self, about: About) -> None:
        said = about.identity
        self._name = about.name
        self._fields = about.fields
        try:
            structure = json.loads(said["structure"])
            if not isinstance(structure, dict):
                raise ValueError("it is of type %s" % type(structure).__name__)
            self.ragged = "ragged" in structure
            self.own_batch = _batch_size(said["batch"])
            self._nest: Any = structure.get("nest")
            self._specs = [spec_of(s) for s in structure.get("fields", ())]
        except (KeyError, RecursionError, TypeError, ValueError) as e:
            raise self._unreadable(e) from e
        self.names = tuple(
            f.name.decode("utf-8", "replace") for f in about.fields
        )
        self._packs = said.get("unpack")

    def _unreadable(self, why: object) -> errors.Unreadable:
        return errors.Unreadable(
            "what stream %r says of its batches can't be read; is it of "
            "another version? %s" % (self._name, why)
        )

    def batch_size(self, asked: Optional[int]) -> int:
        if not self.ragged:
            return asked or self.own_batch
        if asked is not None:
            raise ValueError(
                "batch_size %d: stream %r has batches of any shapes, as its "
                "loader makes them (ragged=True); give batch_size=None"
                % (asked, self._name)
            )
        return 1

    def check_stored(
        self, dtype: str, layout: str, normalize: Any, channels_last: bool
    ) -> None:
        """Refuse a loader that wants its batches converted."""
        if (
            dtype not in ("float32", "uint8")  # usual, and as stored
            or layout != "chw"
            or normalize not in ("imagenet", None)
            or channels_last
        ):
            raise ValueError(
                "stream %r has what its loader makes: dtype, layout, "
                "normalize and memory_format are for images that "
                "tsock-producer decodes"
                % self._name
            )

    def decoder(
        self,
        importer: Any,
        fields: Optional[Sequence[str]],
        flat: bool,
        unpack: Unpack,
    ) -> Decoder:
        """Makes a batch of the fields' tensors.

        fields: only these, in a list; None: all of them, nested as the
        loader's were, or (flat) in a list, too.
        """
        views = _views(importer)
        if self.ragged:
            made = self._ragged(views, fields is not None or flat)
        else:
            made = self._rows(views, fields, flat)
        if unpack is None and self._packs and fields is None and not flat:
            raise ValueError(
                "stream %r was served with pack=: give unpack= the function "
                "%s, or unpack=False for what pack made"
                % (self._name, self._packs)
            )
        if not callable(unpack):
            return made
        then: Callable[[Any], Any] = unpack
        return lambda tensors: then(made(tensors))

    def _ragged(self, views: Any, chosen: bool) -> Decoder:
        if chosen:
            raise ValueError(
                "stream %r has batches of any shapes (ragged=True), and no "
                "fields: leave out fields and as_dict" % self._name
            )
        if not _has_batches(self._fields):
            raise self._unreadable("its samples are no packed batches")
        reader = Reader(views.view, views.data)
        return lambda tensors: reader.read(tensors[0][0])

    def _rows(
        self, views: Any, fields: Optional[Sequence[str]], flat: bool
    ) -> Decoder:
        if not _are_fields(self._specs, self._fields):
            raise self._unreadable("its samples have other fields")
        by_name = {spec.name: spec for spec in self._specs}
        wanted = [by_name[name] for name in fields or self.names]
        for spec in wanted:
            if views.dtype(spec.dtype) is None:
                raise ValueError(
                    "field %r of stream %r is of dtype %s, which the loader's "
                    "framework doesn't have"
                    % (spec.name, self._name, spec.dtype)
                )
        leaves = [_leaf(spec, views) for spec in wanted]
        # Most need nothing done to them.
        work = [(i, leaf) for i, leaf in enumerate(leaves) if leaf]

        def decode(tensors: list[Any]) -> list[Any]:
            for i, leaf in work:
                tensors[i] = leaf(tensors[i])
            return tensors

        if fields is not None or flat:
            return decode
        make = nest.maker(self._nest, len(wanted))
        return lambda tensors: make(decode(tensors))


def _batch_size(said: str) -> int:
    size = int(said)
    if not 1 <= size < 1 << 32:
        raise ValueError("batches of %d samples" % size)
    return size


def _kind_of(field: _ffi.Field) -> tuple[Any, ...]:
    """What a field's samples are in memory."""
    return (field.dtype, *field.shape[: field.ndim])


def _has_batches(fields: Sequence[_ffi.Field]) -> bool:
    """Is that the one field of a ring of batches?"""
    return len(fields) == 1 and (
        fields[0].dtype == _ffi.DTYPES["uint8"] and fields[0].ndim == 1
    )


def _are_fields(specs: list[Spec], fields: Sequence[_ffi.Field]) -> bool:
    """Are the stream's fields those that it says it has?"""
    return len(specs) == len(fields) and all(
        spec.name.encode() == field.name
        and _kind_of(spec.field()) == _kind_of(field)
        for spec, field in zip(specs, fields)
    )


def _leaf(spec: Spec, views: Any) -> Optional[Callable[[Any], Any]]:
    """What makes a loader's leaf of a field's tensor; None: it is one."""
    if spec.kind == "array":
        if spec.is_native:
            return None
        return lambda t: views.view(
            t, spec.dtype, (int(t.shape[0]),) + spec.shape
        )
    made: Callable[[bytes], list[Any]]
    if spec.kind in ("str", "bytes"):
        made = _strings(spec)
    elif spec.kind == "bool":
        made = _bools
    else:
        made = _numbers("q" if spec.kind == "int" else "d")
    if spec.is_tuple:
        return lambda t: tuple(made(views.data(t)))
    return lambda t: made(views.data(t))


def _strings(spec: Spec) -> Callable[[bytes], list[Any]]:
    width, is_text = spec.row_bytes, spec.kind == "str"

    def made(data: bytes) -> list[Any]:
        found: list[Any] = []
        for at in range(0, len(data), width):
            end = at + width - LENGTH
            n = int.from_bytes(data[end : at + width], "little")
            text = data[at : at + min(n, width - LENGTH)]
            found.append(_text(spec, text) if is_text else text)
        return found

    return made


def _text(spec: Spec, data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as e:
        raise errors.Unreadable(
            "field %r has a string that is no text: %s" % (spec.name, e)
        ) from e


def _bools(data: bytes) -> list[bool]:
    return [bool(byte) for byte in data]


def _numbers(code: str) -> Callable[[bytes], list[Any]]:
    def made(data: bytes) -> list[Any]:
        numbers: array[Any] = array(code)
        numbers.frombytes(data)
        return numbers.tolist()

    return made


# ---- a loader's way to it ------------------------------------------------


def describe(about: About) -> Optional[Description]:
    """What a stream of tsock.serve() says; None of any other."""
    return Description(about) if "structure" in about.identity else None


def connected(
    name: str,
    opts: _ffi.Opts,
    asked: Optional[int],
    connect: Callable[[], Pool],
) -> Pool:
    """A pool of connections; in opts the batch size, asked for or its own.

    A stream of tsock.serve() is read as it is stored, so where it turns out
    to be one it is connected to anew.
    """
    opts.batch_size = asked or 1
    try:
        pool = connect()
    except errors.Refused:
        _refuse_ragged(opts, asked, connect)
        raise
    try:
        found = describe(pool.about)
        if found is None:
            if asked is None:
                raise ValueError(
                    "batch_size None: stream %r has no batches of its own; "
                    "say how many samples one has" % name
                )
            return pool
        opts.batch_size = found.batch_size(asked)
    except BaseException:
        pool.close()
        raise
    opts.dtype = opts.layout = opts.normalize = 0
    pool.close()
    return connect()


def _refuse_ragged(
    opts: _ffi.Opts, asked: Optional[int], connect: Callable[[], Pool]
) -> None:
    """Say so if the batch size was refused by a ring of batches."""
    opts.batch_size = 1
    try:
        pool = connect()
    except errors.Error:
        return
    try:
        found = describe(pool.about)
    finally:
        pool.close()
    if found:
        found.batch_size(asked)
