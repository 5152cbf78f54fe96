"""SciSciNet-v2 tables: scores by paper, and the citation graph they were computed on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.citations import CitationGraph
from tokengym.envs.disruption.labels import disruption_label_of_score, novelty_label
from tokengym.envs.disruption.paper import Paper
from tokengym.envs.disruption.sources.openalex import short_id
from tokengym.envs.disruption.sources.work import Work

PAPER_COLUMNS = ("paperid", "year", "disruption", "Atyp_Median_Z", "Atyp_10pct_Z")
REFERENCE_COLUMNS = ("citing_paperid", "cited_paperid")


class Scores(NamedTuple):
    """One row of `sciscinet_papers`; a score that is missing there is `None`."""

    id: str
    year: int
    disruption: float | None
    tenth_percentile_z: float | None
    median_z: float | None


def read_scores(path: Path | str) -> Iterator[Scores]:
    """Yield the rows of a `sciscinet_papers` table (Parquet) that have a year.

    Raises:
        DataError: if the file is no such table; it names the missing columns.
        ImportError: if pyarrow is not installed.
    """
    for batch in _batches(Path(path), PAPER_COLUMNS):
        columns = [batch[name].to_pylist() for name in PAPER_COLUMNS]
        for paper, year, disruption, median, tenth in zip(*columns, strict=True):
            if year is not None:
                yield Scores(
                    short_id(str(paper)),
                    int(year),
                    _known(disruption),
                    _known(tenth),
                    _known(median),
                )


class IdentifiedGraph(NamedTuple):
    """A citation graph and the id of each of its papers, in its numbering."""

    ids: Sequence[str]
    graph: CitationGraph


def read_graph(papers: Path | str, references: Path | str) -> IdentifiedGraph:
    """Build the graph of a `sciscinet_papers` and a `sciscinet_paperrefs` table (Parquet).

    Citations from or to papers without a row or a year are left out.

    Raises:
        DataError: if a file is no such table.
        ImportError: if pyarrow is not installed.
    """
    numbers: dict[str, int] = {}
    years: list[int] = []
    for scores in read_scores(papers):
        if scores.id not in numbers:
            numbers[scores.id] = len(years)
            years.append(scores.year)
    citing, cited = [], []
    for batch in _batches(Path(references), REFERENCE_COLUMNS):
        ends = [
            np.array([numbers.get(short_id(str(paper)), -1) for paper in batch[name].to_pylist()])
            for name in REFERENCE_COLUMNS
        ]
        known = (ends[0] >= 0) & (ends[1] >= 0)
        citing.append(ends[0][known])
        cited.append(ends[1][known])
    graph = CitationGraph.from_edges(
        np.array(years, dtype=np.int64),
        np.concatenate(citing) if citing else np.array([], dtype=np.int64),
        np.concatenate(cited) if cited else np.array([], dtype=np.int64),
    )
    return IdentifiedGraph(list(numbers), graph)


def with_scores(works: Iterable[Work], scores: Mapping[str, Scores]) -> Iterator[Paper]:
    """Yield a paper for each work that has scores; SciSciNet itself holds no titles.

    SciSciNet's disruption looks at all later citers, not only at those of five years.
    """
    for work in works:
        row = scores.get(work.id)
        if row is None or row.disruption is None:
            continue
        tenth, median = row.tenth_percentile_z, row.median_z
        paired = tenth is not None and median is not None and tenth <= median
        yield Paper(
            openalex_id=work.id,
            title=work.title,
            abstract=work.abstract,
            publication_year=work.year,
            cited_by_count=work.cited_by_count,
            cd_index=row.disruption,
            novelty_score=tenth if paired else None,
            conventionality_score=median if paired else None,
            disruption_label=disruption_label_of_score(row.disruption),
            novelty_label=(
                novelty_label(tenth, median)
                if paired and tenth is not None and median is not None
                else None
            ),
            primary_field=work.field,
            field_median=0.0 if paired else None,
        )


def _batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Record batches of some columns of a Parquet file, without reading it whole."""
    import pyarrow  # type: ignore[import-untyped]
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as table:
            missing = sorted(set(columns) - set(table.schema_arrow.names))
            if missing:
                raise DataError(f"{path} lacks the columns {missing}")
            yield from table.iter_batches(columns=list(columns))
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise DataError(f"{path} is no readable Parquet table: {error}") from error


def _known(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else float(value)
