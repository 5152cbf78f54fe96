"""`tokengym worlds`: what there is."""

import typer

from tokengym.envs.registry import specs


def worlds() -> None:
    """List the worlds with their levels, roles and ranges of return."""
    for row in specs().values():
        ranges = (
            f"{role} {reach.low:g} to {reach.high:g}" for role, reach in row.return_range.items()
        )
        typer.secho(row.id, bold=True)
        typer.echo(f"  {row.summary}")
        typer.echo(f"  levels:  {', '.join(row.levels)}")
        typer.echo(f"  returns: {', '.join(ranges)}")
