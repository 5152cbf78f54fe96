"""`tokengym check`: certificates of a world's levels; fails where a contract is broken."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tokengym.agents.cli.options import name_values
from tokengym.envs.catalogue import baselines, make_world, spec
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.bounds import RewardRangeError

if TYPE_CHECKING:
    from rich.table import Table

    from tokengym.agents.check import Certificate


def check(
    world: Annotated[str, typer.Argument(help="id or short name, such as forecast")],
    level: Annotated[list[str] | None, typer.Option(help="a level; all of them if none")] = None,
    tasks: Annotated[int, typer.Option(min=2, help="Tasks of each split")] = 40,
    without: Annotated[
        list[str] | None, typer.Option(help="a baseline not to play, such as a slow one")
    ] = None,
    option: Annotated[list[str] | None, typer.Option(help="name=value, a world's option")] = None,
    seed: Annotated[int, typer.Option(help="of the policies' randomness")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="write them here too")] = None,
) -> None:
    """Measure what each level pays, how often it ties and whether it keeps its contracts."""
    from rich.console import Console

    from tokengym.agents.check import Contract
    from tokengym.agents.check import check as certify

    row = spec(world)
    policies = dict(baselines(row.id))
    for name in without or ():
        if name not in policies or name in ("null", "random", "oracle"):
            raise OptionError(f"--without takes a baseline but null, random, oracle; got {name!r}")
        del policies[name]
    options = name_values(option or [], "--option")
    made = [make_world(row.id, name, **options) for name in level or row.levels]
    console = Console()
    certificates, broken = [], []
    for one in made:
        try:
            certificate = certify(one, policies, tasks=tasks, seed=seed)
        except RewardRangeError as error:
            broken.append((one.level, Contract.RANGE, str(error)))
            continue
        console.print(_table(certificate))
        certificates.append(certificate)
        broken += [(one.level, contract, what) for contract, what in certificate.broken.items()]
    if json_file is not None:
        found = [certificate.to_dict() for certificate in certificates]
        json_file.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n")
    for name, contract, what in broken:
        typer.secho(f"BROKEN {row.id} {name}: {contract}: {what}", fg="red", err=True)
    if broken:
        raise typer.Exit(1)


def _table(found: "Certificate") -> "Table":
    from rich.table import Table

    from tokengym.agents.check import GROUP_SIZES

    table = Table(
        "", "", title=f"{found.world} {found.level}, {found.tasks} test Tasks", title_justify="left"
    )
    table.show_header = False
    low, high = found.declared
    table.add_row("return declared", f"{low:g} to {high:g}")
    table.add_row("return observed", "{:.4f} to {:.4f}".format(*found.observed), end_section=True)
    for name, value in sorted(found.returns.items(), key=lambda item: item[1].mean):
        table.add_row(name, str(value))
    table.add_row("optimum" if found.exact else "bound", str(found.optimum), end_section=True)
    dead = (found.ties[f"zero_advantage_probability_{size}"].value for size in GROUP_SIZES)
    pairs = found.ties["reward_tie_pair_rate"]
    table.add_row(
        f"tied pairs of {found.grouped}", f"{pairs.value:.3f} ({pairs.low:.3f} to {pairs.high:.3f})"
    )
    table.add_row(
        "groups without advantage",
        ", ".join(f"{rate:.3f} of {size}" for size, rate in zip(GROUP_SIZES, dead, strict=True)),
    )
    size = found.ties["effective_group_size"].value
    table.add_row("effective group size", f"{size:.1f} of {max(GROUP_SIZES)}", end_section=True)
    malformed = "not told" if found.malformed is None else f"{found.malformed:.1%}"
    table.add_row("random bytes malformed", malformed)
    table.add_row("bytes per episode", f"{found.episode_bytes.mean:,.0f}")
    table.add_row("instances compared", f"{found.instances}, {found.repeated} repeated in a split")
    table.add_row("contracts", ", ".join(f"{c} BROKEN" for c in found.broken) or "all kept")
    return table
