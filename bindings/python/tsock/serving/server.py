# SPDX-License-Identifier: MIT
"""tsock.serve() and its Server, which iterates the loader and fills slots."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import threading
import time
import traceback
import weakref
from ctypes import byref, c_uint64, c_void_p
from typing import Any, Callable, Optional, Union

from .. import _ffi, arguments, errors, identity
from ..keywords import helpful
from ..launch import serves_here
from ..streams import stats_dict
from . import promise
from .copiers import Copiers, Gone, Handle
from .feed import Feed
from .fixed import FixedSchema
from .options import Options, ring_of
from .ragged import RaggedSchema
from .watch import Watch

_lib = _ffi.lib

MOST_TEXT = 4000  # bytes of what consumers are told of a failure
_LINGER = 5.0  # seconds for connected readers to hear of it
PATIENCE, HURRY = 1.0, 0.05  # seconds for the thread that iterates the loader

_running: weakref.WeakSet[Server] = weakref.WeakSet()


def _close_all() -> None:
    for server in list(_running):
        server.close()


atexit.register(_close_all)


def _function(what: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise TypeError("%s %r: it is a function" % (what, value))
    return value


def _name_of(function: Any) -> str:
    return "%s.%s" % (
        getattr(function, "__module__", "?"),
        getattr(function, "__qualname__", repr(function)),
    )


def describe(error: BaseException) -> str:
    """An exception as consumers are told: type and text, then a traceback."""
    text = str(error).strip()
    # torch's workers put a traceback into the text, the cause at its end.
    last = text.splitlines()[-1].strip() if text else ""
    kind = type(error).__name__
    head = last if last.startswith(kind + ":") else "%s: %s" % (kind, last)
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    whole = "".join(lines).strip().replace("\0", "\\0")
    head = head.replace("\0", "\\0")[:500]
    if error.__traceback__ is None:
        return head  # it was raised nowhere
    room = MOST_TEXT - len(head.encode("utf-8", "replace")) - 8
    data = whole.encode("utf-8", "replace")
    if len(data) > room:
        cut = data[-room:].decode("utf-8", "ignore")
        whole = "...\n" + cut.partition("\n")[2]
    return head + "\n" + whole


def _classes(loader: Any) -> list[bytes]:
    found = getattr(getattr(loader, "dataset", None), "classes", None)
    if isinstance(found, (list, tuple)):
        if all(isinstance(name, str) for name in found):
            return [name.encode("utf-8", "surrogateescape") for name in found]
    return []


class Server:
    """A loader that is being served, see serve()."""

    def __init__(
        self,
        loader: Any,
        name: Union[str, os.PathLike[str]],
        options: Options,
        prepare: Callable[[Any], Any],
        ragged: bool,
        unpack: Any,
        timeout: float,
        same: Optional[str],
        told: str = "",
    ) -> None:
        """told: further lines of what the stream says about itself."""
        self.name = os.fspath(name)
        self._failing = threading.Lock()
        self.error: Optional[BaseException] = None
        self._pid = os.getpid()
        self._hurried = False  # did Ctrl-C end it?
        self._feed = Feed(loader, prepare, self.name)
        first = self._feed.first()
        schema: Any = (
            RaggedSchema(first, options.batch_bytes)
            if ragged
            else FixedSchema(first, options.string_bytes)
        )
        # What can't be served is said here already.
        _, leaves = schema.read(first)
        whose = promise.lines(same, loader, self._feed.is_once, leaves)
        self._feed.ready(schema, options.length, ragged)
        self._end = options.epochs * self._feed.length
        self._over = False
        self._watch = Watch(self, self._feed, timeout, self._fail)
        said = identity.line("loader", type(loader).__qualname__) + whose
        said += identity.line("batch", str(schema.batch_size))
        said += identity.line("structure", json.dumps(schema.as_json()))
        if unpack is not None:
            said += identity.line("unpack", _name_of(unpack))
        said += told
        self._handle, opened = self._open(
            loader, options, schema, ragged, said, bool(same)
        )
        stats = _ffi.Stats()
        _lib.tsock_serve_stats(opened, byref(stats))
        self._stats = stats_dict(stats)
        sizes = [spec.row_bytes for spec in getattr(schema, "specs", [schema])]
        try:
            self._copiers = Copiers(
                self._handle,
                sizes,
                stats.capacity,
                options.threads,
                self._fail,
            )
        except BaseException:
            self._handle.close()
            raise
        self._thread = threading.Thread(
            target=self._work, name="tsock-serve", daemon=True
        )
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        _running.add(self)

    def _start(self) -> None:
        self._thread.start()
        self._watch.start()

    def _open(
        self,
        loader: Any,
        o: Options,
        schema: Any,
        ragged: bool,
        said: str,
        resumable: bool,
    ) -> tuple[Handle, int]:
        fields = schema.fields()
        opts = _ffi.ServeOpts()
        opts.nfields = len(fields)
        opts.fields = (_ffi.Field * len(fields))(*fields)
        opts.epoch_len = self._feed.length
        opts.epochs = o.epochs
        opts.ring, opts.max_batch = ring_of(
            o, schema, ragged, self._feed.length
        )
        opts.join_window = o.join_window or 0
        opts.min_consumers = o.min_consumers
        sampler = getattr(loader, "sampler", None)
        opts.sequential = type(sampler).__name__ == "SequentialSampler"
        ranks = getattr(sampler, "num_replicas", None)
        if isinstance(ranks, int) and ranks > 1:
            opts.shard, opts.shards = sampler.rank, ranks  # type: ignore
        classes = _classes(loader)
        opts.nclasses = len(classes)
        opts.classes = (ctypes.c_char_p * len(classes))(*classes)
        opts.resumable = resumable
        opts.identity = said.encode()
        not_any_more = serves_here(self.name)
        out = c_void_p()
        code = _lib.tsock_serve_open(
            arguments.stream_name(self.name), byref(opts), byref(out)
        )
        if code:
            not_any_more()
            raise _ffi.failure(code)
        assert out.value is not None
        return Handle(out.value, not_any_more), out.value

    # ---- the thread that iterates the loader ----

    def _work(self) -> None:
        try:
            self._serve()
        except Gone:
            pass
        except BaseException as e:  # noqa: BLE001 - told to everybody
            # Consumers get what came before it.
            self._copiers.wait()
            self._fail(e)
        self._feed.close()

    def _serve(self) -> None:
        seq, first = 0, c_uint64()
        self._copiers.touch()
        while not self._end or seq < self._end:
            # Its workers go on while this waits for room.
            batch = self._feed.at(seq)
            with self._handle as server:
                count = _lib.tsock_serve_claim(
                    server, batch.end - seq, -1, byref(first)
                )
            if count < 0:
                if self._handle.closed or count == errors.EENDED:
                    return
                raise _ffi.failure(count)
            seq = first.value
            while count:
                batch = self._feed.at(seq)
                n = min(count, batch.end - seq)
                self._copiers.put(
                    seq, n, seq - batch.first, batch.leaves
                )
                seq += n
                count -= n

    def _fail(self, error: BaseException) -> None:
        why = describe(error)
        with self._failing:
            if self.error is None:
                # Consumers first: a thread that sees the error here may close.
                self.fail(why)
                self.error = error
        self._over = True
        self._watch.end()

    def _drained(self) -> bool:
        with self._handle as server:
            return bool(_lib.tsock_serve_drained(server))

    # ---- what users call ----

    def fail(self, why: str) -> None:
        """Stop the stream: its jobs get StreamFailed, with the reason."""
        try:
            with self._handle as server:
                _lib.tsock_serve_fail(server, why.encode("utf-8", "replace"))
        except Gone:
            pass

    @property
    def connected(self) -> int:
        """Consumers that are connected, whether they read or not."""
        try:
            with self._handle as server:
                return int(_lib.tsock_serve_connected(server))
        except Gone:
            return 0

    def run(self) -> None:
        """Serve until the stream's last epoch is read, or Ctrl-C; close.

        Raises what the loader raised.
        """
        # A signal handler may raise anywhere in this, in the main thread: no
        # lock that another thread needs, an Event's own included, may be in its
        # hands then.
        try:
            while not self._over and not self._drained():
                time.sleep(0.02)
            until = time.monotonic() + _LINGER
            while self.error and time.monotonic() < until:
                if self.connected <= 0:
                    break
                time.sleep(0.02)
        except Gone:
            pass
        except KeyboardInterrupt:
            self._hurried = True
            raise
        finally:
            self.close()
        if self.error:
            raise self.error

    def close(self) -> None:
        """End the stream: its consumers get tsock.ProducerLost.

        With identity= they wait for the next server first.
        """
        if os.getpid() != self._pid:
            return
        self._over = True
        self._watch.end()
        self.stats()
        self._handle.close()
        _running.discard(self)
        # A loader that hangs isn't waited for; its thread dies with us.
        if self._thread.ident not in (None, threading.get_ident()):
            self._thread.join(HURRY if self._hurried else PATIENCE)
        self._copiers.close()

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def doing(self, what: Optional[str]) -> None:
        """Tell jobs that wait what keeps this server from making samples."""
        try:
            with self._handle as server:
                said = what.encode() if what else None
                _lib.tsock_serve_doing(server, said)
        except Gone:
            pass

    @property
    def stopped(self) -> bool:
        """Has somebody ended the stream for good, by tsock.stop()?"""
        try:
            with self._handle as server:
                return bool(_lib.tsock_serve_stopped(server))
        except Gone:
            return False

    def stats(self) -> dict[str, Any]:
        """The stream's numbers, as tsock.query() has them, and the loader's.

        ``batches`` is how many batches the loader gave, ``loader_wait`` the
        seconds spent waiting for it, ``copied_bytes`` the bytes copied into the
        ring.
        """
        try:
            with self._handle as server:
                stats = _ffi.Stats()
                _lib.tsock_serve_stats(server, byref(stats))
                self._stats = stats_dict(stats)
        except Gone:
            pass
        return dict(
            self._stats,
            epoch=self._feed.epoch,
            batches=self._feed.batches,
            loader_wait=self._feed.wait_ns / 1e9,
            copied_bytes=self._copiers.copied,
        )

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._hurried = self._hurried or kind is KeyboardInterrupt
        self.close()

    def __repr__(self) -> str:
        return "<tsock.serve %r: %d in an epoch%s>" % (
            self.name,
            self._feed.length,
            ", closed" if self.closed else "",
        )


@helpful("tsock.serve")
def serve(
    loader: Any,
    name: Union[str, os.PathLike[str]],
    *,
    length: Optional[int] = None,
    ring: Optional[int] = None,
    max_batch: Optional[int] = None,
    join_window: Optional[int] = None,
    epochs: Optional[int] = None,
    identity: Optional[str] = None,
    ragged: bool = False,
    transform: Optional[Callable[[Any], Any]] = None,
    pack: Optional[Callable[[Any], Any]] = None,
    unpack: Optional[Callable[[Any], Any]] = None,
    string_bytes: int = 256,
    batch_bytes: Optional[int] = None,
    min_consumers: int = 1,
    threads: Optional[int] = None,
    timeout: float = 0,
) -> Server:
    """Serve the batches of any loader to every job on this machine.

    with tsock.serve(loader, "mine", epochs=90) as server:
        server.run()

    and in each job, for the same batches, in batches of any size:

    for batch in tsock.DataLoader("mine", batch_size=100): ...

    loader      any iterable of batches, torch's DataLoader for example, or a
                function that makes one for each epoch.  A batch is a tensor,
                an array, or tuples, lists and dicts of them in any nest; with
                lists of strings or numbers beside them, one for each sample,
                and constants that are the same in all batches.  Consumers get
                the same nest back; nothing is pickled
    name        of the stream
    length      samples (ragged: batches) of an epoch; None is what the loader
                tells.  One without len(), or a function, is iterated once
                more, before anything is served, to count them: an epoch ends
                at StopIteration.  One that ends early or goes on is an error
                everywhere
    ring        samples (ragged: batches) that the ring holds; None is two
                epochs (three where a job may ask for a whole one as a batch),
                but at most 2,048 samples or about 256 MiB, or what four of the
                largest batches need
    max_batch   the largest batch that a job can ask for
    join_window samples (ragged: batches) of an epoch, within which the jobs
                that read have to be for a new one to get it from its start;
                None is half of the ring
    epochs      after which the stream ends; None is never
    identity    a text by which you promise: whenever the loader is served
                under it, the epoch of a number (which set_epoch() is told) has
                the same samples in the same order, byte for byte.  Jobs of a
                server that ends, or is killed, then wait for the next one of
                that identity (rejoin_timeout=) and go on at the exact next
                sample.  None: each server's stream is another one.  See below
    ragged      batches of any shapes: padded text, audio.  Jobs get them as
                the loader made them, with tsock.DataLoader(batch_size=None)
    transform   a function that each batch goes through first, once for all
    pack, unpack
                functions of batches: pack makes of objects of your own
                what can be served.  Nobody is sent code: each job passes
                unpack to its own DataLoader, and is told so
    string_bytes
                UTF-8 bytes that strings have room for (not ragged)
    batch_bytes of the largest batch (ragged); None is 4 times the first one
    min_consumers
                that have to be there before anything is made
    threads     that copy; None is half of the CPUs, 1 to 4
    timeout     seconds without a batch after which the loader counts as
                hanging, and every job is told; 0 is never.  A line in this
                process's log tells of a loader that keeps a job waiting for
                a minute

    The loader's first batch is taken at once, and decides shapes and dtypes.
    Then one thread iterates the loader, whose workers run ahead while jobs
    read, and other threads copy its batches, once, into shared memory.
    set_epoch() of loader, sampler and data set is called before each epoch,
    with its number in the stream. An exception of the loader is raised in every
    job, as tsock.StreamFailed with its type, text and traceback, and by run().

    A data set may change as long as its length stays the same; if it grew or
    shrank, the stream ends when its next epoch would begin, and another serve()
    has to serve it.

    With identity= the next server begins in the epoch where its jobs are: it
    iterates the loader from that epoch's first batch and drops the samples that
    they have read, which takes the loader's time for these batches, at most an
    epoch's.  It does the same where a job that reads alone goes back, by
    load_state_dict().  The loader's own state_dict() isn't used.  A loader that
    can be iterated only once is refused, as is one whose sampler draws from a
    generator and where nothing has a set_epoch().  Random augmentations have to
    be functions of the epoch and the sample.  A loader of another length, batch
    size or shape, or whose first batch has other bytes, is another stream: jobs
    get tsock.ProducerLost, which says what differs.

    The ring is in host memory. Tensors on a GPU (torch's, or arrays with
    __cuda_array_interface__ and __dlpack_device__), also those that transform
    computes there, are copied into it once, when the work queued for them in
    the current stream is done.  A job with device= gets tensors on its own GPU,
    uploaded once for all jobs there; if the loader's tensors are on that same
    GPU, they are copied on it without a detour over the host, and are kept
    until then: at most as many samples as the ring holds.  With ragged=True all
    batches go by way of the host.

    The loader must not change a batch's memory after it gave the batch: a
    loader that fills the same array again and again needs
    transform=copy.deepcopy.
    """
    if not isinstance(name, (str, os.PathLike)):
        raise TypeError(
            "tsock.serve's name is %r: it takes a loader, and then the name "
            "of a stream" % (name,)
        )
    if hasattr(loader, "__getitem__") and not hasattr(loader, "__iter__"):
        raise TypeError(
            "tsock.serve was given a %s, which is no iterable of batches; if "
            "it is a data set, give torch.utils.data.DataLoader(it, ...)"
            % type(loader).__qualname__
        )
    if not hasattr(loader, "__iter__") and not callable(loader):
        raise TypeError(
            "tsock.serve was given an object of type %s: it takes an iterable "
            "of batches, or a function that makes one"
            % type(loader).__qualname__
        )
    options = Options(
        length=length,
        ring=ring,
        max_batch=max_batch,
        join_window=join_window,
        epochs=epochs,
        string_bytes=string_bytes,
        batch_bytes=batch_bytes,
        min_consumers=min_consumers,
        threads=threads,
    )
    if ragged and max_batch is not None:
        raise ValueError(
            "max_batch with ragged=True: jobs get the loader's own batches"
        )
    arguments.seconds("timeout", timeout, 0)
    same = promise.text(identity)
    steps = [
        step
        for step in (
            _function("transform", transform),
            _function("pack", pack),
        )
        if step is not None
    ]
    _function("unpack", unpack)

    def prepare(batch: Any) -> Any:
        for step in steps:
            batch = step(batch)
        return batch

    return Server(
        loader, name, options, prepare, ragged, unpack, timeout, same
    )
