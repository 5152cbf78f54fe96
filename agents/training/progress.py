"""Showing progress: a live bar on a terminal, occasional lines elsewhere."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Table

from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.run_summary import MOST_MALFORMED

_LINES = 20
_RECENT = 10


class Bar:
    """The progress of one run's steps.

    A line shows the means since the line before it; speed and time left are those of at least the
    last ten steps.

    Args:
        console: where to write.
        total: steps in all.
        done: steps that were there before.
        bar: a live bar, or `None` to write lines.
    """

    def __init__(
        self, console: Console, total: int, done: Sequence[StepRow], bar: RichProgress | None
    ) -> None:
        self._console = console
        self._total = total
        self._every = max(1, total // _LINES)
        self._recent = deque(done, max(_RECENT, self._every))
        self._bar = bar
        self._task = bar.add_task("", total=total, completed=len(done)) if bar else None

    def show(self, row: StepRow) -> None:
        """Show one more completed step."""
        self._recent.append(row)
        text = self._describe()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=row.step + 1, description=text)
        elif row.step % self._every == 0 or row.step + 1 == self._total:
            seconds = sum(item.seconds for item in self._recent) / len(self._recent)
            left = (self._total - row.step - 1) * seconds
            self._console.print(f"step {row.step + 1}/{self._total}  {text}  {left:.0f} s left")

    def _describe(self) -> str:
        seconds = sum(item.seconds for item in self._recent) or 1.0
        rate = f"{sum(item.tokens for item in self._recent) / seconds:,.0f} tokens/s"
        latest = list(self._recent)[-self._every :]
        losses = [item.loss for item in latest if item.loss is not None]
        if losses:
            return f"loss {fmean(losses):.3f}  {rate}"
        malformed = fmean(item.malformed_share for item in latest)
        return (
            f"{f'malformed {malformed:.0%}  ' if malformed > MOST_MALFORMED else ''}"
            f"reward {fmean(item.reward for item in latest):.3f}  "
            f"tied pairs {fmean(item.tie_pair_rate for item in latest):.3f}  "
            f"dead groups {fmean(item.dead_share for item in latest):.2f}  {rate}"
        )


class Progress:
    """Shows the progress of a job.

    Args:
        console: where to write; standard output if `None`.
    """

    def __init__(self, console: Console | None = None) -> None:
        # Bound now: while the trainer runs, standard output is its log.
        self._console = Console(highlight=False, soft_wrap=True) if console is None else console
        self._console.file = self._console.file

    def say(self, text: str) -> None:
        """Write a line."""
        self._console.print(text, markup=False)  # a path may look like markup

    def show(self, table: Table) -> None:
        """Show a table."""
        self._console.print(table)

    @contextmanager
    def steps(self, total: int, done: Sequence[StepRow]) -> Iterator[Bar]:
        """Show steps while the context lasts.

        Args:
            total: steps in all.
            done: steps completed before, after a resume.
        """
        if not self._console.is_terminal:
            yield Bar(self._console, total, done, None)
            return
        columns = (
            BarColumn(bar_width=20),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
        )
        # The trainer's own output goes to a file and must not be drawn above the bar.
        live = RichProgress(
            *columns, console=self._console, redirect_stdout=False, redirect_stderr=False
        )
        with live:
            yield Bar(self._console, total, done, live)
