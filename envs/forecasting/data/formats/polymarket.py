"""Polymarket: markets, or events with their markets, as the Gamma API gives them.

`outcomes` and `outcomePrices` are JSON inside texts. A closed market with an outcome that costs 1
was resolved to it; where the oracle says `resolved`, the price only has to be near, as that of an
automated market maker is. These prices and `closedTime` are of when the answer was out, and
`endDate` may have been moved: none is shown. Markets of one event stay together.
"""

from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.formats.standalone import each_part, question
from tokengym.envs.forecasting.data.record import Parsed, QuestionRecord, Row, RowError
from tokengym.envs.intake.quoting import quoted

_MARKET = frozenset({"outcomes", "outcomePrices", "question"})
_EVENT = frozenset({"slug", "title", "markets"})
_RESOLVED_FROM = 0.99
_CLOSED = ("closedTime", "umaEndDate", "endDate")
"""When the answer was out, the first that is there: old markets lack some."""


def recognises(row: Row) -> bool:
    """Return whether a row is in this format: a market, or an event that holds some."""
    return _MARKET.issubset(row) or _EVENT.issubset(row)


def records(row: Row) -> list[Parsed]:
    """Return the questions of a market or an event.

    Raises:
        RowError: if a market is open or resolved to no outcome, or a field is unusable.
    """
    if not _MARKET.issubset(row):
        event = fields.identifier(row, "id")
        return each_part(row["markets"], "markets", lambda market: _record(market, event))
    events = fields.structured(row["events"], "events") if fields.optional(row, "events") else None
    first = events[0] if isinstance(events, list) and events else None
    event = fields.identifier(first, "id") if isinstance(first, dict) else ""
    return [_record(row, event)]


def _record(row: Row, event: str) -> QuestionRecord:
    if fields.yes_or_no(row.get("closed"), "closed") != 1:
        raise RowError("'closed' must be true: the market is open")
    labels = fields.labels(row.get("outcomes"), "outcomes")
    outcome = _resolved_to(row, len(labels))
    yes_no = [label.casefold() for label in labels]
    if set(yes_no) == {"yes", "no"}:
        labels, outcome = (), int(yes_no[outcome] == "yes")
    closed = next((name for name in _CLOSED if fields.optional(row, name) is not None), _CLOSED[0])
    return question(
        row,
        outcome,
        fields.end_of(row, closed),
        background="description",
        asked="createdAt" if fields.optional(row, "startDate") is None else "startDate",
        labels=labels,
        event=event and f"event {event}",
    )


def _resolved_to(row: Row, outcomes: int) -> int:
    """Return the index of the outcome that a market was resolved to."""
    given = fields.structured(row.get("outcomePrices"), "outcomePrices")
    if not isinstance(given, list) or len(given) != outcomes:
        raise RowError(f"'outcomePrices' must list {outcomes} prices, got {quoted(given)}")
    prices = [fields.probability(price, "outcomePrices") for price in given]
    least = _RESOLVED_FROM if row.get("umaResolutionStatus") == "resolved" else 1.0
    *others, most = sorted(prices)
    if most < least or max(others) > 1.0 - least:
        raise RowError(f"'outcomePrices' must be 1 for what happened, else 0, got {quoted(given)}")
    return prices.index(most)
