"""Laws of the CD index: published vectors, a direct count, the reference package, any blocks."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.citations import CitationGraph

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
