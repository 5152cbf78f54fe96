"""Laws of novelty scores: the exact vector, shuffles that agree with it, invariances."""

import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, pairwise, product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption import novelty
from tokengym.envs.disruption.novelty import ReferenceSlots, score_papers, shuffled_scores

A, B, C = 0, 1, 2
Venues = npt.NDArray[np.int64]


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


def every_assignment(slots: ReferenceSlots) -> Iterator[Venues]:
    """Every distinct assignment of venues to the slots of one cited year."""
    year, venue = np.asarray(slots.year), np.asarray(slots.venue)
    groups = [np.flatnonzero(year == one) for one in np.unique(year)]
    dealt = product(*(arrangements(Counter(venue[group].tolist())) for group in groups))
    order = np.argsort(np.concatenate(groups)) if groups else np.zeros(0, np.int64)
    return (np.array([*chain(*venues)], np.int64)[order] for venues in dealt)


def pairs_of(slots: ReferenceSlots, venue: Venues) -> list[list[tuple[int, int]]]:
    """The venue pairs of each paper, one of each pair of its references."""
    return [
        [(min(pair), max(pair)) for pair in combinations(venue[first:last].tolist(), 2)]
        for first, last in pairwise(slots.starts.tolist())
    ]


def plain_z(slots: ReferenceSlots, assignments: Sequence[Venues]) -> dict[tuple[int, int], float]:
    """The z-score of each observed pair, by counting pairs one by one."""
    observed = Counter(chain(*pairs_of(slots, np.asarray(slots.venue))))
    counts = [Counter(chain(*pairs_of(slots, venue))) for venue in assignments]
    found = {}
    for pair, times in observed.items():
        dealt = np.array([count[pair] for count in counts])
        found[pair] = (times - dealt.mean()) / dealt.std() if dealt.std() else np.nan
    return found


def plain_scores(slots: ReferenceSlots, assignments: Sequence[Venues]) -> npt.NDArray[np.float64]:
    """10th percentile and median of the defined scores of each paper's pairs."""
    z = plain_z(slots, assignments)
    out = np.full((len(slots.starts) - 1, 2), np.nan)
    for paper, pairs in enumerate(pairs_of(slots, np.asarray(slots.venue))):
        if defined := [z[pair] for pair in pairs if not np.isnan(z[pair])]:
            out[paper] = np.percentile(defined, (10, 50))
    return out


def test_the_vector_of_560_assignments() -> None:
    slots = one_year([A, A, B], [A, B, C], [C, C])
    assert plain_z(slots, [*every_assignment(slots)]) == {
        (A, A): pytest.approx(0.3944, abs=5e-5),
        (A, B): pytest.approx(1.7321, abs=5e-5),
        (A, C): pytest.approx(-1.2230, abs=5e-5),
        (B, C): pytest.approx(-0.5774, abs=5e-5),
        (C, C): pytest.approx(0.3944, abs=5e-5),
    }
    np.testing.assert_allclose(
        score_papers(slots, every_assignment(slots)),
        [(0.6619, 1.7321), (-1.0939, -0.5774), (0.3944, 0.3944)],
        atol=5e-5,
    )


def test_venues_stay_in_their_cited_year() -> None:
    # Each year holds one venue only, so every assignment is the observed one.
    papers = [[(A, 1990), (B, 1995)], [(A, 1990), (B, 1995)]]
    assert np.isnan(shuffled_scores(slots_of(papers), seed=0)).all()
    assert not np.isnan(shuffled_scores(one_year([A, B], [A, B]), seed=0)).all()


cohorts = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(2000, 2001)), max_size=3),
    min_size=1,
    max_size=3,
).map(slots_of)
SIZES = [(1 << 20, 1 << 12, 1 << 20), (3, 2, 4), (5, 1, 2), (7, 3, 8)]
"""Pairs of a block, venues of the table and hashes of the filter."""


def set_sizes(patch: pytest.MonkeyPatch, sizes: tuple[int, int, int]) -> None:
    for name, size in zip(("_BLOCK", "_TABLE_VENUES", "_FILTER"), sizes, strict=True):
        patch.setattr(novelty, name, size)


@pytest.mark.nightly
@given(slots=cohorts, names=st.permutations(range(4)), sizes=st.sampled_from(SIZES))
def test_scores_are_those_of_counting_pair_by_pair(
    slots: ReferenceSlots, names: list[int], sizes: tuple[int, int, int]
) -> None:
    assignments = [*every_assignment(slots)]
    number = 10**9 * np.array(names)  # names of venues do not matter
    renamed = ReferenceSlots(slots.starts, number[np.asarray(slots.venue)], slots.year)
    with pytest.MonkeyPatch.context() as patch:
        set_sizes(patch, sizes)
        scores = score_papers(renamed, (number[venue] for venue in assignments))
    np.testing.assert_allclose(scores, plain_scores(slots, assignments), atol=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [SIZES[0], (500, 10, 64), (2000, 1, 1 << 20)])
def test_each_shuffle_permutes_the_venues_of_every_cited_year(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int, int]
) -> None:
    rng = np.random.default_rng(0)
    starts = np.cumsum([0, *rng.integers(0, 40, 60)])
    venue, year = rng.integers(0, 30, starts[-1]) ** 2, rng.integers(2000, 2003, starts[-1])
    shuffles = []
    for k in range(4):
        draws, dealt = np.random.default_rng(np.random.SeedSequence([7, k])), np.empty_like(venue)
        for one in (2000, 2001, 2002):
            dealt[year == one] = draws.permutation(venue[year == one])
        shuffles.append(dealt)
    set_sizes(monkeypatch, sizes)
    scores = shuffled_scores(ReferenceSlots(starts, venue, year), seed=7, shuffles=4)
    np.testing.assert_allclose(scores, plain_scores(ReferenceSlots(starts, venue, year), shuffles))


@pytest.mark.nightly
def test_memory_grows_with_references_and_not_with_their_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_sizes(monkeypatch, (1 << 13, 1 << 7, 1 << 12))
    rng = np.random.default_rng(0)
    peaks = []
    for papers in (100, 400):
        venue = rng.integers(0, 200, 40 * papers)
        slots = ReferenceSlots(np.arange(papers + 1) * 40, venue, 1990 + venue % 7)
        tracemalloc.start()
        shuffled_scores(slots, seed=0, shuffles=2)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Each of the 300 papers more has 40 references and 780 pairs.
    assert peaks[1] - peaks[0] < 60 * 40 * 300 < 8 * 780 * 300


@pytest.mark.parametrize("starts", [[0, 1], [1, 2], [0, 3, 2]])
def test_slots_that_do_not_fit_are_refused(starts: list[int]) -> None:
    with pytest.raises(DataError, match="starts"):
        ReferenceSlots(np.array(starts), np.array([0, 1]), np.array([2000, 2000]))


def test_bad_shuffles_are_refused() -> None:
    with pytest.raises(DataError, match="shuffles"):
        shuffled_scores(one_year([A, B]), seed=0, shuffles=1)
