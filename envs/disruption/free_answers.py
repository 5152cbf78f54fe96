"""Answers in JSON or plain words, read where they leave no doubt.

Doubtful answers stay malformed: no label or several, shares that do not sum to 1, two degrees of
certainty. A label without any is a report of thirds.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tokengym.envs.core.grammar import Reading
from tokengym.envs.disruption.grammar import (
    SUM_TOLERANCE,
    PredictorAnswer,
    read_answer,
    read_claims,
)
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import Probabilities

_SURE = ("confidence", "probability", "certainty")
_CLAIMS = ("claims", "quotes")
_NUMBER = r"(\d{1,3}(?:\.\d{1,6})? ?%|[01]?\.\d{1,6}|[01](?![.\d]))"
_SURE_WORDS = re.compile(
    rf"(?:{'|'.join(_SURE)}|sure|certain|confident)\W{{0,3}}(?:(?:of|is|at) )?{_NUMBER}"
    rf"|{_NUMBER} (?:{'|'.join(_SURE)}|sure|certain|confident)"
)


def read_free_answer(
    text: str, targets: tuple[Target, ...], *, complete: bool = True
) -> Reading[PredictorAnswer]:
    """Read a predictor's reply in the form of `read_answer`, or else as JSON or plain words.

    Returns:
        the answer; nothing if it is in doubt, or was cut off before its end.
    """
    answer = read_answer(text, targets, complete=complete)
    if answer.value is not None or not complete:
        return answer
    fields, said = _object_in(text)
    claims = [str(one) for name in _CLAIMS for one in _listed(fields.get(name))]
    lines = [c if c.startswith(("CLAIM", "QUOTE")) else f'QUOTE "{c}"' for c in claims]
    found = [_in_fields(fields, t) if fields else _in_words(text.lower(), t) for t in targets]
    known = [one for one in found if one is not None]
    if len(known) < len(targets):
        return answer
    labels, reports = zip(*known, strict=True)
    claimed = read_claims("\n".join([said, *lines]), targets)
    return Reading(PredictorAnswer(labels, reports, claimed))


def _object_in(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields of the first object of JSON, those of objects in it too, and other text."""
    try:
        begin = text.index("{")
        value, end = json.JSONDecoder().raw_decode(text, begin)
    except (ValueError, RecursionError):
        return {}, text
    nested = [inner for inner in value.values() if isinstance(inner, dict)]
    fields = {str(k).lower(): v for part in (value, *nested) for k, v in part.items()}
    return fields, text[:begin] + text[end:]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _in_fields(fields: Mapping[str, Any], target: Target) -> tuple[int, Probabilities] | None:
    names = LABELS[target]
    words = {value.strip().lower() for value in fields.values() if isinstance(value, str)}
    numbers = {k: float(v) for k, v in fields.items() if type(v) in (int, float)}
    return _settle(
        names,
        words.intersection(names),
        {name: numbers[name] for name in names if name in numbers},
        {numbers[name] for name in _SURE if name in numbers},
    )


def _in_words(text: str, target: Target) -> tuple[int, Probabilities] | None:
    names = LABELS[target]
    named = {name for name in names if re.search(rf"(?<!not )\b{name}\b", text)}
    shares = {}
    for name in names:
        stated = re.findall(rf"\b{name}\b\W{{0,3}}(?:(?:is|at) )?{_NUMBER}", text)
        if len(stated) == 1:
            shares[name] = _number(stated[0])
    sure = {_number(a or b) for a, b in _SURE_WORDS.findall(text)}
    return _settle(names, named, shares, sure)


def _settle(
    names: Sequence[str],
    named: Collection[str],
    shares: Mapping[str, float],
    sure: Collection[float],
) -> tuple[int, Probabilities] | None:
    """Return the label and the report that names, shares and certainty agree on."""
    if len(shares) == len(names):
        a, b, c = (shares[name] for name in names)
        total = a + b + c
        if min(a, b, c) < 0.0 or not abs(total - 1.0) <= SUM_TOLERANCE:
            return None
        if len(named) != 1:
            named = {name for name in names if shares[name] == max(a, b, c)}
        report = (a / total, b / total, c / total)
        return (names.index(min(named)), report) if len(named) == 1 else None
    if len(named) != 1 or len(sure) > 1:
        return None
    label, share = names.index(min(named)), next(iter(sure), 1 / 3)
    share = share / 100.0 if share > 1.0 else share
    if not 0.0 <= share <= 1.0:
        return None
    rest = (1.0 - share) / 2.0
    first, second, third = (share if k == label else rest for k in range(3))
    return label, (first, second, third)


def _number(text: str) -> float:
    return float(text.rstrip("% ")) / (100.0 if text.endswith("%") else 1.0)
