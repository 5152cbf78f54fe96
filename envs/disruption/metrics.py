"""What a debate says about its roles, in numbers whose means over episodes are rates.

A number is left out of an episode that has no case of it: the mean of `flip_when_right` is the
share of right first labels that were given up.
"""

from collections.abc import Sequence


def debate_metrics(
    gold: Sequence[int],
    first: Sequence[int],
    final: Sequence[int],
    gain: float,
    validity: float,
) -> dict[str, float]:
    """Describe a predictor.

    Args:
        gold: the true label of each target.
        first: the labels before the challenge.
        final: the labels after it.
        gain: B₀ - B₁, the fall of the reports' half-Brier.
        validity: share of the final claims that verify.
    """
    pairs = list(zip(first, final, strict=True))
    when_right = [a != b for (a, b), y in zip(pairs, gold, strict=True) if a == y]
    when_wrong = [a != b for (a, b), y in zip(pairs, gold, strict=True) if a != y]
    metrics = {
        "well_formed": 1.0,
        "right_first": len(when_right) / len(gold),
        "right_final": sum(b == y for (_, b), y in zip(pairs, gold, strict=True)) / len(gold),
        "brier_gain": gain,
        "claim_validity": validity,
    }
    if when_right:
        metrics["flip_when_right"] = sum(when_right) / len(when_right)
    if when_wrong:
        metrics["flip_when_wrong"] = sum(when_wrong) / len(when_wrong)
    return metrics


def challenge_metrics(flipped: bool, gain: float, claims: int, false: int) -> dict[str, float]:
    """Describe a challenge and the response to it.

    Args:
        flipped: whether a label changed.
        gain: B₀ - B₁; negative if the predictor was misled.
        claims: how many claims the challenger made.
        false: how many of them do not hold.
    """
    metrics = {"challenge_false": float(false > 0)}
    if claims:
        metrics["challenge_validity"] = 1.0 - false / claims
    if false:
        metrics["flip_when_challenge_false"] = float(flipped)
        metrics["brier_gain_when_challenge_false"] = gain
    return metrics
