"""Entries of the hour test: played in a process of their own, and compared with the ladder."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import IO, Self

import numpy as np

from tokengym.agents.scale.ladder import PlayedRung
from tokengym.agents.scale.level_scale import broke_a_rule, ladder_of, scripted_opponents
from tokengym.envs.core.ladder import Rung
from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World

SECONDS = 1.0
"""Processor time of an entry for a Task."""
_HOST = Path(__file__).with_name("host.py")
_ENTRIES = Path(__file__).with_name("entries")
_FIRST_LINE = re.compile(r'^"""(\w+:\w+), (\S+), (\d+ minutes?): (.+)\.$', re.M)
"""Of an entry's docstring: its level, the date, how long it took, and its method."""


class Entry:
    """An entry on one Task: a process that is given the Turns' texts and nothing else.

    Attributes:
        late: whether it used up its time, or failed; from then on its replies are empty.
        seconds: processor time that it has used.

    Args:
        path: its file.
        seconds: processor time, from when it has been loaded.
    """

    def __init__(self, path: Path, seconds: float = SECONDS) -> None:
        command = [sys.executable, str(_HOST), str(path.resolve()), str(seconds)]
        self.late, self.seconds = False, 0.0
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=path.parent
        )
        self._read()

    def __call__(self, world: World, turn: Turn, rng: np.random.Generator) -> str:
        """Reply to a Turn as a policy of its world."""
        if self.late:
            return ""
        try:
            print(json.dumps(turn.text), file=self._pipe(self._process.stdin), flush=True)
        except BrokenPipeError:
            self.late = True
            return ""
        return self._read()

    def _read(self) -> str:
        line = self._pipe(self._process.stdout).readline()
        self.late = not line
        if self.late:
            return ""
        reply, self.seconds = json.loads(line)
        return str(reply)

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe

    def __enter__(self) -> Self:
        """Return the entry."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, at: TracebackType | None
    ) -> None:
        """End its process."""
        self._process.kill()
        self._process.communicate()


def entry_rungs(world: World, tasks: Sequence[Task]) -> list[PlayedRung]:
    """Play the entries of a world's level on Tasks."""
    return [
        _played_rung(path, method, date, world, tasks)
        for path in sorted(_ENTRIES.glob("*.py"))
        for level, date, _, method in _FIRST_LINE.findall(path.read_text(encoding="utf-8"))
        if level == f"{world.spec.short_name}:{world.level}"
    ]


def _played_rung(
    path: Path, method: str, date: str, world: World, tasks: Sequence[Task]
) -> PlayedRung:
    values, broken, seconds = [], [], []
    for task in tasks:
        with Entry(path) as entry:
            episode = played(world, task, entry)
        values.append(value_of(world, episode))
        broken.append(float(broke_a_rule(world, episode)))
        seconds.append(entry.seconds)
    rung = Rung("", "planner", method, f"hour test, {date}")
    return PlayedRung(
        rung,
        tuple(values),
        tuple(broken) if world.spec.violation else (),
        fmean(seconds),
    )


def played(world: World, task: Task, policy: Policy) -> PlayedEpisode:
    """Play a Task in the first role against the usual opponents."""
    role = world.spec.roles[0]
    return play(world, task, {**scripted_opponents(world, role), role: policy}, seed=(0, 0))


def value_of(world: World, episode: PlayedEpisode) -> float:
    """Return what an episode was worth on the ladder of its level."""
    role = world.spec.roles[0]
    ladder = ladder_of(world.spec, world.level, role)
    assert ladder is not None
    return ladder.value(episode.returns[role], episode.metrics, role)
