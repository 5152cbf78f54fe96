"""Laws of the CD index: published vectors, a direct count, the reference package, any blocks."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.citations import CitationCounts, CitationGraph

Edges = Sequence[tuple[int, int]]


def graph_of(times: Sequence[int], edges: Edges) -> CitationGraph:
    return CitationGraph.from_edges(times, [a for a, _ in edges], [b for _, b in edges])


@st.composite
def citation_graphs(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    """Up to 14 papers in any order of time, cited mostly backwards; loops and repeats occur."""
    n = draw(st.integers(1, 14))
    times = draw(st.lists(st.integers(2000, 2008), min_size=n, max_size=n))
    paper = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(paper, paper), max_size=50))
    return times, edges


def direct_counts(
    times: Sequence[int], edges: Edges, focal: int, window: int, least: int
) -> tuple[int, int, int, int, int]:
    """n_i, n_j, n_k, n_l and impact by their definition, one citer at a time."""
    cites: dict[int, set[int]] = {paper: set() for paper in range(len(times))}
    for source, target in edges:
        if source != target:
            cites[source].add(target)
    n_i = n_j = n_k = n_l = impact = 0
    for citer in range(len(times)):
        impact += focal in cites[citer] and times[citer] <= times[focal] + window
        if not times[focal] < times[citer] <= times[focal] + window:
            continue
        shared = len(cites[citer] & cites[focal])
        if focal in cites[citer]:
            n_i += shared == 0
            n_j += shared > 0
            n_l += shared >= least
        else:
            n_k += shared > 0
    return n_i, n_j, n_k, n_l, impact


# The example of the cdindex package's README; the focal paper is number 4.
README_YEARS = [1992, 1992, 1993, 1993, 1995, 1997, 1998, 1999, 1999, 1998, 1997]
README_EDGES = [
    *((4, reference) for reference in (2, 0, 1, 3)),
    *((5, 2), (6, 2), (6, 4), (7, 4), (8, 4), (9, 4), (9, 1), (9, 3), (10, 4)),
]


@pytest.mark.parametrize(
    ("window", "expected"), [(1, None), (2, 0.5), (3, -0.25), (4, 1 / 6), (5, 1 / 6)]
)
def test_readme_graph_in_windows_of_one_to_five_years(window: int, expected: float | None) -> None:
    counts = graph_of(README_YEARS, README_EDGES).counts([4], window=window)
    if expected is None:
        assert np.isnan(counts.cd()[0])
    else:
        assert counts.cd()[0] == pytest.approx(expected)


def test_readme_graph_has_mcd_of_five_sixths() -> None:
    counts = graph_of(README_YEARS, README_EDGES).counts([4])
    assert counts.citers[0] == 5
    assert counts.mcd()[0] == pytest.approx(5 / 6)


def only_focal(references: int, i: int, j: int, k: int, after: int = 1) -> CitationCounts:
    """Counts of a paper of 2000 with i, j, k citers of each kind `after` years later."""
    years = [1990] * max(references, 1) + [2000] + [2000 + after] * (i + j + k)
    focal = max(references, 1)
    edges = [(focal, reference) for reference in range(references)]
    kinds = [(True, False)] * i + [(True, True)] * j + [(False, True)] * k
    for number, (cites_focal, cites_reference) in enumerate(kinds, start=focal + 1):
        edges += [(number, focal)] * cites_focal + [(number, 0)] * cites_reference
    return graph_of(years, edges).counts([focal])


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ((1, 3, 0, 0), 1.0),
        ((1, 0, 3, 0), -1.0),
        ((1, 2, 1, 2), 0.2),
        ((0, 2, 0, 0), 1.0),
        ((1, 0, 0, 0), np.nan),
        ((1, 0, 0, 3), 0.0),
        ((1, 11, 9, 0), 0.1),
        ((1, 3, 2, 5), 0.1),
    ],
)
def test_vectors_by_kind_of_citer(case: tuple[int, int, int, int], expected: float) -> None:
    counts = only_focal(*case)
    np.testing.assert_array_equal(counts.cd(), [expected])
    assert (counts.n_i[0], counts.n_j[0], counts.n_k[0]) == case[1:]


@given(case=citation_graphs(), window=st.integers(0, 6), least=st.integers(1, 3))
def test_counts_are_what_counting_one_by_one_gives(
    case: tuple[list[int], list[tuple[int, int]]], window: int, least: int
) -> None:
    times, edges = case
    counts = graph_of(times, edges).counts(window=window, l=least)
    for focal in range(len(times)):
        direct = direct_counts(times, edges, focal, window, least)
        assert tuple(int(column[focal]) for column in counts) == direct


@given(case=citation_graphs(), window=st.integers(0, 6))
def test_values_are_those_of_the_cdindex_package(
    case: tuple[list[int], list[tuple[int, int]]], window: int
) -> None:
    cdindex = pytest.importorskip("cdindex")
    times, edges = case
    reference = cdindex.Graph()
    for paper, time in enumerate(times):
        reference.add_vertex(str(paper), time)
    for source, target in {(a, b) for a, b in edges if a != b}:
        reference.add_edge(str(source), str(target))
    counts = graph_of(times, edges).counts(window=window)
    for paper in range(len(times)):
        cd, mcd = reference.cdindex(str(paper), window), reference.mcdindex(str(paper), window)
        ours = counts.cd()[paper], counts.mcd()[paper]
        if cd is None:
            assert np.isnan(ours[0])
        else:
            assert ours == (pytest.approx(cd), pytest.approx(mcd))


@given(
    case=citation_graphs(),
    block_pairs=st.integers(1, 20),
    focal=st.lists(st.integers(0, 13), max_size=6),
)
def test_blocks_and_order_of_focal_papers_change_nothing(
    case: tuple[list[int], list[tuple[int, int]]], block_pairs: int, focal: list[int]
) -> None:
    times, edges = case
    focal = [paper for paper in focal if paper < len(times)]
    graph = graph_of(times, edges)
    whole = graph.counts()
    some = graph.counts(focal, block_pairs=block_pairs)
    for all_papers, chosen in zip(whole, some, strict=True):
        assert chosen.tolist() == [all_papers[paper] for paper in focal]


@given(case=citation_graphs())
def test_variants_follow_from_the_counts(case: tuple[list[int], list[tuple[int, int]]]) -> None:
    counts = graph_of(*case).counts(l=1)
    np.testing.assert_array_equal(counts.n_l, counts.n_j)
    np.testing.assert_array_equal(counts.di_l(), counts.cd())


@pytest.mark.parametrize(
    ("times", "citing", "cited", "message"),
    [
        ([2000, 2001], [0], [2], "cited numbers papers from 0 to 1"),
        ([2000, 2001], [-1], [0], "citing numbers papers"),
        ([2000, 2001], [0, 1], [0], "equally long"),
        ([2000.5], [], [], "times must be one-dimensional integers"),
    ],
)
def test_bad_edges_are_refused(
    times: list[int], citing: list[int], cited: list[int], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        CitationGraph.from_edges(times, citing, cited)


def test_bad_questions_are_refused(tmp_path: Path) -> None:
    graph = graph_of([2000, 2001], [(1, 0)])
    with pytest.raises(DataError, match="focal"):
        graph.counts([2])
    with pytest.raises(DataError, match="window=-1"):
        graph.counts(window=-1)
    with pytest.raises(DataError, match="no saved citation graph"):
        CitationGraph.open(tmp_path)
