"""The scales of the levels we ship, which `tokengym.agents.scale` reads.

    python -m benchmarks.level_scales --workers 2

plays every baseline and the best blind policy on the first validation Tasks of each level, in each
role, by the options of training and those of evaluation, and writes `agents/scales.json`: a line
for each. Only lines of levels that are named (`forecast:easy`) are made again, or else all.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any

from tokengym.agents.executors import find_executor
from tokengym.agents.scale import FILE, TASKS, LevelScale
from tokengym.agents.settings import plain
from tokengym.envs.registry import make_world, spec

WORLDS = ("forecast", "warehouse", "energy", "disruption")
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


def measured(place: Place) -> dict[str, Any]:
    """Measure a line, as it stands in the file."""
    world_id, level, role, options = place
    world = make_world(world_id, level, **options)
    return rounded(LevelScale.measure(world, role, world.first_tasks("validation", TASKS)))


def rounded(scale: LevelScale) -> dict[str, Any]:
    """Return a scale as plain JSON with six digits behind the point."""

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: cut(each) for name, each in value.items()}
        return round(value, _DIGITS) if isinstance(value, float) else value

    found: dict[str, Any] = cut(plain(asdict(scale)))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("levels", nargs="*", help="such as forecast:easy; all if none")
    parser.add_argument("--workers", type=int)
    asked = parser.parse_args(arguments)
    every = list(places())
    named = [f"{spec(world).short_name}:{level}" for world, level, *_ in every]
    if unknown := sorted({*asked.levels} - {*named}):
        parser.error(f"the levels are {sorted({*named})}, got {unknown}")
    known = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
    rows = {json.dumps([row[n] for n in _KEY]): row for row in known}
    wanted = [place for place, name in zip(every, named, strict=True) if name in asked.levels]
    wanted = wanted or every
    with closing(find_executor(asked.workers, "processes").run(measured, wanted)) as results:
        for number, row in results:
            rows[json.dumps(wanted[number])] = row
            print(*wanted[number], row["blind"], flush=True)
            lines = [json.dumps(rows[key]) for place in every if (key := json.dumps(place)) in rows]
            FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


_KEY = ("world", "level", "role", "options")


if __name__ == "__main__":
    main()
