"""`tokengym verify`: replay the rollouts of an evaluation or a run, offline."""

from pathlib import Path
from typing import Annotated

import typer

from tokengym.envs.core.errors import OptionError

_DIFFERS = 1


def verify(
    folder: Annotated[Path, typer.Argument(help="folder of an evaluation, or of a training run")],
) -> None:
    """Replay every saved rollout without a model and check that nothing differs."""
    from tokengym.agents.evaluation.folder import EvaluationFolder
    from tokengym.agents.evaluation.verify import verify_evaluation, verify_run
    from tokengym.agents.training.folder.run import RunFolder

    if RunFolder(folder).exists:
        verified = verify_run(RunFolder.open(folder))
    elif not folder.exists():
        raise OptionError(f"{folder} does not exist")
    else:
        verified = verify_evaluation(EvaluationFolder.open(folder))
    for difference in verified.differences:
        typer.echo(difference)
    if verified.differences:
        typer.echo(f"{len(verified.differences)} differences in {verified.rollouts} rollouts")
        raise typer.Exit(_DIFFERS)
    typer.echo(f"{verified.rollouts} rollouts replayed: all agree exactly")
