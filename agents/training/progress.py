"""Showing progress: a live bar on a terminal, occasional lines elsewhere."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from statistics import fmean

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Table

from tokengym.agents.reports.progress import StageProgress, progress_bars
from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.run_summary import MOST_MALFORMED

_LINES = 20
_MANY_CUT_OFF = 0.2
"""Share of a step's replies from which it says that they are cut off."""
_RECENT = 10


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

    def stages(self) -> AbstractContextManager[StageProgress]:
        """Yield what shows how far each stage of an evaluation is."""
        return progress_bars(self._console)

    @contextmanager
    def steps(self, total: int, done: Sequence[StepRow]) -> Iterator[Callable[[StepRow], None]]:
        """Yield what shows one more completed step, while the context lasts.

        Elsewhere than on a terminal it writes some lines. Each has the means since the one before;
        speed and time left are those of at least the last ten steps.

        Args:
            total: steps in all.
            done: steps completed before, after a resume.
        """
        every = max(1, total // _LINES)
        recent = deque(done, max(_RECENT, every))
        columns = (
            BarColumn(bar_width=20),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
        )
        # The trainer's own output goes to a file and must not be drawn above the bar.
        live = RichProgress(
            *columns,
            console=self._console,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not self._console.is_terminal,
        )
        task = live.add_task("", total=total, completed=len(done))

        def show(row: StepRow) -> None:
            recent.append(row)
            text = _figures(recent, [*recent][-every:])
            live.update(task, completed=row.step + 1, description=text)
            if live.disable and (row.step % every == 0 or row.step + 1 == total):
                left = (total - row.step - 1) * fmean(item.seconds for item in recent)
                self._console.print(f"step {row.step + 1}/{total}  {text}  {left:.0f} s left")

        with live:
            yield show


def _figures(recent: Collection[StepRow], latest: Sequence[StepRow]) -> str:
    """Return the means of the latest steps, and the speed of the recent ones."""
    seconds = sum(item.seconds for item in recent) or 1.0
    rate = f"{sum(item.tokens for item in recent) / seconds:,.0f} tokens/s"
    losses = [item.loss for item in latest if item.loss is not None]
    if losses:
        return f"loss {fmean(losses):.3f}  {rate}"
    malformed = fmean(item.malformed_share for item in latest)
    return (
        f"{_cut_off(latest)}"
        f"{f'malformed {malformed:.0%}  ' if malformed > MOST_MALFORMED else ''}"
        f"reward {fmean(item.reward for item in latest):.3f}  "
        f"tied pairs {fmean(item.tie_pair_rate for item in latest):.3f}  "
        f"dead groups {fmean(item.dead_share for item in latest):.2f}  {rate}"
    )


def _cut_off(latest: Sequence[StepRow]) -> str:
    """Return what to do about the step that had most replies cut off; nothing if these are few."""
    worst = max(latest, key=lambda row: row.cut_off_share)
    if not worst.cut_off_share > _MANY_CUT_OFF:
        return ""
    circles = worst.repeating_share > worst.cut_off_share / 2.0
    advice = "most repeat themselves: --warm-start" if circles else "raise --max-tokens"
    return f"cut off {worst.cut_off_share:.0%} ({advice})  "
