"""`tokengym export`: a run's weights in formats that other libraries load."""

from pathlib import Path
from typing import Annotated

import typer

from tokengym.agents.training.folder.run import RunFolder
from tokengym.envs.core.errors import OptionError
from tokengym.installed import require_extra


def export(
    run: Annotated[Path, typer.Argument(help="a run folder of `tokengym train`")],
    folder: Annotated[Path, typer.Argument(help="the folder to create")],
    merged: Annotated[
        bool, typer.Option("--merged", help="the whole model, not the adapter alone")
    ] = False,
) -> None:
    """Write the last weights of a run as a PEFT adapter, or as a model of transformers."""
    require_extra("tinker", "exporting weights")
    if folder.exists():
        raise OptionError(f"{folder} already exists; name a new folder")
    from tokengym.agents.training.exporting import TrainedAdapter

    adapter = TrainedAdapter.of_run(RunFolder.open(run))
    if merged:
        adapter.write_merged(folder)
    else:
        adapter.write_peft(folder)
    typer.echo(f"{folder}: {'a model' if merged else 'an adapter'} of {adapter.model}")
