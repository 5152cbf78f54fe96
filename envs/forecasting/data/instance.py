"""From record to instance to question: what may be shown of a record.

The instance holds what is shown and nothing else: no closing time ever, prices only if asked for.
"""

from collections.abc import Mapping
from typing import Any

from tokengym.envs.forecasting.data.record import QuestionRecord
from tokengym.envs.forecasting.grammar import LETTERS
from tokengym.envs.forecasting.question import Question

FAMILY = "record"
"""The `family` of the instance of a real question."""


def instance_of(record: QuestionRecord, *, show_prices: bool) -> dict[str, Any]:
    """Return the instance of the Task of a record: everything that a policy may be shown."""
    by = record.resolves_by
    ordered = {"ordered": True} if record.ordered else {}
    return {
        "family": FAMILY,
        "question": record.question,
        "background": record.background,
        "asked_on": record.asked_at.date().isoformat(),
        "resolves_by": None if by is None else by.isoformat(),
        "labels": list(record.labels),
        "price": list(record.price) if show_prices and record.price is not None else None,
        "sources": [source.text for source in record.sources],
        **ordered,
    }


def answer_of(record: QuestionRecord, base_rate: float) -> dict[str, Any]:
    """Return the answer of the Task of a record, which no policy is shown.

    Args:
        record: the record.
        base_rate: share of yes among the questions of train.
    """
    return {
        "outcome": record.outcome,
        "event": record.event,
        "key": record.key,
        "base_rate": base_rate,
    }


def question_of(instance: Mapping[str, Any]) -> Question:
    """Return the question of an instance made by `instance_of`.

    Raises:
        LookupError, TypeError, ValueError: if it is not one.
    """
    labels, price = instance["labels"], instance["price"]
    lines = [f"Today is {instance['asked_on']}.", f"Question: {instance['question']}"]
    if instance["resolves_by"] is not None:
        lines.append(f"Scheduled to resolve by {instance['resolves_by']}.")
    lines += [f"{letter}: {label}" for letter, label in zip(LETTERS, labels, strict=False)]
    if instance["background"]:
        lines.append(f"Background: {instance['background']}")
    lines += [f"Source {number}: {text}" for number, text in enumerate(instance["sources"], 1)]
    if price is not None:
        names = LETTERS if labels else ("no", "yes")
        prices = ", ".join(f"{name} {p:.3f}" for name, p in zip(names, price, strict=False))
        lines.append(f"Market price: {prices}.")
    return Question(
        text="\n".join(lines),
        options=len(labels),
        negated=False,
        empirical=None,
        predictive=None,
        price=None if price is None else tuple(price),
        ordered=instance.get("ordered", False),
    )
