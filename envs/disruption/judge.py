"""The frozen judge: the beliefs of a reader who sees verified claims and nothing else.

It is a Bayesian over the hidden classes of the synthetic literature: a claim about a feature is the
event that the feature lies in the claimed interval, a quote the event that its phrase was used. It
never sees the paper, considers one claim a feature family, and stays the same for real papers, for
which it is not calibrated. A likelihood below 1e-6 counts as 1e-6, so it does not extrapolate.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from tokengym.envs.disruption.claims import Claim, Fact, Quote
from tokengym.envs.disruption.evidence import Evidence
from tokengym.envs.disruption.labels import Target
from tokengym.envs.disruption.literature import (
    FEATURE_TABLE,
    Probabilities,
    cue_group,
    cue_likelihood,
    frequencies,
    label_rates,
)

_FLOOR = 1e-6
_UNINFORMATIVE: Probabilities = (1.0, 1.0, 1.0)


class Verified(NamedTuple):
    """The claims that hold.

    Attributes:
        claims: the claims that hold, the first of each family only.
        validity: share of all claims that hold, 0 if there are none.
    """

    claims: tuple[Claim, ...]
    validity: float


def verify(claims: Sequence[Claim], evidence: Evidence) -> Verified:
    """Check claims against what is shown."""
    true = [claim for claim in claims if claim.holds(evidence)]
    by_family: dict[str, Claim] = {}
    for claim in true:
        by_family.setdefault(claim.family, claim)
    return Verified(tuple(by_family.values()), len(true) / len(claims) if claims else 0.0)


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
    if isinstance(claim, Quote):
        group = cue_group(claim.words.lower(), target)
        return _UNINFORMATIVE if group is None else cue_likelihood(group)
    if not isinstance(claim, Fact) or FEATURE_TABLE[claim.feature].target != target:
        return _UNINFORMATIVE
    feature = FEATURE_TABLE[claim.feature]
    width = len(feature.pmf[0])
    low, high = claim.interval()
    first = int(min(max(low - feature.least, 0), width))
    end = int(min(max(high - feature.least + 1, 0), width))
    a, b, c = (max(float(pmf[first:end].sum()), _FLOOR) for pmf in feature.pmf)
    return a, b, c


@lru_cache(maxsize=2)
def label_weights(target: Target) -> tuple[Probabilities, ...]:
    """Return the balanced weight of each label in each class."""
    often = frequencies(target)
    return tuple(
        (rates[0] / often[0], rates[1] / often[1], rates[2] / often[2])
        for rates in (label_rates(target, c, None) for c in range(3))
    )
