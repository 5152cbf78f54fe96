"""The hour test of a level, see the README beside this file.

    python -m benchmarks.hour write warehouse:pick FOLDER
    python -m benchmarks.hour run warehouse:pick benchmarks/hour/entries/pick.py

The first command writes the folder of an entrant, the second prints an entry's reference policy.
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.hour.entry import Entry, played, value_of
from tokengym.agents.evaluation.scripted import draw_tasks
from tokengym.agents.execution.executors import find_executor
from tokengym.agents.scale.ladder import find_standing, rung_names, rung_values
from tokengym.agents.scale.level_scale import Scale, ladder_of, scripted_opponents, skill_of
from tokengym.envs.core.play import PlayedEpisode
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world, spec
from tokengym.rewards.skill import Yardstick

TASKS = 60
"""Train Tasks that an entrant is given."""
_README = Path(__file__).with_name("README.md")


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
            episode = played(world, task, baselines(world.spec)["random"])
            print(json.dumps(_told(world, episode)), file=file)


def _told(world: World, episode: PlayedEpisode) -> Mapping[str, object]:
    """Return what the first role read and wrote, and what that was worth."""
    role, turns = world.spec.roles[0], episode.turns
    pairs = list(zip(turns, episode.replies, strict=False))
    return {
        "texts": [turn.text for turn, _ in pairs if turn.role == role],
        "replies": [reply for turn, reply in pairs if turn.role == role],
        "end": turns[-1].text,
        "value": value_of(world, episode),
        "return": episode.returns[role],
    }


def run_entry(level: str, path: Path, split: str, count: int, workers: int) -> list[str]:
    """Return an entry's gain on Tasks of a level, and its standing; on train the first Tasks.

    Args:
        level: such as `warehouse:pick`.
        path: of the entry.
        split: of the Tasks.
        count: of Tasks.
        workers: processes that play the reference policies.
    """
    world = _world(level, spec(level.partition(":")[0]).check_options)
    executor = find_executor(workers)
    tasks = draw_tasks(world, split, count, executor)
    values, late, malformed = [], 0, 0
    for task in tasks:
        with Entry(path) as entry:
            episode = played(world, task, entry)
        values.append(value_of(world, episode))
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
    return [*found, f"{skill_of(ends, values)} of the best reference policy's gain; {standing}"]


def _world(level: str, options: Mapping[str, object]) -> World:
    name, _, level = level.partition(":")
    return make_world(name, level or None, **options)


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
    run.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args(arguments)
    if asked.part == "write":
        write_folder(asked.level, asked.folder)
    else:
        for found in run_entry(asked.level, asked.entry, asked.split, asked.tasks, asked.workers):
            print(found)


if __name__ == "__main__":
    main()
