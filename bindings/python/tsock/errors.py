# SPDX-License-Identifier: MIT
"""What can go wrong, by name.

Every class is a RuntimeError, as torch's own loader raises them, and where
Python has a class for it (ValueError, MemoryError, TimeoutError) that one too.
This file knows nothing of the C library but its error codes.
"""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType
from typing import Optional

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Error(RuntimeError):
    """Something failed; ``code`` names the C library's reason, if any."""

    code: Optional[str] = None


class InvalidArgument(Error, ValueError):
    """An argument can't be right; the text names it."""


class OutOfMemory(Error, MemoryError):
    """There is too little memory; the text says what needs it."""


class NoProducer(Error):
    """No producer serves that name; the text lists where it was looked for."""


class ProducerLost(Error):
    """The producer is gone, or it gave this consumer up."""


class StreamEnded(Error):
    """The stream's last epoch (``--epochs``) is over."""


class StreamFailed(Error):
    """The producer stopped the stream on an error; the text says which."""


class Refused(Error):
    """The producer refused; the text says why, with the numbers."""


class OtherStream(Error):
    """A stream of that name runs and is another one; the text says how."""


class TimedOut(Error, TimeoutError):
    """No batch within ``timeout`` seconds; the iterator can go on."""


class CannotResume(Error):
    """The stream has gone past the sample that a saved state goes on at."""


class Unreadable(Error, ValueError):
    """What a stream says of its batches, or a batch itself, makes no sense."""


class BadFilesWarning(UserWarning):
    """No file of a class can be read, or too many of the data set can't.

    The text says which class, how many files, and why the first of them can't
    be read.  ``allow_bad`` lets it pass.
    """


# enum tsock_warning_kind in tsock.h.
_WARNINGS: dict[int, type[Warning]] = {1: BadFilesWarning}

# enum tsock_err in tsock.h: values are ABI.
EAGAIN = -1
EEPOCH = -2
EENDED = -3
ELOST = -4
EARG = -5
EREFUSED = -9
EPROTO = -10
EFORK = -11
EHELD = -12
ESTREAM = -13
ENOTSUP = -15

_CLASSES: dict[int, tuple[str, type[Error]]] = {
    EENDED: ("TSOCK_EENDED", StreamEnded),
    ELOST: ("TSOCK_ELOST", ProducerLost),
    EARG: ("TSOCK_EARG", InvalidArgument),
    -6: ("TSOCK_ENOMEM", OutOfMemory),
    -7: ("TSOCK_ESYS", Error),
    -8: ("TSOCK_ENOPROD", NoProducer),
    EREFUSED: ("TSOCK_EREFUSED", Refused),
    EPROTO: ("TSOCK_EPROTO", Error),
    EFORK: ("TSOCK_EFORK", Error),
    EHELD: ("TSOCK_EHELD", Error),
    ESTREAM: ("TSOCK_ESTREAM", StreamFailed),
    -14: ("TSOCK_EDATA", Error),
    -15: ("TSOCK_ENOTSUP", Error),
    -16: ("TSOCK_EEXIST", Error),
}

FORKED = (
    "this tsock.DataLoader was opened before a fork and belongs to the parent "
    "process, which reads by it: open a tsock.DataLoader in the child"
)


def naming_log(error: Error, log: Optional[str]) -> Error:
    """The error; of a producer that is gone, with where its log is."""
    if log and isinstance(error, (ProducerLost, StreamFailed)):
        error.args = ("%s; the producer's log is %s" % (error, log),)
    return error


def from_code(code: int, text: str) -> Error:
    """The exception for a C error code and its message."""
    name, kind = _CLASSES.get(code, (None, Error))
    if code == EFORK:
        text = FORKED
    if code == ESTREAM and "Traceback (most recent call last)" in text:
        text = text.replace("\\n", "\n")  # C's messages are one line
    error = kind(text or name or "tsock error %d" % code)
    error.code = name
    return error


def warn_of(said: list[tuple[int, str]]) -> None:
    """Warn of what the producer said, by enum tsock_warning_kind and text."""
    for kind, text in said:
        warn(text, _WARNINGS.get(kind, UserWarning))


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the line that called this package, however deep that is."""
    frame: Optional[FrameType] = sys._getframe(1)
    level = 2
    while frame and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)


def again(error: Error) -> Error:
    """A copy of the error, to be raised once more."""
    copy = type(error)(*error.args)
    copy.code = error.code
    return copy
