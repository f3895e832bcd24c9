# SPDX-License-Identifier: MIT
"""Threads that copy batches into a server's slots, and publish them.

What is in a GPU's memory is copied by the library, which may go on reading it
after that: the batch is held until it says that it doesn't any more.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import queue
import threading
from typing import Callable, Optional

from .. import _ffi, errors
from .arrays import Memory, OnGpu

_lib = _ffi.lib

_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE; older kernels refuse it
PIECE = 8 << 20  # bytes; what is smaller isn't shared out among threads


class Gone(Exception):
    """The server is closing."""


class Handle:
    """A tsock_server *, which is closed when nobody is in a call with it."""

    def __init__(self, server: int, closed: Callable[[], None]) -> None:
        self._server, self._closed = server, closed
        # The main thread takes it as a lock of C's, which either is taken by a
        # `with` or isn't: what a signal handler raises within a condition's own
        # __enter__() would leave it locked for ever.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._users: list[int] = []  # the threads that are in a call
        self._closing = False
        self._closer = 0  # the thread that closes it, until it has
        self._pid = os.getpid()

    def __enter__(self) -> int:
        with self._lock:
            if self._closing:
                raise Gone
            self._users.append(threading.get_ident())
        return self._server

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users.remove(threading.get_ident())
            self._changed.notify_all()

    def close(self) -> None:
        if os.getpid() != self._pid:
            return  # a forked child, where it isn't served
        me = threading.get_ident()
        with self._lock:
            if self._closing:
                # Another thread may be at it: then the name isn't free yet.
                if me not in (self._closer, *self._users):
                    self._changed.wait_for(lambda: not self._closer)
                return
            self._closing, self._closer = True, me
        try:
            _lib.tsock_serve_stop(self._server)  # whoever claims wakes up
            # This thread is in no call, though a Ctrl-C, or what a signal
            # handler raised, may have kept it from saying so.
            with self._lock:
                self._changed.wait_for(lambda: all(u == me for u in self._users))
            _lib.tsock_serve_close(self._server)
            self._closed()
        finally:
            with self._lock:
                self._closer = 0
                self._changed.notify_all()

    @property
    def closed(self) -> bool:
        return self._closing


class _Task:
    """Rows of a batch, whose samples were claimed."""

    __slots__ = ("first", "count", "row", "leaves")

    def __init__(
        self, first: int, count: int, row: int, leaves: list[Memory]
    ) -> None:
        self.first = first
        self.count = count
        self.row = row
        self.leaves = leaves


def _on_one_gpu(leaves: list[Memory]) -> list[int]:
    """Which are on the GPU of the first that is on one, in its stream."""
    where = [
        (leaf.device, leaf.stream) if isinstance(leaf, OnGpu) else None
        for leaf in leaves
    ]
    first = next(filter(None, where), None)
    return [i for i, at in enumerate(where) if at and at == first]


class Copiers:
    """So many threads; fail() is told what goes wrong in one."""

    def __init__(
        self,
        handle: Handle,
        sizes: list[int],
        capacity: int,
        threads: int,
        fail: Callable[[BaseException], None],
    ) -> None:
        self._handle = handle
        self._sizes = sizes  # bytes of a row of each field
        self._row_bytes = sum(sizes)
        self._capacity = capacity
        self._fail = fail
        self._lock = threading.Lock()
        self._ending = False
        self.copied = 0  # bytes
        # What the library still reads on a GPU, by a number.
        lent: dict[int, list[Memory]] = {}
        self._lent = lent
        self._numbers = itertools.count(1)

        def give_back(number: int) -> None:
            lent.pop(number, None)

        self._release = _ffi.RELEASE(give_back)
        # Bounded: what waits here are batches of the loader's, in memory.
        self._queue: queue.Queue[Optional[_Task]] = queue.Queue(2 * threads)
        self._threads: list[threading.Thread] = []
        try:
            for _ in range(threads):
                thread = threading.Thread(
                    target=self._work, name="tsock-copy", daemon=True
                )
                thread.start()
                self._threads.append(thread)
        except BaseException:
            self.close()
            raise

    def touch(self) -> None:
        """Map the slots' pages before the first copy has to, one by one."""
        try:
            advise = ctypes.CDLL(None).madvise
        except (AttributeError, OSError):
            return
        advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for field, size in enumerate(self._sizes):
            with self._handle as server:
                first = _lib.tsock_serve_slot(server, field, 0)
                advise(first, self._capacity * size, _POPULATE_WRITE)

    def put(
        self, first: int, count: int, row: int, leaves: list[Memory]
    ) -> None:
        """Copy rows row.. of leaves to samples first..first+count-1."""
        pieces = 1  # on a GPU, where they cost more than they save
        if not any(isinstance(leaf, OnGpu) for leaf in leaves):
            pieces = self._pieces(count)
        for i in range(pieces):
            begin, end = count * i // pieces, count * (i + 1) // pieces
            self._queue.put(
                _Task(first + begin, end - begin, row + begin, leaves)
            )

    def _pieces(self, count: int) -> int:
        return min(
            len(self._threads),
            count,
            max(1, count * self._row_bytes // PIECE),
        )

    def wait(self) -> None:
        """Until all that was put is published, or nothing more can be."""
        self._queue.join()

    def close(self) -> None:
        """End the threads, when all that was put is copied."""
        with self._lock:
            first, self._ending = not self._ending, True
        if first:  # nobody takes what a second call would put
            for _ in self._threads:
                self._queue.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _work(self) -> None:
        broken = False
        while True:
            task = self._queue.get()
            if task is None:
                return
            # A broken one goes on, so that nobody waits for room.
            broken = broken or not self._publish(task)
            task = None
            self._queue.task_done()

    def _publish(self, task: _Task) -> bool:
        try:
            with self._handle as server:
                there = _on_one_gpu(task.leaves)
                fields = range(len(task.leaves))
                self._copy(server, task, [f for f in fields if f not in there])
                if not there or not self._commit_gpu(server, task, there):
                    self._copy(server, task, there)
                    _lib.tsock_serve_commit(server, task.first, task.count)
        except Gone:
            return False
        except BaseException as e:  # noqa: BLE001 - told to everybody
            self._fail(e)
            return False
        return True

    def _commit_gpu(self, server: int, task: _Task, there: list[int]) -> bool:
        """Publish it, with these fields on a GPU; False: it can't be."""
        data = (ctypes.c_void_p * len(task.leaves))()
        copied = 0
        for field in there:
            size = self._sizes[field]
            data[field] = (task.leaves[field].address or 0) + task.row * size
            copied += task.count * size
        leaf, number = task.leaves[there[0]], next(self._numbers)
        assert isinstance(leaf, OnGpu)
        samples = _ffi.GpuSamples(
            device=leaf.device,
            stream=leaf.stream,
            data=data,
            release=self._release,
            arg=number,
        )
        self._lent[number] = task.leaves
        with self._lock:  # before anybody can have read it
            self.copied += copied
        code = _lib.tsock_serve_commit_gpu(
            server, task.first, task.count, ctypes.byref(samples)
        )
        if code:
            del self._lent[number]
            with self._lock:
                self.copied -= copied
            if code != errors.ENOTSUP:  # a library without CUDA
                raise _ffi.failure(code)
        return not code

    def _copy(self, server: int, task: _Task, fields: list[int]) -> None:
        # A run of samples is one piece of memory, up to the ring's end.
        before_end = self._capacity - task.first % self._capacity
        runs = [(0, min(task.count, before_end))]
        if task.count > before_end:
            runs.append((before_end, task.count - before_end))
        copied = 0
        for field in fields:
            leaf, size = task.leaves[field], self._sizes[field]
            for offset, count in runs:
                to = _lib.tsock_serve_slot(
                    server, field, task.first + offset
                )
                if not to:
                    raise _ffi.failure(-5)
                copied += leaf.copy(to, task.row + offset, count, size)
        with self._lock:  # before anybody can have read it
            self.copied += copied
