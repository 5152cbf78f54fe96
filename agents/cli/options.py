"""The options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

WorldName = Annotated[str, typer.Argument(help="id or short name, such as forecast")]
Level = Annotated[str | None, typer.Option(help="level of the world")]
WorldOptions = Annotated[
    list[str] | None, typer.Option("--option", help="name=value, an option of the world")
]
Data = Annotated[
    list[Path] | None,
    typer.Option(help="a file or folder of your own data; several are read together"),
]
Yes = Annotated[bool, typer.Option("--yes", help="do not ask before using a key")]


def add_data(said: dict[str, Any], data: list[Path] | None) -> None:
    """Add a user's own data, if there are any, to the options of the world in `said`."""
    paths = [str(path.resolve()) for path in data or []]
    if paths:
        files = paths if len(paths) > 1 else paths[0]
        said["options"] = {**said.get("options", {}), "data": files}
