"""`tokengym worlds`: what there is."""

from rich.console import Console
from rich.table import Table

from tokengym.envs.catalogue import specs


def worlds() -> None:
    """List the worlds with their levels and roles."""
    table = Table("world", "levels", "roles", "return", "what it is")
    for row in specs().values():
        reach = row.return_range[row.roles[0]]
        table.add_row(
            row.id,
            ", ".join(row.levels),
            ", ".join(row.roles),
            f"{reach.low:g} to {reach.high:g}",
            row.summary,
        )
    Console().print(table)
