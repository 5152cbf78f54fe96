"""Reward terms of a debate: three for the predictor, and those of its challenger.

A report is a probability for each of three labels. So is a truth: 1 for the true label, or the
whole posterior for rewards without label noise. Every function is plain arithmetic, so entries may
be numbers or equally shaped arrays.
"""

from collections.abc import Sequence

from tokengym.rewards.bounds import Range

MOST_REASONING = 0.3
MOST_ADAPTATION = 0.2
FIRST_SHARE = 0.25
"""Weight a of the first report in the adaptation term; the final report has 1 - a."""

FALSE_CLAIM_COST = 0.5
MOST_CHALLENGER_CLAIMS = 2

TOTAL = Range(-1.0, 1.0 + MOST_REASONING + MOST_ADAPTATION)
CHALLENGER_TOTAL = Range(-1.0 - FALSE_CLAIM_COST * MOST_CHALLENGER_CLAIMS, 1.0)


def half_brier(report: Sequence[float], truth: Sequence[float]) -> float:
    """Return half the Brier score of a report, in [0, 1], lower is better; strictly proper.

    With a label y it is ½·Σ_k (p_k - [k = y])². Both arguments sum to 1.
    """
    (p, q, r), (a, b, c) = report, truth
    return 0.5 * (1.0 + p * (p - 2.0 * a) + q * (q - 2.0 * b) + r * (r - 2.0 * c))


def correctness(chosen: int, truth: Sequence[float]) -> float:
    """Return +1 for the right label and -1 for a wrong one, or the expectation of it."""
    return 2.0 * truth[chosen] - 1.0


def reasoning(validity: float, judge_loss: float) -> float:
    """Return the reward for claims, in [0, 0.3]: 0.3·v·(1 - L).

    It is affine in L. If it were clipped at the judge's prior, cherry-picking claims for a random
    label would pay.

    Args:
        validity: share of the claims that verify, 0 if there are none.
        judge_loss: half-Brier of a judge that sees only the verified claims.
    """
    return MOST_REASONING * validity * (1.0 - judge_loss)


def adaptation(first_loss: float, final_loss: float) -> float:
    """Return the reward for revising well, in [0, 0.2]: 0.2·(1 - a·B₀ - (1 - a)·B₁).

    Honest probabilities are optimal in both reports: changing one's mind earns nothing in itself,
    and withholding knowledge in the first report costs.

    Args:
        first_loss: half-Brier B₀ of the report before the challenge.
        final_loss: half-Brier B₁ of the report after it.
    """
    return MOST_ADAPTATION * (1.0 - FIRST_SHARE * first_loss - (1.0 - FIRST_SHARE) * final_loss)


def misleading(first_loss: float, final_loss: float) -> float:
    """Return what an adversary earns from the predictor's change: B₁ - B₀, in [-1, 1]."""
    return final_loss - first_loss


def helping(first_loss: float, final_loss: float) -> float:
    """Return what a critic earns from the predictor's change: B₀ - B₁, in [-1, 1]."""
    return first_loss - final_loss


def false_claims(number: int) -> float:
    """Return a challenger's penalty for false claims, -0.5 each."""
    return -FALSE_CLAIM_COST * number
