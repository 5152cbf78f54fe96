"""`tokengym rollouts`: saved rollouts, selected and written as JSON lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tokengym.agents.rollouts import RolloutLog, RolloutRecord
from tokengym.agents.rollouts.json_lines import write_rows
from tokengym.agents.rollouts.same_answers import require_same_answers
from tokengym.agents.rollouts.selection import RolloutSelection, demonstrations, preferences
from tokengym.agents.settings.commands import takes
from tokengym.envs.core.errors import OptionError, TokengymError

_FOLDER = "rollouts"


@takes(RolloutSelection)
def rollouts(
    folder: Annotated[Path, typer.Argument(help="a run's folder, or an evaluation's")],
    write: Annotated[
        Literal["rollouts", "sft", "preferences"],
        typer.Option("--as", help="whole records, chats, or preference pairs"),
    ] = "rollouts",
    *,
    said: dict[str, Any],
    steps: Annotated[str | None, typer.Option(help="training steps, such as 0:9 or 12")] = None,
    margin: Annotated[float, typer.Option(help="smallest difference of return in a pair")] = 0.05,
    out: Annotated[Path | None, typer.Option(help="output file (default: standard output)")] = None,
) -> None:
    """Select rollouts and write them, or training data made from them, as JSON lines."""
    log = RolloutLog(folder / _FOLDER)
    if not log.segments():
        raise OptionError(f"{folder} holds no rollouts")
    least = said.get("least")
    if write in ("sft", "preferences"):
        said.pop("least", None)
    selection = RolloutSelection(steps=_range(steps), **said)
    chosen = filter(selection.holds, log.read())
    if write in ("sft", "preferences"):
        try:
            require_same_answers(log.read(), str(folder), "they teach what was paid then")
        except TokengymError as error:
            typer.echo(str(error), err=True)
    count = write_rows(_rows(chosen, write, least, margin), out)
    for note in log.notes:
        typer.echo(note, err=True)
    typer.echo(f"{count} {write if write != 'sft' else 'chats'}", err=True)


def _rows(
    chosen: Iterator[RolloutRecord], write: str, least: float | None, margin: float
) -> Iterator[dict[str, Any]]:
    if write == "sft":
        return demonstrations(chosen, float("-inf") if least is None else least)
    if write == "preferences":
        return preferences(chosen, margin)
    return (record.to_dict() for record in chosen)


def _range(steps: str | None) -> tuple[int, int] | None:
    if steps is None:
        return None
    first, colon, last = steps.partition(":")
    try:
        return (int(first), int(last if colon else first))
    except ValueError:
        raise OptionError(f"--steps takes a step or FIRST:LAST, got {steps!r}") from None
