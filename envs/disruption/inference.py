"""Exact beliefs where only the challenger knows the first year's citers and selects claims.

A predictor that reads true claims learns two things: that they hold, and that the challenger chose
them. Taken at face value, a claim is the event that the counts lie in its interval. Of a challenger
whose rule is known, what it said is the event that its rule says just that: the predictor sums over
all first years of which it would.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.claims import Claim, Fact
from tokengym.envs.disruption.evidence import CITER_FEATURES, Evidence
from tokengym.envs.disruption.grammar import Argument
from tokengym.envs.disruption.judge import judge
from tokengym.envs.disruption.labels import DISRUPTION_LABELS
from tokengym.envs.disruption.literature import (
    FEATURE_TABLE,
    FloatArray,
    Probabilities,
    class_posterior,
    frequencies,
    label_rates,
    normalised,
)
from tokengym.envs.disruption.oracle import true_facts
from tokengym.rewards.debate import MOST_CHALLENGER_CLAIMS

_NEGLIGIBLE = 1e-7
"""First years this improbable in every class are left out of sums."""
_HELPS = 1.0 + 1e-9
"""Ratio above which a claim speaks for a label; rounding alone differs from 1 by less."""


def face_value(evidence: Evidence, claims: Sequence[Claim]) -> Probabilities:
    """Return the posterior of the disruption labels if claims were made without selection.

    Args:
        evidence: what the predictor is shown.
        claims: claims that hold.
    """
    counts = _first_years().counts
    possible = np.ones(len(counts), dtype=bool)
    for claim in claims:
        if isinstance(claim, Fact) and claim.feature in CITER_FEATURES:
            low, high = claim.interval()
            count = counts[:, CITER_FEATURES.index(claim.feature)]
            possible &= (count >= low) & (count <= high)
    if not possible.any():  # claims about counts too rare to be considered
        possible[:] = True
    return _posterior(evidence, possible)


def selection_posterior(evidence: Evidence, label: int, argument: Argument) -> Probabilities:
    """Return the posterior of the disruption labels if the challenger argues by `one_sided`.

    An argument that this rule never makes is taken at face value.

    Args:
        evidence: what the predictor is shown.
        label: position of the label it chose.
        argument: what the challenger said.
    """
    possible = _spoken(label).get(argument)
    if possible is None:
        return face_value(evidence, argument.claims)
    return _posterior(evidence, possible)


def one_sided(counts: Sequence[int], label: int) -> Argument:
    """Return the argument against a label by the strongest true claims about the first year.

    It argues for the other label to which one claim moves the frozen judge furthest, as a ratio of
    probabilities, by the two strongest claims for it; claims that speak for the predictor's label
    are never made, and if there are no others it argues for nothing.

    Args:
        counts: n_i, n_j and n_k of the first year.
        label: position of the predictor's label.
    """
    strongest = Argument(None, ())
    most = _HELPS
    for other in range(3):
        if other == label:
            continue
        offers = [_strongest(axis, int(value), label, other) for axis, value in enumerate(counts)]
        offers.sort(key=lambda offer: -offer.strength)
        if offers[0].strength > most:
            most = offers[0].strength
            made = [offer.claim for offer in offers if offer.strength > _HELPS]
            strongest = Argument(DISRUPTION_LABELS[other], tuple(made[:MOST_CHALLENGER_CLAIMS]))
    return strongest


class _Offer(NamedTuple):
    claim: Claim
    strength: float


@cache
def _strongest(axis: int, value: int, label: int, other: int) -> _Offer:
    """Return the true claim about one count that moves the judge furthest to another label."""
    offers = []
    for claim in true_facts(CITER_FEATURES[axis], value):
        belief = judge((claim,), "disruption")
        offers.append(_Offer(claim, belief[other] / belief[label]))
    return max(offers, key=lambda offer: offer.strength)


@cache
def _spoken(label: int) -> dict[Argument, npt.NDArray[np.bool_]]:
    """Return in which first years each argument is made, shape (n,)."""
    counts = _first_years().counts
    spoken: dict[Argument, npt.NDArray[np.bool_]] = {}
    for place, row in enumerate(counts.tolist()):
        argument = one_sided(row, label)
        spoken.setdefault(argument, np.zeros(len(counts), dtype=bool))[place] = True
    return spoken


def _posterior(evidence: Evidence, possible: npt.NDArray[np.bool_]) -> Probabilities:
    """Return the posterior of the labels given the set of possible first years."""
    by_class = _first_years().joint[:, possible].sum(axis=1)
    return normalised(np.array(class_posterior(evidence, "disruption")) @ by_class)


class _FirstYears(NamedTuple):
    """All first years of non-negligible probability.

    Attributes:
        counts: n_i, n_j and n_k, shape (n, 3).
        joint: P(counts, label, paper kept | class) up to a factor, shape (class, n, label).
    """

    counts: npt.NDArray[np.int64]
    joint: FloatArray


@cache
def _first_years() -> _FirstYears:
    pmfs = [np.array(FEATURE_TABLE[name].pmf) for name in CITER_FEATURES]
    chances = np.einsum("ci,cj,ck->cijk", *pmfs)
    counts = np.argwhere(chances.max(axis=0) > _NEGLIGIBLE)
    chance = chances[:, *counts.T]
    often = np.array(frequencies("disruption"))
    rates = [
        [label_rates("disruption", c, (i, j, k)) for i, j, k in counts.tolist()] for c in range(3)
    ]
    return _FirstYears(counts, chance[..., None] * np.array(rates) / often)
