# SPDX-License-Identifier: MIT
"""A loader's connections to its stream: each a tsock *, used by one iterator.

An iterator takes a connection of its loader's pool when it is asked for its
first batch, and gives it back when it ends.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import deque
from ctypes import byref, c_uint32, c_void_p, create_string_buffer
from typing import Any, Callable, Optional

from . import _ffi, arguments, errors, pools, ranks
from .about import About
from .interrupts import patiently
from .streams import check_stopped, is_running, key_of, opened

_lib = _ffi.lib
_log = logging.getLogger("tsock")

SLICE_MS = 50  # Ctrl-C is seen between two slices of a wait
LOOK = 0.05  # seconds between two looks for the next producer
PATIENCE = 10.0  # seconds of a wait, until it is said for whom
AGAIN = 60.0  # and until it is said once more
ANSWER_MS = 200  # for the producer to say for whom a wait was
LEAVE_MS = 1000  # at most, until the producer has confirmed that one left

LEFT_BEHIND = (
    "this iterator was left behind: another iterator of its tsock.DataLoader, "
    "in the same thread, needed a sample that could not be made before this "
    "one went on; read them in step, or from two threads"
)


class Stream:
    """A tsock *, by one thread at a time, and only in its own process."""

    def __init__(self, name: Any, opts: _ffi.Opts, wait: float) -> None:
        self.handle: Optional[int] = None
        self.lock = threading.Lock()
        self.pid = os.getpid()
        self.log: Optional[str] = None  # of the producer, a file
        self.thread = 0  # that joined
        self.begun = True  # was a batch of the epoch joined last taken?
        self.epoch = -1  # which that was
        self.missed = 0  # samples, as of the last call of wait()
        self.turn = 0  # when it was last asked for a batch, by Pool.turns
        self.hurried = False  # did Ctrl-C end the last wait?
        self.gone = "this tsock.DataLoader is closed: make another one"
        self.rank_reader: Optional[ranks.RankReader] = None
        # Has a producer started again that is gone.
        self.revive: Optional[Callable[[], None]] = None
        opts.timeout_ms = min(max(int(wait * 1000), 1), 2**32 - 1)

        def connect() -> tuple[Optional[int], Optional[errors.Error]]:
            out = c_void_p()
            code = _lib.tsock_open(
                arguments.stream_name(name), byref(opts), byref(out)
            )
            return out.value, _ffi.failure(code) if code else None

        def undo(result: tuple[Optional[int], Any]) -> None:
            if result[0]:
                _lib.tsock_close(result[0])

        self.handle, failure = patiently(connect, undo)
        if failure:
            raise failure

    def check(self) -> int:
        """The handle, if it may be used."""
        if os.getpid() != self.pid:
            raise errors.from_code(errors.EFORK, "")
        if self.handle is None:
            raise errors.Error(self.gone)
        return self.handle

    def ask(self, function: Callable[..., Any], *rest: Any) -> Any:
        """function(handle, ...), with nobody else using the handle."""
        with self.lock:
            return function(self.check(), *rest)

    def wait(
        self,
        timeout: float,
        function: Callable[..., int],
        *rest: Any,
        look: Optional[Callable[[], None]] = None,
    ) -> int:
        """function(handle, ms, ...) until it has a result; 0, or EEPOCH at the
        end.

        look: called again and again meanwhile; what it raises ends the wait.
        """
        code: int
        with self.lock:
            handle = self.check()
            code = function(handle, SLICE_MS if not timeout else 0, *rest)
            self.missed = _lib.tsock_missed(handle)
            if code == 0 and not _ffi.interrupted:
                return 0
            failure = self._failure(code)
        deadline = time.monotonic() + timeout if timeout else None
        ms = SLICE_MS
        while True:
            _ffi.check_interrupt()
            if failure:
                try:
                    raise failure
                finally:
                    # Else this frame and its traceback hold each other, and
                    # what callers' frames have later: a batch on a GPU.
                    failure = None
            if code != errors.EAGAIN:
                return code
            if look:
                look()
            if self.revive and self.ask(_lib.tsock_lost) == 1:
                self.revive()
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise self._late(timeout)
                ms = max(0, min(SLICE_MS, math.ceil(left * 1000)))
            with self.lock:
                handle = self.check()
                code = function(handle, ms, *rest)
                self.missed = _lib.tsock_missed(handle)
                failure = self._failure(code)

    def _failure(self, code: int) -> Optional[errors.Error]:
        if code in (0, errors.EAGAIN, errors.EEPOCH):
            return None
        return errors.naming_log(_ffi.failure(code), self.log)

    def _late(self, timeout: float) -> errors.Error:
        text = "tsock.DataLoader timed out after %g seconds" % timeout
        whom = self._whom()
        return errors.TimedOut(
            text + ": it waited for " + whom if whom else text
        )

    def _whom(self) -> str:
        said = create_string_buffer(_ffi.WAITS_FOR)
        self.ask(_lib.tsock_waits_for, ANSWER_MS, said, len(said))
        return said.value.decode("utf-8", "replace")

    def look(self) -> None:
        """Called while samples are waited for."""
        if self.rank_reader:
            self.rank_reader.check_wait(self._whom)

    def try_wait(self, function: Callable[..., int], *rest: Any) -> int:
        """function(handle, 0, ...), or EAGAIN where it can't be called now.

        Any thread, and the garbage collector.
        """
        if os.getpid() != self.pid or not self.lock.acquire(blocking=False):
            return errors.EAGAIN
        try:
            if self.handle is None:
                return errors.EAGAIN
            return function(self.handle, 0, *rest)
        finally:
            self.lock.release()

    def begin(self, timeout: float, again: bool = False) -> None:
        """Join; again: the epoch that was left may be begun once more."""
        if again:
            self.ask(_lib.tsock_rewind)
        self._join(timeout, _lib.tsock_begin_timed)

    def begin_from(self, epoch: int, timeout: float) -> None:
        """Begin that epoch or a later one, unless that was done."""

        def begin(handle: int, ms: int) -> int:
            code: int = _lib.tsock_begin_from(handle, epoch, ms)
            return code

        self._join(timeout, begin)

    def resume(self, start: int, samples: int, timeout: float) -> None:
        """Join after so many samples of the epoch that begins at start."""

        def resume(handle: int, ms: int) -> int:
            code: int = _lib.tsock_resume(handle, start, samples, ms)
            return code

        self._join(timeout, resume)

    def _join(self, timeout: float, function: Callable[..., int]) -> None:
        self.thread = threading.get_ident()
        self.hurried = False
        look = None
        if self.rank_reader:
            self.rank_reader.use()
            look = self.rank_reader.check_others
        try:
            self.wait(timeout, function, look=look)
            self.epoch = self.ask(_lib.tsock_epoch)
            self.begun = False
        except BaseException as e:
            self.hurried = isinstance(e, KeyboardInterrupt)
            self.leave()  # nobody will ask for its samples
            raise

    def heard(self) -> list[tuple[int, str]]:
        """The producer's warnings to all readers that are new to this one."""
        kind, said = c_uint32(), []
        with self.lock:
            while self.handle is not None:
                text = _lib.tsock_warning(self.handle, 1000, byref(kind))
                if text is None:
                    break
                said.append((kind.value, text.decode("utf-8", "replace")))
        return said

    def _leave(self, handle: int) -> None:
        """Leave, and wait until that is confirmed, but not after a Ctrl-C."""
        try:
            for _ in range(1 if self.hurried else LEAVE_MS // SLICE_MS):
                code = _lib.tsock_leave_timed(handle, SLICE_MS)
                if code != errors.EAGAIN:
                    break
        except KeyboardInterrupt:
            self.hurried = True
            raise

    def leave(self) -> None:
        """Read no more, and be ready to join again."""
        if os.getpid() != self.pid:
            return
        # Called by the garbage collector too.  If the lock is taken then,
        # close() has it, which leaves.
        if not self.lock.acquire(blocking=False):
            return
        try:
            if self.handle is not None:
                self._leave(self.handle)
        finally:
            self.lock.release()

    def close(self, why: Optional[str] = None, wait: float = 5) -> bool:
        """Close it, unless some thread is in a call for as long as wait."""
        if os.getpid() != self.pid:
            return False
        # A thread that is inside a call for a slice lets go soon.
        if not self.lock.acquire(timeout=wait):
            return False
        try:
            self.gone = why or self.gone
            handle, self.handle = self.handle, None
            if handle is not None:
                try:
                    self._leave(handle)
                finally:
                    _lib.tsock_close(handle)
        finally:
            self.lock.release()
        return True


# Connections that this process has made for ranks, by stream, rank and world:
# the n-th ones of all ranks belong together.
made: dict[tuple[str, int, int, Optional[str]], int] = {}


class Pool:
    """The connections of a loader: one, and more while several iterators read.

    One of them at most reads while no iterator does, between two epochs: the
    one of the iterator that ended last.  Others would wait for an epoch that
    nobody may ever ask them for, and the stream for them.
    """

    def __init__(
        self,
        name: Any,
        opts: _ffi.Opts,
        wait: float,
        revive: Optional[Callable[[], None]] = None,
    ) -> None:
        self._revive = revive
        self._name, self._opts, self._wait = name, opts, wait
        self._opened = time.monotonic_ns()
        opened.setdefault(key_of(name), self._opened)
        self._rank: tuple[int, int, Optional[str]] = 0, 1, None
        self.first = self._connect()
        try:
            self.about = About(self.first.check(), name)
            self.first.log = self.about.log
        except BaseException:
            self.first.close()
            raise
        self._all = [self.first]
        self._idle = deque(self._all)
        # Does the library leave the stream at an epoch's end?
        self._leaves = (
            self.about.sequential
            if opts.between == _ffi.BETWEENS[None]
            else opts.between == _ffi.BETWEENS["leave"]
        )
        self._reading: set[Stream] = set()
        self._holds = False  # is one a reader while no iterator is?
        self.closed = False
        self.turns = 0
        pools.add(self)
        self._missed = 0  # by connections that make_room() closed

    def _connect(self) -> Stream:
        stream = Stream(self._name, self._opts, self._wait)
        stream.revive = self._revive
        try:
            self._set_rank(stream)
        except BaseException:
            stream.close()
            raise
        return stream

    def _connect_once_more(self) -> Stream:
        """Another connection; for a producer that is gone this waits no longer
        than its readers do."""
        wait = float(self._opts.rejoin_ms) / 1000
        if not self.about.resumable:
            wait = 0
        begin = time.monotonic()
        end, say = begin + wait, begin + PATIENCE
        self.check_stopped()
        while not is_running(self._name):
            self.check_stopped()
            if wait and self._revive:
                self._revive()
                if is_running(self._name):
                    break
            now = time.monotonic()
            left = end - now
            if left <= 0:
                raise self._err_gone(wait)
            if now >= say:
                say = now + AGAIN
                _log.warning(
                    "'%s': this loader has waited %d s for the next producer, "
                    "since the last one is gone; it waits for %g s at most "
                    "(rejoin_timeout)",
                    self._name,
                    now - begin,
                    wait,
                )
            time.sleep(min(left, LOOK))
        return self._connect()

    def check_stopped(self) -> None:
        """Raise StreamEnded if somebody stopped the stream for good."""
        check_stopped(self._name, self._opened)

    def _err_gone(self, wait: float) -> errors.Error:
        why = ", and no other one came within %g s" % wait if wait else ""
        error = errors.from_code(
            errors.ELOST,
            "the producer of %r is gone%s: make a new tsock.DataLoader"
            % (self._name, why),
        )
        return errors.naming_log(error, self.about.log)

    def set_rank(self, rank: int, world: int, job: Optional[str]) -> None:
        """Read that rank's part, while no iterator reads."""
        if self._rank == (rank, world, job):
            return
        before, self._rank = self._rank, (rank, world, job)
        try:
            for stream in self._all:
                self._set_rank(stream)
        except BaseException:
            self._rank = before
            raise

    def _set_rank(self, stream: Stream) -> None:
        rank, world, job = self._rank
        said, stream.rank_reader = b"", None
        if world > 1:
            key = str(self._name), rank, world, job
            made[key] = made.get(key, 0) + 1
            said = ranks.job_of(job, key[0], world, made[key])
        code = stream.ask(_lib.tsock_set_rank, rank, world, said or None)
        if code:
            raise _ffi.failure(code)
        if world > 1:
            stream.rank_reader = ranks.RankReader(rank, world, said)

    def ask(self, function: Callable[..., Any], *rest: Any) -> Any:
        """function(handle, ...) of some connection."""
        stream = self._all[0] if self._all else self.first
        return stream.ask(function, *rest)

    def missed(self) -> int:
        """The samples that all connections have missed together."""
        return self._missed + sum(s.missed for s in self._all)

    def go_on_after(self, before: Pool) -> None:
        """Continue where the connections of another pool have read until
        now."""
        self._missed = before.missed()

    def check(self) -> None:
        """Raise what taking a connection would raise."""
        if self.closed or os.getpid() != self.first.pid:
            self.first.check()
        for stream in list(self._idle):
            if stream.rank_reader:
                stream.rank_reader.use()

    def take(self) -> Stream:
        """A connection for an iterator, which has to give() it back."""
        self.check()
        self._holds = False
        try:
            return self._idle.pop()  # the one that is a reader still, if any
        except IndexError:
            pass
        stream = self._connect_once_more()
        if self._is_another(About(stream.check(), self._name)):
            stream.close()
            raise errors.from_code(
                errors.ELOST,
                "the producer of %r was restarted: make a new "
                "tsock.DataLoader" % (self._name,),
            )
        stream.log = self.about.log
        self._all.append(stream)
        if self.closed:
            self.close()
            stream.check()
        return stream

    def _is_another(self, about: About) -> bool:
        """Is that another stream, or one whose place nobody knows?"""
        if about.resumable and self._opts.rejoin_ms:
            return about.stream != self.about.stream
        return about.run != self.about.run

    @property
    def name(self) -> Any:
        return self._name

    def joined(self, stream: Stream) -> None:
        """The stream is a reader."""
        self._reading.add(stream)

    @property
    def readers(self) -> int:
        """How many iterators read."""
        return len(self._reading)

    @property
    def run(self) -> Any:
        """Which stream they are of, and which run of its producer."""
        return self.about.run

    @property
    def reads(self) -> bool:
        """Is one of them a reader of the stream?"""
        return bool(self._reading) or self._holds

    @property
    def others_read(self) -> bool:
        """Is another loader of this process a reader of the stream?"""
        return any(
            pool is not self
            and pool.run == self.run
            and pool.reads
            for pool in pools.every()
        )

    def give(self, stream: Stream, finished: bool) -> None:
        """Its iterator has heard the epoch's end (finished), or is gone."""
        self._reading.discard(stream)
        try:
            # At an epoch's end the library has left, perhaps, and not waited
            # until that was confirmed.
            self._holds = not (not finished or self._reading or self._leaves)
            if not self._holds:
                stream.leave()
        finally:
            if stream.handle is not None:
                self._idle.append(stream)

    def leave_between(self) -> None:
        """Read no more, unless an iterator does."""
        if self._holds:
            self._holds = False
            for stream in list(self._idle):
                stream.leave()

    def make_room(self, stream: Stream) -> bool:
        """Close the connection that this thread has used the longest ago."""
        mine = [
            other
            for other in self._reading
            if other is not stream and other.thread == stream.thread
        ]
        if not mine:
            return False
        last = min(mine, key=lambda other: other.turn)
        if not last.close(LEFT_BEHIND, wait=0):
            return False
        self._reading.discard(last)
        self._all.remove(last)
        self._missed += last.missed
        return True

    def close(self) -> None:
        self.closed, self._holds = True, False
        interrupt = None
        for stream in self._all:
            try:
                stream.close()
            except KeyboardInterrupt as e:
                interrupt = e
                for other in self._all:
                    other.hurried = True
        if interrupt:
            raise interrupt
