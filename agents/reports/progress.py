"""Progress of stages with the time left: bars on a terminal, occasional lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import progress as rich
from rich.console import Console

StageProgress = Callable[[str, int, int], None]
"""Shows progress: called with a stage's title, the number of finished items, and the total.

An empty title hides the bars until the next call, so that something can be printed.
"""
_QUIET = 30.0
"""Seconds between lines where there is no terminal."""


def unseen(stage: str, done: int, total: int) -> None:
    """Show nothing."""


@contextmanager
def progress_bars(console: Console | None = None) -> Iterator[StageProgress]:
    """Yield a `StageProgress` that writes to a console, standard error if `None`."""
    console = Console(stderr=True) if console is None else console
    console.file = console.file  # bound now: others may redirect the stream
    what = rich.TextColumn("{task.description}", markup=False)  # an address may look like markup
    times = rich.MofNCompleteColumn(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn()
    columns = what, rich.BarColumn(), *times
    bars = rich.Progress(
        *columns,
        console=console,
        transient=True,
        # Output of a trainer goes to a file and must not be drawn above the bars.
        redirect_stdout=False,
        redirect_stderr=False,
        disable=not console.is_terminal,
    )
    stages: dict[str, rich.TaskID] = {}
    last = time.monotonic()

    def update(stage: str, done: int, total: int) -> None:
        nonlocal last
        if not stage:
            bars.stop()
            return
        if stage not in stages:
            stages[stage] = bars.add_task(stage, total=total)
        bars.start()  # only now: a question may be asked before
        bars.update(stages[stage], completed=done, total=total)
        if bars.disable and time.monotonic() - last > _QUIET:
            last = time.monotonic()
            left = next(task.time_remaining for task in bars.tasks if task.id == stages[stage])
            ends = "" if left is None else f", {left:.0f} s left"
            console.print(f"{stage}: {done:,} of {total:,}{ends}", markup=False)

    try:
        yield update
    finally:
        bars.stop()
