"""`tokengym data audit`: what happens to every row of a user's files, and what would leak."""

import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokengym.agents.cli.shown import show
from tokengym.agents.settings import option, plain
from tokengym.agents.settings.commands import takes
from tokengym.agents.training.config import WorldOptions
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.core.seeding import SPLITS

if TYPE_CHECKING:
    from tokengym.envs.intake.report import IntakeReport


@dataclass(frozen=True)
class _Asked(WorldOptions):
    """Data and output.

    Attributes: see their help.
    """

    world: str | None = option(None, "name of the world (default: recognised by the files)")
    cutoff: str | None = option(None, "of forecast: the date that separates training from test")
    columns: str | None = option(
        None, "of forecast: FIELD=HEADING,…; dates=day-first or month-first"
    )
    every: bool = option(False, "list every dropped row")
    as_json: bool = option(False, "print JSON, not tables", flag="--json")


@takes(_Asked)
def audit(
    files: Annotated[
        list[Path], typer.Argument(help="files for the option data of a world, read together")
    ],
    *,
    said: dict[str, Any],
) -> None:
    """Show which rows are kept at which level, which are dropped and why, and what would leak."""
    from tokengym.agents.reports.report import Table

    asked = _Asked(**said)
    name = _world_of(files) if asked.world is None else asked.world
    forecast = {"cutoff": asked.cutoff, "columns": asked.columns}
    given = {key: value for key, value in forecast.items() if value is not None}
    data = [str(file) for file in files]
    report, levels = levels_of(name, {**asked.options, **given, "data": data})
    if asked.as_json:
        typer.echo(json.dumps(_plain(name, report, levels), indent=1))
        return
    rows = ", ".join(f"{file} {count:,}" for file, count in report.rows.items())
    kept = [
        (level, "", "", "", found)
        if isinstance(found, str)
        else (level, *(f"{found[split]:,}" for split in SPLITS), "")
        for level, found in levels.items()
    ]
    common = sorted(report.dropped, key=lambda one: -one.rows)
    dropped = [(f"{one.rows:,}", one.why, one.places[0]) for one in common]
    leaks = [(f"{one.found:,}", one.what, one.done) for one in report.guards.values() if one.found]
    tables = (
        Table(("level", *SPLITS, "why not"), kept, "Kept"),
        Table(("rows", "why", "first"), dropped, "Dropped"),
        Table(("found", "what", "done"), leaks, "Leaks that were prevented"),
    )
    show(f"{name}; rows: {rows}", *report.notes, *(table for table in tables if table.rows))
    refused = report.every if asked.every else ()
    show(*(() if leaks else ("Found nothing that would leak.",)), *refused)


def levels_of(
    name: str, options: Mapping[str, Any]
) -> tuple["IntakeReport", Mapping[str, Mapping[str, int] | str]]:
    """Return the report, and by level what each split holds or why the level cannot be played.

    Raises:
        DataError: if no level can be.
        OptionError: if no level takes the options.
    """
    from tokengym.envs.registry import make_world, spec

    report: IntakeReport | None = None
    not_taken: list[OptionError] = []
    levels: dict[str, Mapping[str, int] | str] = {}
    for level in spec(name).levels:
        try:
            with warnings.catch_warnings():
                # The report has what the readers warn of.
                warnings.simplefilter("ignore")
                played: Any = make_world(name, level, **options)
        except DataError as error:
            levels[level] = str(error)
            continue
        except OptionError as error:
            # A level that takes no data, or not these options.
            not_taken.append(error)
            continue
        report = report or played.data_report
        sizes = {split: played.size(split) for split in SPLITS}
        if None in sizes.values():
            # Homes are drawn anew in every window, so that what is limited are the windows.
            splits = list(played.windows.values())
            sizes = {split: splits.count(split) for split in SPLITS}
        levels[level] = sizes
    if report is None:
        reasons = "\n".join(dict.fromkeys(map(str, levels.values())))
        raise DataError(reasons) if levels else not_taken[0]
    return report, levels


def _world_of(files: Sequence[Path]) -> str:
    """Return the world whose data files look like; the audit of questions says what is wrong."""
    from tokengym.envs.disruption.data.jsonl import holds_papers
    from tokengym.envs.disruption.data.manifest import MANIFEST
    from tokengym.envs.energy.data import recognises
    from tokengym.envs.intake.rows import begins_as_json
    from tokengym.envs.warehouse.data.columns import kind_of

    for file in files:
        if file.is_dir():
            if (file / MANIFEST).is_file():
                return "disruption"
            stock = any(file.rglob("test.csv")) or any(file.glob("sett*.txt"))
            return "warehouse" if stock else "forecast"
        if begins_as_json(file):
            return "disruption" if holds_papers(file) else "forecast"
        with suppress(DataError):
            if kind_of(file):
                return "warehouse"
            if recognises(file):
                return "energy"
    return "forecast"


def _plain(
    name: str, report: "IntakeReport", levels: Mapping[str, Mapping[str, int] | str]
) -> Mapping[str, Any]:
    found = {name: getattr(report, name) for name in ("rows", "dropped", "notes", "every")}
    leaks = {guard: one.found for guard, one in report.guards.items()}
    data: Mapping[str, Any] = plain({"world": name, "kept": levels, "leaks": leaks, **found})
    return data
