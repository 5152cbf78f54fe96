"""Compiled Tasks: what is shown of a paper, in words, and what reports on it are scored against."""

from typing import NamedTuple

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.task import Task
from tokengym.envs.disruption.evidence import Evidence, evidence_of
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import Probabilities
from tokengym.envs.disruption.prompt import describe, opening


class CompiledTask(NamedTuple):
    """A Task under the options of a DisruptionWorld.

    Attributes:
        evidence: what is shown.
        description: the same in words.
        opening: the predictor's first text.
        gold: position of the true label of each target.
        truths: what reports are scored against, for each target.
        posteriors: probabilities of the labels given what is shown; the gold label alone where no
            posterior is known.
    """

    evidence: Evidence
    description: str
    opening: str
    gold: tuple[int, ...]
    truths: tuple[Probabilities, ...]
    posteriors: tuple[Probabilities, ...]


def compile_task(
    task: Task, targets: tuple[Target, ...], label: str, debated: bool
) -> CompiledTask:
    """Compile a Task.

    Args:
        task: a Task of the debate.
        targets: the targets asked for.
        label: `outcome` or `expected`.
        debated: whether a challenger will reply.

    Raises:
        TaskError, LookupError, TypeError, ValueError: if the Task is damaged.
        TaskError: if there is no posterior for `expected` labels.
    """
    evidence = evidence_of(task.instance)
    gold, posteriors = [], []
    known = "posteriors" in task.answer
    if label == "expected" and not known:
        raise TaskError("label='expected' needs a posterior, which a real paper does not have")
    for target in targets:
        place = LABELS[target].index(task.answer["labels"][target])
        gold.append(place)
        a, b, c = task.answer["posteriors"][target] if known else _certain(place)
        posteriors.append((float(a), float(b), float(c)))
    truths = posteriors if label == "expected" else [_certain(place) for place in gold]
    return CompiledTask(
        evidence,
        describe(evidence),
        opening(evidence, targets, debated=debated),
        tuple(gold),
        tuple(truths),
        tuple(posteriors),
    )


def _certain(place: int) -> Probabilities:
    """Return all probability on one label."""
    a, b, c = (float(k == place) for k in range(3))
    return a, b, c
