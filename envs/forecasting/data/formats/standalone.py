"""Shared by formats whose questions are independent, without a schedule known when asked."""

from datetime import datetime

from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.record import QuestionRecord, Row


def question(
    row: Row,
    outcome: int,
    closed_at: datetime,
    *,
    background: str,
    asked: str,
    labels: tuple[str, ...] = (),
    ordered: bool = False,
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
        part: what distinguishes it from other questions with its id.

    Raises:
        RowError: if a field is missing or unusable.
    """
    key = fields.identifier(row, "id")
    return QuestionRecord(
        key=key,
        event=key,
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
