"""The plain format: `{id, question, background, asked_at, resolves_at, outcome}`, one a line.

Optional fields: `event`; `closed_at`, when the answer was out, if not at `resolves_at`; `outcomes`,
the names where there are several (`outcome` is then one of them or its index); `price` of yes, or a
list; and `sources`, a list of texts or of `{text, date}`.
"""

import math

from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.record import Parsed, Record, Row, RowError, Source


def recognises(row: Row) -> bool:
    """Whether a row is in this format: it has a question in words."""
    return isinstance(row.get("question"), str)


def records(row: Row) -> list[Parsed]:
    """Return the question a row holds.

    Raises:
        RowError: if a field is missing or unusable.
    """
    question = fields.text(row, "question")
    closed = "resolves_at" if row.get("closed_at") is None else "closed_at"
    labels = () if row.get("outcomes") is None else fields.labels(row["outcomes"], "outcomes")
    outcome = row.get("outcome")
    return [
        Record(
            key=fields.identifier(row, "id"),
            event=question if row.get("event") is None else fields.identifier(row, "event"),
            question=question,
            background=fields.optional_text(row, "background"),
            asked_at=fields.moment(row, "asked_at"),
            closed_at=fields.end_of(row, closed),
            resolves_by=fields.rounded_up(fields.moment(row, "resolves_at")),
            labels=labels,
            outcome=_which(outcome, labels) if labels else fields.yes_or_no(outcome, "outcome"),
            price=_price(row.get("price"), len(labels)),
            sources=_sources(row.get("sources")),
        )
    ]


def _which(outcome: object, labels: tuple[str, ...]) -> int:
    if isinstance(outcome, str) and outcome.strip() in labels:
        return labels.index(outcome.strip())
    if isinstance(outcome, int) and not isinstance(outcome, bool) and 0 <= outcome < len(labels):
        return outcome
    raise RowError(f"'outcome' must be one of {list(labels)}, got {fields.quoted(outcome)}")


def _price(value: object, outcomes: int) -> tuple[float, ...] | None:
    if value is None:
        return None
    if not outcomes:
        price = fields.probability(value, "price")
        return (1.0 - price, price)
    if not isinstance(value, list) or len(value) != outcomes:
        raise RowError(f"'price' must list {outcomes} probabilities, got {fields.quoted(value)}")
    prices = [fields.probability(price, "price") for price in value]
    total = math.fsum(prices)
    if total <= 0.0:
        raise RowError("'price' must not be all zeros")
    return tuple(price / total for price in prices)


def _sources(value: object) -> tuple[Source, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise RowError(f"'sources' must be a list, got {fields.quoted(value)}")
    return tuple(_source(item) for item in value)


def _source(item: object) -> Source:
    if isinstance(item, str):
        return Source(item, None)
    if not isinstance(item, dict):
        raise RowError(f"a source must be a text or an object, got {fields.quoted(item)}")
    dated = None if item.get("date") is None else fields.end_of(item, "date")
    return Source(fields.text(item, "text"), dated)
