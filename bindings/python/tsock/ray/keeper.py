# SPDX-License-Identifier: MIT
"""The actor that has the producer of a stream on a node of Ray's."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from typing import Mapping, Optional

from .. import _ffi, attach, errors, launch
from ..producer import following_thread
from ..streams import is_running
from ..streams import stop as stop_stream
from .nodes import made_folder, ray

VERSION = _ffi.lib.tsock_version_string().decode()
_KEPT = 20.0  # seconds that an actor without a producer waits for loaders


class _Child(launch.Launch):
    """A start of a producer that ends with the thread that starts it."""

    process: Optional[subprocess.Popen[bytes]] = None

    def run(self) -> int:
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                following_thread(self.command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=launch.environment(self.folder),
                start_new_session=True,
            )
        return self.process.pid


class Keeper:
    """The actor that has the producer of one stream on one node.

    Its thread starts the producer and looks after it; the methods, which Ray
    runs one by one, never wait for that.
    """

    def __init__(self, name: str, node: str, threads: int) -> None:
        self._me = ray.get_runtime_context().current_actor
        self._path = os.path.join(made_folder(node), name)
        self._threads = threads
        self._changed = threading.Condition()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._options: dict[str, str] = {}  # of the last start
        self._starts = 0
        self._starting = self._ends = False
        self._failed: Optional[str] = None  # why the last start has failed
        self._used = time.monotonic()
        threading.Thread(
            target=self._look_after, name="tsock-keeper", daemon=True
        ).start()

    def hello(self) -> tuple[str, str]:
        """The stream's path, and the version of tsock here."""
        self._used = time.monotonic()
        return self._path, VERSION

    def hold(
        self, checked: Mapping[str, str]
    ) -> Optional[tuple[int, dict[str, str]]]:
        """Have a producer started unless one runs; the start's number, for
        look(), and the options of the producer.  None: the actor ends."""
        with self._changed:
            if self._ends:
                return None
            self._used = time.monotonic()
            if not self._starting and not is_running(self._path):
                self._options = {**checked, "threads": str(self._threads)}
                self._starts += 1
                self._starting, self._failed = True, None
                self._changed.notify()
            return self._starts, self._options

    def look(self, start: int) -> tuple[Optional[bool], str]:
        """True if the producer of that start serves, None while it starts, or
        False and why it doesn't; and what its log says."""
        self._used = time.monotonic()
        if start == self._starts and self._failed is not None:
            return False, self._failed
        if start == self._starts and self._starting:
            return None, launch.last_line(self._path + ".log")
        return True, ""

    def stop(self, force: bool) -> Optional[str]:
        """End the stream for good; why not, if it was refused."""
        try:
            stop_stream(self._path, force)
        except errors.NoProducer:
            pass
        except errors.Error as e:
            return str(e)
        return None

    def _is_unused(self) -> bool:
        if self._starting:
            return False
        if self._process is not None:
            status = self._process.poll()
            if status is None:
                self._used = time.monotonic()
                return False
            if status == 0:  # of one that was stopped, or had been idle
                return True
        return time.monotonic() - self._used > _KEPT

    def _look_after(self) -> None:
        """The thread: start producers, and end the actor after the last."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._starting, 1)
                self._ends = self._is_unused()
            if self._ends:
                # Not by exit_actor(), which only a task can call: this thread
                # would call that, and the actor wait for its answer first.
                ray.kill(self._me)
                return
            if self._starting:
                failed = self._start()
                with self._changed:
                    self._failed, self._starting = failed, False

    def _start(self) -> Optional[str]:
        """Start a producer; why there is none, or None."""
        try:
            started = attach.run_producer(_Child, self._path, self._options)
        except Exception as e:  # noqa: BLE001 - it is somebody else's to know
            return str(e)
        self._process = started.process
        return None
