"""`tokengym check`: certificates of a world's levels; fails if a contract is broken."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.analysis.check_tables import BLOCKS
from tokengym.agents.analysis.markdown import block_names, write_block
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

    from tokengym.agents.analysis.check import Certificate, Keep


def check(
    world: Annotated[
        str | None, typer.Argument(help="id or short name, such as forecast; not with --all")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="every level of every world")] = False,
    level: Annotated[list[str] | None, typer.Option(help="a level (default: all)")] = None,
    tasks: Annotated[int, typer.Option(min=2, help="Tasks of each split")] = 40,
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
            "--search", help="search for exploits instead; in every world if none is named"
        ),
    ] = False,
    strategies: Annotated[
        int, typer.Option(min=1, help="with --search: attempts in each world")
    ] = 10_000,
) -> None:
    """Measure what each level pays, how often it ties and whether it satisfies its contracts."""
    from rich.console import Console

    from tokengym.agents.analysis.check import Contract
    from tokengym.agents.analysis.check import check as certify

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
    if search:
        if json_file or markdown:
            raise OptionError("check --search writes no --json and no --markdown")
        _search(worlds, policies, tasks=tasks, strategies=strategies, seed=seed)
        return
    console = Console()
    certificates: list[dict[str, Any]] = []
    broken: list[tuple[World, Contract, str]] = []
    for made in worlds:
        try:
            keep = _keep_in(rollouts, made, row_options(made.spec), seed) if rollouts else None
            certificate = certify(made, policies[made.spec.id], tasks=tasks, seed=seed, keep=keep)
        except RewardRangeError as error:
            broken.append((made, Contract.RANGE, str(error)))
            continue
        console.print(_table(certificate))
        certificates.append(certificate.to_dict())
        broken += [(made, contract, what) for contract, what in certificate.broken.items()]
        if json_file is not None:  # now: the next level may take minutes
            json_file.write_text(json.dumps(certificates, indent=1, allow_nan=False) + "\n")
    for page, names in pages:
        for name in names:
            write_block(page, name, BLOCKS[name](certificates))
    for made, contract, what in broken:
        typer.secho(f"BROKEN {made.spec.id} {made.level}: {contract}: {what}", fg="red", err=True)
    if broken:
        raise typer.Exit(1)


def _search(
    worlds: Sequence[World],
    policies: Mapping[str, Mapping[str, Policy]],
    *,
    tasks: int,
    strategies: int,
    seed: int,
) -> None:
    """Search every level, show the results, and fail if anything earns more than it should."""
    from tokengym.agents.analysis.search import search

    levels = Counter(made.spec.id for made in worlds)
    exploits = []
    for made in worlds:
        share = -(-strategies // levels[made.spec.id])
        hunt = search(made, policies[made.spec.id], strategies=share, tasks=tasks, seed=seed)
        typer.echo(
            f"{hunt.world} {hunt.level}: {hunt.rule}, the best honest rule, earns "
            f"{hunt.honest}; the best of {hunt.strategies:,} strategies {hunt.scored} (where it "
            f"was chosen {hunt.chosen}): {hunt.best}"
        )
        if hunt.exploit:
            exploits.append(hunt)
    for hunt in exploits:
        typer.secho(
            f"EXPLOIT {hunt.world} {hunt.level}: {hunt.best} earns {hunt.lead} more than "
            f"{hunt.rule}",
            fg="red",
            err=True,
        )
    if exploits:
        raise typer.Exit(1)


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


def _table(facts: "Certificate") -> "Table":
    from rich.table import Table

    from tokengym.agents.analysis.check import GROUP_SIZES

    table = Table(
        "", "", title=f"{facts.world} {facts.level}, {facts.tasks} test Tasks", title_justify="left"
    )
    table.show_header = False
    low, high = facts.declared
    table.add_row("return declared", f"{low:g} to {high:g}")
    table.add_row("return observed", "{:.4f} to {:.4f}".format(*facts.observed), end_section=True)
    for name, value in sorted(facts.returns.items(), key=lambda item: item[1].value):
        table.add_row(name, str(value))
    table.add_row("optimum" if facts.exact else "bound", str(facts.optimum), end_section=True)
    dead = (facts.ties[f"zero_advantage_probability_{size}"].value for size in GROUP_SIZES)
    pairs = facts.ties["reward_tie_pair_rate"]
    table.add_row(
        f"tied pairs of {facts.grouped}", f"{pairs.value:.3f} ({pairs.low:.3f} to {pairs.high:.3f})"
    )
    table.add_row(
        "groups without advantage",
        ", ".join(f"{rate:.3f} of {size}" for size, rate in zip(GROUP_SIZES, dead, strict=True)),
    )
    size = facts.ties["effective_group_size"].value
    table.add_row("effective group size", f"{size:.1f} of {max(GROUP_SIZES)}", end_section=True)
    malformed = "not reported" if facts.malformed is None else f"{facts.malformed:.1%}"
    table.add_row("random bytes malformed", malformed)
    for role, gain in facts.exploitability.items():
        table.add_row(f"exploitable as {role}", str(gain))
    table.add_row("bytes per episode", f"{facts.episode_bytes.value:,.0f}")
    table.add_row("instances compared", f"{facts.instances}, {facts.repeated} repeated in a split")
    table.add_row("contracts", ", ".join(f"{c} BROKEN" for c in facts.broken) or "all kept")
    return table
