"""What a command found, on the terminal."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokengym.agents.analysis.report import Table


def show(*parts: "str | Table", title: str = "") -> None:
    """Print lines and tables in order, word for word: names of models and files are no markup."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if title:
        console.print(title, style="bold")
    for part in parts:
        # Where nobody looks at a terminal, a line stays one.
        line = isinstance(part, str)
        console.print(part if line else part.for_terminal(), soft_wrap=line)
