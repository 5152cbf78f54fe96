"""CD index at scale: our graph against the `cdindex` package in one run, then growth and memory.

    python benchmarks/citation_metrics.py                      100k papers / 1M citations, compared
    python benchmarks/citation_metrics.py --papers 500000 --alone
    python benchmarks/citation_metrics.py --growth             125k to 500k papers

Citations are generated with recency and preferential attachment, so that a few papers are cited by
many. Each line states seconds to build, seconds for all papers, and the peak memory of the process.
`--alone` leaves the package out (it needs `pip install cdindex`, GPL, for comparison only).
`--growth` doubles the papers twice, each size in a separate process, with the graph in memory and
built on disk in chunks: processor microseconds a citation stay the same where the cost is linear.
`before` is the part of the peak that the process held once the citations were generated.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from tokengym.envs.disruption.citations import CitationGraph, build_on_disk

IntArray = npt.NDArray[np.int64]
CITATIONS_PER_PAPER = 10
FIRST_YEAR, LAST_YEAR = 1980, 2010
SIZES = (125_000, 250_000, 500_000)
CHUNK = 500_000


def literature(papers: int, seed: int = 0) -> tuple[IntArray, IntArray, IntArray]:
    """Years, citing and cited papers of a growing literature.

    Half of all citations copy the target of an earlier citation (the cited get cited), half go to
    a paper sampled with a preference for recent ones.
    """
    rng = np.random.default_rng(seed)
    years = np.sort(rng.integers(FIRST_YEAR, LAST_YEAR + 1, papers))
    citing = np.sort(rng.integers(papers // 50, papers, papers * CITATIONS_PER_PAPER))
    recent = citing * (1.0 - 0.5 * rng.random(len(citing)) ** 2)
    cited = np.minimum(recent.astype(np.int64), citing - 1)
    copied = rng.random(len(citing)) < 0.5
    model = rng.integers(0, np.maximum(np.arange(len(citing)), 1))
    cited[copied] = np.minimum(cited[model[copied]], citing[copied] - 1)
    return years, citing, cited


def peak_megabytes() -> float:
    """Most memory this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Cost(NamedTuple):
    """What one size cost.

    Attributes:
        build: processor seconds to build the graph.
        tally: processor seconds to count for all papers.
        before: peak memory in MB once scipy is loaded and the citations are generated.
        peak: peak memory in MB at the end.
        total: sum of all counts, the same however they were computed.
    """

    build: float
    tally: float
    before: float
    peak: float
    total: int


def cost(papers: int, on_disk: bool) -> Cost:
    """Build the graph of a literature and count for all papers, in this process."""
    import scipy.sparse  # noqa: F401 - its import is no part of the build

    with tempfile.TemporaryDirectory() as folder:
        years, citing, cited = literature(papers)
        before = peak_megabytes()
        begin = time.process_time()
        if on_disk:
            parts = [slice(k, k + CHUNK) for k in range(0, len(citing), CHUNK)]
            graph = build_on_disk(
                folder,
                years,
                ((citing[part], cited[part]) for part in parts),
                block_citations=CHUNK,
            )
        else:
            graph = CitationGraph.from_edges(years, citing, cited)
        built = time.process_time()
        counts = graph.counts()
        done = time.process_time()
        total = int(sum(column.sum() for column in counts))
    return Cost(built - begin, done - built, before, peak_megabytes(), total)


def growth() -> Table:
    """Return the costs of each size, in memory and on disk, whose counts must be equal."""
    table = Table(title="growth, windows of 5 years", title_justify="left")
    for column in ("papers", "graph", "build s", "all s", "µs a citation", "peak MB", "before"):
        table.add_column(column, justify="right")
    for papers in SIZES:
        totals = set()
        for on_disk in (False, True):
            # A fresh process each: a peak never falls, and memory is not given back.
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                found = pool.submit(cost, papers, on_disk).result()
            totals.add(found.total)
            citations = papers * CITATIONS_PER_PAPER
            each = 1e6 * (found.build + found.tally) / citations
            table.add_row(
                f"{papers:,}",
                "on disk" if on_disk else "in memory",
                f"{found.build:.2f}",
                f"{found.tally:.2f}",
                f"{each:.2f}",
                f"{found.peak:.0f}",
                f"{found.before:.0f}",
            )
        if len(totals) > 1:
            raise RuntimeError(f"counts differ between memory and disk: {totals}")
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--papers", type=int, default=100_000)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--growth", action="store_true")
    chosen = parser.parse_args(arguments)
    if chosen.growth:
        Console().print(growth())
        return
    import scipy.sparse  # noqa: F401 - its import is no part of the build

    years, citing, cited = literature(chosen.papers)
    table = Table(title=f"{chosen.papers:,} papers, {len(citing):,} citations, windows of 5 years")
    for column in ("", "build s", "all papers s", "total s", "peak MB"):
        table.add_column(column, justify="right" if column else "left")

    begin = time.perf_counter()
    graph = CitationGraph.from_edges(years, citing, cited)
    built = time.perf_counter()
    cd = graph.counts().cd()
    done = time.perf_counter()
    ours = done - begin
    add_row(table, "tokengym", built - begin, done - built)

    console = Console()
    if chosen.alone:
        console.print(table)
        return
    import cdindex

    begin = time.perf_counter()
    reference = cdindex.Graph()
    for paper, year in enumerate(years.tolist()):
        reference.add_vertex(str(paper), year)
    for source, target in set(zip(citing.tolist(), cited.tolist(), strict=True)):
        reference.add_edge(str(source), str(target))
    built = time.perf_counter()
    theirs = [reference.cdindex(str(paper), 5) for paper in range(chosen.papers)]
    done = time.perf_counter()
    add_row(table, "cdindex", built - begin, done - built)
    console.print(table)
    known = np.array([np.nan if value is None else value for value in theirs])
    np.testing.assert_allclose(cd, known, rtol=0, atol=1e-12)
    console.print(
        f"The values are equal ({np.count_nonzero(~np.isnan(cd)):,} defined); "
        f"tokengym is {(done - begin) / ours:.1f} times as fast."
    )


def add_row(table: Table, name: str, build: float, count: float) -> None:
    """Write one line of figures."""
    figures = [f"{build:.2f}", f"{count:.2f}", f"{build + count:.2f}", f"{peak_megabytes():.0f}"]
    table.add_row(name, *figures)


if __name__ == "__main__":
    main()
