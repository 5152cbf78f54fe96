"""Scores of a classifier of papers: F1, precision, recall, calibration, citation windows."""

from collections.abc import Mapping, Sequence

import numpy as np

from tokengym.envs.core.task import Task
from tokengym.envs.disruption.labels import LABELS
from tokengym.rewards.arrays import Floats
from tokengym.rewards.calibration import expected_error
from tokengym.rewards.clustered import clustered_share, resampled_statistic
from tokengym.rewards.estimates import Estimate, share_estimate

Metrics = Mapping[str, float | None]

PRECISION, RECALL = "precision_", "recall_"
WINDOW_RIGHT, WINDOW_SAME = "right_final_window_", "same_label_window_"
_LEAST = 2


def classification_scores(
    tasks: Sequence[Task], ends_TK: Sequence[Sequence[Metrics]], rng: np.random.Generator
) -> dict[str, float | Estimate]:
    """Score the final labels and reports of a predictor; see `WorldSpec.scores`.

    A malformed answer misses the paper's class: it lowers recall and F1. A class that was never
    chosen has F1 0 and no precision. Shares count every paper alike, however many rollouts.
    Macro-F1 is the mean over the classes that occur among the papers or the answers.

    Args:
        tasks: the Tasks.
        ends_TK: metrics at the ends of episodes, by Task and rollout.
        rng: of the intervals and of the calibration error's null distribution.
    """
    names = {name for ends in ends_TK for end in ends for name in end}
    scores: dict[str, float | Estimate] = {}
    for target, labels in LABELS.items():
        counts_TF = np.array([_count(ends, labels) for ends in ends_TK])
        if not counts_TF.any():
            continue
        scores[f"macro-F1, {target}"] = resampled_statistic(counts_TF, _macro_f1, rng)
        for label in labels:
            scores[f"precision, {label}"] = _share(ends_TK, PRECISION + label)
            scores[f"recall, {label}"] = _share(ends_TK, RECALL + label)
    scores |= _calibration([end for ends in ends_TK for end in ends], rng)
    windows = {name.rpartition("_")[2] for name in names if name.startswith(WINDOW_RIGHT)}
    for years in sorted(windows, key=int):
        for what, prefix in (("right", WINDOW_RIGHT), ("same label", WINDOW_SAME)):
            scores[f"{what}, window of {years} years"] = _share(ends_TK, prefix + years)
    return scores


def _count(ends: Sequence[Metrics], labels: Sequence[str]) -> list[float]:
    """Return for each label how often it was right, chosen, and the paper's own."""
    counts: list[float] = []
    for label in labels:
        papers = _values(ends, RECALL + label)
        counts += [sum(papers), len(_values(ends, PRECISION + label)), len(papers)]
    return counts


def _share(ends_TK: Sequence[Sequence[Metrics]], name: str) -> Estimate:
    """Return the mean of a metric over the Tasks with an episode that reports it."""
    values_T = [values for ends in ends_TK if (values := _values(ends, name))]
    if not values_T:
        return share_estimate(0, 0)
    return clustered_share([[sum(values) / len(values)] for values in values_T])


def _values(ends: Sequence[Metrics], name: str) -> list[float]:
    return [value for end in ends if (value := end.get(name)) is not None]


def _macro_f1(counts_RF: Floats) -> Floats:
    right_R3, chosen_R3, papers_R3 = np.moveaxis(counts_RF.reshape(-1, 3, 3), 2, 0)
    occurs_R3 = chosen_R3 + papers_R3 > 0
    f1_R3 = 2.0 * right_R3 / np.where(occurs_R3, chosen_R3 + papers_R3, 1.0)
    mean: Floats = f1_R3.sum(axis=1) / np.maximum(occurs_R3.sum(axis=1), 1)
    return mean


def _calibration(ends: Sequence[Metrics], rng: np.random.Generator) -> dict[str, float]:
    """Compare how often labels were right with the probabilities that were stated for them."""
    pairs = [(end.get("confidence"), end.get("right_final")) for end in ends]
    answered = [pair for pair in pairs if None not in pair]
    if len(answered) < _LEAST:
        return {}
    stated, right = np.array(answered).T
    error = expected_error(stated, right, rng)
    half_briers = _values([end for end in ends if "confidence" in end], "half_brier")
    return {
        "half-Brier": float(np.mean(half_briers)),
        "confidence": float(stated.mean()),
        "calibration error": error.error,
        "its 95 % null quantile": error.null_quantile,
    }
