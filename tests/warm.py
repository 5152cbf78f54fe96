"""Commands and Python in processes of their own that have their imports behind them.

Torch, transformers and the cookbook take seconds to import; a job of one small step takes one. So
a server imports them once, and each process is a fork of it, with a folder, an environment and
output of its own. In a run of several workers that server is itself a fork, see `tests.preloaded`.
"""

import multiprocessing
import os
import resource
import runpy
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext, ForkServerProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO

from tests.preloaded import MODULES

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(list(MODULES))


def fork_the_server(python: str) -> None:
    """Let the server be a fork of what `python` forks, which has the same imports behind it."""
    resource_tracker.ensure_running()
    multiprocessing.set_executable(python)
    forkserver.ensure_running()
    multiprocessing.set_executable(sys.executable)


def start_tokengym(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], output: Path
) -> ForkServerProcess:
    """Start the command.

    Args:
        arguments: what is typed after `tokengym`.
        folder: where it is typed.
        environment: all variables it sees.
        output: a file for what it prints on both streams.
    """
    process = CONTEXT.Process(
        target=_tokengym, args=(list(arguments), folder, dict(environment), output)
    )
    process.start()
    return process


class ForkedService:
    """The child process of a `LocalService`: a fork in place of a new interpreter.

    Args:
        arguments: options and values of `python -m tokengym.agents.service`.
        environment: all variables it sees.
        log: the file to which it appends its standard error.
    """

    context: BaseContext = CONTEXT
    """How it forks."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: IO[bytes]
    ) -> None:
        read, write = self.context.Pipe(duplex=False)
        self._process: BaseProcess = self.context.Process(  # type: ignore[attr-defined]
            target=_serve, args=(list(arguments), dict(environment), Path(log.name), write)
        )
        self._process.start()
        write.close()
        self.stdout: IO[bytes] | None = os.fdopen(os.dup(read.fileno()), "rb", buffering=0)
        read.close()
        assert self._process.pid is not None
        self.pid = self._process.pid
        # The exit status is read from a pipe, once.
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        with self._lock:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        if not wait([self._process.sentinel], timeout):
            raise subprocess.TimeoutExpired("serve", timeout or 0.0)
        with self._lock:
            self._process.join()  # its files are closed; it may not have ended
            assert self._process.exitcode is not None
            return self._process.exitcode

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class NestedService(ForkedService):
    """One started by a process that is such a fork itself.

    A fork of the server cannot reach it, and would start one more, with all its imports.
    """

    context = multiprocessing.get_context("fork")


def run_tokengym(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], output: Path
) -> int:
    """Run the command until it ends; returns its exit status. See `start_tokengym`."""
    return _status(start_tokengym(arguments, folder, environment, output))


def run_python(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], output: Path
) -> int:
    """Run `python SCRIPT ...` or `python -m MODULE ...`; returns its exit status.

    Args:
        arguments: what is typed after `python`.
        folder: where it is typed.
        environment: all variables it sees.
        output: a file for what it prints on both streams.
    """
    process = CONTEXT.Process(
        target=_python, args=(list(arguments), folder, dict(environment), output)
    )
    process.start()
    return _status(process)


class Interpreter:
    """Runs one piece of Python after another in the same names.

    Args:
        folder: where it runs.
        environment: all variables it sees.
        output: a file for what it prints on both streams.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], output: Path) -> None:
        self._connection, there = CONTEXT.Pipe()
        self._output, self._read = output, 0
        self._process = CONTEXT.Process(
            target=_interpret, args=(there, folder, dict(environment), output)
        )
        self._process.start()
        there.close()

    def execute(self, source: str, name: str) -> tuple[bool, str]:
        """Run a piece; returns whether it got to its end, and what it printed.

        Args:
            source: the piece.
            name: of the file that tracebacks show.
        """
        self._connection.send((source, name))
        try:
            ended = bool(self._connection.recv())
        except EOFError:
            ended = False
        printed = self._output.read_text()[self._read :]
        self._read += len(printed)
        return ended, printed

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join()


def _status(process: ForkServerProcess) -> int:
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _enter(folder: Path, environment: Mapping[str, str], output: Path) -> None:
    from tokengym.agents.service import LocalService

    LocalService.spawn = staticmethod(NestedService)
    with output.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(folder)
    _set_environment(environment)
    sys.path += filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))


def _set_environment(environment: Mapping[str, str]) -> None:
    """Take over all variables; one such as `RLIMIT_NOFILE` also sets that limit of the process.

    `SERVICE_ROOM` is how many bytes a service may take beyond those it begins with.
    """
    os.environ.clear()
    os.environ.update(environment)
    for name, value in environment.items():
        if name.startswith("RLIMIT_"):
            resource.setrlimit(getattr(resource, name), (int(value), int(value)))


def _limit_memory(room: int) -> None:
    """Let this process take no more than so many bytes beyond those it has."""
    status = Path("/proc/self/status").read_text()
    (held,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmData:"))
    limit = int(held) * 1024 + room
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _tokengym(
    arguments: list[str], folder: Path, environment: Mapping[str, str], output: Path
) -> None:
    from tokengym.agents.__main__ import main

    _enter(folder, environment, output)
    sys.argv = ["tokengym", *arguments]
    main()


def _serve(arguments: list[str], environment: dict[str, str], log: Path, ready: Connection) -> None:
    from tokengym.agents.service.__main__ import app

    os.setsid()
    os.dup2(ready.fileno(), 1)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    _set_environment(environment)
    if "SERVICE_ROOM" in environment:
        _limit_memory(int(environment["SERVICE_ROOM"]))
    # Its parent is the process that forks.
    arguments[arguments.index("--parent") + 1] = str(os.getppid())
    app(arguments)


def _python(
    arguments: list[str], folder: Path, environment: Mapping[str, str], output: Path
) -> None:
    _enter(folder, environment, output)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).parent))
        runpy.run_path(arguments[0], run_name="__main__")


def _interpret(
    connection: Connection, folder: Path, environment: Mapping[str, str], output: Path
) -> None:
    _enter(folder, environment, output)
    names = {"__name__": "__main__"}
    while True:
        try:
            source, name = connection.recv()
        except EOFError:
            return
        try:
            exec(compile(source, name, "exec"), names)
            ended = True
        except BaseException:
            traceback.print_exc()
            ended = False
        sys.stdout.flush()
        connection.send(ended)
