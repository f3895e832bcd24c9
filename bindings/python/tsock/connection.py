# SPDX-License-Identifier: MIT
"""A loader's connection to its stream: a tsock * and who may use it when."""

import math
import os
import threading
import time
from ctypes import byref, c_void_p

from . import _ffi, arguments, errors

_lib = _ffi.lib

SLICE_MS = 50  # Ctrl-C is seen between two slices of a wait


class Stream:
    """A tsock *, by one thread at a time, and only in its own process.

    Of all the iterators that were made of it one at most is current: the one
    with the highest serial number.
    """

    def __init__(self, name, opts, wait):
        self.handle = None
        self.lock = threading.Lock()
        self.pid = os.getpid()
        self.serial = 0
        self.ended = 0  # the serial that reached its epoch's end
        opts.timeout_ms = min(max(int(wait * 1000), 1), 2**32 - 1)

        def connect():
            out = c_void_p()
            code = _lib.tsock_open(
                arguments.stream_name(name), byref(opts), byref(out)
            )
            return out.value, code and _ffi.failure(code)

        def undo(result):
            if result[0]:
                _lib.tsock_close(result[0])

        self.handle, failure = _ffi.patiently(connect, undo)
        if failure:
            raise failure

    def _check(self, serial=None):
        if self.handle is None:
            raise errors.Error("this tsock.DataLoader is closed")
        if serial is not None and serial != self.serial:
            raise errors.Error(
                "this iterator has ended, because iter() was called again on "
                "its tsock.DataLoader: a loader has one iterator at a time; "
                "make another loader to read twice at once"
            )

    def wait(self, serial, timeout, call):
        """Repeat call(ms) until it knows; 0 or the end of the epoch."""
        deadline = time.monotonic() + timeout if timeout else None
        ms = SLICE_MS
        while True:
            if os.getpid() != self.pid:
                raise errors.from_code(errors.EFORK, "")
            if deadline is not None:
                left = deadline - time.monotonic()
                ms = max(0, min(SLICE_MS, math.ceil(left * 1000)))
            with self.lock:
                self._check(serial)
                code = call(ms)
                failure = (
                    _ffi.failure(code)
                    if code not in (0, errors.EAGAIN, errors.EEPOCH)
                    else None
                )
            if _ffi.interrupted:
                _ffi.check_interrupt()
            if failure:
                raise failure
            if code != errors.EAGAIN:
                return code
            if deadline is not None and time.monotonic() >= deadline:
                raise errors.TimedOut(
                    "tsock.DataLoader timed out after %g seconds" % timeout
                )

    def begin(self, timeout):
        """Join; the serial number of the new iterator."""
        if os.getpid() != self.pid:
            raise errors.from_code(errors.EFORK, "")
        with self.lock:
            self._check()
            self.serial += 1
            serial = self.serial
        try:
            self.wait(
                serial,
                timeout,
                lambda ms: _lib.tsock_begin_timed(self.handle, ms),
            )
        except BaseException:
            self.leave(serial)  # nobody will ask for its samples
            raise
        return serial

    def leave(self, serial):
        """The iterator with this serial number is no more."""
        if os.getpid() != self.pid:
            return
        # Called by the garbage collector too, maybe inside a call on this
        # very thread: then an iterator is being made, and that call leaves.
        if not self.lock.acquire(blocking=False):
            return
        try:
            if (
                self.handle is not None
                and serial == self.serial
                and serial != self.ended
            ):
                _lib.tsock_leave(self.handle)
        finally:
            self.lock.release()

    def close(self):
        if os.getpid() != self.pid:
            return
        # A thread that is inside a call for a slice lets go soon.
        if not self.lock.acquire(timeout=5):
            return
        try:
            handle, self.handle = self.handle, None
            if handle is not None:
                _lib.tsock_close(handle)
        finally:
            self.lock.release()
