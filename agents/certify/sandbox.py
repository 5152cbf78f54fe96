"""Foreign code in a process of its own: bounded in time and memory, where possible off the network.

Parent and child exchange lines of JSON, so nothing that the environment returns is executed here.
"""

import contextlib
import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from tokengym.agents.certify import worker
from tokengym.agents.certify.source import (
    Facts,
    RemoteError,
    Source,
    SourceEpisode,
    SourceFailure,
    SourceStep,
    TaskPlace,
)
from tokengym.agents.settings import Settings, option, read_plain
from tokengym.envs.core.display import shorten

_SETTING_UP = 180.0
"""Seconds in which a source must import its package and say what it is."""


@dataclass(frozen=True)
class Limits(Settings):
    """Limits of the environment's process.

    Attributes:
        seconds: longest time of one answer.
        memory: most address space, GB; none where the system has no such limit.
        network: whether it may reach other machines.
    """

    seconds: float = option(10.0, "time limit of one answer", above=0)
    memory: float = option(8.0, "memory limit, GB", above=0)
    network: bool = option(False, "let it reach other machines")


class Sandbox(Source):
    """A source in a process of its own; one that hangs or dies is started anew for the next Task.

    Args:
        target: what to open, see `open_source`.
        options: of the source.
        limits: what the process may use.

    Attributes:
        isolated: whether the process was cut off from the network.

    Raises:
        SourceFailure: if the source cannot be opened.
    """

    def __init__(self, target: str, options: Mapping[str, Any], limits: Limits) -> None:
        self._target, self._options, self._limits = target, dict(options), limits
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._started = 0
        self._ended = self._spent = 0.0
        self.isolated = False
        self._spawn()

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Begin an episode in the process."""
        if self._process is None:
            self._spawn()
        self._started += 1
        number, process = self._started, self._process
        begun = self._ask(f"starting {place}", do="start", place=astuple(place), number=number)

        def reply(text: str) -> SourceStep:
            if self._process is not process:
                raise SourceFailure("the process that held the episode has ended")
            doing = f"replying {shorten(ascii(text))} ({len(text)} characters) to {place}"
            return SourceStep(*self._ask(doing, do="reply", number=number, text=text)["step"])

        return SourceEpisode(begun["prompt"], reply, tuple(begun["reference"]), begun["claim"])

    def batch(self, asked: Sequence[tuple[TaskPlace, str]]) -> Any:
        """Score replies in one call in the process."""
        if self._process is None:
            self._spawn()
        pairs = [(astuple(place), reply) for place, reply in asked]
        return self._ask(f"scoring {len(asked)} replies at once", do="batch", asked=pairs)["paid"]

    def memory(self) -> int | None:
        """Return the bytes of memory that the process holds."""
        if self._process is None:
            self._spawn()
        held: int | None = self._ask("measuring memory", do="memory")["bytes"]
        return held

    def spent(self) -> float:
        """Return the seconds of processor time that the source's processes have said they used."""
        return self._ended + self._spent

    def draw_random(self) -> None:
        """Draw from the global generators of the process."""
        if self._process is None:
            self._spawn()
        self._ask("drawing random numbers", do="draw")

    def fresh(self) -> "Sandbox":
        """Return the same source in a new process, with another seed of Python's hashes."""
        return Sandbox(self._target, self._options, self._limits)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._ended, self._spent = self.spent(), 0.0
            if sys.platform != "win32":  # with what it forked, which keeps its pipes open
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()  # type: ignore[union-attr]
            self._process.wait()
            self._process = None

    def _spawn(self) -> None:
        self._answers = queue.SimpleQueue()
        self._process = subprocess.Popen(
            [sys.executable, worker.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": str(random.randrange(1, 2**32))},
            start_new_session=True,
        )
        threading.Thread(
            target=_forward, args=(self._process.stdout, self._answers), daemon=True
        ).start()
        limits = {"memory": int(self._limits.memory * 2**30), "network": self._limits.network}
        doing, what = f"opening {self._target}", {"target": self._target, "options": self._options}
        try:
            said = self._ask(doing, _SETTING_UP, path=sys.path, **what, **limits)
        except BaseException as error:
            self.close()  # on Ctrl-C too, which does not reach a session of its own
            if isinstance(error, RemoteError):
                raise SourceFailure(f"{doing}: {error}") from error
            raise
        self.isolated, self.facts = said["isolated"], read_plain(Facts, said["facts"])

    def _ask(self, doing: str, seconds: float = 0.0, **request: Any) -> dict[str, Any]:
        """Send a request and return the answer.

        Raises:
            RemoteError: what the environment raised.
            SourceFailure: if its process hangs or dies.
        """
        process, allowed = self._process, seconds or self._limits.seconds
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = self._answers.get(timeout=allowed)
        except queue.Empty:
            self.close()
            raise SourceFailure(f"{doing}: no answer in {allowed:g} s") from None
        except OSError:
            line = ""
        if not line:
            self.close()
            raise SourceFailure(f"{doing}: the process ended with status {process.returncode}")
        answer: dict[str, Any] = json.loads(line)
        self._spent = answer["spent"]
        if "error" in answer:
            raise RemoteError(answer["error"])
        return answer


def _forward(lines: Any, answers: "queue.SimpleQueue[str]") -> None:
    with lines:  # closed here alone: to close a pipe waits for whoever reads it
        for line in lines:
            answers.put(line)
    answers.put("")
