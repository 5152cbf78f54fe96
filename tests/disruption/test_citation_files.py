"""Laws of graphs on disk: built from any chunks, they are the graph built in memory."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.disruption.citations import CitationGraph, build_on_disk


@pytest.mark.nightly
@given(data=st.data(), n=st.integers(1, 12), bucket=st.integers(1, 20))
def test_any_chunks_give_the_graph_built_in_memory(
    data: st.DataObject, n: int, bucket: int
) -> None:
    times = data.draw(st.lists(st.integers(2000, 2006), min_size=n, max_size=n))
    paper = st.integers(0, n - 1)
    edges = np.array(
        data.draw(st.lists(st.tuples(paper, paper), max_size=40)), dtype=np.int64
    ).reshape(-1, 2)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(edges)), max_size=4)))
    pieces = np.split(edges, cuts)
    with tempfile.TemporaryDirectory() as folder:
        graph = build_on_disk(
            folder, times, ((p[:, 0], p[:, 1]) for p in pieces), bucket_papers=bucket
        )
        known = CitationGraph.from_edges(times, edges[:, 0], edges[:, 1])
        for name in ("times", "order", "starts", "cited", "citer_starts", "citers"):
            np.testing.assert_array_equal(getattr(graph, name), getattr(known, name))
        for ours, theirs in zip(graph.counts(), known.counts(), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_nothing_but_the_graph_stays_behind(tmp_path: Path) -> None:
    edges = np.array([1, 1]), np.array([0, 0])
    build_on_disk(tmp_path / "graph", [2000, 2001], [edges])
    names = {path.stem for path in (tmp_path / "graph").iterdir()}
    assert names == {"times", "order", "starts", "cited", "citer_starts", "citers"}
