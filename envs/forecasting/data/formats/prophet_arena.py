"""Prophet Arena: a CSV of snapshots of events; every market of an event is a yes/no question.

Columns read: submission_id, event_ticker, title, snapshot_time, close_time, market_outcome,
markets, sources, and the prices in market_data (or market_info) where they are there. `close_time`
is when trading ended, often because the answer was out: it orders splits and is never shown.
"""

from collections.abc import Mapping

from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.record import (
    BackgroundText,
    Parsed,
    QuestionRecord,
    Row,
    RowError,
)
from tokengym.envs.intake.numbers import read_number
from tokengym.envs.intake.quoting import quoted

_COLUMNS = {"submission_id", "event_ticker", "snapshot_time", "market_outcome", "markets"}
_DATES = ("date", "published_at", "published_date")
_CENTS = 100.0

recognises = _COLUMNS.issubset
"""Whether a row is in this format: it has these columns."""


def records(row: Row) -> list[Parsed]:
    """Return the questions a snapshot holds, one per market.

    Raises:
        RowError: if a cell is missing or unusable.
    """
    event = fields.text(row, "event_ticker")
    submission = fields.text(row, "submission_id")
    title = fields.text(row, "title")
    asked, closed = fields.moment(row, "snapshot_time"), fields.moment(row, "close_time")
    markets = fields.structured(row.get("markets"), "markets")
    if not isinstance(markets, list) or not all(isinstance(m, str) and m.strip() for m in markets):
        raise RowError(f"'markets' must be a list of texts, got {quoted(markets)}")
    outcomes = fields.structured(row.get("market_outcome"), "market_outcome")
    if not isinstance(outcomes, dict) or set(outcomes) != set(markets) or not markets:
        raise RowError(f"'market_outcome' must resolve {quoted(markets)} and nothing else")
    sources = _sources(row)
    prices = _prices(row)
    return [
        QuestionRecord(
            key=f"{submission}:{market}",
            event=event,
            question=f"{title} Will it be: {market}?" if len(markets) > 1 else f"{title} {market}?",
            background="",
            asked_at=asked,
            closed_at=closed,
            resolves_by=None,
            labels=(),
            outcome=fields.yes_or_no(outcomes[market], f"market_outcome[{market}]"),
            price=_price(prices.get(market)),
            sources=sources,
            part=market,
        )
        for market in dict.fromkeys(markets)
    ]


def _sources(row: Row) -> tuple[BackgroundText, ...]:
    """Return the sources in the order of their ranking."""
    if not fields.optional(row, "sources"):
        return ()
    items = fields.structured(row["sources"], "sources")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise RowError(f"'sources' must be a list of objects, got {quoted(items)}")
    ranked = sorted(
        (_rank(item, place), fields.optional_text(item, "title"), place)
        for place, item in enumerate(items)
    )
    return tuple(_source(items[place]) for _, _, place in ranked)


def _rank(item: Mapping[str, object], place: int) -> float:
    """Return the ranking of a source, or its place in the list if it is not ranked."""
    rank = item.get("ranking")
    whole = isinstance(rank, int) and not isinstance(rank, bool)
    return float(rank) if whole and isinstance(rank, int) else place + 1.0


def _source(item: Mapping[str, object]) -> BackgroundText:
    parts = (fields.optional_text(item, "title"), fields.optional_text(item, "summary"))
    name = next((name for name in _DATES if fields.optional(item, name)), None)
    dated = None if name is None else fields.end_of(item, name)
    return BackgroundText("\n".join(filter(None, parts)), dated)


def _prices(row: Row) -> Mapping[str, object]:
    """Return the market data by market; empty for rows of older files."""
    for name in ("market_data", "market_info"):
        if fields.optional(row, name):
            data = fields.structured(row[name], name)
            if isinstance(data, dict):
                return data
            raise RowError(f"{name!r} must be an object, got {quoted(data)}")
    return {}


def _price(data: object) -> tuple[float, float] | None:
    """Return the last price, or else the middle of the bid and ask prices of yes.

    Whole numbers are cents, as the exchange quotes them; anything else is a share of one.
    """
    if not isinstance(data, dict):
        return None
    last, asked, no_asked = (_share(data.get(name)) for name in ("last_price", "yes_ask", "no_ask"))
    if not last and asked is not None and no_asked is not None:
        # To offer no at q is to bid 1 - q for yes.
        last = (asked + 1.0 - no_asked) / 2.0
    if last is None or not 0.0 <= last <= 1.0:
        return None
    return (1.0 - last, last)


def _share(value: object) -> float | None:
    number = read_number(value)
    if number is None or isinstance(value, str):
        return None
    return number / _CENTS if isinstance(value, int) or number > 1.0 else number
