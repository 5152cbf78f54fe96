"""Reading the fields of a row. Every error names the field, its value and the rule."""

import ast
import json
from datetime import UTC, date, datetime, timedelta

from tokengym.envs.forecasting.data.record import MOST_OUTCOMES, Row, RowError
from tokengym.envs.intake.numbers import is_missing, read_identifier, read_share, whole_number
from tokengym.envs.intake.quoting import quoted
from tokengym.envs.intake.times import read_time

_OUTCOMES = {"yes": 1, "no": 0, "true": 1, "false": 0, "y": 1, "n": 0}


def text(row: Row, name: str) -> str:
    """Return a field that must be text and not blank.

    Raises:
        RowError: if it is missing, blank or no text.
    """
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RowError(f"{name!r} must be text, got {quoted(value)}")
    return value.strip()


def optional_text(row: Row, name: str) -> str:
    """Return a field that may be missing, or hold a word for no value, as text.

    Raises:
        RowError: if it is there and no text.
    """
    value = optional(row, name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RowError(f"{name!r} must be text, got {quoted(value)}")
    return value.strip()


def optional(row: Row, name: str) -> object:
    """Return a field; `None` if it is missing or stands for no value, see `is_missing`."""
    value = row.get(name)
    return None if is_missing(value) else value


def identifier(row: Row, name: str) -> str:
    """Return an id, which may be a number."""
    value = row.get(name)
    number = None if isinstance(value, str) else whole_number(value)
    return text(row, name) if number is None else str(number)


def moment(row: Row, name: str) -> datetime:
    """Return a time as `read_time` does; one without an offset is in UTC.

    Raises:
        RowError: if it is none of these.
    """
    try:
        time = read_time(row.get(name))
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except ValueError as error:
        raise RowError(f"{name!r} {error}") from error


def end_of(row: Row, name: str) -> datetime:
    """Return a time, a bare date meaning the end of that day: the latest it can have been.

    Raises:
        RowError: if it is none.
    """
    time = moment(row, name)
    try:
        date.fromisoformat(read_identifier(str(row.get(name))))
    except ValueError:
        return time
    return time + timedelta(days=1)


def rounded_up(time: datetime) -> date:
    """Return the first date whose beginning is not before `time`.

    The hour a question was scheduled for would reveal more than a date, and rounding down would
    promise an answer before it can be out.
    """
    day = time.date()
    begins = time == datetime(day.year, day.month, day.day, tzinfo=UTC)
    return day if begins else day + timedelta(days=1)


def yes_or_no(value: object, name: str) -> int:
    """Return 1 for yes and 0 for no.

    Raises:
        RowError: if the question was not resolved to one of them.
    """
    number = int(value) if isinstance(value, bool) else whole_number(value)
    if number in (0, 1):
        return number
    if isinstance(value, str) and value.strip().casefold() in _OUTCOMES:
        return _OUTCOMES[value.strip().casefold()]
    raise RowError(f"{name!r} must be resolved to yes or no, got {quoted(value)}")


def labels(value: object, name: str) -> tuple[str, ...]:
    """Return the names of several outcomes.

    Raises:
        RowError: if they are no list of 2 to 26 different texts.
    """
    value = structured(value, name)
    named = isinstance(value, list) and all(isinstance(v, str) and v.strip() for v in value)
    if not isinstance(value, list) or not named or len(set(value)) != len(value):
        raise RowError(f"{name!r} must be a list of different texts, got {quoted(value)}")
    if not 2 <= len(value) <= MOST_OUTCOMES:
        raise RowError(f"{name!r} must name 2 to {MOST_OUTCOMES} outcomes, got {len(value)}")
    return tuple(v.strip() for v in value)


def probability(value: object, name: str) -> float:
    """Return a probability, which may be a text in percent.

    Raises:
        RowError: if it is none in [0, 1].
    """
    number = read_share(value)
    if number is None or not 0.0 <= number <= 1.0:
        raise RowError(f"{name!r} must be a number from 0 to 1 or 0% to 100%, got {quoted(value)}")
    return number


def structured(value: object, name: str) -> object:
    """Return a structured value; text is parsed as JSON or a Python literal, never executed.

    Raises:
        RowError: if it is blank, or text that is neither.
    """
    if value is not None and not isinstance(value, str):
        return value
    cell = text({name: value}, name)
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(cell)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise RowError(f"{name!r} is neither JSON nor a Python literal: {quoted(cell)}") from error
