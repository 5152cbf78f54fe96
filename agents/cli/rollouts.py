"""`tokengym rollouts`: saved rollouts, selected and written as JSON lines."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tokengym.agents.cli.options import Level
from tokengym.agents.rollouts import RolloutLog, RolloutRecord, RolloutSelection
from tokengym.agents.rollouts.selection import demonstrations, preferences
from tokengym.envs.core.errors import OptionError

_FOLDER = "rollouts"


def rollouts(
    folder: Annotated[Path, typer.Argument(help="a run's folder, or an evaluation's")],
    write: Annotated[
        Literal["rollouts", "sft", "preferences"],
        typer.Option("--as", help="whole records, chats, or preference pairs"),
    ] = "rollouts",
    kind: Annotated[str | None, typer.Option(help="train or evaluation")] = None,
    steps: Annotated[str | None, typer.Option(help="training steps, such as 0:9 or 12")] = None,
    level: Level = None,
    role: Annotated[str | None, typer.Option(help="rollouts of this role")] = None,
    policy: Annotated[str | None, typer.Option(help="rollouts of this policy")] = None,
    stop: Annotated[str | None, typer.Option(help="reason the episode ended")] = None,
    least: Annotated[float | None, typer.Option("--min-return", help="smallest return")] = None,
    most: Annotated[float | None, typer.Option("--max-return", help="largest return")] = None,
    malformed: Annotated[
        bool | None, typer.Option("--malformed/--well-formed", help="with a malformed reply or not")
    ] = None,
    cut_off: Annotated[
        bool | None, typer.Option("--cut-off/--whole", help="with a reply cut off or not")
    ] = None,
    text: Annotated[str, typer.Option(help="text in a prompt or a reply")] = "",
    margin: Annotated[float, typer.Option(help="smallest difference of return in a pair")] = 0.05,
    out: Annotated[Path | None, typer.Option(help="output file (default: standard output)")] = None,
) -> None:
    """Select rollouts and write them, or training data made from them, as JSON lines."""
    log = RolloutLog(folder / _FOLDER)
    if not log.segments():
        raise OptionError(f"{folder} holds no rollouts")
    wanted = RolloutSelection(
        kind,
        _range(steps),
        level,
        role,
        policy,
        stop,
        least if write == "rollouts" else None,
        most,
        malformed,
        cut_off,
        text,
    )
    chosen = (record for record in log.read() if wanted.holds(record))
    count = _write(_rows(chosen, write, least, margin), out)
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


def _write(rows: Iterator[dict[str, Any]], out: Path | None) -> int:
    """Write rows, to standard output without a file; returns how many there are."""
    count = 0
    opened = contextlib.nullcontext(sys.stdout) if out is None else out.open("w", encoding="utf-8")
    with opened as file:
        for row in rows:
            print(json.dumps(row, ensure_ascii=False, allow_nan=False), file=file)
            count += 1
    return count


def _range(steps: str | None) -> tuple[int, int] | None:
    if steps is None:
        return None
    first, colon, last = steps.partition(":")
    try:
        return (int(first), int(last if colon else first))
    except ValueError:
        raise OptionError(f"--steps takes a step or FIRST:LAST, got {steps!r}") from None
