"""`tokengym models`: language models on this machine."""

from typing import Annotated

import typer

from tokengym.installed import require_extra

models = typer.Typer(help="Fetch and list language models.", no_args_is_help=True)


@models.command()
def fetch(
    name: Annotated[
        str,
        typer.Argument(help="smollm2, a name of the Hugging Face hub, a .gguf file or a directory"),
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="compare hashes, and replace a damaged model")
    ] = False,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="accept a model that runs its own code")
    ] = False,
) -> None:
    """Fetch and convert a model if necessary, and print its directory."""
    require_extra("tinker", "fetching models")
    from tokengym.agents.models import resolve_model

    model = resolve_model(
        name,
        verify=verify,
        most_bytes=None,
        trust_remote_code=trust_remote_code,
        progress=lambda line: typer.echo(line, err=True),
    )
    typer.echo(model.directory)


@models.command("list")
def list_models(
    verify: Annotated[
        bool, typer.Option("--verify", help="compare hashes, not sizes alone")
    ] = False,
) -> None:
    """List the models on this machine: converted ones, and those in the hub's cache."""
    require_extra("tinker", "listing models")
    from tokengym.agents.models.cache import cache_folder, entries
    from tokengym.agents.models.hub import snapshots

    converted = entries(verify=verify)
    for entry in converted:
        state = "" if entry.intact else ", DAMAGED: fetch it again"
        source = entry.origin.source if entry.origin is not None else "unknown"
        _show(entry.key, source, f"{entry.size / 1e6:,.0f} MB{state}", str(entry.directory))
    fetched = snapshots()
    for name, size, directory in fetched:
        _show(name, "Hugging Face hub", f"{size / 1e6:,.0f} MB", str(directory))
    if not converted and not fetched:
        typer.echo(f"no models in {cache_folder()}; fetch one: tokengym models fetch smollm2")


def _show(name: str, source: str, size: str, directory: str) -> None:
    typer.secho(name, bold=True)
    typer.echo(f"  source:    {source}")
    typer.echo(f"  size:      {size}")
    typer.echo(f"  directory: {directory}")
