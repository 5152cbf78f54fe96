"""`tokengym data days`: what a user's energy files hold, what is left out, which levels fit."""

from pathlib import Path
from typing import Annotated

import typer


def days(
    files: Annotated[list[Path], typer.Argument(help="files for the option data of energy")],
    resample: Annotated[
        bool, typer.Option(help="convert to each level's step length, like its option")
    ] = False,
    most_load: Annotated[
        float, typer.Option(help="kW above which a load is assumed to be in the wrong unit")
    ] = 100.0,
) -> None:
    """Report what a home's files hold, which rows are left out and why, and which levels fit."""
    from rich.console import Console
    from rich.table import Table

    from tokengym.envs.core.errors import DataError
    from tokengym.envs.energy.data import read, resample_to
    from tokengym.envs.energy.levels import LEVELS

    series = read(files, most_load=most_load)
    console = Console()
    console.print(str(series.report), markup=False, highlight=False, soft_wrap=True)
    longest = max(end - begin for begin, end, _ in series.stretches)
    count = len(series.stretches)
    console.print(
        f"{series.steps} steps of {series.minutes} minutes, "
        + (f"in {count} stretches, the longest of {longest}" if count > 1 else "without a gap"),
        highlight=False,
        soft_wrap=True,
    )
    table = Table("level", "train", "validation", "test", "rows in windows", "why not")
    for name, level in LEVELS.items():
        try:
            played = resample_to(series, level.minutes) if resample else series
            windows = played.windows(level)
        except DataError as error:
            table.add_row(name, "", "", "", "", str(error))
            continue
        dealt = [list(windows.values()).count(split) for split in ("train", "validation", "test")]
        share = len(windows) * level.steps / played.steps
        table.add_row(name, *map(str, dealt), f"{share:.0%}", "")
    console.print(table)
