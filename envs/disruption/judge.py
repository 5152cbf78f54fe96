"""The frozen judge: the beliefs of a reader who sees verified claims and nothing else.

It is a Bayesian over the hidden classes of the synthetic literature: a claim about a feature is the
event that the feature lies in the claimed interval, a quote the event that its phrases were used.
It never sees the paper, considers one claim a feature or cue, and stays the same for real papers,
for which it is not calibrated. A likelihood below 1e-6 counts as 1e-6, so it does not extrapolate.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from tokengym.envs.disruption.claims import Claim, Fact, Quote
from tokengym.envs.disruption.evidence import Evidence
from tokengym.envs.disruption.labels import Target
from tokengym.envs.disruption.literature import (
    ALL_CUES,
    FEATURE_TABLE,
    Probabilities,
    cue_likelihood,
    cues_in,
    frequencies,
    label_rates,
)

_FLOOR = 1e-6


class Verified(NamedTuple):
    """The claims that hold.

    Attributes:
        claims: the claims that hold, the first about each subject only.
        false: how many do not hold.
    """

    claims: tuple[Claim, ...]
    false: int


def verify(claims: Sequence[Claim], evidence: Evidence, granted: Sequence[Claim] = ()) -> Verified:
    """Check claims against the shown evidence.

    Args:
        claims: the claims.
        evidence: what is shown.
        granted: claims that hold whether the evidence shows it or not.
    """
    true = [claim for claim in claims if claim in granted or claim.holds(evidence)]
    counted: list[Claim] = []
    covered: set[str] = set()
    for claim in true:
        about = subjects(claim)
        if covered.isdisjoint(about):
            counted.append(claim)
            covered |= about
    return Verified(tuple(counted), len(claims) - len(true))


def subjects(claim: Claim) -> frozenset[str]:
    """Return the feature or the cues that a claim is about."""
    if isinstance(claim, Fact):
        return frozenset({claim.feature})
    return frozenset(_cues(claim)) if isinstance(claim, Quote) else frozenset()


def judge(claims: Sequence[Claim], target: Target) -> Probabilities:
    """Return the judge's probabilities of the labels of `target`, in the order of `LABELS`.

    Args:
        claims: verified claims.
        target: `disruption` or `novelty`.
    """
    a, b, c = 1.0, 1.0, 1.0
    for claim in claims:
        x, y, z = likelihood(claim, target)
        a, b, c = a * x, b * y, c * z
    (a0, a1, a2), (b0, b1, b2), (c0, c1, c2) = label_weights(target)
    p = a * a0 + b * b0 + c * c0
    q = a * a1 + b * b1 + c * c1
    r = a * a2 + b * b2 + c * c2
    total = p + q + r
    return p / total, q / total, r / total


@lru_cache(maxsize=16384)
def likelihood(claim: Claim, target: Target) -> Probabilities:
    """Return the probability of a claim in each class; ones if it is not about `target`."""
    a, b, c = 1.0, 1.0, 1.0
    if isinstance(claim, Quote):
        for cue, group in _cues(claim).items():
            if ALL_CUES[cue].target == target:
                x, y, z = cue_likelihood(cue, group)
                a, b, c = a * x, b * y, c * z
    if not isinstance(claim, Fact) or FEATURE_TABLE[claim.feature].target != target:
        return a, b, c
    feature = FEATURE_TABLE[claim.feature]
    width = len(feature.pmf[0])
    low, high = claim.interval()
    first = int(min(max(low - feature.least, 0), width))
    end = int(min(max(high - feature.least + 1, 0), width))
    a, b, c = (max(float(pmf[first:end].sum()), _FLOOR) for pmf in feature.pmf)
    return a, b, c


def _cues(quote: Quote) -> Mapping[str, int]:
    return cues_in(" ".join(quote.words.lower().split()))


@lru_cache(maxsize=2)
def label_weights(target: Target) -> tuple[Probabilities, ...]:
    """Return the balanced weight of each label in each class."""
    often = frequencies(target)
    return tuple(
        (rates[0] / often[0], rates[1] / often[1], rates[2] / often[2])
        for rates in (label_rates(target, c, None) for c in range(3))
    )
