"""Reading sales. An article with a gap or a damaged row is left out; the others are used."""

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake.tables import Row, Source
from tokengym.envs.warehouse.data.columns import DEMAND, Refusal, rows_of
from tokengym.envs.warehouse.data.records import SalesHistory, refuse_all
from tokengym.envs.warehouse.data.times import Moment, moment_of, numbered

MOST_UNITS = 10_000
"""Largest demand for an article in a period: its distribution is listed unit by unit."""


def read_demand(path: Source) -> SalesHistory:
    """Read units asked for by period and article.

    Args:
        path: a CSV with the columns `period,sku,qty`; periods are whole numbers, dates,
            timestamps, months or ISO weeks without a gap, and each has a row for every article.

    Raises:
        DataError: naming file, line and reason: if the file is no such CSV, or no article is left.
    """
    by_article: dict[str, list[Row]] = {}
    read = rows_of(path, DEMAND)
    for row in read.rows:
        by_article.setdefault(row.cells["sku"], []).append(row)
    asked: dict[str, dict[Moment, Row]] = {}
    refused = []
    kind: str | None = None
    for sku, rows in by_article.items():
        try:
            rows[0].text("sku")
            kind = kind or moment_of(rows[0], "period", None).kind
            asked[sku] = _article(sku, rows, kind)
        except DataError as error:
            refused.append(Refusal(len(rows), str(error)))
    if not asked:
        raise DataError(refuse_all(path, "article", refused))
    numbers = numbered(moment for periods in asked.values() for moment in periods)
    written = {
        numbers[moment]: row.cells["period"]
        for periods in asked.values()
        for moment, row in periods.items()
    }
    demand = {}
    for sku, periods in sorted(asked.items()):
        units = {numbers[moment]: row.whole("qty", 0) for moment, row in periods.items()}
        gaps = [number for number in range(max(written) + 1) if number not in units]
        if gaps:
            missing = written.get(gaps[0]) or f"after {written[gaps[0] - 1]}"
            others = f" and {len(gaps) - 1} others" if len(gaps) > 1 else ""
            reason = f"{path}: a gap: {sku!r} has no row for period {missing}{others}"
            hint = "a period without sales needs a row with 0"
            refused.append(Refusal(len(periods), f"{reason}; {hint}"))
        else:
            demand[sku] = tuple(units[number] for number in range(len(units)))
    if not demand:
        raise DataError(refuse_all(path, "article", refused))
    return SalesHistory(
        str(path), demand, refused=tuple(refused), read=len(read.rows), notes=read.notes
    )


def _article(sku: str, rows: list[Row], kind: str) -> dict[Moment, Row]:
    """Return the rows of an article by period."""
    periods: dict[Moment, Row] = {}
    for row in rows:
        period = moment_of(row, "period", kind)
        if period in periods:
            raise DataError(f"{row.place}: period {row.cells['period']} of {sku!r} comes twice")
        row.whole("qty", 0, MOST_UNITS)
        periods[period] = row
    return periods
