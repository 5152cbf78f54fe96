"""The options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

WorldName = Annotated[str, typer.Argument(help="id or short name, such as forecast")]
Level = Annotated[str | None, typer.Option(help="level of the world")]
WorldOptions = Annotated[
    list[str] | None, typer.Option("--option", help="name=value, an option of the world")
]
Data = Annotated[Path | None, typer.Option(help="a file or folder of your own data")]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask before using a key")]


def add_data(said: dict[str, Any], data: Path | None) -> None:
    """Add a user's own data, if there are any, to the options of the world in `said`."""
    if data is not None:
        said["options"] = {**said.get("options", {}), "data": str(data.resolve())}
