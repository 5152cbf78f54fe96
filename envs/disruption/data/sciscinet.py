"""Tables of SciSciNet-v2 (Parquet): novelty scores by paper, and citations."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.data.openalex import parse_work_id, shorten_id
from tokengym.envs.disruption.paper import LAST_YEAR
from tokengym.envs.intake.parquet import open_parquet
from tokengym.envs.intake.rows import refuse

_SCORES = ("paperid", "year", "Atyp_10pct_Z", "Atyp_Median_Z")
_CITATIONS = ("citing_paperid", "cited_paperid")
_NAN = float("nan")


class Scores(NamedTuple):
    """One row of `sciscinet_papers`; both scores are NaN unless both are known.

    Attributes:
        id: digits of the work's id.
        year: publication year.
        tenth: 10th percentile of the z-scores of its venue pairs.
        median: their median, not below `tenth`.
    """

    id: int
    year: int
    tenth: float
    median: float


def count_row_groups(path: Path | str, skipped: list[str] | None = None) -> int:
    """Return how many row groups a table has; each can be read by itself.

    Raises:
        DataError: if the file is not a readable table and `skipped` is `None`.
    """
    try:
        with open_parquet(Path(path)) as table:
            count: int = table.num_row_groups
            return count
    except DataError as error:
        refuse(str(error), skipped, error)
        return 0


def read_scores(
    path: Path | str, row_group: int | None = None, skipped: list[str] | None = None
) -> Iterator[Scores]:
    """Yield the rows of a `sciscinet_papers` table that have a year.

    Args:
        path: the table.
        row_group: one of its row groups; all of them if `None`.
        skipped: collects what is wrong with damaged rows and row groups, which are then skipped.

    Raises:
        DataError: if the table or a row is damaged and `skipped` is `None`; it names the columns
            that are missing.
    """
    for paper, year, tenth, median in _read_rows(Path(path), _SCORES, row_group, skipped):
        if year is None:
            continue
        short = shorten_id(str(paper))
        number = parse_work_id(short)
        if number is None:
            refuse(f"{path}: not the id of a work: {short!r}", skipped)
        elif not 0 <= year <= LAST_YEAR:
            refuse(f"{path}: not the year of a work: {year!r} of {short}", skipped)
        elif tenth is not None and median is not None and tenth <= median:
            yield Scores(number, int(year), float(tenth), float(median))
        else:
            yield Scores(number, int(year), _NAN, _NAN)


def read_citations(
    path: Path | str, row_group: int | None = None, skipped: list[str] | None = None
) -> Iterator[tuple[int, int]]:
    """Yield the digits of the citing and the cited id of each row of a `sciscinet_paperrefs` table.

    Args and errors are those of `read_scores`.
    """
    for row in _read_rows(Path(path), _CITATIONS, row_group, skipped):
        source, target = (shorten_id(str(paper)) for paper in row)
        citing, cited = parse_work_id(source), parse_work_id(target)
        if citing is None or cited is None:
            refuse(f"{path}: not the ids of two works: {source!r}, {target!r}", skipped)
        else:
            yield citing, cited


def _read_rows(
    path: Path, columns: Sequence[str], row_group: int | None, skipped: list[str] | None
) -> Iterator[tuple[Any, ...]]:
    """Yield rows of some columns of a table, without reading it whole."""
    try:
        with open_parquet(path) as table:
            missing = sorted(set(columns) - set(table.schema_arrow.names))
            if missing:
                raise DataError(f"{path} lacks the columns {missing}")
            groups = None if row_group is None else [row_group]
            for batch in table.iter_batches(columns=list(columns), row_groups=groups):
                yield from zip(*(batch[name].to_pylist() for name in columns), strict=True)
    except DataError as error:
        refuse(str(error), skipped, error)
