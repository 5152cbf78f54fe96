"""`tokengym check`: certificates of a world's levels; fails if a contract is broken."""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.certify.level_tables import (
    BLOCKS,
    CELLS,
    LEVELS_HEADER,
    LIMITS_HEADER,
    RUNGS_HEADER,
    amount,
    first_ladders,
    ladders_of_world,
    rung_rows,
)
from tokengym.agents.cli.options import EngineName, Workers
from tokengym.agents.cli.shown import show
from tokengym.agents.evaluation.scripted import draw_tasks
from tokengym.agents.execution.executors import Executor, find_executor
from tokengym.agents.reports.markdown import block_names, write_block
from tokengym.agents.reports.report import Table
from tokengym.agents.rollouts import RolloutLog, RolloutOrigin, record_play
from tokengym.agents.scale import ladder_of
from tokengym.agents.scale.ladder import LevelLadder, shipped_ladder
from tokengym.agents.settings import option, plain
from tokengym.agents.settings.commands import takes
from tokengym.agents.training.setting_groups import WorldOptions
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import PlayedEpisode
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines_at, make_world, spec, spec_and_level, specs
from tokengym.rewards.bounds import RewardRangeError

if TYPE_CHECKING:
    from tokengym.agents.certify.levels import Keep, LevelCertificate

_LADDER = "tokengym check --ladder"


@dataclass(frozen=True)
class _Asked(WorldOptions):
    """Levels, Tasks and files.

    Attributes: see their help.
    """

    level: tuple[str, ...] = option((), "a level (default: all)")
    tasks: int = option(40, "Tasks of each split", least=2)
    seed: int = option(0, "seed of the policies")
    ladder: bool = option(
        False, "print the rungs of each level instead, as on file for shipped levels"
    )
    json_file: Path | None = option(None, "also write the results to this file", flag="--json")
    markdown: tuple[Path, ...] = option((), "with --all: a page whose tables to renew", read=Path)
    rollouts: Path | None = option(None, "a folder to save every episode in")
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
    workers: Workers = None,
    engine: EngineName = "processes",
) -> None:
    """Measure what each level pays, how often it ties and whether it satisfies its contracts."""
    asked = _Asked(**said)
    _require_fitting(asked, world, every=every)
    levels = [
        (make_world(one.id, level, **options), options)
        for one, level in _named(asked, world)
        for options in [one.check_options if every else asked.options]
    ]
    if asked.ladder:
        _show_ladders(asked, [made for made, _ in levels], find_executor(workers, engine))
        return
    pages = [(page, _blocks_of(page, BLOCKS)) for page in asked.markdown]
    found: dict[int, dict[str, Any]] = {}
    failed: dict[int, list[str]] = {}
    with closing(find_executor(workers, engine).run(partial(_certify, asked), levels)) as results:
        for number, (certificate, broken) in results:
            failed[number] = broken
            if certificate is None:
                continue
            show(_table(certificate))
            found[number] = plain(certificate)
            if asked.json_file is not None:  # now: the next level may take minutes
                rows = [found[place] for place in sorted(found)]
                asked.json_file.write_text(json.dumps(rows, indent=1, allow_nan=False) + "\n")
    for page, names in pages if len(found) == len(levels) else ():  # else a row is missing
        for name in names:
            write_block(page, name, BLOCKS[name]([found[place] for place in sorted(found)]))
    for number, (made, _) in enumerate(levels):
        for what in failed[number]:
            typer.secho(f"{made.spec.id} {made.level}: {what}", fg="red", err=True)
    if any(failed.values()):
        raise typer.Exit(1)


def _named(asked: _Asked, world: str | None) -> list[tuple[WorldSpec, str]]:
    """Return the levels to measure; of a world that is named without one all."""
    if world is not None and (asked.level or ":" in world):
        return [spec_and_level(world, level) for level in asked.level or (None,)]
    worlds = list(specs().values()) if world is None else [spec(world)]
    return [(one, level) for one in worlds for level in one.levels]


def _require_fitting(asked: _Asked, world: str | None, *, every: bool) -> None:
    narrowed = asked.level or asked.options
    if asked.ladder and (asked.json_file or asked.rollouts):
        raise OptionError("--ladder goes with --level, --option, --tasks, --all and --markdown")
    if (world is None) != every or (every and narrowed) or (asked.markdown and not every):
        raise OptionError(
            "check takes a world with --level and --option, or --all with or without --markdown"
        )


def _certify(
    asked: _Asked, level: tuple[World, Mapping[str, Any]]
) -> "tuple[LevelCertificate | None, list[str]]":
    """Certify a level with its options; returns the certificate, if any, and what is broken."""
    from tokengym.agents.certify.levels import Contract
    from tokengym.agents.certify.levels import check as certify

    world, options = level
    try:
        found = certify(
            world,
            baselines_at(world),
            tasks=asked.tasks,
            seed=asked.seed,
            keep=_keep_in(asked, world, options) if asked.rollouts else None,
            ties=asked.ties,
        )
    except RewardRangeError as error:
        return None, [f"{Contract.RANGE} BROKEN: {error}"]
    return found, [f"{name} BROKEN: {what}" for name, what in found.broken.items()]


def _keep_in(asked: _Asked, world: World, options: Mapping[str, Any]) -> "Keep":
    """Return a writer of a level's episodes to a folder, as rollouts of the first role."""
    log = RolloutLog(asked.rollouts or Path())
    segment = f"check_{world.spec.short_name}_{world.level}"
    log.path(segment).unlink(missing_ok=True)
    common, role = RolloutOrigin("check", options=options, seed=asked.seed), world.spec.roles[0]

    def keep(policy: str, groups: Sequence[Sequence[PlayedEpisode]]) -> None:
        records = [
            record_play(replace(common, group=group, member=member, policy=policy), played, role)
            for group, members in enumerate(groups)
            for member, played in enumerate(members)
        ]
        log.append(segment, records)

    return keep


def _show_ladders(asked: _Asked, levels: Sequence[World], executor: Executor) -> None:
    """Print the ladder of each level that has one, and write those of pages."""
    ladders: dict[str, dict[str, LevelLadder]] = {}
    for world in levels:
        role = world.spec.roles[0]
        found = None if asked.options else shipped_ladder(world, role)
        if found is None and ladder_of(world.spec, world.level, role) is None and len(levels) > 1:
            continue
        if found is None:
            tasks = draw_tasks(world, "validation", asked.tasks, executor)
            found = LevelLadder.measure(world, tasks, executor)
        ladders.setdefault(world.spec.short_name, {})[world.level] = found
        title = f"{world.spec.id} {world.level}, {found.tasks} validation Tasks"
        merged = "; ".join(f"{name} with {other}" for name, other in found.merged.items())
        note = (
            f"gain: over {found.zero}, as a share of the top rung's {amount(found)} "
            "per Task; solved: Tasks on which a rung gains as much as the top one; gap / SD: the "
            "next rung's lead over its standard deviation. Not told apart, and merged: "
            f"{merged or 'none'}"
        )
        # Names and sources share a column, or 80 columns would cut them off.
        rows = [(kind, f"{n} ({s})" if s else n, *more) for kind, n, s, *more in rung_rows(found)]
        show(Table((RUNGS_HEADER[0], "rung (source)", *RUNGS_HEADER[3:]), rows, title, note))
    blocks = {
        f"{_LADDER}, {name}": partial(ladders_of_world, name, each)
        for name, each in ladders.items()
    }
    blocks[f"{_LADDER}, by world"] = partial(first_ladders, ladders)
    for page in asked.markdown:
        for name in _blocks_of(page, blocks):
            write_block(page, name, blocks[name]())


def _blocks_of(page: Path, known: Collection[str]) -> list[str]:
    names = [name for name in block_names(page) if name in known]
    if not names:
        raise OptionError(f"{page} has no block made by one of {list(known)}")
    return names


def _table(certificate: "LevelCertificate") -> Table:
    from tokengym.agents.certify.levels import GROUP_SIZES

    found = plain(certificate)
    earned = sorted(certificate.returns.items(), key=lambda item: item[1].value)
    columns = (*LIMITS_HEADER, *LEVELS_HEADER[2:4], *LEVELS_HEADER[7:])
    size = certificate.ties["effective_group_size"].value
    rows = [
        *((name, str(value)) for name, value in earned),
        *((column, CELLS[column](found)) for column in columns),
        ("effective group size", f"{size:.1f} of {max(GROUP_SIZES)}"),
        ("contracts", ", ".join(f"{c} BROKEN" for c in found["broken"]) or "all kept"),
    ]
    return Table(("", ""), rows, f"{found['world']} {found['level']}, {found['tasks']} test Tasks")
