# SPDX-License-Identifier: MIT
"""tsock.serve: any loader as a producer.

The loader is iterated once, in the process that serves it, and its batches are
copied once, straight into the ring that every consumer of the stream reads.

    server      serve() and its Server: the thread that iterates the loader
    options     the numbers that it is given, and the ring that they make
    promise     what identity= promises, and says to consumers
    feed        the loader's batches, by their place in the stream
    watch       the thread that notices when the loader hangs
    pillow      images that are no tensors, refused
    fixed       batches of fixed shapes: each row is a sample of the ring
    ragged      batches of any shapes: each is a sample of the ring
    nest        the tuples, lists and dicts that a batch's arrays lie in
    arrays      the memory of a tensor or an array
    copiers     the threads that copy that memory into the ring
    consumer    at a consumer: the batches of such a stream, nested as before
"""

from .fixed import BadBatch
from .server import Server, serve

__all__ = ["BadBatch", "Server", "serve"]
