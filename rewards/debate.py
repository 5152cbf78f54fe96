"""Reward terms of a debate: those of the predictor, and those of its challenger.

A report is a probability for each of three labels. So is a truth: 1 for the true label, or the
whole posterior for rewards without label noise. The scores are plain arithmetic, so entries may be
numbers or equally shaped arrays.

`PROPER` is our reward of the predictor, `ORIGINAL` the one the debate was first described with.

No pair of reports raises the sum of both roles' returns above that of honest ones: the challenger
is paid for a change of the predictor's loss at a weight that the predictor's own loss outweighs.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tokengym.rewards.bounds import Range, dyadic
from tokengym.rewards.form import FORM_SHARE, form_of

RIGHT_LABEL = 0.5
"""Reward of the right label, and cost of a wrong one."""
MOST_CALIBRATION = 1.25
FIRST_SHARE = 0.25
"""Weight a of the first answer; the final answer has 1 - a."""
CONTRADICTION_COST = 0.5
JUDGE_WEIGHT = 0.5625
PRIOR_LOSS = 1 / 3
"""Half-Brier of a judge that has no claims, whatever the label: it holds all labels alike."""
MOST_CLAIMS = 3
FALSE_CLAIM_COST = 0.125

CHANGE_WEIGHT = FIRST_SHARE
"""At most a and 1 - a, so that neither an adversary nor a critic gains by collusion."""
MOST_CHALLENGER_CLAIMS = 2
CHALLENGER_FALSE_CLAIM_COST = CHANGE_WEIGHT
"""As much as misleading can earn: no falsehood ever pays."""
SILENCE_COST = CHANGE_WEIGHT
"""Cost of disclosing nothing where disclosure is due: as much as misleading can earn."""

PROPER: Mapping[str, Range] = MappingProxyType(
    {
        "correctness": Range(-RIGHT_LABEL, RIGHT_LABEL),
        "calibration": Range(0.0, MOST_CALIBRATION),
        "consistency": Range(-CONTRADICTION_COST, 0.0),
        "reasoning": Range(JUDGE_WEIGHT * (PRIOR_LOSS - 1.0), JUDGE_WEIGHT * PRIOR_LOSS),
        "false_claims": Range(-FALSE_CLAIM_COST * MOST_CLAIMS, 0.0),
        "form": Range(-FORM_SHARE, 0.0),
    }
)
"""Range of each term of a predictor. A malformed answer earns the low ends, and `form` by degrees;
well-formed ones lose no `form`."""
ORIGINAL: Mapping[str, Range] = MappingProxyType(
    {"correctness": Range(-1.0, 1.0), "reasoning": Range(0.0, 0.3), "adaptation": Range(0.0, 0.2)}
)
"""Likewise, of the reward as first described: R in [-1, 1.5], and -1 for a malformed answer."""
REWARDS: Mapping[str, Mapping[str, Range]] = MappingProxyType(
    {"proper": PROPER, "original": ORIGINAL}
)


def total_range(terms: Mapping[str, Range]) -> Range:
    """Return the range of the sum of a predictor's terms."""
    low = sum(dyadic(term.low) for term in terms.values())
    return Range(low, sum(dyadic(term.high) for term in terms.values()))


TOTAL = total_range(PROPER)
CHALLENGER_TOTAL = Range(
    -CHANGE_WEIGHT
    - CHALLENGER_FALSE_CLAIM_COST * MOST_CHALLENGER_CLAIMS
    - SILENCE_COST
    - dyadic(FORM_SHARE),
    CHANGE_WEIGHT,
)


def original(
    right: float, validity: float, judge_loss: float, first_loss: float, final_loss: float
) -> dict[str, float]:
    """Return the terms of `ORIGINAL`: R_correctness, R_reasoning and R_adaptation.

    Args:
        right: 1 if the final label of every target is right, else 0; or the chance of it.
        validity: share of the claims that are true, in [0, 1], of those that are false or tell the
            judge anything; 0 if none of them is true, so that filler earns nothing.
        judge_loss: half-Brier of a judge that sees only the verified claims.
        first_loss: half-Brier B₀ of the report before the challenge.
        final_loss: half-Brier B₁ of the report after it.
    """
    return {
        "correctness": 2.0 * right - 1.0,
        "reasoning": ORIGINAL["reasoning"].high * validity * (1.0 - judge_loss),
        "adaptation": ORIGINAL["adaptation"].high * (1.0 - over_both(first_loss, final_loss)),
    }


def half_brier(report: Sequence[float], truth: Sequence[float]) -> float:
    """Return half the Brier score of a report, in [0, 1], lower is better; strictly proper.

    With a label y it is ½·Σ_k (p_k - [k = y])². Both arguments sum to 1.
    """
    (p, q, r), (a, b, c) = report, truth
    return 0.5 * (1.0 + p * (p - 2.0 * a) + q * (q - 2.0 * b) + r * (r - 2.0 * c))


def correctness(chosen: int, truth: Sequence[float]) -> float:
    """Return 0.5 for the right label and -0.5 for a wrong one, or the expectation of it."""
    return RIGHT_LABEL * (2.0 * truth[chosen] - 1.0)


def over_both(first: float, final: float) -> float:
    """Return the mean of a loss of the first and of the final answer, a quarter on the first."""
    return FIRST_SHARE * first + (1.0 - FIRST_SHARE) * final


def calibration(first_loss: float, final_loss: float) -> float:
    """Return the reward for both reports, in [0, 1.25]: 1.25 · (1 - a·B₀ - (1 - a)·B₁).

    Honest probabilities are optimal in both: changing one's mind earns nothing in itself, and
    withholding knowledge in the first report costs.

    Args:
        first_loss: half-Brier B₀ of the report before the challenge.
        final_loss: half-Brier B₁ of the report after it.
    """
    return MOST_CALIBRATION * (1.0 - over_both(first_loss, final_loss))


def contradiction(label: int, report: Sequence[float]) -> float:
    """Return how far a report's largest probability exceeds that of the label, in [0, 1]."""
    return max(report) - report[label]


def consistency(first: float, final: float) -> float:
    """Return the cost of labels that contradict their reports, in [-0.5, 0]; 0 if none does.

    Args:
        first: contradiction of the first answer, in [0, 1].
        final: contradiction of the final answer, in [0, 1].
    """
    return -CONTRADICTION_COST * over_both(first, final)


def reasoning(judge_loss: float) -> float:
    """Return the reward for claims, in [-0.375, 0.1875]: their gain over the judge's prior.

    Claims that do not inform the judge earn nothing. The reward is affine in the loss: if it were
    clipped at the prior, cherry-picking claims for a random label would pay.

    Args:
        judge_loss: half-Brier of a judge that sees only the verified claims.
    """
    return JUDGE_WEIGHT * (PRIOR_LOSS - judge_loss)


def false_claims(number: int) -> float:
    """Return a predictor's penalty for false claims, -0.125 each."""
    return -FALSE_CLAIM_COST * number


def misleading(first_loss: float, final_loss: float) -> float:
    """Return an adversary's reward for the predictor's change: (B₁ - B₀) / 4, in [-0.25, 0.25]."""
    return CHANGE_WEIGHT * (final_loss - first_loss)


def helping(first_loss: float, final_loss: float) -> float:
    """Return a critic's reward for the predictor's change: (B₀ - B₁) / 4, in [-0.25, 0.25]."""
    return CHANGE_WEIGHT * (first_loss - final_loss)


def challenger_false_claims(number: int) -> float:
    """Return a challenger's penalty for false claims, -0.25 each."""
    return -CHALLENGER_FALSE_CLAIM_COST * number


def silence(disclosed: bool) -> float:
    """Return a challenger's penalty for disclosing nothing, -0.25."""
    return 0.0 if disclosed else -SILENCE_COST


def challenger_form(nearness: float) -> float:
    """Return the term `form` of a challenger after a malformed argument, by its nearness."""
    return -FORM_SHARE * (1.0 - form_of(nearness))
