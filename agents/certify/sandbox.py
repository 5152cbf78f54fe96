"""Foreign code in a process of its own: bounded in time and memory, where possible off the network.

Parent and child exchange lines of JSON, so nothing that the environment returns is executed here.
"""

import contextlib
import glob
import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from tokengym.agents.certify import worker
from tokengym.agents.certify.source import (
    Facts,
    RemoteError,
    Source,
    SourceEpisode,
    SourceFailure,
    SourceStep,
    Spent,
    TaskPlace,
)
from tokengym.agents.certify.worker import queued
from tokengym.agents.settings import Settings, option, read_plain
from tokengym.envs.core.display import shorten

_TICK, _LONGEST_TICK = 0.2, 2.0
"""Seconds after which it is looked at a process that does not answer, first and at most."""
_ENDING = 5.0
"""Seconds in which a process may end what it started."""
_LONGEST_LINE = 1 << 26
_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "SYSTEMROOT", "USERPROFILE"),
    *("HF_HOME", "XDG_CACHE_HOME"),
)
_PASSED_KINDS = ("LC_", "PYTHON", "OMP_", "MKL_", "OPENBLAS_", "CUDA_")
"""Variables of the environment, and beginnings of their names, that hold no secrets."""


@dataclass(frozen=True)
class Limits(Settings):
    """Limits of the environment's process.

    Attributes:
        seconds: longest processor time of one answer.
        waiting: longest time in which it neither works nor waits for a processor.
        opening: longest processor time, and time of waiting, of importing and opening it.
        memory: most address space, GB; none where the system has no such limit.
        network: whether it may reach other machines.
        pass_env: variables of the environment that it sees beside the usual ones.
    """

    seconds: float = option(10.0, "most processor seconds per answer", above=0)
    waiting: float = option(60.0, "most seconds that an answer waits, as for a network", above=0)
    opening: float = option(
        180.0, "most processor seconds, and seconds of waiting, to open it", above=0
    )
    memory: float = option(8.0, "memory limit, GB", above=0)
    network: bool = option(False, "allow access to other machines")
    pass_env: tuple[str, ...] = option((), "environment variable that it may read")


class Sandbox(Source):
    """A source in a process of its own; one that hangs or dies is started anew for the next Task.

    Args:
        target: what to open, see `open_source`.
        options: of the source.
        limits: what the process may use.
        hashes: seed of Python's hashes; drawn if `None`.
        ahead: see `Source.fresh`.

    Attributes:
        isolated: whether the process was cut off from the network.

    Raises:
        SourceFailure: if the source cannot be opened.
    """

    def __init__(
        self,
        target: str,
        options: Mapping[str, Any],
        limits: Limits,
        *,
        hashes: int | None = None,
        ahead: float | None = None,
    ) -> None:
        self._target, self._options, self._limits = target, dict(options), limits
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._hashes = random.randrange(1, 2**32) if hashes is None else hashes
        self.ahead = ahead
        self._started = self._asked = 0
        self._ended = self._spent = self._own = Spent(0.0, 0.0)
        self.isolated = False
        self._spawn()

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Begin an episode in the process."""
        self._started += 1
        number = self._started
        begun = self._ask(f"starting {place}", do="start", place=astuple(place), number=number)
        process = self._process

        def reply(text: str) -> SourceStep:
            if self._process is not process:
                raise SourceFailure("the episode's process has ended")
            doing = f"replying {shorten(ascii(text))} ({len(text)} characters) to {place}"
            return SourceStep(*self._ask(doing, do="reply", number=number, text=text)["step"])

        return SourceEpisode(begun["prompt"], reply, tuple(begun["reference"]), begun["claim"])

    def batch(self, asked: Sequence[tuple[TaskPlace, str]]) -> Any:
        """Score replies in one call in the process."""
        pairs = [(astuple(place), reply) for place, reply in asked]
        return self._ask(f"scoring {len(asked)} replies at once", do="batch", asked=pairs)["paid"]

    def memory(self) -> int | None:
        """Return the bytes of memory that the process holds."""
        held: int | None = self._ask("measuring memory", do="memory")["bytes"]
        return held

    def spent(self) -> Spent:
        """Return what the source's processes have used, and the thread that reads from them."""
        worked, late = (sum(pair) for pair in zip(self._ended, self._spent, strict=True))
        return Spent(worked, late)

    def draw_random(self) -> None:
        """Draw from the global generators of the process."""
        self._ask("drawing random numbers", do="draw")

    def fresh(self, *, hashes: int | None = None, ahead: float | None = None) -> "Sandbox":
        """Return the same source in a new process, see `Source.fresh`."""
        hashes = self._hashes if hashes == 0 else hashes
        return Sandbox(self._target, self._options, self._limits, hashes=hashes, ahead=ahead)

    def close(self) -> None:
        """End the process, with all that it started, which would keep its pipes open."""
        if self._process is not None:
            self._ended, self._spent, self._own = self.spent(), Spent(0.0, 0.0), Spent(0.0, 0.0)
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING)
            if sys.platform != "win32":
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()  # type: ignore[union-attr]
            self._process.wait()
            self._process = None

    def _spawn(self) -> None:
        self._answers = queue.SimpleQueue()
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        pipes |= {"stderr": subprocess.DEVNULL, "errors": "replace", "start_new_session": True}
        words = [sys.executable, worker.__file__]
        self._process = subprocess.Popen(words, env=self._environment(), **pipes)
        read = self._process.stdout, self._answers
        self._reader = threading.Thread(target=_forward, args=read, daemon=True)
        self._reader.start()
        limits = {"memory": int(self._limits.memory * 2**30), "network": self._limits.network}
        limits["clock"] = self.ahead is not None
        doing, what = f"opening {self._target}", {"target": self._target, "options": self._options}
        try:
            said = self._ask(doing, self._limits.opening, path=sys.path, **what, **limits)
        except BaseException as error:
            self.close()  # on Ctrl-C too, which does not reach a session of its own
            if isinstance(error, RemoteError):
                raise SourceFailure(f"{doing}: {error}") from error
            raise
        self.isolated, self.facts = said["isolated"], read_plain(Facts, said["facts"])

    def _environment(self) -> dict[str, str]:
        """Return the variables that the process sees: not those that may hold keys."""
        usual = (*_PASSED, *self._limits.pass_env)
        seen = (name for name in os.environ if name in usual or name.startswith(_PASSED_KINDS))
        return {**{name: os.environ[name] for name in seen}, "PYTHONHASHSEED": str(self._hashes)}

    def _ask(self, doing: str, seconds: float = 0.0, **request: Any) -> dict[str, Any]:
        """Send a request and return the answer.

        Raises:
            RemoteError: what the environment raised.
            SourceFailure: if its process hangs or dies, or wrote an answer of its own.
        """
        if self._process is None:
            self._spawn()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        self._asked += 1
        asked = {"id": self._asked, "ahead": self.ahead or 0.0, **request}
        try:
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            line = self._await(doing, seconds)
        except OSError:
            line = ""
        if not line:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_ENDING)  # by itself, for its status
            self.close()
            raise SourceFailure(f"{doing}: the process ended with status {process.returncode}")
        answer: dict[str, Any] = {}
        with contextlib.suppress(ValueError):
            said = json.loads(line)
            answer = said if isinstance(said, dict) else {}
        whole = {"spent", "queued"} <= answer.keys()  # or it was written by another
        if answer.get("id") != self._asked or not whole:
            raise self._failed(f"{doing}: it wrote {shorten(ascii(line))} into certify's own pipe")
        late = queued(f"/proc/self/task/{self._reader.native_id}")
        self._own = Spent(answer["spent"], answer["queued"])
        self._spent = self._own._replace(queued=self._own.queued + late)
        if "error" in answer:
            raise RemoteError(_clean(answer["error"]))
        return answer

    def _await(self, doing: str, seconds: float) -> str:
        """Return the answer, if it comes within limits that a busy machine does not shorten."""
        allowed, waiting = seconds or self._limits.seconds, seconds or self._limits.waiting
        begun, tick = time.monotonic(), min(_TICK, allowed)
        while True:
            try:
                return self._answers.get(timeout=tick)
            except queue.Empty:
                tick = min(2.0 * tick, _LONGEST_TICK)  # a look costs time, too
                now = _family(self._process.pid)  # type: ignore[union-attr]
                worked, late = now.worked - self._own.worked, now.queued - self._own.queued
                waited = time.monotonic() - begun - worked - late
                if worked > allowed:
                    words = f"no answer in {allowed:g} s of processor time"
                elif waited > waiting:
                    words = f"no answer in {waiting:g} s of waiting, beside {worked:.2g} s of work"
                else:
                    continue
                self._spent = Spent(self._spent.worked + worked, self._spent.queued + late)
                raise self._failed(f"{doing}: {words}") from None

    def _failed(self, words: str) -> SourceFailure:
        self.close()
        failure = SourceFailure(words)
        failure.hung = True
        return failure


def _family(root: int) -> Spent:
    """Return what a process and all that it started have used; nothing where no one says."""
    worked = late = 0.0
    left = [root]
    while left and sys.platform.startswith("linux"):
        process = left.pop()
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            worked += sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
            late += sum(map(queued, glob.glob(f"/proc/{process}/task/*")))
            left += worker.children(process)
    return Spent(worked, late)


def _clean(text: str) -> str:
    """Return words of foreign code without control characters, and not too many of them."""
    return shorten("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text), 2000)


def _forward(lines: Any, answers: "queue.SimpleQueue[str]") -> None:
    with lines:  # closed here alone: to close a pipe waits for whoever reads it
        while line := lines.readline(_LONGEST_LINE):
            answers.put(line)
    answers.put("")
