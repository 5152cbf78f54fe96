"""Reading sales. An article with a gap or a damaged row is left out; the others are used."""

from collections.abc import Mapping, Sequence

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.tables import Row, Source
from tokengym.envs.warehouse.data.columns import DEMAND, Refusal, rows_of
from tokengym.envs.warehouse.data.records import SalesHistory, refuse_all
from tokengym.envs.warehouse.data.times import Calendar, Moment, read_moment

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
    for row in rows_of(path, DEMAND):
        by_article.setdefault(row.cells["sku"], []).append(row)
    asked: dict[str, dict[Moment, int]] = {}
    reasons = {}
    kind: str | None = None
    for sku, rows in by_article.items():
        try:
            rows[0].text("sku")
            kind = kind or _moment(rows[0], None).kind
            asked[sku] = _article(sku, rows, kind)
        except DataError as error:
            reasons[sku] = str(error)
    if not asked:
        raise DataError(refuse_all(path, "article", _refusals(by_article, reasons)))
    calendar = Calendar(moment for periods in asked.values() for moment in periods)
    numbered = {
        sku: {calendar.number(moment): units for moment, units in periods.items()}
        for sku, periods in asked.items()
    }
    first = min(min(periods) for periods in numbered.values())
    last = max(max(periods) for periods in numbered.values())
    for sku, periods in numbered.items():
        gaps = [number for number in range(first, last + 1) if number not in periods]
        if gaps:
            reasons[sku] = (
                f"{path}: a gap: {sku!r} has no row for period {calendar.label(gaps[0])}"
                + (f" and {len(gaps) - 1} others" if len(gaps) > 1 else "")
                + "; a period without sales needs a row with 0"
            )
    refused = _refusals(by_article, reasons)
    used = [sku for sku in asked if sku not in reasons]
    if not used:
        raise DataError(refuse_all(path, "article", refused))
    demand = {sku: tuple(numbered[sku][n] for n in range(first, last + 1)) for sku in sorted(used)}
    return SalesHistory(str(path), demand, refused=refused)


def _refusals(
    by_article: Mapping[str, Sequence[Row]], reasons: Mapping[str, str]
) -> tuple[Refusal, ...]:
    return tuple(Refusal(len(by_article[sku]), reason) for sku, reason in reasons.items())


def _article(sku: str, rows: list[Row], kind: str) -> dict[Moment, int]:
    """Return the units of an article by period."""
    periods: dict[Moment, int] = {}
    for row in rows:
        period = _moment(row, kind)
        if period in periods:
            raise DataError(f"{row.place}: period {row.cells['period']} of {sku!r} comes twice")
        periods[period] = row.whole("qty", 0, MOST_UNITS)
    return periods


def _moment(row: Row, kind: str | None) -> Moment:
    cell = row.text("period")
    try:
        moment = read_moment(cell)
    except ValueError as error:
        raise DataError(f"{row.place}: period: {error}") from error
    if kind not in (None, moment.kind):
        raise DataError(f"{row.place}: period is {cell!r}, written unlike others of the file")
    if moment.kind == "number":
        row.whole("period", 0)
    return moment
