"""`tokengym check`: the laws of a level, what its policies earn, and its ladder."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.cli.options import Workers
from tokengym.agents.cli.shown import show
from tokengym.agents.evaluation.scripted import draw_tasks
from tokengym.agents.execution.executors import Executor, find_executor
from tokengym.agents.scale.ladder import LevelLadder, shipped_ladder
from tokengym.agents.scale.level_scale import ladder_of
from tokengym.agents.settings import option
from tokengym.agents.settings.commands import takes
from tokengym.agents.training.config import WorldOptions
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world, spec, spec_and_level, specs
from tokengym.installed import require_extra

if TYPE_CHECKING:
    from tokengym.agents.check.level_check import LevelCheck
    from tokengym.agents.reports.progress import StageProgress


@dataclass(frozen=True)
class _Asked(WorldOptions):
    """Levels, Tasks and files.

    Attributes: see their help.
    """

    level: tuple[str, ...] = option((), "a level (default: all)")
    tasks: int = option(40, "Tasks that policies play", least=2)
    seed: int = option(0, "seed of the laws' examples")
    ladder: bool = option(
        False, "print only the reference policies of each level, as on file for shipped levels"
    )
    json_file: Path | None = option(None, "also write the results to this file", flag="--json")
    ties: float = option(0.5, "largest share of groups of eight that may tie", least=0, most=1)


@takes(_Asked)
def check(
    world: Annotated[
        str | None,
        typer.Argument(help="a world such as forecast, or forecast:hard; not with --all"),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="every level of every world")] = False,
    *,
    said: dict[str, Any],
    workers: Workers = 1,
) -> None:
    """Check that each level keeps the laws, and print what its policies earn and its ladder."""
    from tokengym.agents.check.tables import ladder_table
    from tokengym.agents.reports.progress import progress_bars

    asked = _Asked(**said)
    _require_fitting(asked, world, every=every)
    levels = [
        make_world(one.id, level, **(one.check_options if every else asked.options))
        for one, level in _named(asked, world)
    ]
    with progress_bars() as progress:
        executor = find_executor(workers, partial(progress, "reference policies"))
        if not asked.ladder:
            _show_checks(asked, levels, executor, progress, every=every)
        ladders = {
            f"{made.spec.id} {made.level}": ladder
            for made in levels
            if (ladder := _ladder(asked, made, executor)) is not None
        }
    for title, ladder in ladders.items():
        show(ladder_table(title, ladder))
    if asked.ladder and not ladders:
        raise OptionError("none of these levels declares a ladder")


def _show_checks(
    asked: _Asked,
    levels: Sequence[World],
    executor: Executor,
    progress: "StageProgress",
    *,
    every: bool,
) -> None:
    """Print the check of each level as it ends.

    Raises:
        typer.Exit: with 1 if one breaks a law.
    """
    from tokengym.agents.check.tables import check_table

    require_extra("testing", "tokengym check")
    firsts = {made.spec.id: made.level for made in reversed(levels)}
    todo = [(made, firsts[made.spec.id] == made.level) for made in levels]
    found: dict[int, LevelCheck] = {}
    work = partial(_check, asked, every or not asked.options)
    progress("levels", 0, len(todo))
    with closing(executor.run(work, todo)) as results:
        for number, one in results:
            found[number] = one
            progress("", 0, 0)  # no bar while a table is printed
            show(check_table(one))
            progress("levels", len(found), len(todo))
            if asked.json_file is not None:  # now: the next level may take minutes
                rows = [found[at].to_dict() for at in sorted(found)]
                asked.json_file.write_text(json.dumps(rows, indent=1, allow_nan=False) + "\n")
    checks = [found[at] for at in sorted(found)]
    for one in checks:
        for law, what in one.broken.items():
            typer.secho(f"{one.world} {one.level}: {law} BROKEN: {what}", fg="red", err=True)
    if any(one.broken for one in checks):
        raise typer.Exit(1)


def _check(asked: _Asked, by_id: bool, level: tuple[World, bool]) -> "LevelCheck":
    """Check a level; `level` says whether to check the laws of its world as a whole, too."""
    from tokengym.agents.check.level_check import LevelCheck
    from tokengym.envs.testing.subject import Subject

    world, of_world = level
    named = (world.spec.id, world.level) if by_id else world
    subject = Subject(named, seed=asked.seed, ties=asked.ties)
    return LevelCheck.measure(world, subject, asked.tasks, of_world=of_world)


def _named(asked: _Asked, world: str | None) -> list[tuple[WorldSpec, str]]:
    """Return the levels to check; of a world that is named without one all."""
    if world is not None and (asked.level or ":" in world):
        return [spec_and_level(world, level) for level in asked.level or (None,)]
    worlds = list(specs().values()) if world is None else [spec(world)]
    return [(world, level) for world in worlds for level in world.levels]


def _require_fitting(asked: _Asked, world: str | None, *, every: bool) -> None:
    narrowed = asked.level or asked.options
    if asked.ladder and asked.json_file:
        raise OptionError("--ladder goes with --level, --option, --tasks and --all")
    if (world is None) != every or (every and narrowed):
        raise OptionError("check takes a world with --level and --option, or --all")


def _ladder(asked: _Asked, world: World, executor: Executor) -> LevelLadder | None:
    """Return the ladder of a level: that on file, or else measured; `None` where it has none."""
    role = world.spec.roles[0]
    if not asked.options and (shipped := shipped_ladder(world, role)) is not None:
        return shipped
    if ladder_of(world.spec, world.level, role) is None:
        return None
    return LevelLadder.measure(
        world, draw_tasks(world, "validation", asked.tasks, executor), executor
    )
