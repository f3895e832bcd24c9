# SPDX-License-Identifier: MIT
"""tsock: one data loader for every training job on a server.

    import tsock

    for images, labels in tsock.DataLoader("imagenet", root=DIR):
        ...

A producer (the program tsock-producer, started by the first loader that gives
root=, or by tsock.Producer) decodes the data set once; every loader on the
machine sees the same bytes without a copy.
"""

from ._ffi import lib as _lib
from .errors import (
    BadFilesWarning,
    CannotResume,
    Error,
    InvalidArgument,
    NoProducer,
    OtherStream,
    OutOfMemory,
    ProducerLost,
    Refused,
    StreamEnded,
    StreamFailed,
    TimedOut,
    Unreadable,
)
from .index import index
from .loader import DataLoader
from .option_table import ProducerOptions
from .pack import pack
from .producer import Producer
from .replay import replay
from .serving import BadBatch, Server, serve
from .sharing import explain, share
from .streams import devices, query, stop, streams

__version__ = "0.1.0"
library_version = _lib.tsock_version_string().decode()

__all__ = [
    "BadBatch",
    "BadFilesWarning",
    "CannotResume",
    "DataLoader",
    "Error",
    "InvalidArgument",
    "NoProducer",
    "OtherStream",
    "OutOfMemory",
    "Producer",
    "ProducerLost",
    "ProducerOptions",
    "Refused",
    "Server",
    "StreamEnded",
    "StreamFailed",
    "TimedOut",
    "Unreadable",
    "devices",
    "explain",
    "index",
    "library_version",
    "pack",
    "query",
    "replay",
    "serve",
    "share",
    "stop",
    "streams",
]
