"""`tokengym worlds`: list the worlds."""

import inspect
import json
from typing import Annotated, Any

import typer

from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import baselines, load, specs


def worlds(
    as_json: Annotated[
        bool, typer.Option("--json", help="print JSON, with options and baselines")
    ] = False,
) -> None:
    """List the worlds with their levels, roles and ranges of return."""
    if as_json:
        typer.echo(json.dumps([describe(row) for row in specs().values()], indent=1))
        return
    for row in specs().values():
        ranges = (
            f"{role} {reach.low:g} to {reach.high:g}" for role, reach in row.return_range.items()
        )
        typer.secho(row.id, bold=True)
        typer.echo(f"  {row.summary}")
        typer.echo(f"  levels:  {', '.join(row.levels)}")
        typer.echo(f"  returns: {', '.join(ranges)}")


def describe(row: WorldSpec) -> dict[str, Any]:
    """Return all that a world declares about itself, as plain JSON values."""
    parameters = inspect.signature(load(row.entry_point)).parameters.values()
    options = {
        parameter.name: {
            "default": None if parameter.default is parameter.empty else parameter.default,
            "type": inspect.formatannotation(parameter.annotation),
        }
        for parameter in parameters
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    return {
        "id": row.id,
        "short_name": row.short_name,
        "summary": row.summary,
        "roles": list(row.roles),
        "levels": {level: {"turn_limit": row.turn_limits[level]} for level in row.levels},
        "returns": {role: [reach.low, reach.high] for role, reach in row.return_range.items()},
        "options": options,
        "baselines": sorted(baselines(row.id)),
        "picture": bool(row.render),
    }
