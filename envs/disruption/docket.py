"""A docket: a Task as it is shown and judged under given options, worked out once per Task."""

from functools import lru_cache
from typing import Any, NamedTuple, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.task import Task
from tokengym.envs.disruption.evidence import Evidence, evidence_of
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import Probabilities
from tokengym.envs.disruption.prompt import describe, opening


class Docket(NamedTuple):
    """A Task as it is shown and judged.

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

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Frozen all the way down: a copy is the Docket itself."""
        return self


@lru_cache(maxsize=16384)
def docket_of(task: Task, targets: tuple[Target, ...], label: str, debated: bool) -> Docket:
    """Work out what every step on `task` needs.

    Args:
        task: a Task of the debate.
        targets: what is asked for.
        label: `outcome` or `expected`.
        debated: whether a challenger will speak.

    Raises:
        TaskError: if the Task is damaged, or has no posterior for `expected` labels.
    """
    evidence = evidence_of(task.instance)
    gold, posteriors = [], []
    known = "posteriors" in task.answer
    if label == "expected" and not known:
        raise TaskError("label='expected' needs a posterior, which a real paper does not have")
    try:
        for target in targets:
            place = LABELS[target].index(task.answer["labels"][target])
            gold.append(place)
            a, b, c = task.answer["posteriors"][target] if known else _certain(place)
            posteriors.append((float(a), float(b), float(c)))
    except (KeyError, TypeError, ValueError) as error:
        raise TaskError(f"damaged answer in a Task of {task.world}: {error!r}") from error
    truths = posteriors if label == "expected" else [_certain(place) for place in gold]
    return Docket(
        evidence,
        describe(evidence),
        opening(evidence, targets, debated=debated),
        tuple(gold),
        tuple(truths),
        tuple(posteriors),
    )


def _certain(place: int) -> Probabilities:
    """All probability on one label."""
    a, b, c = (float(k == place) for k in range(3))
    return a, b, c


def likeliest(report: Probabilities) -> int:
    """Position of the largest probability, the first of equals."""
    return report.index(max(report))
