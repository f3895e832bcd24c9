# SPDX-License-Identifier: MIT
"""What the producer knows of all samples, looked at where it lies.

Labels, files and keys of a data set are in memory of the producer, which all
jobs map: a sequence here reads a row when it is asked for, and copies nothing
before.  The memory stays when the producer ends.
"""

from __future__ import annotations

import os
import weakref
from ctypes import byref, c_uint8, c_void_p
from typing import Any, Generic, Iterator, Optional, Sequence
from typing import TypeVar, Union, overload

from . import _ffi, errors
from .interrupts import patiently

_lib = _ffi.lib

LABELS, FILES, KEYS = 1, 2, 3
# enum tsock_dtype, as struct and memoryview have it; others need NumPy.
FORMATS = {1: "B", 2: "i", 3: "q", 6: "f", 7: "d", 8: "b", 9: "h"}
FORMATS.update({10: "H", 11: "I", 12: "Q", 13: "?"})
WAIT_MS = 10000  # for the producer's answer

T = TypeVar("T")
U = TypeVar("U")


class NoTable(Exception):
    """Nobody has the table: the producer is gone, is another one by now, or
    has none of the kind."""


def _forget(asked: tuple[Any, Optional[int]]) -> None:
    _lib.tsock_table_close(asked[1])


class Table:
    """A table of the producer of a stream, which identity says is meant."""

    def __init__(self, name: str, identity: bytes, kind: int) -> None:
        self._handle = handle = self._open(os.fsencode(name), identity, kind)
        # Views of the memory are there until the very end.
        weakref.finalize(self, _lib.tsock_table_close, handle).atexit = False
        info = _ffi.TableInfo()
        code = _lib.tsock_table_get_info(handle, byref(info))
        if code:
            raise _ffi.failure(code)
        self.count: int = info.count
        self.field = info.field
        self.data = self._view(info.data, info.bytes)

    @staticmethod
    def _open(name: bytes, identity: bytes, kind: int) -> Optional[int]:
        def ask() -> tuple[Optional[errors.Error], Optional[int]]:
            to = c_void_p()
            code = _lib.tsock_table_open(
                name, identity, kind, WAIT_MS, byref(to)
            )
            return _ffi.failure(code) if code else None, to.value

        failure, handle = patiently(ask, undo=_forget)
        if isinstance(failure, (errors.NoProducer, errors.ProducerLost)):
            raise NoTable(failure)
        if failure and failure.code == "TSOCK_ENOTSUP":
            raise NoTable(failure)
        if failure:
            raise failure
        return handle

    def _view(self, at: int, size: int) -> memoryview:
        memory = (c_uint8 * size).from_address(at)
        memory._table = self  # type: ignore[attr-defined]
        return memoryview(memory).toreadonly().cast("B")

    def text(self, row: int) -> str:
        found = _lib.tsock_table_text(self._handle, row, None)
        if found is None:
            raise _ffi.failure(errors.EPROTO)
        return os.fsdecode(found)


class Rows(Sequence[T], Generic[T]):
    """A sequence that looks like a list, and makes its items when they are
    asked for.  Slices, sums and copies are lists."""

    __hash__ = None  # type: ignore[assignment]

    def _at(self, i: int) -> T:
        raise NotImplementedError

    def _some(self, indices: range) -> list[T]:
        return [self._at(i) for i in indices]

    @overload
    def __getitem__(self, i: int) -> T: ...

    @overload
    def __getitem__(self, i: slice) -> list[T]: ...

    def __getitem__(self, i: Union[int, slice]) -> Union[T, list[T]]:
        indices = range(len(self))
        try:
            chosen = indices[i]
        except IndexError:
            raise IndexError("list index out of range") from None
        if isinstance(chosen, range):
            return self._some(chosen)
        return self._at(chosen)

    def __iter__(self) -> Iterator[T]:
        return map(self._at, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, Rows)):
            return NotImplemented
        return len(self) == len(other) and all(
            a == b for a, b in zip(self, other)
        )

    def __add__(self, other: list[T]) -> list[T]:
        return [*self, *other]

    def __radd__(self, other: list[T]) -> list[T]:
        return [*other, *self]

    def copy(self) -> list[T]:
        return list(self)

    def __reduce__(self) -> Any:
        # Elsewhere the memory isn't mapped.
        return list, (list(self),)

    def __repr__(self) -> str:
        shown = ", ".join(repr(item) for item in self[:3])
        more = ", ..." if len(self) > 3 else ""
        return "<%d: [%s%s]>" % (len(self), shown, more)


class Targets(Rows[Any]):
    """The label of every sample: a number, or a list of numbers."""

    def __init__(self, table: Table) -> None:
        code = FORMATS.get(table.field.dtype)
        if code is None or table.field.ndim > 1 or table.field.flags:
            raise NoTable("labels aren't numbers")
        self._count = table.count
        self._width = table.field.shape[0] if table.field.ndim else 0
        self._view: memoryview = table.data.cast(code)  # type: ignore

    def __len__(self) -> int:
        return self._count

    def _at(self, i: int) -> Any:
        if not self._width:
            return self._view[i]
        return self._view[i * self._width : (i + 1) * self._width].tolist()

    def _some(self, indices: range) -> list[Any]:
        if self._width:
            return super()._some(indices)
        if indices.step < 0:
            return self._some(indices[::-1])[::-1]
        part = slice(indices.start, indices.stop, indices.step)
        return self._view[part].tolist() if indices else []

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__() if self._width else iter(self._view)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        import numpy

        found = numpy.frombuffer(self._view, self._view.format)
        if self._width:
            found = found.reshape(self._count, self._width)
        # As of a list of Python's numbers.
        whole = found.dtype.kind in "iu"
        return found.astype(dtype or (numpy.int64 if whole else numpy.float64))


class Texts(Rows[str]):
    """A text for every sample, behind a folder's path or nothing."""

    def __init__(self, table: Table, before: str = "") -> None:
        self._table, self._before = table, before

    def __len__(self) -> int:
        return self._table.count

    def _at(self, i: int) -> str:
        return self._before + self._table.text(i)


class Pairs(Rows[tuple[T, U]], Generic[T, U]):
    """The items of two sequences, as tuples."""

    def __init__(self, first: Sequence[T], second: Sequence[U]) -> None:
        self._first, self._second = first, second

    def __len__(self) -> int:
        return len(self._first)

    def _at(self, i: int) -> tuple[T, U]:
        return self._first[i], self._second[i]

    def __iter__(self) -> Iterator[tuple[T, U]]:
        return zip(self._first, self._second)
