"""The frozen judge: what someone would believe who sees verified claims and nothing else.

It is a Bayesian over the hidden classes of the synthetic literature: a claim about a feature is the
event that the feature lies in the claimed interval, a quote the event that its phrase was used. It
never sees the paper, hears one claim a feature family, and stays the same for real papers, of which
it is no calibrated reader. A likelihood below 1e-6 counts as 1e-6, so it does not extrapolate.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tokengym.envs.disruption.claims import Claim, Fact, Quote
from tokengym.envs.disruption.evidence import Evidence
from tokengym.envs.disruption.labels import Target
from tokengym.envs.disruption.literature import (
    ALL_CUES,
    FEATURE_TABLE,
    Probabilities,
    cue_group,
    cue_likelihood,
    frequencies,
    label_rates,
)
from tokengym.envs.disruption.replies import MOST_CLAIMS

_FLOOR = 1e-6
_SILENT: Probabilities = (1.0, 1.0, 1.0)


class Hearing(NamedTuple):
    """What is left of some claims once they are checked.

    Attributes:
        heard: the claims that hold, the first of each family only.
        validity: share of all claims that hold, 0 if there are none.
    """

    heard: tuple[Claim, ...]
    validity: float


def verify(claims: Sequence[Claim], evidence: Evidence) -> Hearing:
    """Check claims against what is shown."""
    true = [claim for claim in claims if claim.holds(evidence)]
    heard: dict[str, Claim] = {}
    for claim in true:
        heard.setdefault(claim.family, claim)
    return Hearing(tuple(heard.values()), len(true) / len(claims) if claims else 0.0)


def judge(claims: Sequence[Claim], target: Target) -> Probabilities:
    """What the judge believes of the labels of `target`, in the order of `LABELS`.

    Args:
        claims: those of a `Hearing`.
        target: `disruption` or `novelty`.
    """
    a, b, c = 1.0, 1.0, 1.0
    for claim in claims:
        x, y, z = likelihood(claim, target)
        a, b, c = a * x, b * y, c * z
    (a0, a1, a2), (b0, b1, b2), (c0, c1, c2) = _label_weights(target)
    p = a * a0 + b * b0 + c * c0
    q = a * a1 + b * b1 + c * c1
    r = a * a2 + b * b2 + c * c2
    total = p + q + r
    return p / total, q / total, r / total


@lru_cache(maxsize=16384)
def likelihood(claim: Claim, target: Target) -> Probabilities:
    """Probability in each class of what a claim says; ones if it says nothing about `target`."""
    if isinstance(claim, Quote):
        group = cue_group(claim.words.lower(), target)
        return _SILENT if group is None else cue_likelihood(group)
    if not isinstance(claim, Fact) or FEATURE_TABLE[claim.feature].target != target:
        return _SILENT
    feature = FEATURE_TABLE[claim.feature]
    width = len(feature.pmf[0])
    low, high = claim.interval()
    first = int(min(max(low - feature.least, 0), width))
    end = int(min(max(high - feature.least + 1, 0), width))
    a, b, c = (max(float(pmf[first:end].sum()), _FLOOR) for pmf in feature.pmf)
    return a, b, c


@lru_cache(maxsize=2)
def _label_weights(target: Target) -> tuple[Probabilities, ...]:
    """Balanced weight of each label in each class."""
    often = frequencies(target)
    return tuple(
        (rates[0] / often[0], rates[1] / often[1], rates[2] / often[2])
        for rates in (label_rates(target, c, None) for c in range(3))
    )


class Choice(NamedTuple):
    """The claims that serve some beliefs, and the judge's expected half-Brier on hearing them."""

    claims: tuple[Claim, ...]
    loss: float


def best_claims(
    evidence: Evidence, targets: Sequence[Target], beliefs: Sequence[Probabilities]
) -> Choice:
    """Choose up to three true claims that bring the judge near to `beliefs`.

    Claims are added one by one and exchanged one for one until no exchange helps. The loss is no
    less than that of stating the beliefs themselves, and within about 0.002 of it on average.

    Args:
        evidence: what is shown.
        targets: what the judge is asked about.
        beliefs: for each target, probabilities of its labels under which loss is expected.
    """
    offers = true_claims(evidence)
    if not offers:
        return Choice((), np.inf)
    families = [claim.family for claim in offers]
    rivals = {name: np.array([name == family for family in families]) for name in set(families)}
    # table: target, claim, class; weights: target, class, label; truth (target, 1, label)
    table = np.array([[likelihood(claim, t) for claim in offers] for t in targets])
    weights = np.array([_label_weights(target) for target in targets])
    truth = np.array(beliefs)[:, None]
    chosen: list[int] = []
    best = np.inf
    improved = True
    while improved:
        improved = False
        for slot in range(min(len(chosen) + 1, MOST_CLAIMS)):
            others = [k for place, k in enumerate(chosen) if place != slot]
            told = table
            for k in others:
                told = told * table[:, k, None]
            scores = told @ weights
            scores /= scores.sum(axis=2, keepdims=True)
            losses = 0.5 * (1.0 + (scores * (scores - 2.0 * truth)).sum(axis=2)).mean(axis=0)
            for k in others:
                losses[rivals[families[k]]] = np.inf
            least = int(losses.argmin())
            if losses[least] < best - 1e-9:
                best, improved = float(losses[least]), True
                chosen[slot : slot + 1] = [least]
    return Choice(tuple(offers[k] for k in chosen), best)


def true_claims(evidence: Evidence) -> list[Claim]:
    """Every true claim that the judge may tell from the others."""
    quotes: list[Claim] = [Quote(phrase) for phrase in ALL_CUES if phrase.lower() in evidence.text]
    facts = (fact for name, value in evidence.facts.items() for fact in _true_facts(name, value))
    return [*quotes, *facts]


def _true_facts(name: str, value: int) -> Iterator[Fact]:
    feature = FEATURE_TABLE[name]
    last = feature.least + len(feature.pmf[0]) - 1
    yield Fact(name, "=", float(value))
    for bound in range(feature.least, min(value, last) + 1):
        yield Fact(name, ">=", float(bound))
    for bound in range(max(value, feature.least), last):
        yield Fact(name, "<=", float(bound))
