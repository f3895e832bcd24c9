# SPDX-License-Identifier: MIT
"""A loader's batches: tensors of the fields that the user asked for.

Nothing here knows where a batch comes from, or the order of batches.
"""

from __future__ import annotations

from ctypes import c_void_p
from typing import Any, Callable, Optional, Sequence

from . import _ffi, errors, gpu
from .about import is_image
from .serving import consumer

Fields = Sequence[tuple[int, _ffi.Field]]


def _strings(data: bytes, width: int) -> list[str]:
    """The texts of so many bytes each, in which zeros are behind them.

    They are file names, so bytes that are no UTF-8 are kept as Python does.
    """
    return [
        data[at : at + width]
        .partition(b"\0")[0]
        .decode("utf-8", "surrogateescape")
        for at in range(0, len(data), width)
    ]


class Batches:
    """Makes what next() returns of a tsock_batch *.

    importer    what makes tensors of a framework, see tensors.py
    fields      of the stream, by their places in it
    shown       how many of them, from the first one on, a batch has; those
                behind are lengths, by which ragged fields are cut
    dtype       that was asked for, by which images are known
    channels_last
                are images stored as hwc to be seen as chw?
    keys        of the dict that a batch is; None: it is a list
    decode      what makes a loader's nest of tensors, of what tsock.serve()
                serves; None for others
    texts       names of fields that become lists of str
    """

    def __init__(
        self,
        importer: Any,
        fields: Fields,
        shown: int,
        dtype: str,
        channels_last: bool,
        keys: Optional[Sequence[str]],
        decode: Optional[Callable[[list[Any]], Any]],
        texts: Sequence[str] = (),
    ) -> None:
        self.places = [i for i, _ in fields]
        self._importer = importer
        self._fields = fields
        self._images = [
            k
            for k, (_, field) in enumerate(fields)
            if channels_last and not decode and is_image(field, dtype)
        ]
        self._texts = [
            (k, field.shape[0])
            for k, (_, field) in enumerate(fields)
            if field.name.decode() in texts
        ]
        self._shown = shown
        # A ragged field, and the one that says how many values samples have.
        names = {field.name: k for k, (_, field) in enumerate(fields)}
        self._ragged = [
            (
                k,
                names[field.name + b"_length"],
                bool(field.flags & _ffi.FIELD_RAGGED_LAST),
            )
            for k, (_, field) in enumerate(fields)
            if field.flags & (_ffi.FIELD_RAGGED | _ffi.FIELD_RAGGED_LAST)
        ]
        self._bytes_of = consumer.bytes_of(importer)
        self._keys = keys
        self._decode = decode
        # What makes others of the tensors before a batch is arranged.
        self.change: Optional[Callable[[list[Any]], list[Any]]] = None
        self._gpu: Any = None
        # Is a batch what all see, until the next one is asked for?
        self.shared = False
        self.last: Optional[c_void_p] = None  # the batch that use() is about

    def put_on(self, cuda: gpu.Cuda, zero_copy: bool) -> None:
        """Make them on a GPU."""
        kind: Any = gpu.Shared if zero_copy else gpu.Own
        self._gpu = kind(cuda, self._fields)
        self.shared = zero_copy

    def make(self, batch: c_void_p, pinned: bool, twice: int = 0) -> Any:
        """twice: how many of the first samples are to be the last ones."""
        if self._gpu:
            made = self._gpu.make(batch)
        else:
            tensor = self._importer.tensor
            made = [tensor(batch, i) for i in self.places]
            if pinned:
                made = [t.pin_memory() for t in made]
        if twice:
            made = [self._importer.roll(t, -twice) for t in made]
        return self.arrange(made)

    def arrange(self, made: list[Any]) -> Any:
        """A batch of its fields' tensors, as the user wants it."""
        for k, lengths, last in self._ragged:
            longest = slice(int(made[lengths].max()))
            made[k] = made[k][..., longest] if last else made[k][:, longest]
        del made[self._shown :]
        for k in self._images:
            made[k] = made[k].permute(0, 3, 1, 2)
        for k, width in self._texts:
            made[k] = _strings(self._bytes_of(made[k]), width)
        if self._decode:
            made = self._decode(made)
        if self.change:
            made = self.change(made)
        return dict(zip(self._keys, made)) if self._keys else made

    def use(self, stream: Any) -> None:
        """Say that one more stream of the GPU uses the last batch."""
        if not self.shared:
            return
        if self.last is None or not self.last.value:
            raise errors.Error(
                "use() is about the batch that next() gave last, and there "
                "is none"
            )
        self._gpu.use(self.last, stream)
