"""`tokengym report`: write a finished run's page again."""

from pathlib import Path
from typing import Annotated

import typer

from tokengym.agents.cli.extras import require_extra


def report(run: Annotated[Path, typer.Argument(help="the folder of a finished run")]) -> None:
    """Write the report of a finished run again."""
    require_extra("tinker", "the report of a run")
    from tokengym.agents.analysis.run_report import write_report
    from tokengym.agents.training.folder.run import RunFolder
    from tokengym.agents.training.job import Job

    opened = RunFolder.open(run)
    write_report(Job.resolve(opened.config), opened)
    typer.echo(f"report: {run / 'report.html'}")
