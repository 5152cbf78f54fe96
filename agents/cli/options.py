"""The options that several commands share."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.settings import option
from tokengym.agents.training.config import WorldOptions
from tokengym.envs.core.errors import OptionError

if TYPE_CHECKING:
    from tokengym.agents.training.job import Job
    from tokengym.envs.core.task import Task


def new_folder(name: str) -> Path:
    """Return a folder to write, by the name that was typed.

    Raises:
        OptionError: if it is empty or has control characters.
    """
    if not name.strip() or not name.isprintable():
        raise OptionError(f"a folder needs a name of characters that can be seen, got {name!r}")
    return Path(name)


WorldName = Annotated[str, typer.Argument(help="id or short name, such as forecast")]
Level = Annotated[str | None, typer.Option(help="level of the world")]
Data = Annotated[
    list[Path] | None,
    typer.Option(help="a file or folder of your own data; several are read together"),
]
Columns = Annotated[
    str | None,
    typer.Option(help="of forecast's --data: FIELD=HEADING,…; dates=day-first or month-first"),
]
Workers = Annotated[int, typer.Option(min=1, help="processes that share the work")]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask before using a key")]


@dataclass(frozen=True)
class Playing(WorldOptions):
    """Task and roles.

    Attributes: see their help.
    """

    level: str | None = option(None, "level of the world")
    role: str | None = option(None, "the role to play (default: the first)")
    opponents: Mapping[str, str] = option(
        {}, "ROLE=WHO plays another role: a baseline's name", flag="--opponent"
    )
    split: str = option("train", "the split that the Task is from: train, validation or test")


def add_data(said: dict[str, Any], data: list[Path] | None, columns: str | None) -> None:
    """Add a user's own data, if there are any, to the options of the world in `said`."""
    if columns is not None:
        said["options"] = {**said.get("options", {}), "columns": columns}
    paths = [str(path.resolve()) for path in data or []]
    if paths:
        files = paths if len(paths) > 1 else paths[0]
        said["options"] = {**said.get("options", {}), "data": files}


def confirm_cost(job: "Job", tasks: "Sequence[Task]", size: int, *, ask: bool) -> None:
    """State the tokens of `size` rollouts of each Task on another's service, and ask to go on."""
    from tokengym.agents.training.cost import rollouts_cost

    if not job.target.local:
        read, sampled = rollouts_cost(job, tasks, size)
        typer.echo(f"this study will read about {read:,} tokens and sample at most {sampled:,}")
        if ask and sys.stdin.isatty():
            typer.confirm("start?", abort=True)
