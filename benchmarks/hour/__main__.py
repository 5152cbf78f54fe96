"""The hour test of a level, see the README beside this file.

    python -m benchmarks.hour write warehouse:pick FOLDER
    python -m benchmarks.hour run warehouse:pick benchmarks/hour/entries/pick.py
    python -m benchmarks.hour table docs/worlds/warehouse.md

The first command writes the folder of an entrant, the second prints an entry's rung, the third
writes those of all entries of a page's world into the page.
"""

import argparse
import ast
import json
import math
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np

from benchmarks.pages import write_block
from tokengym.agents.evaluation.scripted import draw_tasks
from tokengym.agents.execution.executors import find_executor
from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.scale.ladder import find_standing, rung_names, rung_values
from tokengym.agents.scale.level_scale import Scale, ladder_of, scripted_opponents, skill_of
from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world, spec
from tokengym.rewards.skill import Yardstick

TASKS = 60
"""Train Tasks that an entrant is given."""
SECONDS = 1.0
"""Processor time of an entry for a Task."""
BLOCK = "python -m benchmarks.hour table"
"""Name of the block of a page that the entries of its world are written into."""
_HOST = Path(__file__).with_name("host.py")
_ENTRIES = Path(__file__).with_name("entries")
_FIRST_LINE = re.compile(r"(\S+:\S+), (\S+), (\d+ minutes?): (.+)\.")
"""Of an entry's docstring: its level, the date, how long it took, and its method."""
_README = Path(__file__).with_name("README.md")


class Entry:
    """An entry on one Task: a process that is given the Turns' texts and nothing else.

    Attributes:
        late: whether it used up its time, or failed; from then on its replies are empty.

    Args:
        path: its file.
        seconds: processor time, from when it has been loaded.
    """

    def __init__(self, path: Path, seconds: float = SECONDS) -> None:
        command = [sys.executable, str(_HOST), str(path.resolve()), str(seconds)]
        self.late = False
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
        return str(json.loads(line)) if line else ""

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


def write_folder(level: str, folder: Path) -> None:
    """Write what an entrant is given: protocol, prompt, and train Tasks as played at random.

    Args:
        level: such as `warehouse:pick`.
        folder: does not exist yet.
    """
    world = _world(level, spec(level.partition(":")[0]).evaluation)
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(_README.read_text(encoding="utf-8"), encoding="utf-8")
    tasks = draw_tasks(world, "train", TASKS)
    (folder / "prompt.txt").write_text(world.start(tasks[0]).text + "\n", encoding="utf-8")
    with (folder / "train.jsonl").open("w", encoding="utf-8") as file:
        for task in tasks:
            episode = _played(world, task, baselines(world.spec)["random"])
            print(json.dumps(_told(world, episode)), file=file)


def _told(world: World, episode: PlayedEpisode) -> Mapping[str, object]:
    """Return what the first role read and wrote, and what that was worth."""
    role, turns = world.spec.roles[0], episode.turns
    pairs = list(zip(turns, episode.replies, strict=False))
    return {
        "texts": [turn.text for turn, _ in pairs if turn.role == role],
        "replies": [reply for turn, reply in pairs if turn.role == role],
        "end": turns[-1].text,
        "value": _value(world, episode),
        "return": episode.returns[role],
    }


def run_entry(level: str, path: Path, split: str, count: int, workers: int | None) -> list[str]:
    """Return what an entry gains on Tasks of a level, and between which rungs; on train the first.

    Args:
        level: such as `warehouse:pick`.
        path: of the entry.
        split: of the Tasks.
        count: of Tasks.
        workers: processes that play the rungs.
    """
    world = _world(level, spec(level.partition(":")[0]).check_options)
    executor = find_executor(workers, "processes")
    tasks = draw_tasks(world, split, count, executor)
    values, late, malformed = [], 0, 0
    for task in tasks:
        with Entry(path) as entry:
            episode = _played(world, task, entry)
        values.append(_value(world, episode))
        late += entry.late
        forms = [turn.metrics.get("well_formed", 1.0) for turn in episode.turns[1:]]
        malformed += min(forms) < 1.0
    found = [
        f"{len(tasks)} {split} Tasks: value {np.mean(values):.4g} a Task, {malformed} with a "
        f"malformed reply, {late} ended by the clock or an error"
    ]
    if split == "train":
        return found
    role = world.spec.roles[0]
    ladder = ladder_of(world.spec, world.level, role)
    assert ladder is not None
    names = [ladder.zero, *rung_names(world, role, patience=math.inf)]
    opponents = scripted_opponents(world, role)
    scale = Scale.measure(world, tasks, role, opponents, executor, names)
    ends = Yardstick(
        scale.returns[ladder.zero].values_T,
        scale.returns[ladder.rungs[-1].policy].values_T,
        ladder.zero,
    )
    standing = find_standing(rung_values(world, role, scale), values)
    return [*found, f"{skill_of(ends, values)} of the top rung's gain; {standing}"]


def write_entries(page: Path, folder: Path = _ENTRIES, tasks: int = 100) -> None:
    """Run all entries of a page's world on test Tasks, and write into it where they stand.

    Args:
        page: named after the world, with a block made by `BLOCK`.
        folder: of the entries.
        tasks: how many.
    """
    rows = []
    for path in sorted(folder.glob("*.py")):
        first = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
        found = _FIRST_LINE.fullmatch(first[0]) if first else None
        if found and found[1].startswith(f"{page.stem}:"):
            level, date, took, method = found.groups()
            place = run_entry(level, path, "test", tasks, None)[1]
            rows.append([f"`{level.partition(':')[2]}`", method, f"{date}, {took}", place])
    header = ["level", "method", "written", f"place on {tasks} test Tasks"]
    write_block(page, BLOCK, markdown_table(header, rows))


def _world(level: str, options: Mapping[str, object]) -> World:
    name, _, level = level.partition(":")
    return make_world(name, level or None, **options)


def _played(world: World, task: Task, policy: Policy) -> PlayedEpisode:
    role = world.spec.roles[0]
    return play(world, task, {**scripted_opponents(world, role), role: policy}, seed=(0, 0))


def _value(world: World, episode: PlayedEpisode) -> float:
    role = world.spec.roles[0]
    ladder = ladder_of(world.spec, world.level, role)
    assert ladder is not None
    return ladder.value(episode.returns[role], episode.metrics, role)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a folder, or run an entry."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    write = parts.add_parser("write", help="the folder of an entrant")
    write.add_argument("level", help="such as warehouse:pick")
    write.add_argument("folder", type=Path)
    run = parts.add_parser("run", help="an entry on test Tasks; on train ones it has no rung")
    run.add_argument("level", help="such as warehouse:pick")
    run.add_argument("entry", type=Path)
    run.add_argument("--split", choices=("train", "test"), default="test")
    run.add_argument("--tasks", type=int, default=100)
    run.add_argument("--workers", type=int)
    table = parts.add_parser("table", help="where all entries of a world stand, into its page")
    table.add_argument("page", type=Path, help="such as docs/worlds/warehouse.md")
    asked = parser.parse_args(arguments)
    if asked.part == "write":
        write_folder(asked.level, asked.folder)
    elif asked.part == "table":
        write_entries(asked.page)
    else:
        for found in run_entry(asked.level, asked.entry, asked.split, asked.tasks, asked.workers):
            print(found)


if __name__ == "__main__":
    main()
