"""`tokengym check`: certificates of a world's levels; fails if a contract is broken.

With `--search`, it also fails if a strategy earns more than it should.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.analysis.markdown import block_names, write_block
from tokengym.agents.certify.level_tables import BLOCKS, CELLS, HEADROOM_HEADER, LEVELS_HEADER
from tokengym.agents.cli.options import WorldOptions
from tokengym.agents.rollouts import RolloutLog, RolloutOrigin, record_play
from tokengym.agents.settings import name_values
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import PlayedEpisode, Policy
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world, spec, specs
from tokengym.rewards.bounds import RewardRangeError

if TYPE_CHECKING:
    from rich.table import Table

    from tokengym.agents.certify.levels import Keep, LevelCertificate


def check(
    world: Annotated[
        str | None, typer.Argument(help="id or short name, such as forecast; not with --all")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="every level of every world")] = False,
    level: Annotated[list[str] | None, typer.Option(help="a level (default: all)")] = None,
    tasks: Annotated[
        int | None,
        typer.Option(min=2, help="Tasks of each split (default: 40, with --search 400)"),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="a baseline to leave out, for example a slow one")
    ] = None,
    option: WorldOptions = None,
    seed: Annotated[int, typer.Option(help="seed of the policies")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="also write the results to this file")
    ] = None,
    markdown: Annotated[
        list[Path] | None, typer.Option(help="with --all: a page whose tables of worlds to rewrite")
    ] = None,
    rollouts: Annotated[Path | None, typer.Option(help="a folder to save every episode in")] = None,
    search: Annotated[
        bool,
        typer.Option(
            "--search", help="also search for better rules; in every world if none is named"
        ),
    ] = False,
    strategies: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="with --search: attempts at each level "
            "(default: 1000, fewer where episodes have more than 12 turns)",
        ),
    ] = None,
    ties: Annotated[
        float,
        typer.Option(min=0, max=1, help="most of the noisy policy's groups of eight that may tie"),
    ] = 0.5,
    chosen_on: Annotated[
        int, typer.Option(min=2, help="with --search: validation Tasks the best is chosen on")
    ] = 200,
) -> None:
    """Measure what each level pays, how often it ties and whether it satisfies its contracts."""
    from rich.console import Console

    from tokengym.agents.certify.levels import Contract
    from tokengym.agents.certify.levels import check as certify

    every = every or (search and world is None)
    if (world is None) != every or (every and (level or option)) or (markdown and not every):
        raise OptionError(
            "check takes a world with --level and --option, or --all with or without --markdown"
        )
    pages = [(page, _blocks_of(page)) for page in markdown or ()]
    world_specs = list(specs().values()) if world is None else [spec(world)]
    options = name_values(option or [], "--option")
    policies = _policies(world_specs, without or ())

    def row_options(world_spec: WorldSpec) -> Mapping[str, Any]:
        return world_spec.check_options if every else options

    worlds = [
        make_world(world_spec.id, name, **row_options(world_spec))
        for world_spec in world_specs
        for name in level or world_spec.levels
    ]
    tasks = tasks or (400 if search else 40)
    console = Console()
    certificates: list[dict[str, Any]] = []
    failed: list[tuple[World, str]] = []
    for made in worlds:
        try:
            keep = _keep_in(rollouts, made, row_options(made.spec), seed) if rollouts else None
            certificate = certify(
                made,
                policies[made.spec.id],
                tasks=tasks,
                seed=seed,
                keep=keep,
                strategies=(strategies or _strategies(made)) if search else 0,
                chosen_on=chosen_on,
                ties=ties,
            )
        except RewardRangeError as error:
            failed.append((made, f"{Contract.RANGE} BROKEN: {error}"))
            continue
        console.print(_table(certificate))
        certificates.append(certificate.to_dict())
        failed += [(made, f"{name} BROKEN: {what}") for name, what in certificate.broken.items()]
        if (hunt := certificate.search) is not None and hunt.exploit:
            failed.append((made, f"EXPLOIT: {hunt.best} earns {hunt.scored}, more than is known"))
        if json_file is not None:  # now: the next level may take minutes
            json_file.write_text(json.dumps(certificates, indent=1, allow_nan=False) + "\n")
    for page, names in pages:
        for name in names:
            write_block(page, name, BLOCKS[name](certificates))
    for made, what in failed:
        typer.secho(f"{made.spec.id} {made.level}: {what}", fg="red", err=True)
    if failed:
        raise typer.Exit(1)


def _strategies(world: World) -> int:
    """Return how many strategies a search of the level draws: a long episode takes long."""
    return min(1000, 12_000 // world.turn_limit)


def _keep_in(folder: Path, world: World, options: Mapping[str, Any], seed: int) -> "Keep":
    """Return a writer of a level's episodes to a folder, as rollouts of the first role."""
    log = RolloutLog(folder)
    segment = f"check_{world.spec.short_name}_{world.level}"
    log.path(segment).unlink(missing_ok=True)
    common = RolloutOrigin("check", options=options, seed=seed)

    def keep(policy: str, groups: Sequence[Sequence[PlayedEpisode]]) -> None:
        log.append(
            segment,
            [
                record_play(
                    replace(common, group=group, member=member, policy=policy),
                    played,
                    world.spec.roles[0],
                )
                for group, members in enumerate(groups)
                for member, played in enumerate(members)
            ],
        )

    return keep


def _policies(
    world_specs: Sequence[WorldSpec], without: Sequence[str]
) -> dict[str, dict[str, Policy]]:
    """Return each world's baselines by name, without the excluded ones."""
    policies = {world_spec.id: dict(baselines(world_spec.id)) for world_spec in world_specs}
    for name in without:
        if name in ("null", "random", "oracle") or not any(
            name in own for own in policies.values()
        ):
            raise OptionError(f"--without takes a baseline but null, random, oracle; got {name!r}")
        for own in policies.values():
            own.pop(name, None)
    return policies


def _blocks_of(page: Path) -> list[str]:
    names = [name for name in block_names(page) if name in BLOCKS]
    if not names:
        raise OptionError(f"{page} has no block made by one of {list(BLOCKS)}")
    return names


def _table(certificate: "LevelCertificate") -> "Table":
    from rich.table import Table

    from tokengym.agents.certify.levels import GROUP_SIZES

    found = certificate.to_dict()
    title = f"{found['world']} {found['level']}, {found['tasks']} test Tasks"
    table = Table("", "", title=title, title_justify="left", show_header=False)
    for name, value in sorted(certificate.returns.items(), key=lambda item: item[1].value):
        table.add_row(name, str(value))
    table.add_section()
    for column in (*HEADROOM_HEADER[3:], *LEVELS_HEADER[2:4], *LEVELS_HEADER[7:]):
        table.add_row(column, CELLS[column](found))
    if certificate.search is not None:
        table.add_row("the rule found", certificate.search.best)
    for role, gain in certificate.exploitability.items():
        table.add_row(f"exploitable as {role}", str(gain))
    size = certificate.ties["effective_group_size"].value
    table.add_row("effective group size", f"{size:.1f} of {max(GROUP_SIZES)}")
    table.add_row(
        "instances compared", f"{found['instances']}, {found['repeated']} repeated in a split"
    )
    table.add_row("contracts", ", ".join(f"{c} BROKEN" for c in found["broken"]) or "all kept")
    return table
