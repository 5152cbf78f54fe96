"""Metrics of a debate, whose means over episodes are rates.

A number is left out of an episode that has no case of it: the mean of `flip_when_right` is the
share of right first labels that were given up.
"""

import operator
from collections.abc import Mapping, Sequence

from tokengym.envs.disruption.classification import PRECISION, RECALL, WINDOW_RIGHT, WINDOW_SAME
from tokengym.envs.disruption.labels import LABELS, Target

Labels = Sequence[int]
"""The position of a label of each target."""


def debate_metrics(
    gold: Labels, first: Labels, final: Labels, gain: float, validity: float
) -> dict[str, float]:
    """Describe a predictor.

    Args:
        gold: the true label of each target.
        first: the labels before the challenge.
        final: the labels after it.
        gain: B₀ - B₁, the fall of the reports' half-Brier.
        validity: share of the final claims that verify.
    """
    count = len(gold)
    right = [before == truth for before, truth in zip(first, gold, strict=True)]
    flips = [before != after for before, after in zip(first, final, strict=True)]
    given_up = sum(flip for flip, was_right in zip(flips, right, strict=True) if was_right)
    metrics = {
        "right_first": sum(right) / count,
        "right_final": sum(map(operator.eq, final, gold)) / count,
        "brier_gain": gain,
        "claim_validity": validity,
    }
    if any(right):
        metrics["flip_when_right"] = given_up / sum(right)
    if not all(right):
        metrics["flip_when_wrong"] = (sum(flips) - given_up) / (count - sum(right))
    return metrics


def classification_metrics(
    targets: Sequence[Target],
    gold: Sequence[int],
    final: Sequence[int] | None,
    windows: Mapping[str, int],
) -> dict[str, float]:
    """Describe a classifier by the classes of papers and answers.

    Args:
        targets: the targets asked for.
        gold: the true label of each target.
        final: the final labels; `None` of a malformed answer.
        windows: the paper's disruption label by other citation windows in years, where known.
    """
    metrics = {}
    for k, target in enumerate(targets):
        names, chosen = LABELS[target], None if final is None else final[k]
        metrics[RECALL + names[gold[k]]] = float(chosen == gold[k])
        if chosen is not None:
            metrics[PRECISION + names[chosen]] = float(chosen == gold[k])
        if target == "disruption":
            for years, label in windows.items():
                metrics[WINDOW_RIGHT + years] = float(chosen == label)
                metrics[WINDOW_SAME + years] = float(gold[k] == label)
    return metrics


def response_metrics(
    argued: str | None, targets: Sequence[Target], gold: Labels, first: Labels, final: Labels
) -> dict[str, float]:
    """Describe how a predictor answers an argument for another label than its own.

    A wrong label that is challenged by the right one should be revised, and a right label that is
    challenged by a wrong one, or asked whether it is sure, defended.

    Args:
        argued: the label that the challenger argues for; `None` if it only asks.
        targets: the targets asked for.
        gold: the true label of each target.
        first: the labels before the challenge.
        final: the labels after it.
    """
    asked = [k for k, target in enumerate(targets) if argued in (None, *LABELS[target])]
    was_right, is_right = (all(said[k] == gold[k] for k in asked) for said in (first, final))
    if argued in [LABELS[targets[k]][gold[k]] for k in asked]:
        return {} if was_right else {"appropriate_revision": float(is_right)}
    return {"firm_defence": float(is_right)} if was_right else {}


def challenge_metrics(
    flipped: bool, gain: float, claims: int, false: int, kind: str
) -> dict[str, float]:
    """Describe a challenge and the response to it.

    Args:
        flipped: whether a label changed.
        gain: B₀ - B₁; negative if the predictor was misled.
        claims: how many claims the challenger made.
        false: how many of them do not hold.
        kind: the challenger's, where Tasks draw it, else empty.
    """
    metrics = {"challenge_false": float(false > 0)}
    if claims:
        metrics["challenge_validity"] = 1.0 - false / claims
    if false:
        metrics["flip_when_challenge_false"] = float(flipped)
        metrics["brier_gain_when_challenge_false"] = gain
    if kind:
        metrics[f"brier_gain_when_{kind}"] = gain
    return metrics
