# SPDX-License-Identifier: MIT
"""One epoch of a loader: next() takes its batches, and the first one joins."""

from __future__ import annotations

import os
import threading
from ctypes import byref, c_void_p
from typing import Any, Optional

from . import _ffi, ending, errors
from .connection import Stream
from .progress import Position
from .source import Source

_lib = _ffi.lib


class Iterator:
    """One epoch of a loader."""

    # Is accelerate told of the last batch?  Its own loaders count themselves.
    tells = True

    def __init__(self, source: Source) -> None:
        self._stream: Optional[Stream] = None  # before what may fail
        self._done = False
        self._out = c_void_p()  # a batch that is taken and not handed out
        self._kept = c_void_p()  # one that is handed out, for use()
        self._ref = byref(self._out)
        self._source = source
        self._position: Optional[Position] = None
        self._ending: Optional[ending.Ending] = None
        self._failure: Optional[errors.Error] = None
        self._lock = threading.RLock()  # threads may share an iterator

    def __iter__(self) -> Iterator:
        return self

    def __len__(self) -> int:
        return self._source.progress.batches

    def __next__(self) -> Any:
        if os.getpid() != self._source.pool.first.pid:
            # What is at hand is the parent's, and so may be a thread that has
            # the lock.
            raise errors.from_code(errors.EFORK, "")
        with self._lock:
            return self._next()

    def _next(self) -> Any:
        if self._kept.value:
            self._let_go()
        out = self._out
        # One is left there when Ctrl-C came between taking and giving.
        if not out.value:
            self._take()
        position = self._position or self._begun()
        source = self._source
        batches = source.batches
        twice = self._ending.look() if self._ending else 0
        made = batches.make(out, source.pin_memory(), twice)
        position.batches += 1
        batch, out.value = out.value, None
        if batches.shared:
            # Until the next one: streams may be named for it.
            self._kept.value = batch
            batches.last = self._kept
            return made
        # The tensors keep it until the last of them dies.
        _lib.tsock_batch_release(batch)
        return made

    def _take(self) -> None:
        while True:
            try:
                self._take_here()
                return
            except errors.Error as e:
                # Before its first batch an epoch may be the next stream's.
                if self._position:
                    raise
                source = self._source.go_on(self._source.pool, e)
                if source is None:
                    raise
            self._source = source
            self._done, self._failure = False, None

    def _take_here(self) -> None:
        if self._done:
            if self._failure:
                raise errors.again(self._failure)
            raise StopIteration
        stream = self._stream or self._join()
        pool, progress = self._source.pool, self._source.progress
        if progress.drops_rest(self._position):
            stream.ask(_lib.tsock_skip, self._source.about.epoch_len)
        pool.turns += 1
        stream.turn = pool.turns
        while True:
            try:
                code = stream.wait(
                    self._source.timeout(),
                    _lib.tsock_next,
                    self._ref,
                    look=stream.look,
                )
                break
            except KeyboardInterrupt:
                stream.hurried = True
                raise
            except errors.TimedOut:
                raise
            except errors.Error as e:
                if e.code != "TSOCK_EHELD":
                    self._failure = e
                    self._end(False)
                    raise
                # On a GPU it may be the batches in hand that are in the way.
                shared = self._source.batches.shared
                if shared or not pool.make_room(stream):
                    raise
        if code == errors.EEPOCH:
            said = stream.heard()
            self._end(True)
            errors.warn_of(said)
            raise StopIteration

    def _join(self) -> Stream:
        pool = self._source.pool
        stream = pool.take()
        try:
            self._source.join(stream)
        except BaseException:
            pool.give(stream, False)
            raise
        self._stream = stream
        pool.joined(stream)
        errors.warn_of(stream.heard())
        return stream

    def _begun(self) -> Position:
        """The first batch is here."""
        assert self._stream is not None
        progress = self._source.progress
        self._position = progress.begun(self._stream, self._out)
        self._ending = ending.of(self._source, self._position, self.tells)
        return self._position

    def _end(self, finished: bool) -> None:
        self._done = True
        if self._ending:
            self._ending.over()
        stream, self._stream = self._stream, None
        if stream and self._position:
            self._position.left()
        if finished and self._position:
            self._source.progress.finished(self._position)
        elif finished:
            self._source.progress.nothing_left()
        elif self._position and not self._failure:
            self._source.progress.broke_off(self._position)
        if stream:
            self._source.pool.give(stream, finished)

    def _let_go(self) -> None:
        batch, self._kept.value = self._kept.value, None
        if batch:
            _lib.tsock_batch_release(batch)

    def _heard_all(self) -> bool:
        """Was the last batch taken, and nobody has asked for one more?"""
        if not self._position or not self._stream:
            return False
        if not self._source.progress.is_over(self._position):
            return False
        code = self._stream.try_wait(_lib.tsock_next, self._ref)
        return code == errors.EEPOCH

    def close(self) -> None:
        """Leave the epoch; the batches that it gave stay valid."""
        self._done = True
        batch, self._out.value = self._out.value, None
        if batch:
            _lib.tsock_batch_release(batch)
        self._let_go()
        if self._stream:
            self._end(self._heard_all())

    def __del__(self) -> None:
        try:
            if self._stream:
                # Perhaps a Ctrl-C has ended the loop, and is under way.
                self._stream.hurried = True
            self.close()
        except KeyboardInterrupt:
            _ffi.interrupted = True  # nothing that is raised here is seen
        except Exception:  # noqa: BLE001 - the interpreter may be going
            pass

    def __reduce__(self) -> Any:
        raise NotImplementedError(
            "an iterator of a tsock.DataLoader can't be pickled; pickle the "
            "loader, which connects anew"
        )
