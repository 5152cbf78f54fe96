"""`tokengym data audit`: what happens to every row of a file of questions, and what would leak."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from tokengym.envs.forecasting.data.load import Dataset
    from tokengym.envs.forecasting.data.report import DataReport

_GUARDS = {
    "late_sources": ("sources dated after their question was asked", "left out"),
    "undated_sources": ("sources without a date, which cannot be checked", "shown"),
    "prices": ("questions with a market price", "hidden unless show_prices=true"),
    "closing_times": (
        "questions whose closing time was not known when asked",
        "never shown; it orders the splits",
    ),
    "asked_late": ("questions asked when the answer was already known", "dropped"),
    "straddling": ("questions asked on both sides of the cutoff", "only the first time is kept"),
    "crossing": ("questions on events open across the cutoff", "dropped"),
    "repeated": ("training questions that test repeats for the same date", "dropped"),
    "telling": ("training questions that tell the outcome of one held out", "dropped"),
    "near": ("questions worded like one on another event", "kept in one split for one date"),
}
"""By guard what it found and what is done about it."""


def audit(
    files: Annotated[
        list[Path], typer.Argument(help="files of questions, or folders of them, read together")
    ],
    cutoff: Annotated[
        str | None, typer.Option(help="the date that separates training from test")
    ] = None,
    every: Annotated[bool, typer.Option("--every", help="list every dropped row")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON, not tables")] = False,
) -> None:
    """Print which questions of files are kept, which are dropped and why, and what would leak."""
    from rich.console import Console

    from tokengym.envs.forecasting.data.load import load_dataset
    from tokengym.envs.forecasting.data.report import count_kinds

    dataset = load_dataset(files, cutoff)
    report = dataset.report
    if as_json:
        typer.echo(json.dumps(_plain(dataset), indent=1))
        return
    console = Console(highlight=False)
    rows = ", ".join(f"{name} {count:,}" for name, count in report.rows.items())
    console.print(
        f"rows: {rows}; questions: {report.questions:,}; {report.how_split}", markup=False
    )
    console.print(_kept(dataset))
    dropped = count_kinds(report.rejected)
    if dropped:
        lines = [(f"{count:,}", row.kind, str(row.place)) for count, row in dropped]
        console.print(_table("Dropped", ("rows", "why", "first"), lines))
    leaks = _leaks(report)
    lines = [(f"{count:,}", *_GUARDS[name]) for name, count in leaks.items() if count]
    if lines:
        console.print(_table("What would leak", ("found", "what", "done"), lines))
    else:
        console.print("Found nothing that would leak.")
    for note in report.notes:
        console.print(note, markup=False, soft_wrap=True)
    if every:
        for row in (*report.rejected, *report.refused):
            console.print(str(row), markup=False, soft_wrap=True)


def _kept(dataset: "Dataset") -> "Table":
    rows = []
    for name, records in dataset.records.items():
        outcomes = [record.outcome for record in records if not record.labels]
        span = [record.asked_at.date().isoformat() for record in records]
        rows.append(
            (
                name,
                f"{len(records):,}",
                f"{len({record.event for record in records}):,}",
                f"{sum(outcomes) / len(outcomes):.1%} of {len(outcomes):,}" if outcomes else "",
                f"{min(span)} to {max(span)}" if span else "",
            )
        )
    return _table("Kept", ("split", "questions", "events", "yes", "asked"), rows)


def _leaks(report: "DataReport") -> dict[str, int]:
    return {
        name: report.crossing_questions if name == "crossing" else getattr(report.leaks, name)
        for name in _GUARDS
    }


def _plain(dataset: "Dataset") -> Mapping[str, Any]:
    report = dataset.report
    return {
        "rows": dict(report.rows),
        "questions": report.questions,
        "split": report.how_split,
        "kept": dict(report.sizes),
        "merged": report.merged,
        "leaks": _leaks(report),
        "notes": list(report.notes),
        "dropped": [{**row.place._asdict(), "reason": row.reason} for row in report.rejected],
        "sources_left_out": [
            {**row.place._asdict(), "reason": row.reason} for row in report.refused
        ],
    }


def _table(title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> "Table":
    from rich.table import Table

    table = Table(*header, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    return table
