"""Results of commands, printed on the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """Yield what shows how far a stage is, given its name, what is done, and of how much."""
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    what = rich.TextColumn("{task.description}", markup=False)  # an address may look like markup
    times = rich.MofNCompleteColumn(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn()
    stages: dict[str, Any] = {}

    def update(stage: str, done: int, total: int) -> None:
        if stage not in stages:
            stages[stage] = bars.add_task(stage, total=total)
        bars.update(stages[stage], completed=done, total=total)

    columns = what, rich.BarColumn(), *times
    with rich.Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        yield update
