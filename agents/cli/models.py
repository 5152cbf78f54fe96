"""`tokengym models`: fetch language models."""

from typing import Annotated

import typer

from tokengym.installed import require_extra

models = typer.Typer(help="Fetch language models.", no_args_is_help=True)


@models.command()
def fetch(
    name: Annotated[
        str,
        typer.Argument(help="smollm2, a name of the Hugging Face hub, a .gguf file or a directory"),
    ],
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="accept a model that runs its own code")
    ] = False,
) -> None:
    """Fetch and convert a model if necessary, and print its directory."""
    require_extra("tinker", "fetching models")
    from tokengym.agents.models import resolve_model

    directory = resolve_model(
        name,
        most_bytes=None,
        trust_remote_code=trust_remote_code,
        progress=lambda line: typer.echo(line, err=True),
    )
    typer.echo(directory)
