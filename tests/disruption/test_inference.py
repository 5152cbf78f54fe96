"""The challenger's rule and what it gives away, against an enumeration of all first years."""

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tokengym.envs.disruption.claims import Fact
from tokengym.envs.disruption.evidence import CITER_FEATURES, Evidence
from tokengym.envs.disruption.generator import draw_evidence
from tokengym.envs.disruption.grammar import Argument
from tokengym.envs.disruption.inference import face_value, one_sided, selection_posterior
from tokengym.envs.disruption.labels import DISRUPTION_LABELS, LEAST_CITERS
from tokengym.envs.disruption.literature import CHARACTERS, class_posterior, posterior

Floats = npt.NDArray[np.float64]

MOST = (16, 16, 22)
"""First years with as many citers of a kind are left out; all of them have a chance of 4e-5."""
first_years = st.tuples(*(st.integers(0, most - 1) for most in MOST))
labels = st.integers(0, 2)
papers = st.integers(0, 2**32).map(
    lambda seed: draw_evidence(np.random.default_rng(seed), "private")
)


def means(c: int) -> Floats:
    """Citers in five years of a paper of a class: of it alone, of both, of its references."""
    citers, cocitation, reference_use = CHARACTERS[c]
    return np.array([citers * (1.0 - cocitation), citers * cocitation, reference_use])


def label_chances(c: int, i: int, j: int, share: float) -> Floats:
    """The chances of being kept with each label, in a share of five years after i and j citers.

    Shape (n_k so far, label).
    """
    own, both, of_references = share * means(c)
    n_i, n_j = i + np.arange(50)[:, None], j + np.arange(50)
    chance = stats.poisson.pmf(n_i - i, own) * stats.poisson.pmf(n_j - j, both)
    chance = chance * (n_i + n_j >= LEAST_CITERS)
    # Below -0.1 or above 0.1 is (n_i - n_j) / (n_i + n_j + n_k) as long as n_k is small enough.
    most_k = 10 * abs(n_i - n_j) - n_i - n_j - 1
    up_to = stats.poisson.cdf(np.arange(-1, 200), of_references)
    found = []
    for k in range(MOST[2]):
        decided = chance * up_to[np.clip(most_k - k + 1, 0, 200)]
        sides = [float(decided[side].sum()) for side in (n_i > n_j, n_i < n_j)]
        found.append([*sides, float(chance.sum()) - sum(sides)])
    return np.array(found)


@cache
def rates() -> Floats:
    """The balanced weight of each label in each class, shape (class, label)."""
    by_class = np.stack([label_chances(c, 0, 0, 1.0)[0] for c in range(3)])
    return np.asarray(by_class / by_class.mean(axis=0))


@cache
def belief(axis: int, low: int, high: int) -> Floats:
    """What the judge believes of the labels if one count lies in an interval."""
    mean_C = np.array([0.25 * means(c)[axis] for c in range(3)])
    chance_C = stats.poisson.cdf(high, mean_C) - stats.poisson.cdf(low - 1, mean_C)
    weight = np.maximum(chance_C, 1e-6) @ rates()
    return np.asarray(weight / weight.sum())


def strength(axis: int, claim: tuple[int, int], label: int, other: int) -> float:
    beliefs = belief(axis, *claim)
    return float(beliefs[other] / beliefs[label])


@cache
def strongest(axis: int, value: int, label: int, other: int) -> float:
    """How far a true claim about a count can move the judge: equal, at least, at most."""
    intervals = [(value, value), *((bound, 400) for bound in range(value + 1))]
    intervals += [(0, bound) for bound in range(value, 60)]
    return max(strength(axis, one, label, other) for one in intervals)


@settings(deadline=None, max_examples=300)
@given(first_years, labels)
def test_the_challenger_makes_the_two_strongest_true_claims_for_the_label_they_help_most(
    counts: tuple[int, ...], label: int
) -> None:
    offers = {
        other: sorted(
            ((strongest(axis, counts[axis], label, other), axis) for axis in range(3)), reverse=True
        )
        for other in range(3)
        if other != label
    }
    best = max(offers, key=lambda other: offers[other][0])
    argument = one_sided(counts, label)
    wanted = [offer for offer in offers[best] if offer[0] > 1.0 + 1e-9][:2]
    if not wanted:
        assert argument == Argument(None, ())
        return
    assert argument.label == DISRUPTION_LABELS[best]
    assert len(argument.claims) == len(wanted)
    for claim, (most, axis) in zip(argument.claims, wanted, strict=True):
        assert isinstance(claim, Fact)
        assert claim.feature == CITER_FEATURES[axis]
        low, high = (int(np.clip(end, 0, 400)) for end in claim.interval())
        assert low <= counts[axis] <= high
        assert strength(axis, (low, high), label, best) == pytest.approx(most, rel=1e-6)


@cache
def joint() -> Floats:
    """P(first year, label, kept | class), balanced, shape (class, n_i, n_j, n_k, label)."""
    first = [
        [
            stats.poisson.pmf(np.arange(most), 0.25 * mean)
            for most, mean in zip(MOST, means(c), strict=True)
        ]
        for c in range(3)
    ]
    chance = np.stack([np.einsum("i,j,k->ijk", *by_kind) for by_kind in first])
    often = np.stack([label_chances(c, 0, 0, 1.0)[0] for c in range(3)]).mean(axis=0)
    later = np.zeros((3, *MOST, 3))
    for c, i, j in itertools.product(range(3), *map(range, MOST[:2])):
        later[c, i, j] = label_chances(c, i, j, 0.75)
    return np.asarray(chance[..., None] * later / often)


def posterior_given(evidence: Evidence, said: Callable[[tuple[int, ...]], bool]) -> Any:
    """The labels' posterior, summed over all first years of which the same would be said.

    As near as the first years left out allow, which weigh more where little else is said.
    """
    possible = np.array([said(counts) for counts in itertools.product(*map(range, MOST))])
    by_class = joint().reshape(3, -1, 3)[:, possible].sum(axis=1)
    weights = np.array(class_posterior(evidence, "disruption")) @ by_class
    return pytest.approx(tuple(weights / weights.sum()), abs=1e-4 + 4e-5 / min(1.0, weights.sum()))


@settings(deadline=None, max_examples=15)
@given(papers, labels)
def test_what_was_said_is_evidence_of_every_first_year_of_which_it_would_be_said(
    evidence: Evidence, label: int
) -> None:
    argument = one_sided([evidence.private[name] for name in CITER_FEATURES], label)
    wanted = posterior_given(evidence, lambda counts: one_sided(counts, label) == argument)
    assert selection_posterior(evidence, label, argument) == wanted


@settings(deadline=None, max_examples=15)
@given(papers, st.sampled_from([">=", "<=", "=", ">", "<"]), st.integers(0, 2))
def test_at_face_value_a_claim_is_the_event_that_it_holds(
    evidence: Evidence, op: str, axis: int
) -> None:
    name = CITER_FEATURES[axis]
    value = evidence.private[name] + {">": -1, "<": 1}.get(op, 0)
    holds: Callable[[int], bool] = {
        ">=": lambda count: count >= value,
        "<=": lambda count: count <= value,
        "=": lambda count: count == value,
        ">": lambda count: count > value,
        "<": lambda count: count < value,
    }[op]
    wanted = posterior_given(evidence, lambda counts: holds(counts[axis]))
    claim = Fact(name, op, float(value))
    assert face_value(evidence, [claim]) == wanted
    # All claims hold at once, in any order.
    other = (axis + 1) % 3
    own = evidence.private[CITER_FEATURES[other]]
    both = posterior_given(evidence, lambda counts: holds(counts[axis]) and counts[other] == own)
    for claims in itertools.permutations([claim, Fact(CITER_FEATURES[other], "=", float(own))]):
        assert face_value(evidence, claims) == both


@pytest.mark.parametrize("label", range(3))
def test_claims_about_counts_that_never_occur_change_nothing(label: int) -> None:
    """Not a division of nothing by nothing."""
    evidence = draw_evidence(np.random.default_rng(0), "private")
    own = posterior(evidence, "disruption")
    rare = (Fact("n_i", ">=", 300.0), Fact("n_j", "=", 300.0))
    assert face_value(evidence, rare) == pytest.approx(own, abs=1e-4)
    argument = Argument(DISRUPTION_LABELS[(label + 1) % 3], rare)
    assert selection_posterior(evidence, label, argument) == pytest.approx(own, abs=1e-4)
