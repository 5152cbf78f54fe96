"""Results of commands, printed on the terminal."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokengym.agents.reports.report import Table

INTERRUPTED = 130
"""Exit status of a command that was stopped with Ctrl-C."""


def show(*parts: "str | Table", title: str = "") -> None:
    """Print lines and tables in order, word for word: names of models and files are no markup."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if title:
        console.print(title, style="bold")
    for part in parts:
        if isinstance(part, str):
            console.print(part, soft_wrap=True)  # where nobody looks at a terminal, it stays one
        else:
            console.print(part.for_terminal())
