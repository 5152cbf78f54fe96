"""Tables of SciSciNet-v2 (Parquet), read by columns: novelty scores by paper, and citations."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.data.openalex import shorten_id
from tokengym.envs.disruption.paper import LAST_YEAR, MOST_CITATIONS
from tokengym.envs.intake.parquet import open_parquet
from tokengym.envs.intake.rows import refuse
from tokengym.rewards.arrays import Ints

_CITATIONS = ("citing_paperid", "cited_paperid")
_SCORES = ("year", "Atyp_10pct_Z", "Atyp_Median_Z", "team_size")
_OPTIONAL = frozenset({"team_size"})
_ID = r"(?s)^(?:.*/)?[Ww](?P<digits>[0-9]{1,18})$"

Columns = Mapping[str, npt.NDArray[Any]]
"""Entries of some rows of a table, by column."""


def count_row_groups(path: Path) -> int:
    """Return how many row groups a table has; each can be read by itself.

    Raises:
        DataError: if the file is not a readable table.
    """
    with open_parquet(path) as table:
        count: int = table.num_row_groups
        return count


def read_scores(path: Path, row_group: int, skipped: list[str] | None = None) -> Columns:
    """Return the rows of a `sciscinet_papers` table that have a year.

    Args:
        path: the table.
        row_group: which of its row groups.
        skipped: collects what is wrong with damaged rows and row groups, which are then skipped.

    Returns:
        `id`, the digits of the work's id, `year`, `tenth` and `median`, the 10th percentile of the
        z-scores of its venue pairs and their median, NaN unless both are known and in order, and
        `team`, how many wrote it, 0 if unknown.

    Raises:
        DataError: if the table or a row is damaged and `skipped` is `None`; it names the columns
            that are missing.
    """
    (ids,), (number, year, tenth, median, team) = _read(
        path, ("paperid",), _SCORES, row_group, skipped
    )
    in_range = (year >= 0) & (year <= LAST_YEAR) & (year == np.floor(year))
    good = (number >= 0) & in_range
    for k in np.flatnonzero(~good & ~np.isnan(year)).tolist():
        short = shorten_id(str(ids[k]))
        wrong = f"the year of a work: {year[k]:g} of {short}" if number[k] >= 0 else None
        refuse(f"{path}: not {wrong or f'the id of a work: {short!r}'}", skipped)
    scores = np.where(tenth <= median, (tenth, median), np.nan)[:, good]
    team = np.where((team >= 1) & (team <= MOST_CITATIONS), team, 0.0)[good]
    found = {
        "id": number[good],
        "year": year[good].astype(np.int64),
        "tenth": scores[0],
        "median": scores[1],
    }
    return {**found, "team": team.astype(np.int64)}


def read_citations(path: Path, row_group: int, skipped: list[str] | None = None) -> Columns:
    """Return `citing` and `cited`, the digits of both ids, of a `sciscinet_paperrefs` table.

    Args and errors are those of `read_scores`.
    """
    texts, (citing, cited) = _read(path, _CITATIONS, (), row_group, skipped)
    good = (citing >= 0) & (cited >= 0)
    for k in np.flatnonzero(~good).tolist():
        source, target = (shorten_id(str(column[k])) for column in texts)
        refuse(f"{path}: not the ids of two works: {source!r}, {target!r}", skipped)
    return {"citing": citing[good], "cited": cited[good]}


def _read(
    path: Path, ids: Sequence[str], scores: Sequence[str], row_group: int, skipped: list[str] | None
) -> tuple[list[Any], list[npt.NDArray[Any]]]:
    """Return the texts of columns of ids; their digits, -1 of no work's id, and other numbers."""
    try:
        with open_parquet(path) as table:
            held = set(table.schema_arrow.names)
            missing = sorted({*ids, *scores} - held - _OPTIONAL)
            if missing:
                raise DataError(f"{path} lacks the columns {missing}")
            columns = [name for name in (*ids, *scores) if name in held]
            found = table.read_row_group(row_group, columns=columns)
            texts = [found[name].cast("string") for name in ids]
            numbers = [
                found[name].cast("float64").to_numpy()
                if name in held
                else np.full(len(found), np.nan)
                for name in scores
            ]
            return texts, [*map(_parse_ids, texts), *numbers]
    except DataError as error:
        refuse(str(error), skipped, error)
        return [[] for _ in ids], [np.zeros(0) for _ in (*ids, *scores)]


def _parse_ids(texts: Any) -> Ints:
    from pyarrow import compute  # type: ignore[import-untyped]

    options = compute.ExtractRegexOptions(_ID)
    (digits,) = compute.call_function("extract_regex", [texts], options).flatten()
    found: Ints = digits.cast("int64").fill_null(-1).to_numpy()
    return found
