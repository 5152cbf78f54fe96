"""Autocast: questions of forecasting tournaments, true/false or multiple choice.

`close_time` may be when the answer was out: it orders splits and is never shown. The crowd's
forecasts were made after the question was asked and are not read.
"""

from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.formats.standalone import question
from tokengym.envs.forecasting.data.record import Parsed, Row, RowError
from tokengym.envs.forecasting.grammar import LETTERS

_FIELDS = {"qtype", "publish_time", "close_time"}


def recognises(row: Row) -> bool:
    """Whether a row is in this format: it has its fields."""
    return row.keys() >= _FIELDS


def records(row: Row) -> list[Parsed]:
    """Return the question of a row.

    Raises:
        RowError: if it is numerical, has no answer, or a field is unusable.
    """
    kind, answer = row["qtype"], row.get("answer")
    labels: tuple[str, ...] = ()
    if kind == "t/f":
        outcome = fields.yes_or_no(answer, "answer")
    elif kind == "mc":
        labels = fields.labels(row.get("choices"), "choices")
        if not isinstance(answer, str) or answer not in tuple(LETTERS[: len(labels)]):
            raise RowError(f"'answer' must be the letter of a choice, got {fields.quoted(answer)}")
        outcome = LETTERS.index(answer)
    else:
        raise RowError(f"'qtype' must be 't/f' or 'mc', got {fields.quoted(kind)}")
    closed = fields.end_of(row, "close_time")
    return [
        question(row, outcome, closed, background="background", asked="publish_time", labels=labels)
    ]
