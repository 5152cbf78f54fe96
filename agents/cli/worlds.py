"""`tokengym worlds`: list the worlds."""

import inspect
import json
from typing import Annotated, Any

import typer

from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import baselines, import_object, specs


def worlds(
    as_json: Annotated[
        bool, typer.Option("--json", help="print JSON, with options and baselines")
    ] = False,
) -> None:
    """List the worlds with their levels, roles and ranges of return."""
    if as_json:
        typer.echo(json.dumps([describe(spec) for spec in specs().values()], indent=1))
        return
    for spec in specs().values():
        ranges = (
            f"{role} {reach.low:g} to {reach.high:g}" for role, reach in spec.return_range.items()
        )
        typer.secho(spec.id, bold=True)
        typer.echo(f"  {spec.summary}")
        typer.echo(f"  levels:  {', '.join(spec.levels)}")
        typer.echo(f"  returns: {', '.join(ranges)}")


def describe(spec: WorldSpec) -> dict[str, Any]:
    """Return all that a world declares about itself, as plain JSON values."""
    parameters = inspect.signature(import_object(spec.entry_point)).parameters.values()
    options = {
        parameter.name: {
            "default": None if parameter.default is parameter.empty else parameter.default,
            "type": inspect.formatannotation(parameter.annotation),
        }
        for parameter in parameters
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    return {
        "id": spec.id,
        "short_name": spec.short_name,
        "summary": spec.summary,
        "roles": list(spec.roles),
        "levels": {level: {"turn_limit": spec.turn_limits[level]} for level in spec.levels},
        "returns": {role: [reach.low, reach.high] for role, reach in spec.return_range.items()},
        "options": options,
        "baselines": sorted(baselines(spec.id)),
        "picture": bool(spec.render),
    }
