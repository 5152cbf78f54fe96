"""Autocast: questions of forecasting tournaments: true/false, multiple choice, or numeric.

A numeric answer is a share of the span from `min` to `max` of `choices`, whose fifths are the
thresholds. A question and its negation have one id: both are read, on one event. `close_time` may
be when the answer was out: it orders splits and is never shown. The crowd's forecasts were made
after the question was asked and are not read.
"""

from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.formats.standalone import question
from tokengym.envs.forecasting.data.record import Parsed, Row, RowError
from tokengym.envs.forecasting.data.thresholds import (
    name_ranges,
    number_at,
    range_of,
    spread_thresholds,
)
from tokengym.envs.forecasting.grammar import LETTERS
from tokengym.envs.intake.numbers import read_number
from tokengym.envs.intake.quoting import quoted

recognises = frozenset({"qtype", "publish_time", "close_time"}).issubset
"""Whether a row is in this format: it has these fields."""


def records(row: Row) -> list[Parsed]:
    """Return the question of a row.

    Raises:
        RowError: if it asks for a date, has no answer, or a field is unusable.
    """
    kind, answer = row["qtype"], row.get("answer")
    labels: tuple[str, ...] = ()
    if kind == "t/f":
        outcome = fields.yes_or_no(answer, "answer")
    elif kind == "mc":
        labels = fields.labels(row.get("choices"), "choices")
        if not isinstance(answer, str) or answer not in tuple(LETTERS[: len(labels)]):
            raise RowError(f"'answer' must be the letter of a choice, got {quoted(answer)}")
        outcome = LETTERS.index(answer)
    elif kind == "num":
        labels, outcome = _numeric(row.get("choices"), answer)
    else:
        raise RowError(f"'qtype' must be 't/f', 'mc' or 'num', got {quoted(kind)}")
    closed = fields.end_of(row, "close_time")
    return [
        question(
            row,
            outcome,
            closed,
            background="background",
            asked="publish_time",
            labels=labels,
            ordered=kind == "num",
            part=fields.text(row, "question"),
        )
    ]


def _numeric(choices: object, answer: object) -> tuple[tuple[str, ...], int]:
    span = choices if isinstance(choices, dict) else {}
    low, high = read_number(span.get("min")), read_number(span.get("max"))
    if low is None or high is None:
        raise RowError(f"'choices' must have a number 'min' and 'max', got {quoted(choices)}")
    share = fields.probability(answer, "answer")
    ratio = read_number(span.get("deriv_ratio")) or 1.0
    thresholds = spread_thresholds(low, high, ratio)
    return name_ranges(thresholds), range_of(number_at(share, low, high, ratio), thresholds)
