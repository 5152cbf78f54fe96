"""Tables of levels and ladders in the pages that have a block for one.

    python -m benchmarks.level_tables docs/worlds/*.md README.md
    python -m benchmarks.level_tables docs/worlds.md --checks levels.json

Ladders are those on file; what policies earn is read from `tokengym check --all --json`.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.pages import block_names, write_block
from tokengym.agents.check.tables import RUNGS_HEADER, amount, rung_rows
from tokengym.agents.reports.markdown import markdown_table
from tokengym.agents.scale.ladder import LevelLadder, shipped_ladder
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.spec import short_name
from tokengym.envs.registry import make_world, specs
from tokengym.rewards.estimates import Estimate

BLOCK = "benchmarks.level_tables"
_SHOWN = ("null", "random", "oracle")
LEVELS_HEADER = ("world", "level", "declared", *_SHOWN)
LADDERS_HEADER = (
    "world",
    "level",
    "reference policies, each with its share of the best one's gain",
)

Ladders = Mapping[str, LevelLadder]
"""By name of the level."""


def main(words: Sequence[str] | None = None) -> None:
    """Renew the tables of the pages that are named."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("pages", type=Path, nargs="+", help="pages with blocks for tables")
    parser.add_argument("--checks", type=Path, help="what tokengym check --all --json wrote")
    asked = parser.parse_args(words)
    made = blocks(json.loads(asked.checks.read_text()) if asked.checks else [])
    for page in asked.pages:
        names = [name for name in block_names(page) if name in made]
        if not names:
            raise OptionError(f"{page} has no block made by one of {list(made)}")
        for name in names:
            write_block(page, name, made[name]())


def blocks(checks: Sequence[Mapping[str, Any]]) -> dict[str, Callable[[], str]]:
    """Return what makes each block, by the block's name.

    Args:
        checks: of every level; no table of levels without any.

    Raises:
        OptionError: if a level breaks a law: its returns mean nothing.
    """
    if broken := [f"{check['world']} {check['level']}" for check in checks if check["broken"]]:
        raise OptionError(f"these levels break a law: {broken}")
    ladders: dict[str, dict[str, LevelLadder]] = {}
    for spec in specs().values():
        for level in spec.levels:
            world = make_world(spec.id, level, **spec.check_options)
            if (ladder := shipped_ladder(world, spec.roles[0])) is not None:
                ladders.setdefault(spec.short_name, {})[level] = ladder
    made: dict[str, Callable[[], str]] = {
        f"{BLOCK}, {world}": partial(_ladders, each) for world, each in ladders.items()
    }
    made[f"{BLOCK}, by world"] = partial(_first_ladders, ladders)
    if checks:
        made[f"{BLOCK}, by level"] = partial(_levels, checks)
    return made


def _levels(checks: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            short_name(one["world"]),
            f"`{one['level']}`",
            f"{one['declared']['low']:g} to {one['declared']['high']:g}",
            *(str(Estimate(**one["returns"][name])) for name in _SHOWN),
        ]
        for one in checks
    ]
    return markdown_table(LEVELS_HEADER, rows)


def _ladders(ladders: Ladders) -> str:
    """Return a table of the reference policies of a world's levels, for its page."""
    rows = [[f"`{level}`", *row] for level, one in ladders.items() for row in rung_rows(one)]
    gains = [f"`{level}` {amount(one)}" for level, one in ladders.items()]
    first, tasks = next(iter(ladders.values())), {one.tasks for one in ladders.values()}
    return (
        f"{markdown_table(('level', *RUNGS_HEADER), rows)}\n\n"
        f"Gain of the best reference policy over `{first.zero}` per Task, a mean over "
        f"{' or '.join(map(str, sorted(tasks)))} validation Tasks: {', '.join(gains)}."
    )


def _first_ladders(ladders: Mapping[str, Ladders]) -> str:
    """Return a row for the ladder of each world's first level."""
    rows = []
    for world, by_level in ladders.items():
        level, ladder = next(iter(by_level.items()))
        rungs = [f"{rung.name} {rung.share.value:z.2f}" for rung in ladder.rungs]
        rows.append([world, f"`{level}`", "; ".join(rungs)])
    return markdown_table(LADDERS_HEADER, rows)


if __name__ == "__main__":
    main()
