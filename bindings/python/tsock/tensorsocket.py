# SPDX-License-Identifier: MIT
"""TensorSocket's TensorProducer and TensorConsumer, by tsock.

    from tsock.tensorsocket import TensorProducer       # was: tensorsocket
    from tsock.tensorsocket import TensorConsumer

Scripts that were written for TensorSocket 0.0.4 and 0.0.5 run with that line
replaced.  The producer's loop drives tsock.serve(), and the consumer is a
tsock.DataLoader of that stream. The differences are repairs: every epoch has
all of its samples once, for any batch size, and ends with StopIteration; len()
is right; a batch doesn't change while it is held; a consumer that goes away
costs the others nothing; a failure on one side is an exception on the other. No
port is opened, and nothing is pickled.
"""

from __future__ import annotations

import importlib
import math
import time
import warnings
from typing import Any, Callable, Iterator, Optional, Union

from . import errors, payload
from .keywords import helpful
from .loader import DataLoader
from .paced import Paced
from .payload import TensorPayload, pack, unpack
from .serving import Server, feed, fixed, serve

__all__ = ["TensorConsumer", "TensorPayload", "TensorProducer"]

_OVER = "tsock.tensorsocket: the producer's loop over the epochs has ended"

_PORTS = (5555, 5556, (4444, 4445))  # what nobody has to say


def _stream(port: Union[int, str], ack_port: Any, heart_ports: Any) -> str:
    """The stream that stands for a set of ports."""
    try:
        name = "tensorsocket-%d" % int(port)
    except (TypeError, ValueError):
        raise ValueError("port %r: it is a number" % (port,)) from None
    for what, value, usual in (
        ("ack_port", ack_port, _PORTS[1]),
        ("heart_ports", heart_ports, _PORTS[2]),
    ):
        if value != usual:
            _instead(
                "%s=%r: no port is opened; producer and consumers meet at "
                "the stream %r, which is named by port" % (what, value, name),
                5,
            )
    return name


def _instead(text: str, level: int = 4) -> None:
    warnings.warn("tsock.tensorsocket: " + text, stacklevel=level)


# ---- the producer --------------------------------------------------------


def _sizes(
    batches: int, batch: int, band: float, buffered: int, per_producer: int
) -> tuple[int, int, int]:
    """The ring's size, the window and the largest batch, in samples."""
    # So many loader's batches were one of the producer's, which held the
    # largest one of a consumer; consumers may take 64, the usual one, always.
    window = max(math.ceil(band * batches), per_producer) * batch
    largest = max(per_producer * batch, 64)
    # The fastest consumer's lead over the slowest one.
    lead = (buffered + per_producer) * batch
    return max(lead, window + 2 * largest), window, largest


class TensorProducer:
    """Serves the batches of a data loader to TensorConsumers.

        producer = TensorProducer(data_loader)
        for _ in range(epochs):
            for _ in producer:
                pass
        producer.join()

    data_loader  anything with iter(), and len() or length=, that gives batches
                 of tensors, in tuples, lists or dicts
    port         a number that consumers give, too; another producer on this
                 machine has another one.  No port is opened
    ack_port, heart_ports
                 not needed; a warning says so
    rubber_band_pct
                 a consumer that comes late has an epoch from its start as
                 long as the others are no further in it than this part of it,
                 or than producer_batch_size batches
    pack_fn      makes of each of the loader's batches what is served
    consumer_max_buffer_size, producer_batch_size
                 batches of the loader: their sum bounds the lead of the
                 fastest consumer over the slowest, and the second one times
                 the loader's batch size is the largest batch of a consumer
    max_tensor_length
                 dicts' tensors are padded to this, in their last dimension:
                 with 0, "labels" with -100.  None is as they are
    clip, online of 0.0.2: not done; a warning says what is
    length       samples of an epoch, where the loader can't tell
    transform    a function that each batch goes through first, once for all

    Each next() has one more batch of the loader, so len() steps are an epoch,
    and waits where no consumer needs it yet.  The loader's exceptions are
    raised here and in every consumer.
    """

    @helpful("TensorProducer")
    def __init__(
        self,
        data_loader: Any,
        port: Union[int, str] = _PORTS[0],
        ack_port: Any = _PORTS[1],
        heart_ports: Any = _PORTS[2],
        rubber_band_pct: float = 0.005,
        pack_fn: Callable[[Any], Any] = pack,
        consumer_max_buffer_size: int = 10,
        producer_batch_size: int = 8,
        max_tensor_length: Optional[int] = None,
        *,
        clip: Any = None,
        online: bool = False,
        length: Optional[int] = None,
        transform: Optional[Callable[[Any], Any]] = None,
    ) -> None:
        self.port, self.ack_port = port, ack_port
        self.heart_ports = heart_ports
        name = _stream(port, ack_port, heart_ports)
        if not 0 <= rubber_band_pct <= 1:
            raise ValueError(
                "rubber_band_pct %r: it is a part of an epoch, 0 to 1"
                % rubber_band_pct
            )
        for what, value in (
            ("consumer_max_buffer_size", consumer_max_buffer_size),
            ("producer_batch_size", producer_batch_size),
            ("length", 1 if length is None else length),
        ):
            if value < 1:
                raise ValueError("%s %r: it is 1 or more" % (what, value))
        if clip is not None or online:
            _instead(
                "clip= and online=: batches are served as the loader makes "
                "them; transform=, a function of a batch, runs a model on "
                "each of them once for all consumers"
            )
        steps = [transform] if transform else []
        if max_tensor_length is not None:
            steps.append(payload.padded(max_tensor_length))
        if pack_fn is not pack:
            # The given pack_fn takes tuples.
            steps.append(
                lambda batch: payload.to_serve(
                    pack_fn(payload.as_tuple(batch))
                )
            )

        def prepare(batch: Any) -> Any:
            for step in steps:
                batch = step(batch)
            return batch

        batches = feed.sized(data_loader)
        if batches is None and length is None:
            raise TypeError(
                "the data loader, a %s, has no len(): give length=, the "
                "number of samples of an epoch"
                % type(data_loader).__qualname__
            )
        self.data_loader = data_loader
        self.epoch = 0
        self._paced = Paced(data_loader, prepare)
        rows_of_first = fixed.count(self._paced.first)
        self.loader_batch_size = rows_of_first
        if batches is None:
            # All are as the first.
            batches = -(-(length or 0) // rows_of_first)
        self.data_loader_len = batches
        ring, window, largest = _sizes(
            batches,
            rows_of_first,
            rubber_band_pct,
            consumer_max_buffer_size,
            producer_batch_size,
        )
        self._server = serve(
            self._paced,
            name,
            length=length or self._length(rows_of_first),
            ring=ring,
            join_window=window,
            max_batch=largest,
        )

    def _length(self, rows_of_first: int) -> int:
        try:
            return feed.length_of(self._paced, rows_of_first, False)
        except ValueError:
            return self.data_loader_len * rows_of_first  # all are as the first

    @property
    def server(self) -> Server:
        """What tsock.serve() gave: stats(), for example."""
        return self._server

    def __len__(self) -> int:
        return self.data_loader_len

    def __iter__(self) -> TensorProducer:
        self._check()
        self._paced.enter()
        return self

    def __next__(self) -> None:
        self._paced.enter_first()
        new = True
        while True:
            had = self._paced.step(0.1, new)
            new = False
            self._check()
            if had is False:
                self.epoch = self._paced.entered
                raise StopIteration
            if had:
                return

    get_sample = __next__

    def _check(self) -> None:
        if self._server.error:
            self.close()
            raise self._server.error
        if self._server.closed:
            raise errors.Error("this TensorProducer has ended; make another")

    def join(self) -> None:
        """Wait until the consumers are at their last batches; end the stream.

        A consumer that asks for another epoch then gets tsock.StreamEnded.
        """
        self._paced.is_joined = True
        while not self._server.error and not self._is_read():
            time.sleep(0.02)
        if not self._server.error:
            self._server.fail(_OVER)
        self.close()
        if self._server.error:
            raise self._server.error

    def _is_read(self) -> bool:
        """Have all consumers come to the end, or gone away?"""
        stats = self._server.stats()
        if self._server.closed or not self._server.connected:
            return True
        end = stats["claimed"]
        if self._paced.is_whole and self._paced.entered:
            end = (self._paced.epoch + 1) * stats["epoch_len"]
        # Whether a consumer has asked for its last batch isn't known; it gets
        # that even when this process is gone.
        length = stats["epoch_len"]
        return stats["head"] >= end and all(
            row["tail"] + (length % row["batch_size"] or row["batch_size"])
            >= end
            for row in stats["rows"]
        )

    def close(self) -> None:
        """End the stream at once."""
        self._paced.close()
        self._server.close()

    def __enter__(self) -> TensorProducer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


# ---- the consumer --------------------------------------------------------


class TensorConsumer:
    """Batches of a TensorProducer, in place of a data loader.

        for batch_idx, (input, target) in enumerate(TensorConsumer()): ...

    port         the producer's
    ack_port, heart_ports
                 not needed; a warning says so
    unpack_fn    makes of what the producer's pack_fn made (usually tuples or
                 dicts of TensorPayload) what is given out
    batch_size   any, up to the producer's largest; -1 is the loader's own.
                 The last one of an epoch is short where it doesn't divide it
    max_buffer_size
                 of 0.0.2: not needed; a warning says so
    device       where tensors are put; None is the current GPU, if torch has
                 one, as the producer's was there, or else host memory
    wait         seconds to wait for the producer, None for ever
    timeout      seconds to wait for a batch, 0 for ever

    It is its own iterator: each for loop is the rest of an epoch, which ends
    with StopIteration.  ``epoch`` counts those that have ended,
    ``batch_count`` the batches of the one that is read.
    """

    @helpful("TensorConsumer")
    def __init__(
        self,
        port: Union[int, str] = _PORTS[0],
        ack_port: Any = _PORTS[1],
        heart_ports: Any = _PORTS[2],
        unpack_fn: Callable[[Any], Any] = unpack,
        batch_size: int = 64,
        *,
        max_buffer_size: Optional[int] = None,
        device: Any = None,
        wait: Optional[float] = 60,
        timeout: float = 0,
    ) -> None:
        self.port, self.ack_port = port, ack_port
        self.heart_ports = heart_ports
        name = _stream(port, ack_port, heart_ports)
        if isinstance(unpack_fn, int):  # 0.0.2 had the buffer's size there
            max_buffer_size, unpack_fn = unpack_fn, unpack
        if max_buffer_size is not None:
            _instead(
                "max_buffer_size=%r: consumers have no buffers of their own; "
                "the producer's consumer_max_buffer_size sizes the ring that "
                "all of them read" % max_buffer_size
            )
        self.unpack_fn = unpack_fn
        torch = importlib.import_module("torch")
        if device is None and torch.cuda.is_available():
            device = torch.device("cuda", torch.cuda.current_device())
        self._device = torch.device(device or "cpu")
        self._loader = DataLoader(
            name,
            None if batch_size == -1 else batch_size,
            framework="torch",
            between="hold",  # all read every epoch
            wait=wait,
            timeout=timeout,
        )
        self.batch_size = self._loader.batch_size
        about = self._loader.lend().about
        self.loader_batch_size = int(about.identity["batch"])
        self.data_loader_len = -(-about.epoch_len // self.loader_batch_size)
        self.epoch = 0
        self.batch_count = 0
        self._iterator: Optional[Iterator[Any]] = None

    @property
    def loader(self) -> DataLoader:
        """The tsock.DataLoader behind it."""
        return self._loader

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> TensorConsumer:
        return self

    def __next__(self) -> Any:
        if self._iterator is None:
            self._iterator = iter(self._loader)
        try:
            batch = next(self._iterator)
        except StopIteration:
            self._end()
            raise
        except (errors.ProducerLost, errors.StreamFailed) as e:
            if self.batch_count == len(self):
                self._end()  # all of it was had before the producer went
                raise StopIteration from None
            if _OVER in str(e):
                raise errors.StreamEnded(
                    "the producer of port %s has ended: its loop over the "
                    "epochs is over" % self.port
                ) from None
            raise
        self.batch_count += 1
        return self.unpack_fn(self._unpacked(batch))

    def _unpacked(self, batch: Any) -> Any:
        """What the usual pack_fn, or the producer's own, made of a batch."""
        if self._device.type != "cpu":
            batch = payload.each(
                batch,
                lambda v: v.to(self._device, non_blocking=True)
                if payload.is_tensor(v)
                else v,
            )
        if payload.is_packed(batch):
            return payload.as_packed(batch)
        batch = payload.as_tuple(batch)
        return batch if self.unpack_fn is unpack else pack(batch)

    def _end(self) -> None:
        self._iterator = None
        self.epoch += 1
        self.batch_count = 0

    def close(self) -> None:
        """Leave the stream."""
        self._loader.close()

    def __enter__(self) -> TensorConsumer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
