# SPDX-License-Identifier: MIT
"""A python that has torch imported already.

An import of torch takes seconds of CPU time, and many tests run small scripts
that need it.  So one process, the server, imports torch and forks for each of
those scripts:

    python warm.py --serve SOCKET EXECUTABLE MODULE...   is the server,
    python warm.py SOCKET [what python takes]            runs a script.

The second command, which EXECUTABLE runs, stands in for python.  It sends the
server its arguments, environment, folder and standard descriptors, passes
signals on, and ends as the script ended.  If it is killed, the server kills the
script.

What differs from python: the script's process id is not that of the command,
its process group and session are the server's, and /proc shows the server's
command line and environment for it.  Tests of such things use python itself.
"""

import array
import marshal
import os
import signal
import socket
import struct
import sys

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)


# ---- in place of python ----


def start(path, arguments):
    """The connection, and the script's process id."""
    to = socket.socket(socket.AF_UNIX)
    to.connect(path)
    said = marshal.dumps((arguments, os.getcwd(), dict(os.environ)))
    fds = array.array("i", [0, 1, 2]).tobytes()
    how = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
    to.sendmsg([struct.pack("=I", len(said))], how)
    to.sendall(said)
    return to, struct.unpack("=i", exactly(to, 4))[0]


def exactly(connection, n):
    got = b""
    while len(got) < n:
        more = connection.recv(n - len(got))
        if not more:
            raise EOFError
        got += more
    return got


def run(path, arguments):
    # What comes before the script's process is there waits for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    to, pid = start(path, arguments)
    for number in PASSED_ON:
        signal.signal(number, lambda number, _: os.kill(pid, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    # The script's alone, so that who reads them sees their end.
    for fd in (0, 1, 2):
        os.close(fd)
    status = struct.unpack("=i", exactly(to, 4))[0]
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


# ---- in the server ----


class Script:
    """What python was told to run."""

    def __init__(self, connection):
        said, fds, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(12))
        (level, kind, data), = fds
        assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        self.fds = struct.unpack("=3i", data)
        said = exactly(connection, struct.unpack("=I", said)[0])
        self.arguments, self.folder, self.environment = marshal.loads(said)

    def become(self, executable):
        """In a process of its own."""
        for fd in range(3):
            os.dup2(self.fds[fd], fd)
        for fd in self.fds:
            os.close(fd)
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        sys.executable = executable
        paths = self.environment.get("PYTHONPATH", "")
        sys.path[:0] = [os.path.abspath(p) for p in paths.split(":") if p]
        if os.environ.get("PYTHONUNBUFFERED"):
            sys.stdout.reconfigure(line_buffering=True)
        if "OMP_NUM_THREADS" in os.environ:
            import torch

            torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        import random

        random.seed()

    def run(self):
        if self.arguments[0] == "-u":
            sys.stdout.reconfigure(line_buffering=True)
            del self.arguments[0]
        how = self.arguments[0]
        if how == "-m":
            import runpy

            sys.path.insert(0, os.getcwd())
            sys.argv[:] = self.arguments[1:]
            runpy._run_module_as_main(self.arguments[1])
            return
        import types

        main = types.ModuleType("__main__")
        main.__builtins__ = __builtins__
        if how == "-c":
            sys.path.insert(0, "")
            sys.argv[:] = ["-c"] + self.arguments[2:]
            code = compile(self.arguments[1], "<string>", "exec")
        elif how == "-":
            sys.path.insert(0, "")
            sys.argv[:] = self.arguments
            code = compile(sys.stdin.read(), "<stdin>", "exec")
        else:
            assert not how.startswith("-"), how
            sys.path.insert(0, os.path.dirname(os.path.abspath(how)))
            sys.argv[:] = self.arguments
            main.__file__ = os.path.abspath(how)
            with open(how, "rb") as f:
                code = compile(f.read(), main.__file__, "exec")
        sys.modules["__main__"] = main
        exec(code, main.__dict__)


def serve(path, executable):
    """Returns in the process of a script, with that."""
    import select

    read, write = os.pipe()
    os.set_blocking(write, False)
    os.set_blocking(read, False)
    signal.set_wakeup_fd(write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    os.write(1, b"ready\n")
    running = {}  # connections, and the process of each

    while True:
        # The standard input ends with the tests.
        ready = select.select([0, read, listener, *running], [], [])[0]
        if 0 in ready:
            for pid in running.values():
                os.kill(pid, signal.SIGKILL)
            os._exit(0)
        if read in ready:
            os.read(read, 4096)
            for connection, pid in list(running.items()):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    del running[connection]
                    try:
                        connection.sendall(struct.pack("=i", status))
                    except OSError:
                        pass  # killed
                    connection.close()
        for connection in ready:
            if connection in running:
                os.kill(running[connection], signal.SIGKILL)
        if listener not in ready:
            continue
        connection = listener.accept()[0]
        try:
            script = Script(connection)
        except (EOFError, ValueError, OSError):
            connection.close()
            continue
        pid = os.fork()
        if pid:
            for fd in script.fds:
                os.close(fd)
            running[connection] = pid
            connection.sendall(struct.pack("=i", pid))
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for each in (listener, connection, *running):
            each.close()
        os.close(read)
        os.close(write)
        script.become(executable)
        return script


def main():
    if sys.argv[1] != "--serve":
        run(sys.argv[1], sys.argv[2:])
    path, executable, *modules = sys.argv[2:]
    del sys.path[0]  # the folder of tests
    # Looked at when it is imported.
    import multiprocessing.spawn  # noqa: F401

    for module in modules:
        try:
            __import__(module)
        except ImportError:
            pass  # a script that needs it says so
    return serve(path, executable)


if __name__ == "__main__":
    script = main()
    try:
        script.run()
    except SystemExit:
        raise
    except BaseException as e:
        # As if nothing of this file had called it.
        trace = e.__traceback__
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(e), e, trace)
        sys.exit(1)
