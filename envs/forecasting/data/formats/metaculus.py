"""Metaculus posts: a binary or multiple-choice question, or a group of them on one event.

Dates come as ISO 8601 or as seconds since 1970. What is shown is the scheduled date of resolution;
the actual one orders the splits.
"""

from collections.abc import Mapping

from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.record import Parsed, Record, Row, RowError

_PARTS = (("", "description"), ("Resolution: ", "resolution_criteria"), ("Note: ", "fine_print"))


def recognises(row: Row) -> bool:
    """Whether a row is in this format: its question is an object, or it is a group of them."""
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
    parts = group.get("questions") if isinstance(group, dict) else None
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise RowError(f"'group_of_questions' must hold 'questions', got {fields.quoted(group)}")
    return [_part(part, event, title) for part in parts]


def _part(question: Mapping[str, object], event: str, title: str) -> Parsed:
    """Return a question of a group; the others are used even if this one cannot be."""
    try:
        return _record(question, event, f"{title} {fields.text(question, 'label')}")
    except RowError as error:
        return RowError(f"question {fields.quoted(question.get('id'))}: {error}")


def _record(question: Mapping[str, object], event: str, title: str) -> Record:
    kind = question.get("type")
    labels: tuple[str, ...] = ()
    if kind == "multiple_choice":
        labels = fields.labels(question.get("options"), "options")
    elif kind != "binary":
        raise RowError(f"'type' must be binary or multiple_choice, got {fields.quoted(kind)}")
    resolution = question.get("resolution")
    if labels and resolution not in labels:
        raise RowError(f"'resolution' must be one of the options, got {fields.quoted(resolution)}")
    resolved = question.get("actual_resolve_time") is not None
    background = (
        prefix + fields.optional_text(question, name)
        for prefix, name in _PARTS
        if fields.optional_text(question, name)
    )
    return Record(
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
        outcome=(
            labels.index(str(resolution)) if labels else fields.yes_or_no(resolution, "resolution")
        ),
    )
