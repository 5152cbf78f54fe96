"""ForecastBench: a question set and a resolution set, two files that are read together.

A resolution belongs to the question with its id and source; each resolution date is a question of
its own, a horizon, on the same event. `"N/A"` stands for no value. Questions from markets have no
dates of their own: the date they resolved on leaks the answer and is not shown; the others are
shown with the value they start from, a number or a text, as of the day the set was frozen.
Combinations of two questions (a list as id) are not read.
"""

from collections.abc import Iterator

from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.record import Parsed, QuestionRecord, Row, RowError, RowPlace
from tokengym.envs.intake.numbers import is_missing, read_number, read_share

_QUESTION = {"freeze_datetime", "source", "question"}
_RESOLUTION = {"resolved_to", "resolution_date", "source"}


class Pairing:
    """The rows of both files, until they can be joined."""

    def __init__(self) -> None:
        self._questions: dict[tuple[str, str, str], tuple[Row, RowPlace]] = {}
        self._resolutions: list[tuple[Row, RowPlace]] = []

    def take(self, row: Row, place: RowPlace) -> bool:
        """Keep a row if it is in this format; return whether it is.

        Raises:
            RowError: if it is a question that cannot be joined.
        """
        if _RESOLUTION.issubset(row):
            self._resolutions.append((row, place))
        elif _QUESTION.issubset(row):
            self._questions[_join_key(row)] = (row, place)
        else:
            return False
        return True

    def joined(self) -> Iterator[tuple[Parsed, RowPlace]]:
        """Yield the question of every resolution, or the error if no question can be made."""
        answered = set()
        for row, place in self._resolutions:
            try:
                key = _join_key(row)
                if key not in self._questions:
                    raise RowError(f"no question in the files: {key[1]!r} of {key[0]!r}")
                answered.add(key)
                yield _record(self._questions[key][0], row), place
            except RowError as error:
                yield error, place
        for key, (_, place) in self._questions.items():
            if key not in answered:
                yield RowError("no resolution in the files"), place


def _join_key(row: Row) -> tuple[str, str, str]:
    if isinstance(row.get("id"), list):
        raise RowError("combinations of questions are not read")
    source = fields.text(row, "source")
    return source, fields.identifier(row, "id"), fields.text(row, "forecast_due_date")


def _record(question: Row, resolution: Row) -> QuestionRecord:
    if resolution.get("resolved") is not True:
        raise RowError("not resolved")
    source, key, due = _join_key(question)
    date = fields.text(resolution, "resolution_date")
    from_market = is_missing(question.get("resolution_dates"))
    words = fields.text(question, "question")
    filled = words.replace("{resolution_date}", date).replace("{forecast_due_date}", due)
    criteria = fields.optional_text(question, "resolution_criteria")
    parts = (
        fields.optional_text(question, "background"),
        f"Resolution: {criteria}" if criteria else "",
        "" if from_market else _start(question),
    )
    return QuestionRecord(
        key=f"{source}:{key}:{due}:{date}",
        event=f"{source}:{key}",
        question=filled if from_market or date in filled else f"{filled} (on {date})",
        background="\n".join(filter(None, parts)),
        asked_at=fields.moment({"forecast_due_date": due}, "forecast_due_date"),
        closed_at=fields.end_of(resolution, "resolution_date"),
        resolves_by=None
        if from_market
        else fields.rounded_up(fields.moment(resolution, "resolution_date")),
        labels=(),
        outcome=fields.yes_or_no(resolution.get("resolved_to"), "resolved_to"),
        price=_price(question) if from_market else None,
        rounds=True,
    )


def _start(question: Row) -> str:
    """Return the value that a question of a series starts from, when the set was frozen."""
    value = question.get("freeze_datetime_value")
    number = read_number(value)
    start = fields.optional_text({"value": value}, "value") if number is None else f"{number:.10g}"
    frozen = fields.moment(question, "freeze_datetime")
    if not start or frozen > fields.moment(question, "forecast_due_date"):
        return ""
    about = fields.optional_text(question, "freeze_datetime_value_explanation")
    return f"Value on {frozen.date()}: {start}{about and f' ({about})'}"


def _price(question: Row) -> tuple[float, float] | None:
    """Return the market's price when the question set was frozen, a number or a text."""
    price = read_share(question.get("freeze_datetime_value"))
    return (1.0 - price, price) if price is not None and 0.0 <= price <= 1.0 else None
