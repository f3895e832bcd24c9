# SPDX-License-Identifier: MIT
"""What can go wrong, by name.

Every class is a RuntimeError, as torch's own loader raises them.  This file
knows nothing of the C library but its error codes.
"""


class Error(RuntimeError):
    """Something failed; ``code`` names the C library's reason, if any."""

    code = None


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


class TimedOut(Error):
    """No batch within ``timeout`` seconds; the iterator can go on."""


# enum tsock_err in tsock.h: values are ABI.
EAGAIN = -1
EEPOCH = -2
EARG = -5
EFORK = -11

_CLASSES = {
    -3: ("TSOCK_EENDED", StreamEnded),
    -4: ("TSOCK_ELOST", ProducerLost),
    EARG: ("TSOCK_EARG", ValueError),
    -6: ("TSOCK_ENOMEM", Error),
    -7: ("TSOCK_ESYS", Error),
    -8: ("TSOCK_ENOPROD", NoProducer),
    -9: ("TSOCK_EREFUSED", Refused),
    -10: ("TSOCK_EPROTO", Error),
    EFORK: ("TSOCK_EFORK", Error),
    -12: ("TSOCK_EHELD", Error),
    -13: ("TSOCK_ESTREAM", StreamFailed),
    -14: ("TSOCK_EDATA", Error),
    -15: ("TSOCK_ENOTSUP", Error),
    -16: ("TSOCK_EEXIST", Error),
}

FORKED = (
    "this tsock.DataLoader was opened before a fork and belongs to the parent "
    "process: open a tsock.DataLoader in the child"
)


def from_code(code, text):
    """The exception for a C error code and its message."""
    name, kind = _CLASSES.get(code, (None, Error))
    if code == EFORK:
        text = FORKED
    error = kind(text or name or "tsock error %d" % code)
    if isinstance(error, Error):
        error.code = name
    return error
