"""Metaculus posts: a question, or a group of them on one event.

Binary, multiple-choice and numeric questions are read; the fifths of a numeric question's stated
range are its thresholds. Dates come as ISO 8601 or as seconds since 1970. The date shown is the
scheduled date of resolution; the actual one orders the splits.
"""

from collections.abc import Mapping

from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.formats.standalone import each_part
from tokengym.envs.forecasting.data.record import Parsed, QuestionRecord, Row, RowError
from tokengym.envs.forecasting.data.thresholds import name_ranges, range_of, spread_thresholds
from tokengym.envs.intake.numbers import read_number
from tokengym.envs.intake.quoting import quoted

_PARTS = (("", "description"), ("Resolution: ", "resolution_criteria"), ("Note: ", "fine_print"))


def recognises(row: Row) -> bool:
    """Return whether a row is in this format: it has a question or a group of them, as objects."""
    return isinstance(row.get("question"), dict) or isinstance(row.get("group_of_questions"), dict)


def records(row: Row) -> list[Parsed]:
    """Return the questions of a post; those of a group share its event.

    Raises:
        RowError: if it is not of these types, was ambiguous or annulled, or a field is unusable.
    """
    event = f"post {fields.identifier(row, 'id')}"
    title = fields.text(row, "title")
    question = row.get("question")
    if isinstance(question, dict):
        return [_record(question, event, title)]
    group = row["group_of_questions"]
    return each_part(
        group.get("questions") if isinstance(group, dict) else None,
        "questions",
        lambda part: _record(part, event, f"{title} {fields.text(part, 'label')}"),
    )


def _record(question: Mapping[str, object], event: str, title: str) -> QuestionRecord:
    labels, outcome = _outcomes(question)
    resolved = fields.optional(question, "actual_resolve_time") is not None
    background = (
        prefix + fields.optional_text(question, name)
        for prefix, name in _PARTS
        if fields.optional_text(question, name)
    )
    return QuestionRecord(
        key=fields.identifier(question, "id"),
        event=event,
        question=title,
        background="\n".join(background),
        asked_at=fields.moment(question, "open_time"),
        closed_at=fields.end_of(
            question, "actual_resolve_time" if resolved else "scheduled_resolve_time"
        ),
        resolves_by=fields.rounded_up(fields.moment(question, "scheduled_resolve_time")),
        labels=labels,
        outcome=outcome,
        ordered=question["type"] == "numeric",
    )


def _outcomes(question: Mapping[str, object]) -> tuple[tuple[str, ...], int]:
    """Return the names of the outcomes (empty for yes/no) and the index of the real one."""
    kind, resolution = question.get("type"), question.get("resolution")
    if kind == "binary":
        return (), fields.yes_or_no(resolution, "resolution")
    if kind == "multiple_choice":
        labels = fields.labels(question.get("options"), "options")
        if resolution not in labels:
            got = quoted(resolution)
            raise RowError(f"'resolution' must be one of the options, got {got}")
        return labels, labels.index(str(resolution))
    if kind != "numeric":
        raise RowError(f"'type' must be binary, multiple_choice or numeric, got {quoted(kind)}")
    scaling = question.get("scaling")
    span = scaling if isinstance(scaling, dict) else {}
    low, high = read_number(span.get("range_min")), read_number(span.get("range_max"))
    if low is None or high is None:
        got = quoted(scaling)
        raise RowError(f"'scaling' must have a number 'range_min' and 'range_max', got {got}")
    zero = read_number(span.get("zero_point"))
    ratio = 1.0 if zero is None or zero == low else (high - zero) / (low - zero)
    thresholds = spread_thresholds(low, high, ratio)
    ends = {"below_lower_bound": low, "above_upper_bound": high}
    number = ends.get(str(resolution), read_number(resolution))
    if number is None:
        raise RowError(f"'resolution' must be a number, got {quoted(resolution)}")
    unit = fields.optional_text(question, "unit")
    return name_ranges(thresholds, unit), range_of(number, thresholds)
