"""The scales of the levels we ship, which `tokengym.agents.scale` reads.

    python -m benchmarks.level_scales --workers 2

plays every baseline and the best input-independent baseline on the first validation Tasks of each
level, in each role, by the options of training and those of evaluation, and writes
`agents/scale/scales.json`: a line for each. One line of each level has its ladder too, on the first
400, with the entries of the hour test as reference policies. Only lines of levels that are named
(`forecast:easy`) are made again, or else all; with `--resume` only what is missing.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from typing import Any

from benchmarks.hour.entry import entry_rungs
from tokengym.agents.execution.executors import find_executor
from tokengym.agents.scale import ladder
from tokengym.agents.scale.ladder import LevelLadder
from tokengym.agents.scale.level_scale import (
    FILE,
    Earned,
    Scale,
    best_blind,
    best_known,
    ladder_of,
    scripted_opponents,
)
from tokengym.agents.settings import plain
from tokengym.envs.registry import baselines_at, make_world, spec
from tokengym.rewards.estimates import mean_estimate

WORLDS = ("forecast", "warehouse", "energy", "disruption")
TASKS = 64
"""Tasks of the scale of a level."""
_DIGITS = 6

Place = tuple[str, str, str, Mapping[str, Any]]
"""World, level, role and options."""


def places() -> Iterator[Place]:
    """Yield what a line is made for."""
    for world in map(spec, WORLDS):
        for level in world.levels:
            scored = [dict(make_world(world, level, **o).options) for o in _options(world.id)]
            for options in [one for n, one in enumerate(scored) if one not in scored[:n]]:
                for role in world.roles:
                    yield world.id, level, role, options


def _options(world: str) -> tuple[Mapping[str, Any], ...]:
    return spec(world).evaluation, spec(world).training, spec(world).check_options


def line(known: Mapping[str, Mapping[str, Any]], count: int, place: Place) -> dict[str, Any]:
    """Measure a line with its ladder, if it has one.

    Args:
        known: lines by place as JSON, of which means need not be measured again.
        count: Tasks of the ladder.
        place: what the line is for.
    """
    found = measured(place, known.get(json.dumps(place)))
    if _has_ladder(place):
        world = make_world(place[0], place[1], **place[3])
        many = world.first_tasks("validation", count)
        outside = entry_rungs(world, many)
        rungs = LevelLadder.measure(world, many, blind=found["blind"], outside=outside)
        found["ladder"] = _rounded(plain(asdict(rungs)))
    return found


def measured(place: Place, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Measure a line, as it stands in the file: with six digits behind the point.

    Args:
        place: what the line is for.
        known: an earlier line for it, of which means are taken over.
    """
    world_id, level, role, options = place
    row = known or {}
    means = dict(row.get("policies", {}))
    world = make_world(world_id, level, **options)
    names = baselines_at(world)
    others = [name for name in names if name not in means]
    tasks, best = world.first_tasks("validation", TASKS), best_known(world)
    opponents = scripted_opponents(world, role)
    # Not `find_blind`, which reads what is made here.
    blind = row["blind"] if row else best_blind(world, tasks, role, opponents)
    scale = Scale.measure(world, tasks, role, opponents, policies=others, blind=blind)
    means |= {name: _mean(each) for name, each in scale.returns.items()}
    found: dict[str, Any] = {
        "world": world_id,
        "level": level,
        "role": role,
        "options": options,
        "split": "validation",
        "tasks": len(tasks),
        "blind": blind,
        "reachable": "" if best is None else best.policy,
        "policies": {name: means[name] for name in (*names, blind)},
        "optimum": mean_estimate([limit.value for limit in scale.limits_T]),
        "exact": scale.exact,
    }
    rounded: dict[str, Any] = _rounded(plain(found))
    return rounded


def _has_ladder(place: Place) -> bool:
    """Return whether a line holds the ladder: by the options of the tables, for the first role."""
    world_id, level, role, options = place
    world = make_world(world_id, level, **spec(world_id).check_options)
    return ladder_of(world.spec, world.level, role) is not None and dict(world.options) == options


def _is_known(place: Place, row: Mapping[str, Any], count: int) -> bool:
    """Return whether a line has all that is measured for it, its ladder on so many Tasks."""
    names = baselines_at(make_world(place[0], place[1], **place[3])).keys()
    return names <= row["policies"].keys() and (
        row.get("ladder", {}).get("tasks", 0) >= count or not _has_ladder(place)
    )


def _mean(earned: Earned) -> dict[str, Any]:
    """Return what a policy is paid on average, and what its replies earn, where that is known."""
    known_T = earned.expected_T
    expected = None if known_T is None else mean_estimate(known_T)
    return {"realised": mean_estimate(earned.realised_T), "expected": expected}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return round(value, _DIGITS) if isinstance(value, float) else value


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("levels", nargs="*", help="such as forecast:easy; all if none")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="make only lines that are missing")
    parser.add_argument("--ladder-tasks", type=int, default=ladder.TASKS, help="Tasks of a ladder")
    asked = parser.parse_args(arguments)
    every = list(places())
    named = [f"{spec(world).short_name}:{level}" for world, level, *_ in every]
    if unknown := sorted({*asked.levels} - {*named}):
        parser.error(f"the levels are {sorted({*named})}, got {unknown}")
    known = (
        [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
        if FILE.exists()
        else []
    )
    rows = {json.dumps([row[n] for n in _KEY]): row for row in known}
    wanted = [place for place, name in zip(every, named, strict=True) if name in asked.levels]
    wanted = wanted or every
    kept = {key: dict(row) for key, row in rows.items()} if asked.resume else {}
    wanted = [
        place
        for place in wanted
        if (row := kept.get(json.dumps(place))) is None
        or not _is_known(place, row, asked.ladder_tasks)
    ]
    with closing(
        find_executor(asked.workers).run(partial(line, kept, asked.ladder_tasks), wanted)
    ) as results:
        for number, row in results:
            rows[json.dumps(wanted[number])] = row
            print(*wanted[number], row["blind"], flush=True)
            lines = [json.dumps(rows[key]) for place in every if (key := json.dumps(place)) in rows]
            FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


_KEY = ("world", "level", "role", "options")


if __name__ == "__main__":
    main()
