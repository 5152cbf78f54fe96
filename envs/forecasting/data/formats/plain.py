"""The plain format: `{question, asked_at, resolves_at, outcome}`, one per row.

Optional fields: `id`, made from the number of the row; `background`; `event`; `closed_at`, when the
answer was out, if not at `resolves_at`; `outcomes`, the names where there are several (`outcome` is
then one of them or its index), with `ordered` true where they are in order; `thresholds` of a
numeric question (`outcome` is then the number), with its `unit`; `price` of yes, or a list; and
`sources`, a list of texts or of `{text, date}`. Cells of a table hold lists as JSON.
"""

import math

from tokengym.envs.core.errors import did_you_mean
from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.record import (
    BackgroundText,
    Parsed,
    QuestionRecord,
    Row,
    RowError,
)
from tokengym.envs.forecasting.data.thresholds import name_ranges, range_of, read_thresholds
from tokengym.envs.intake.names import ALIKE
from tokengym.envs.intake.numbers import read_number, whole_number
from tokengym.envs.intake.quoting import quoted

REQUIRED = ("question", "asked_at", "resolves_at", "outcome")
"""The fields every row must have."""


def recognises(row: Row) -> bool:
    """Return whether a row is in this format: it has a question in words."""
    return isinstance(row.get("question"), str)


def records(row: Row) -> list[Parsed]:
    """Return the question a row holds.

    Raises:
        RowError: if a field is missing or unusable.
    """
    missing = [name for name in REQUIRED if name not in row]
    if missing:
        raise RowError(f"a question needs {', '.join(REQUIRED)}: this one lacks {missing}")
    question = fields.text(row, "question")
    closed = "resolves_at" if fields.optional(row, "closed_at") is None else "closed_at"
    labels, outcome, ordered = _outcomes(row)
    event = fields.optional(row, "event")
    return [
        QuestionRecord(
            key=fields.identifier(row, "id"),
            event=question if event is None else fields.identifier(row, "event"),
            question=question,
            background=fields.optional_text(row, "background"),
            asked_at=fields.moment(row, "asked_at"),
            closed_at=fields.end_of(row, closed),
            resolves_by=fields.rounded_up(fields.moment(row, "resolves_at")),
            labels=labels,
            outcome=outcome,
            price=_price(fields.optional(row, "price"), len(labels)),
            sources=_sources(fields.optional(row, "sources")),
            ordered=ordered,
        )
    ]


def _outcomes(row: Row) -> tuple[tuple[str, ...], int, bool]:
    """Return the names of the outcomes, the index of the real one, and whether they are ordered."""
    outcome = row.get("outcome")
    if fields.optional(row, "thresholds") is not None:
        if fields.optional(row, "outcomes") is not None:
            raise RowError("a question has 'outcomes' or 'thresholds', not both")
        thresholds = read_thresholds(row["thresholds"], "thresholds")
        number = read_number(outcome)
        if number is None:
            raise RowError(f"'outcome' must be a number, got {quoted(outcome)}")
        labels = name_ranges(thresholds, fields.optional_text(row, "unit"))
        return labels, range_of(number, thresholds), True
    if fields.optional(row, "outcomes") is None:
        return (), fields.yes_or_no(outcome, "outcome"), False
    labels = fields.labels(row["outcomes"], "outcomes")
    given = fields.optional(row, "ordered")
    ordered = given is not None and bool(fields.yes_or_no(given, "ordered"))
    return labels, _which(outcome, labels), ordered


def _which(outcome: object, labels: tuple[str, ...]) -> int:
    """Return the index of the outcome, given as its name or as its index.

    Raises:
        RowError: if it is neither, or the name of one outcome and the index of another.
    """
    number = whole_number(outcome)
    names = {str(outcome).strip(), str(number)}
    if all(label.casefold() in ("yes", "no", "true", "false") for label in labels):
        names |= {label for label in labels if fields.yes_or_no(label, "outcomes") == number}
    readings = {at for at, label in enumerate(labels) if label in names}
    if number is not None and number in range(len(labels)):
        readings.add(number)
    if len(readings) == 1:
        return readings.pop()
    if readings:
        raise RowError(
            f"'outcome' {quoted(outcome)} is the name of one outcome and the index of another of "
            f"{list(labels)}: write names that are no numbers"
        )
    raise RowError(f"'outcome' must be one of {list(labels)}, got {quoted(outcome)}")


def _price(value: object, outcomes: int) -> tuple[float, ...] | None:
    if value is None:
        return None
    if not outcomes:
        price = fields.probability(value, "price")
        return (1.0 - price, price)
    value = fields.structured(value, "price")
    if not isinstance(value, list) or len(value) != outcomes:
        raise RowError(f"'price' must list {outcomes} probabilities, got {quoted(value)}")
    prices = [fields.probability(price, "price") for price in value]
    total = math.fsum(prices)
    if total <= 0.0:
        raise RowError("'price' must not be all zeros")
    return tuple(price / total for price in prices)


def _sources(value: object) -> tuple[BackgroundText, ...]:
    if value is None:
        return ()
    value = fields.structured(value, "sources")
    if not isinstance(value, list):
        raise RowError(f"'sources' must be a list, got {quoted(value)}")
    return tuple(_source(item) for item in value)


def _source(item: object) -> BackgroundText:
    if isinstance(item, str):
        return BackgroundText(item, None)
    if not isinstance(item, dict):
        raise RowError(f"a source must be a text or an object, got {quoted(item)}")
    for name in [] if "date" in item else item:
        if meant := did_you_mean(name, ["date"], ALIKE):
            raise RowError(f"a source has the field {quoted(name)}{meant}")
    dated = None if fields.optional(item, "date") is None else fields.end_of(item, "date")
    return BackgroundText(fields.text(item, "text"), dated)
