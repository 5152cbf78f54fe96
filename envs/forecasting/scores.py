"""The usual scores of forecasts: Brier score, skill, AUC, calibration, coherence."""

from collections.abc import Mapping, Sequence

import numpy as np

from tokengym.envs.core.task import Task
from tokengym.rewards.clustered import mean_over_clusters
from tokengym.rewards.estimates import Estimate
from tokengym.rewards.verification import verify_forecasts

Metrics = Mapping[str, float | None]

_GAPS = {
    "incoherence": "incoherence",
    "complement_gap": "gap, question and opposite",
    "implication_gap": "gap, what is implied",
    "union_gap": "gap, both and either",
}


def forecast_scores(
    tasks: Sequence[Task], ends_TK: Sequence[Sequence[Metrics]], rng: np.random.Generator
) -> dict[str, float | Estimate]:
    """Score the forecasts of the last turns; see `WorldSpec.scores`.

    Intervals take events as their units: the questions on one event are not independent. Skill is
    over the base rate of train in a user's own data, else over that of the very questions.

    Args:
        tasks: the Tasks.
        ends_TK: metrics at the ends of episodes, by Task and rollout.
        rng: of the intervals and of the calibration error's null distribution.
    """
    events = [str(task.answer.get("event", task.fingerprint)) for task in tasks]
    pairs = [(event, end) for event, ends in zip(events, ends_TK, strict=True) for end in ends]
    yes_no = [(event, end) for event, end in pairs if end.get("label") is not None]
    others = [(event, end) for event, end in pairs if end.get("label") is None]
    scores: dict[str, float | Estimate] = {}
    if any(end.get("probability") is not None for _, end in yes_no):
        scores |= _verify(yes_no, rng, tasks[0].answer.get("base_rate"))
    if others:
        scores["score, several outcomes"] = _mean(
            [(event, end.get("score") or 0.0) for event, end in others]
        )
    for name, title in _GAPS.items():
        stated = [(event, gap) for event, end in pairs if (gap := end.get(name)) is not None]
        if stated:
            scores[title] = _mean(stated)
    return scores


def _verify(
    pairs: Sequence[tuple[str, Metrics]], rng: np.random.Generator, rate: float | None
) -> dict[str, float | Estimate]:
    events, ends = zip(*pairs, strict=True)
    outcomes = np.array([end["label"] for end in ends], np.float64)
    figures = verify_forecasts(
        np.array([end.get("probability") for end in ends], np.float64),
        outcomes,
        events,
        float(outcomes.mean()) if rate is None else np.full(len(outcomes), rate),
        rng,
    )
    scores: dict[str, float | Estimate] = {
        "Brier score": figures.brier,
        "Brier reward": figures.reward,
        "skill over base rate": figures.skill,
        "accuracy": figures.accuracy,
    }
    if figures.auc is not None:
        scores["AUC"] = figures.auc
    if figures.calibration is not None:
        scores["calibration error"] = figures.calibration.error
        scores["its 95 % null quantile"] = figures.calibration.null_quantile
    return scores | vars(figures.murphy)


def _mean(values: Sequence[tuple[str, float]]) -> Estimate:
    events, numbers = zip(*values, strict=True)
    return mean_over_clusters(numbers, np.unique(events, return_inverse=True)[1])
