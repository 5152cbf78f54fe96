"""`tokengym serve`: the local service, until it is stopped."""

import typer

from tokengym.agents.cli.extras import require_extra

PASS_THROUGH = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}
"""The service reads its own options, so that `serve` and `python -m` cannot differ."""


def serve(context: typer.Context) -> None:
    """Serve a model directory over the Tinker protocol; `tokengym serve --help` lists options."""
    require_extra("tinker", "the service")
    from tokengym.agents.service.__main__ import main

    raise typer.Exit(main(context.args))
