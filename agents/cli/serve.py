"""`tokengym serve`: the local service, until it is stopped."""

import typer

PASS_THROUGH = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}
"""The service reads its own options, so that `serve` and `python -m` cannot differ."""


def serve(context: typer.Context) -> None:
    """Serve a model directory over the Tinker protocol; `tokengym serve --help` lists options."""
    from tokengym.agents.service.__main__ import main

    raise typer.Exit(main(context.args))
