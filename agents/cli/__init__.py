"""The command line: one module per subcommand, one place that turns errors into messages."""

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from tokengym import __version__
from tokengym.agents.cli.certify import certify
from tokengym.agents.cli.check import check
from tokengym.agents.cli.compare import compare
from tokengym.agents.cli.conform import conform
from tokengym.agents.cli.data import data
from tokengym.agents.cli.evaluate import evaluate
from tokengym.agents.cli.export import export
from tokengym.agents.cli.failures import describe
from tokengym.agents.cli.models import models
from tokengym.agents.cli.new_world import new_world
from tokengym.agents.cli.play import play
from tokengym.agents.cli.probe import probe
from tokengym.agents.cli.rollouts import rollouts
from tokengym.agents.cli.serve import serve
from tokengym.agents.cli.serve_env import serve_env
from tokengym.agents.cli.sweep import sweep
from tokengym.agents.cli.ties import ties
from tokengym.agents.cli.train import WorldHelp, resume, training_command
from tokengym.agents.cli.view import view
from tokengym.agents.cli.worlds import worlds
from tokengym.agents.training.config import CONFIGS
from tokengym.envs.core.errors import TokengymError


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


app = typer.Typer(
    name="tokengym", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Text environments for reinforcement learning of language models."""


_COMMANDS: tuple[Callable[..., None], ...] = (
    *(worlds, play, new_world, check, evaluate, rollouts, export, ties),
    *(sweep, resume, compare, view, serve, serve_env, conform),
)
for _command in _COMMANDS:
    app.command()(_command)
for _name in CONFIGS:
    app.command(cls=WorldHelp)(training_command(_name))


app.add_typer(certify, name="certify")
app.add_typer(data, name="data")
app.add_typer(models, name="models")
app.add_typer(probe, name="probe")


def run() -> None:
    """Run the command line; a caller's mistake prints one line and exits with status 2."""
    try:
        app()
    except (TokengymError, OSError, MemoryError) as error:
        print(f"tokengym: {describe(error)}", file=sys.stderr)
        sys.exit(2)
