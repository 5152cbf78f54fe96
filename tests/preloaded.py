"""A Python that starts in no time: each process is a fork of one that has its imports behind it.

Torch, transformers and the cookbook take seconds to import, and every worker of a test run and its
fork server would do so anew. Run as a script in a folder, this imports `MODULES` once, makes the
program `python` in that folder, and serves it until its own standard input is closed:
`python ... -c CODE` and `python -m MODULE ...` run in a fork, with the files, folder and
environment of their caller.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import types
from pathlib import Path

_WORLDS = ("disruption", "energy", "forecasting", "warehouse")
MODULES = (
    "anyio._backends._asyncio",
    "matplotlib.backends.backend_agg",
    "matplotlib.pyplot",
    "scipy.special",
    "tinker.resources",
    "tinker_cookbook.renderers.qwen3",
    "tokengym.agents.cli",
    "tokengym.agents.service.http.server",
    "tokengym.agents.evaluation.experiment",
    "transformers.models.qwen3.modeling_qwen3",
    "transformers.tokenization_utils_tokenizers",
    *(f"tokengym.envs.{world}.{part}" for world in _WORLDS for part in ("baselines", "world")),
)
"""What nearly every command, service and test imports."""
_OF_TESTS = ("nbformat", "openai", "peft", "pettingzoo", "scipy.stats")
"""What tests import in addition while they are collected."""
VARIABLE = "TOKENGYM_TESTS_PYTHON"
"""Holds the path of the program in a run of several workers."""
_PROGRAM = "python"
_SOCKET = "socket"
_CLIENT = '''\
#!{python} -SE
"""Ask the process that forks for a fork with these files, and end when it ends."""
import json, os, socket, sys

numbers = []
for name in os.listdir("/dev/fd"):
    try:
        if os.get_inheritable(int(name)):
            numbers.append(int(name))
    except OSError:
        pass  # the folder's own, closed by now
wanted = [numbers, sys.argv[1:], os.getcwd(), dict(os.environ)]
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"["], numbers)
    server.sendall(json.dumps(wanted).encode()[1:])
    server.shutdown(socket.SHUT_WR)
    answer = server.recv(8)
sys.exit(int(answer) if answer else "the process that forks ended without an answer")
'''
_ON_INTERRUPT = signal.getsignal(signal.SIGINT)
"""As every fork has it again; where whoever started a run ignores Ctrl-C, it is ignored."""
_MOST_FILES = 64
_OUT_OF_THE_WAY = 256
"""Least number of a received file before it takes its place."""


def play_baselines() -> None:
    """Play each baseline once, at the first level: what it learns from samples stays in forks.

    The regression of the debate takes seconds to fit, and every job measures the baselines.
    """
    from tokengym.envs import baselines, make_world, play, specs

    for world_id in specs():
        world = make_world(world_id)
        task = world.task("train", 0)
        for policy in baselines(world_id).values():
            play(world, task, policy)


def start() -> tuple[subprocess.Popen[bytes], Path]:
    """Start a process that forks; it ends when its standard input is closed.

    Returns:
        the process and the path of the program `python`.
    """
    folder = Path(tempfile.mkdtemp(prefix="forks-"))
    command = [sys.executable, __file__, str(folder)]
    path = os.pathsep.join(filter(None, sys.path))
    server = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    server.stdout.close()
    return server, folder / _PROGRAM


def _serve(folder: Path) -> None:
    path = folder / _SOCKET
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        program = folder / _PROGRAM
        program.write_text(_CLIENT.format(python=sys.executable, address=str(path)))
        program.chmod(0o700)
        os.write(1, b"ready\n")
        while listener.fileno() in select.select([listener.fileno(), 0], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _fork(connection)
            connection.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
        program.unlink()
        path.unlink()
        folder.rmdir()


def _fork(connection: socket.socket) -> None:
    """Run what is asked for in a child of this process, and answer with its exit status."""
    begun, files, _, _ = socket.recv_fds(connection, 1, _MOST_FILES)
    with connection.makefile("rb") as rest:
        numbers, arguments, folder, environment = json.loads(begun + rest.read())
    child = os.fork()
    if child:
        # Who waits for the end of a pipe waits for every process that holds it.
        os.closerange(0, connection.fileno())
        for file in files:
            with contextlib.suppress(OSError):
                os.close(file)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with contextlib.suppress(OSError):
            connection.sendall(str(status & 255).encode())
        os._exit(0)
    connection.close()
    moved = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY) for file in files]
    for file in files:
        os.close(file)
    for number, file in zip(numbers, moved, strict=True):
        os.dup2(file, number)
        os.close(file)
    signal.signal(signal.SIGINT, _ON_INTERRUPT)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    _run(arguments)


def _run(arguments: list[str]) -> None:
    """Run what is typed after `python`; of the interpreter's own options none matters here."""
    if arguments[0] == "-m":
        from tests.warm import NestedService
        from tokengym.agents.service import LocalService

        LocalService.spawn = staticmethod(NestedService)
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        at = arguments.index("-c")
        sys.argv = arguments[at : at + 1] + arguments[at + 2 :]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(arguments[at + 1], "<string>", "exec"), vars(main))
    sys.exit()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it closes its input
    sys.path[0] = ""  # not this script's folder, where `tinker` is a folder of tests
    for name in (*MODULES, *_OF_TESTS):
        with contextlib.suppress(ImportError):  # an extra that is not installed
            importlib.import_module(name)
    play_baselines()
    # What is imported stays: the collector need not look through it, nor write on its pages.
    gc.freeze()
    _serve(Path(sys.argv[1]))
