"""Shared by formats: questions without a schedule known when asked, and rows of several parts."""

from collections.abc import Callable
from datetime import datetime

from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.record import Parsed, QuestionRecord, Row, RowError
from tokengym.envs.intake.quoting import quoted


def each_part(parts: object, name: str, read: Callable[[Row], QuestionRecord]) -> list[Parsed]:
    """Return the question of every part of a row; those that can be read do not need the others.

    Args:
        parts: the parts.
        name: their field, for errors.
        read: returns the question of one.

    Raises:
        RowError: if they are no list of objects.
    """
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise RowError(f"{name!r} must be a list of objects, got {quoted(parts)}")
    found: list[Parsed] = []
    for part in parts:
        try:
            found.append(read(part))
        except RowError as error:
            found.append(RowError(f"{error} (question {quoted(part.get('id'))})"))
    return found


def question(
    row: Row,
    outcome: int,
    closed_at: datetime,
    *,
    background: str,
    asked: str,
    labels: tuple[str, ...] = (),
    ordered: bool = False,
    event: str = "",
    part: str = "",
) -> QuestionRecord:
    """Return the question of a row that has an `id` and a `question`.

    Args:
        row: the row.
        outcome: index of what happened.
        closed_at: when the answer was out.
        background: field of the background text.
        asked: field of the moment it was asked.
        labels: names of the outcomes; none for a yes/no question.
        ordered: whether the outcomes are in order.
        event: what it is about, if that is more than itself.
        part: what distinguishes it from other questions with its id.

    Raises:
        RowError: if a field is missing or unusable.
    """
    key = fields.identifier(row, "id")
    return QuestionRecord(
        key=key,
        event=event or key,
        question=fields.text(row, "question"),
        background=fields.optional_text(row, background),
        asked_at=fields.moment(row, asked),
        closed_at=closed_at,
        resolves_by=None,
        labels=labels,
        outcome=outcome,
        ordered=ordered,
        part=part,
    )
