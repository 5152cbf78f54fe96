"""What each kind of challenger says and gives away, against an enumeration of all first years."""

import itertools
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from tokengym.envs.disruption.claims import Claim, Fact
from tokengym.envs.disruption.evidence import CITER_FEATURES, KINDS, Evidence
from tokengym.envs.disruption.generator import draw_evidence
from tokengym.envs.disruption.grammar import Argument
from tokengym.envs.disruption.inference import (
    VOICES,
    after,
    argument_of,
    joint_after,
    message,
    paper_given_notes,
    replies_to,
    said_by,
)
from tokengym.envs.disruption.labels import DISRUPTION_LABELS, LEAST_CITERS
from tokengym.envs.disruption.literature import CHARACTERS, class_posterior, posterior

Floats = npt.NDArray[np.float64]

MOST = (18, 18, 28)
"""First years with as many citers of a kind are left out; all of them have a chance of 1e-8."""
ORDERS = list(itertools.permutations(range(3)))
first_years = st.tuples(st.integers(0, 15), st.integers(0, 15), st.integers(0, 21))
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


def exactly(axis: int, count: int) -> Claim:
    return Fact(CITER_FEATURES[axis], "=", float(count))


@settings(deadline=None, max_examples=300)
@given(first_years, labels, st.sampled_from(["honest", "careless"]))
def test_an_honest_challenger_states_the_counts_that_speak_most_for_the_likeliest_label(
    counts: tuple[int, ...], label: int, kind: str
) -> None:
    chance_C = np.ones(3)
    for axis, count in enumerate(counts):
        mean_C = np.array([0.25 * means(c)[axis] for c in range(3)])
        chance_C = chance_C * np.maximum(stats.poisson.pmf(count, mean_C), 1e-6)
    likely = int((chance_C @ rates()).argmax())
    alone = [belief(axis, count, count)[likely] for axis, count in enumerate(counts)]
    argument = said_by(kind, counts, label)
    assert argument.label == DISRUPTION_LABELS[likely]
    best = sorted(range(3), key=lambda axis: -alone[axis])[:2]
    assert argument.claims == tuple(exactly(axis, counts[axis]) for axis in sorted(best))


@settings(deadline=None, max_examples=300)
@given(first_years, labels)
def test_an_adversary_states_the_counts_that_favour_another_label_most(
    counts: tuple[int, ...], label: int
) -> None:
    beliefs = [belief(axis, count, count) for axis, count in enumerate(counts)]
    favour = {
        other: [beliefs[axis][other] / beliefs[axis][label] for axis in range(3)]
        for other in range(3)
        if other != label
    }
    argued = max(favour, key=lambda other: max(favour[other]))
    best = sorted(range(3), key=lambda axis: -favour[argued][axis])[:2]
    argument = said_by("adversarial", counts, label)
    assert argument.label == DISRUPTION_LABELS[argued]
    assert argument.claims == tuple(exactly(axis, counts[axis]) for axis in sorted(best))


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


def notes_of(evidence: Evidence) -> list[int]:
    return [evidence.notes[name] for name in CITER_FEATURES]


def kinds_given(evidence: Evidence, label: int, argument: Argument) -> dict[str, float]:
    weights_V = joint_after(evidence, label, argument).sum(axis=1)
    shares = dict.fromkeys(KINDS, 0.0)
    for voice, weight in zip(VOICES, weights_V / weights_V.sum(), strict=True):
        shares[voice.kind] += float(weight)
    return shares


def in_columns(order: tuple[int, ...], notes: Sequence[int]) -> Floats:
    """P(first year, label, kept | class) of the paper of which notes with such columns say that."""
    true = [0, 0, 0]
    for column, axis in enumerate(order):
        true[axis] = notes[column]
    inside = all(count < most for count, most in zip(true, MOST, strict=True))
    i, j, k = true
    return np.asarray(joint()[:, i, j, k]) if inside else np.zeros((3, 3))


def record_chance(evidence: Evidence, order: tuple[int, ...]) -> float:
    """P(notes of earlier papers, their labels | columns)."""
    chance = 1.0
    for paper in evidence.record:
        of_notes = in_columns(order, [paper["notes"][name] for name in CITER_FEATURES])
        chance *= float(of_notes.sum(axis=0)[DISRUPTION_LABELS.index(paper["label"])])
    return chance


def chances(evidence: Evidence, label: int, argument: Argument) -> Floats:
    """P(kind, label of the paper, argument, record) up to a factor, over all first years.

    A message leaves one count open.
    """
    found = dict.fromkeys(KINDS, np.zeros(3))
    stated = {claim.feature: int(claim.value) for claim in argument.claims}
    classes = np.array(class_posterior(evidence, "disruption"))
    for order, (kind, count) in itertools.product(ORDERS, KINDS.items()):
        if (order == ORDERS[0]) == (kind == "careless"):
            continue
        seen = record_chance(evidence, order) * (count / 5 if kind == "careless" else count)
        for other in range(max(MOST)):
            notes = tuple(stated.get(name, other) for name in CITER_FEATURES)
            if said_by(kind, notes, label) == argument:
                found[kind] = found[kind] + seen * (classes @ in_columns(order, notes))
    return np.array([*found.values()])


@settings(deadline=None, max_examples=15)
@given(papers, labels)
@example(draw_evidence(np.random.default_rng(413258), "private"), 0)  # only rare papers fit
def test_what_was_said_is_evidence_of_the_kind_and_of_the_paper(
    evidence: Evidence, label: int
) -> None:
    argument = argument_of(evidence, label)
    joint_KL = chances(evidence, label, argument)
    total = joint_KL.sum()
    near = 1e-4
    believed = after(evidence, label, argument)
    assert believed == pytest.approx(tuple(joint_KL.sum(axis=0) / total), abs=near)
    kinds = kinds_given(evidence, label, argument)
    assert list(kinds) == list(KINDS)
    assert tuple(kinds.values()) == pytest.approx(tuple(joint_KL.sum(axis=1) / total), abs=near)
    turned = argument._replace(claims=argument.claims[::-1])
    assert after(evidence, label, turned) == believed


@settings(deadline=None, max_examples=15)
@given(papers, labels)
def test_beliefs_average_to_the_prior_over_all_that_may_be_said(
    evidence: Evidence, label: int
) -> None:
    replies = replies_to(evidence, label)
    assert replies.chances.sum() == pytest.approx(1.0)
    own = posterior(evidence, "disruption")
    assert replies.chances @ replies.beliefs == pytest.approx(own, abs=1e-4)
    argument = argument_of(evidence, label)
    place = replies.messages.index(message(argument))
    assert replies.beliefs[place] == pytest.approx(after(evidence, label, argument))


@settings(deadline=None, max_examples=15)
@given(papers)
def test_a_challenger_knows_its_aim_and_not_whether_it_is_careless(evidence: Evidence) -> None:
    by_order = [
        record_chance(evidence, order) * in_columns(order, notes_of(evidence)) for order in ORDERS
    ]
    mixed_up = KINDS["careless"] / 5 / KINDS["honest"]
    known = by_order[0]
    if evidence.kind != "adversarial":
        known = known + mixed_up * np.sum(by_order[1:], axis=0)
    weights = np.array(class_posterior(evidence, "disruption")) @ known
    wanted = tuple(weights / weights.sum())
    assert paper_given_notes(evidence) == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize(
    "claims", [(), (Fact("n_i", ">=", 1.0),), (Fact("n_i", "=", 300.0), Fact("n_j", "=", 300.0))]
)
def test_what_no_kind_says_changes_nothing(claims: tuple[Claim, ...]) -> None:
    """Not a division of nothing by nothing."""
    evidence = draw_evidence(np.random.default_rng(0), "private")
    own = posterior(evidence, "disruption")
    in_order, *mixed_up = (record_chance(evidence, order) for order in ORDERS)
    chance = {kind: in_order * KINDS[kind] for kind in ("honest", "adversarial")}
    chance["careless"] = sum(mixed_up) / 5 * KINDS["careless"]
    shares = {kind: found / sum(chance.values()) for kind, found in chance.items()}
    for label in range(3):
        argument = Argument(DISRUPTION_LABELS[(label + 1) % 3], claims)
        assert after(evidence, label, argument) == pytest.approx(own, abs=1e-4)
        assert kinds_given(evidence, label, argument) == pytest.approx(shares, abs=1e-4)
