"""Twins of a Task, whose odds follow from its own: P(not A) = 1 - P(A), P(A and B) = P(A)·P(B)."""

from collections.abc import Mapping
from typing import Any

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task, to_plain_json
from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.generator import draw_outcomes

_SWAP = str.maketrans("01", "10")


def negated_twin(task: Task) -> Task:
    """Return the same question with the probability of the opposite asked for.

    Raises:
        TaskError: if it is no synthetic yes/no question.
    """
    family = FAMILIES.get(task.instance["family"])
    if family is None or family.options is not None:
        raise TaskError("only a synthetic yes/no question has a negated twin")
    answer = {
        "p_bayes": task.answer["p_bayes"][::-1],
        "p_latent": task.answer["p_latent"][::-1],
        "outcomes": task.answer["outcomes"].translate(_SWAP),
    }
    return _twin(task, {**task.instance, "negated": not task.instance["negated"]}, answer)


def conjuncts(task: Task) -> tuple[Task, ...]:
    """Return the questions a conjunction is made of, with outcomes of their own.

    Raises:
        TaskError: if the Task is no conjunction.
    """
    if task.instance["family"] != "conjunction":
        raise TaskError(f"a {task.instance['family']!r} question is no conjunction")
    parts = []
    for number, part in enumerate(task.instance["shown"]["parts"]):
        instance = {**task.instance, **part, "negated": False, "asides": []}
        rng = generator("conjunct", task.fingerprint, number)
        parts.append(_twin(task, instance, draw_outcomes(instance, rng)))
    return tuple(parts)


def _twin(task: Task, instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Task:
    return Task.create(
        world=task.world,
        level=task.level,
        split=task.split,
        index=task.index,
        instance=instance,
        answer=to_plain_json(answer),
    )
