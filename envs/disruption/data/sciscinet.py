"""SciSciNet-v2 tables: scores by paper, and the citation graph they were computed on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.citations import CitationGraph
from tokengym.envs.disruption.data.openalex import short_id
from tokengym.envs.disruption.data.work import Work
from tokengym.envs.disruption.labels import disruption_label_of_score, novelty_label
from tokengym.envs.disruption.paper import Paper

PAPER_COLUMNS = ("paperid", "year", "disruption", "Atyp_Median_Z", "Atyp_10pct_Z")
REFERENCE_COLUMNS = ("citing_paperid", "cited_paperid")


class Scores(NamedTuple):
    """One row of `sciscinet_papers`; a score that is missing there is `None`."""

    id: str
    year: int
    disruption: float | None
    tenth_percentile_z: float | None
    median_z: float | None


def row_groups(path: Path | str) -> int:
    """Return how many row groups a table has; each can be read by itself.

    Raises:
        DataError: if the file is no readable table.
        ImportError: if pyarrow is not installed.
    """
    with _table(Path(path)) as table:
        count: int = table.num_row_groups
    return count


def read_scores(path: Path | str, row_group: int | None = None) -> Iterator[Scores]:
    """Yield the rows of a `sciscinet_papers` table (Parquet) that have a year.

    Args:
        path: the table.
        row_group: one of its row groups; all of them if `None`.

    Raises:
        DataError: if the file is no such table; it names the missing columns.
        ImportError: if pyarrow is not installed.
    """
    for batch in _batches(Path(path), PAPER_COLUMNS, row_group):
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


def read_citations(path: Path | str, row_group: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield citing and cited id of the rows of a `sciscinet_paperrefs` table (Parquet).

    Args and errors are those of `read_scores`.
    """
    for batch in _batches(Path(path), REFERENCE_COLUMNS, row_group):
        for citing, cited in zip(*(batch[n].to_pylist() for n in REFERENCE_COLUMNS), strict=True):
            yield short_id(str(citing)), short_id(str(cited))


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
    ends = [
        (numbers[citing], numbers[cited])
        for citing, cited in read_citations(references)
        if citing in numbers and cited in numbers
    ]
    graph = CitationGraph.from_edges(
        np.array(years, dtype=np.int64),
        [citing for citing, _ in ends],
        [cited for _, cited in ends],
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


def _batches(path: Path, columns: Sequence[str], row_group: int | None) -> Iterator[Any]:
    """Record batches of some columns of a Parquet file, without reading it whole."""
    with _table(path) as table:
        missing = sorted(set(columns) - set(table.schema_arrow.names))
        if missing:
            raise DataError(f"{path} lacks the columns {missing}")
        groups = None if row_group is None else [row_group]
        yield from table.iter_batches(columns=list(columns), row_groups=groups)


@contextmanager
def _table(path: Path) -> Iterator[Any]:
    """An open Parquet file; damage found while it is read is a `DataError`."""
    import pyarrow  # type: ignore[import-untyped]
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as table:
            yield table
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise DataError(f"{path} is no readable Parquet table: {error}") from error


def _known(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else float(value)
