"""`tokengym ties`: how often groups of a scripted policy tie, by size, and which size is enough."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tokengym.agents.cli.options import name_values
from tokengym.envs.catalogue import baselines, make_world
from tokengym.envs.core.errors import OptionError

if TYPE_CHECKING:
    from rich.table import Table

    from tokengym.agents.tie_study import TieStudy
    from tokengym.rewards.ties import Interval


def ties(
    world: Annotated[str, typer.Argument(help="id or short name, such as energy")],
    level: Annotated[str | None, typer.Option(help="level of the world")] = None,
    group_size: Annotated[str, typer.Option(help="sizes, such as 4,8,16")] = "4,8,16",
    policy: Annotated[str, typer.Option(help="a baseline's name")] = "noisy",
    tasks: Annotated[int, typer.Option(min=1, help="groups, each of one test Task")] = 100,
    correct: Annotated[
        float | None, typer.Option(help="rewards above it are correct; the middle if none")
    ] = None,
    option: Annotated[list[str] | None, typer.Option(help="name=value, a world's option")] = None,
    seed: Annotated[int, typer.Option(help="of the policy's randomness")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="write it here too")] = None,
    png: Annotated[Path | None, typer.Option("--png", help="draw it here")] = None,
) -> None:
    """Study ties by group size, before a model is trained or a token is paid for."""
    from rich.console import Console

    from tokengym.agents.tie_study import draw, tie_study

    try:
        sizes = [int(size) for size in group_size.split(",")]
    except ValueError:
        raise OptionError(f"--group-size takes sizes such as 4,8,16; got {group_size!r}") from None
    made = make_world(world, level, **name_values(option or [], "--option"))
    size = made.size("test")
    count = tasks if size is None else min(size, tasks)
    study = tie_study(
        made,
        [made.task("test", index) for index in range(count)],
        baselines(made.spec.id),
        policy,
        sizes,
        threshold=correct,
        seed=seed,
    )
    console = Console()
    console.print(_table(study))
    console.print(
        f"mean reward {study.mean_reward:.4f}, correct (above {study.threshold:g}) "
        f"{study.correct_rate:.1%}; {study.rollouts_per_second:,.0f} rollouts/s, "
        f"{study.rollouts_per_second * study.bytes_per_rollout:,.0f} byte tokens/s"
    )
    console.print("Recommended group size {}: {}".format(*study.recommended))
    if json_file is not None:
        json_file.write_text(json.dumps(study.to_dict(), indent=1, allow_nan=False) + "\n")
    if png is not None:
        draw(study, png)


def _table(study: "TieStudy") -> "Table":
    from rich.table import Table

    shown = {
        "tied pairs": "reward_tie_pair_rate",
        "groups with a tie": "reward_tie_group_rate",
        "distinct rewards / size": "reward_unique_fraction_mean",
        "effective group size": "effective_group_size",
    }
    if study.floor is not None:
        shown |= {
            f"rewards below {study.floor:g}, the floor": "floor_mass",
            "tied pairs on the floor": "floor_tie_pair_rate",
            "tied pairs above the floor": "interior_tie_pair_rate",
        }
    title = f"{study.world} {study.level}, {study.policy}, {study.groups} groups"
    sizes = [f"size {row.size}" for row in study.sizes]
    table = Table("", *sizes, title=title, title_justify="left")
    useful = [row.useful for row in study.sizes]
    table.add_row("groups with an advantage", *map(_shown, useful), end_section=True)
    for label, name in shown.items():
        table.add_row(label, *(_shown(row.rates[name]) for row in study.sizes))
    table.caption = "95 % intervals over groups. Compare pairs across sizes, not groups with a tie."
    return table


def _shown(at: "Interval") -> str:
    return f"{at.value:.3f} ({at.low:.3f} to {at.high:.3f})"
