# SPDX-License-Identifier: MIT
"""tsock.Producer: the program tsock-producer as a child of this process.

It starts the program, waits until the stream answers, and ends it.  It never
touches a sample, and the program needs no Python.
"""

from __future__ import annotations

import collections
import logging
import os
import shutil
import signal
import subprocess
import threading
import time
import weakref
from typing import IO, TYPE_CHECKING, Any, Mapping, Optional, Union

from . import errors, identity, options, pools
from .indexing.automatic import with_table
from .streams import query

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .option_table import ProducerOptions

_log = logging.getLogger("tsock.producer")

_USAGE = 2  # the program's exit status after a wrong option


def find_program() -> str:
    """tsock-producer: $TSOCK_PRODUCER, the package's, the checkout's, $PATH's.

    The package has its own where pip brought it, see backend/tsock_build.py.
    """
    own = os.environ.get("TSOCK_PRODUCER")
    if own:
        return own
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.join(here, "_lib", "tsock-producer")
    checkout = os.path.normpath(
        os.path.join(here, "..", "..", "..", "build", "bin", "tsock-producer")
    )
    for path in (beside, checkout):
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("tsock-producer")
    if found:
        return found
    raise FileNotFoundError(
        "can't find tsock-producer: neither %s nor %s nor in $PATH; build it "
        "with `make`, or set TSOCK_PRODUCER to it" % (beside, checkout)
    )


def describe(
    program: str, checked: Mapping[str, str]
) -> tuple[str, dict[str, list[str]]]:
    """What the program would serve with these options, without serving it.

    The stream's name, and by key the values of which its identity has one.
    """
    done = subprocess.run(
        options.command_line(program, None, checked) + ["--describe"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    values: dict[str, list[str]] = {}
    for key, value in identity.lines(os.fsdecode(done.stdout)):
        values.setdefault(key, []).append(value)
    # Its status may have been taken by another wait() of this process.
    if "name" in values:
        return values.pop("name")[0], values
    said = done.stderr.decode("utf-8", "replace").strip()
    said = said.rpartition("\n")[2].partition("tsock-producer: ")[2] or said
    if done.returncode == _USAGE:
        raise ValueError("%s: %s" % (program, said))
    raise errors.Error(
        "%s --describe ended with status %d: %s"
        % (program, done.returncode, said or "it said nothing")
    )


def following_thread(command: list[str]) -> list[str]:
    """The command, such that the program ends with the thread that starts it,
    where that is possible."""
    setpriv = shutil.which("setpriv")
    if setpriv:
        return [setpriv, "--pdeathsig", "TERM", "--"] + command
    return command


def _follow_parent(command: list[str]) -> list[str]:
    """Let the producer end when this process is killed, where that is possible.

    The kernel's signal comes at the end of the thread that started the child,
    so only the main thread may ask for it.
    """
    if threading.current_thread() is threading.main_thread():
        return following_thread(command)
    return command


class Producer:
    """A running tsock-producer.

    with tsock.Producer(dataset="imagenet", root="/data/imagenet") as p:
        for images, labels in tsock.DataLoader(p.name, batch_size=256): ...

    Every keyword is an option of the program (see ``tsock-producer --help``):
    ``split="val"`` is ``--split val``, and True is an option without value.
    Returns when the stream answers; wait is how many seconds that may take.
    Its log lines go to the logger "tsock.producer".
    """

    def __init__(
        self,
        *,
        name: Optional[str] = None,
        wait: float = 600.0,
        program: Union[str, os.PathLike[str], None] = None,
        **producer: Unpack[ProducerOptions],
    ) -> None:
        checked = with_table(options.check("tsock.Producer", producer))
        if "root" not in checked:
            raise TypeError("tsock.Producer needs root=")
        path = os.fspath(program or find_program())
        self.name = name or describe(path, checked)[0]
        self.args = options.command_line(path, self.name, checked)
        self._lines: collections.deque[str] = collections.deque(maxlen=20)
        self._process = subprocess.Popen(
            _follow_parent(self.args),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._finalizer = weakref.finalize(self, _end, self._process)
        self._reader = threading.Thread(
            target=_read,
            args=(self._process.stdout, self._lines),
            name="tsock-producer",
            daemon=True,
        )
        self._reader.start()
        try:
            self._until_it_answers(wait)
        except BaseException:
            self.close()
            raise

    def _until_it_answers(self, wait: float) -> None:
        deadline = time.monotonic() + wait
        while True:
            if self._process.poll() is not None:
                self._reader.join(1)
                raise errors.Error(
                    "tsock-producer ended with status %d: %s"
                    % (
                        self._process.returncode,
                        "\n".join(self._lines) or "it said nothing",
                    )
                )
            try:
                if query(self.name, 0.2)["pid"] == self.pid:
                    return
            except errors.Error:
                pass
            if time.monotonic() > deadline:
                raise errors.NoProducer(
                    "tsock-producer does not answer as %r within %g seconds"
                    % (self.name, wait)
                )
            time.sleep(0.02)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> Optional[int]:
        """None while it runs."""
        return self._process.poll()

    def wait(self, timeout: Optional[float] = None) -> int:
        """Wait until it ends by itself (epochs=..., exit_when_idle=...)."""
        return self._process.wait(timeout)

    def close(self) -> None:
        """End it; its consumers get tsock.ProducerLost.

        Loaders of this process that are between two epochs leave first, so that
        the next producer keeps no samples for them.
        """
        pools.leave_between(self.name)
        self._finalizer()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        code = self._process.poll()
        return "<tsock.Producer %r, pid %d, %s>" % (
            self.name,
            self.pid,
            "running" if code is None else "ended with status %d" % code,
        )


def _read(pipe: IO[bytes], lines: collections.deque[str]) -> None:
    with pipe:
        for line in pipe:
            text = line.decode("utf-8", "replace").rstrip()
            lines.append(text)
            _log.info("%s", text)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    # One that is stopped gets no other signal until it goes on.
    process.send_signal(signal.SIGCONT)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
