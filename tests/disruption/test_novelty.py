"""Laws of novelty scores: the exact vector, shuffles that agree with it, invariances."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.novelty import (
    PairScores,
    ReferenceSlots,
    score_pairs,
    shuffled_scores,
)

A, B, C = 0, 1, 2


def slots_of(papers: list[list[tuple[int, int]]]) -> ReferenceSlots:
    """Papers as lists of (venue, cited year)."""
    flat = [slot for paper in papers for slot in paper]
    starts = np.cumsum([0, *map(len, papers)])
    venue = np.array([venue for venue, _ in flat], dtype=np.int64)
    return ReferenceSlots(starts, venue, np.array([year for _, year in flat], dtype=np.int64))


def one_year(*papers: list[int]) -> ReferenceSlots:
    return slots_of([[(venue, 2000) for venue in paper] for paper in papers])


def arrangements(left: Counter[int]) -> Iterator[list[int]]:
    """Every distinct order of a multiset."""
    if not left:
        yield []
    for one in left:
        yield from ([one, *rest] for rest in arrangements(left - Counter([one])))


def exact_scores(slots: ReferenceSlots) -> PairScores:
    """Scores against every distinct assignment of venues to the slots of one cited year."""
    groups = [np.flatnonzero(slots.year == year) for year in np.unique(slots.year)]
    dealt = product(*(arrangements(Counter(slots.venue[group].tolist())) for group in groups))
    order = np.argsort(np.concatenate(groups)) if groups else np.zeros(0, np.int64)
    return score_pairs(slots, (np.array([*chain(*venues)])[order] for venues in dealt))


def z_by_pair(scores: PairScores) -> dict[tuple[int, int], float]:
    pairs = zip(scores.first.tolist(), scores.second.tolist(), strict=True)
    return dict(zip(pairs, scores.z.tolist(), strict=True))


def test_the_vector_of_560_assignments() -> None:
    scores = exact_scores(one_year([A, A, B], [A, B, C], [C, C]))
    assert z_by_pair(scores) == {
        (A, A): pytest.approx(0.3944, abs=5e-5),
        (A, B): pytest.approx(1.7321, abs=5e-5),
        (A, C): pytest.approx(-1.2230, abs=5e-5),
        (B, C): pytest.approx(-0.5774, abs=5e-5),
        (C, C): pytest.approx(0.3944, abs=5e-5),
    }
    np.testing.assert_allclose(
        scores.percentiles(),
        [(0.6619, 1.7321), (-1.0939, -0.5774), (0.3944, 0.3944)],
        atol=5e-5,
    )


def test_a_pair_that_never_varies_has_no_score() -> None:
    scores = exact_scores(one_year([A, A], [A, A]))
    assert np.isnan(scores.z).all()
    assert np.isnan(scores.percentiles()).all()


def test_venues_stay_in_their_cited_year() -> None:
    # Each year holds one venue only, so every assignment is the observed one.
    papers = [[(A, 1990), (B, 1995)], [(A, 1990), (B, 1995)]]
    assert np.isnan(exact_scores(slots_of(papers)).z).all()
    assert not np.isnan(exact_scores(one_year([A, B], [A, B])).z).all()


def test_shuffles_come_to_the_exact_scores() -> None:
    slots = one_year([A, A, B], [A, B, C], [C, C])
    exact, drawn = exact_scores(slots), shuffled_scores(slots, seed=1, shuffles=4000)
    np.testing.assert_allclose(drawn.z, exact.z, atol=0.1)


cohorts = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(2000, 2001)), min_size=1, max_size=3),
    min_size=1,
    max_size=3,
).map(slots_of)


@settings(max_examples=40, deadline=None)
@given(slots=cohorts, names=st.permutations(range(4)))
def test_names_of_venues_do_not_matter(slots: ReferenceSlots, names: list[int]) -> None:
    renamed = ReferenceSlots(slots.starts, np.array(names)[slots.venue], slots.year)
    np.testing.assert_allclose(
        exact_scores(slots).percentiles(), exact_scores(renamed).percentiles(), atol=1e-9
    )


@settings(max_examples=40, deadline=None)
@given(slots=cohorts)
def test_observed_counts_are_one_of_the_assignments(slots: ReferenceSlots) -> None:
    scores = exact_scores(slots)
    pairs = np.diff(slots.starts)
    assert scores.observed.sum() == (pairs * (pairs - 1) // 2).sum() == len(scores.pair)
    assert (scores.first <= scores.second).all()


@settings(max_examples=20, deadline=None)
@given(slots=cohorts, seed=st.integers(0, 2**40))
def test_a_seed_gives_the_same_scores_and_every_shuffle_is_an_assignment(
    slots: ReferenceSlots, seed: int
) -> None:
    once = shuffled_scores(slots, seed=seed, shuffles=5)
    np.testing.assert_array_equal(shuffled_scores(slots, seed=seed, shuffles=5).z, once.z)
    # A pair that no assignment varies has no score, however the venues are shuffled.
    assert np.isnan(once.z[np.isnan(exact_scores(slots).z)]).all()


def test_many_venues_are_counted_by_sorting_with_the_same_result() -> None:
    rng = np.random.default_rng(0)
    starts, venue = np.arange(0, 1001, 10), rng.integers(0, 30, 1000)
    near = ReferenceSlots(starts, venue, np.full(1000, 2000))
    far = ReferenceSlots(starts, venue * 1000, near.year)
    np.testing.assert_array_equal(
        shuffled_scores(near, seed=3).percentiles(), shuffled_scores(far, seed=3).percentiles()
    )


@pytest.mark.parametrize("starts", [[0, 1], [1, 2], [0, 3, 2]])
def test_slots_that_do_not_fit_are_refused(starts: list[int]) -> None:
    with pytest.raises(DataError, match="starts"):
        ReferenceSlots(np.array(starts), np.array([0, 1]), np.array([2000, 2000]))


def test_bad_shuffles_are_refused() -> None:
    with pytest.raises(DataError, match="shuffles"):
        shuffled_scores(one_year([A, B]), seed=0, shuffles=1)
