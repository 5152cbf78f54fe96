"""Scores of every work of a source as a table: CD, mCD, DI_l, and the novelty of Uzzi et al."""

import csv
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tokengym.atomic_write import replacing
from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.citations import CitationCounts, CitationGraph
from tokengym.envs.disruption.data.corpus import Corpus, SourceRead, read_source
from tokengym.envs.disruption.data.recipe import Recipe, find_inputs
from tokengym.envs.disruption.data.steps import (
    Progress,
    Steps,
    ignore_progress,
    load_columns,
    save_columns,
)
from tokengym.envs.disruption.labels import THRESHOLD

_CHUNK = 1 << 16
_COLUMNS = ("number", "references", *CitationCounts._fields, "tenth", "median")


class ScoreSummary(NamedTuple):
    """The totals of a table of scores.

    Attributes:
        read: what was read; `works` is the number of rows.
        ignored: files of the source's folder that were not read.
        unreferenced: works without a reference in the source: their CD index and DI_l are empty.
        incomplete: works whose window reaches beyond the last year of the source.
        cd: works whose CD index is defined.
        disruptive: of them, those above 0.1.
        consolidating: those below -0.1.
        novelty: works whose z-scores are defined.
    """

    read: SourceRead
    ignored: Sequence[str]
    unreferenced: int
    incomplete: int
    cd: int
    disruptive: int
    consolidating: int
    novelty: int


def score_works(
    recipe: Recipe,
    out: Path,
    *,
    least_shared: int = 5,
    executor: Executor | None = None,
    progress: Progress = ignore_progress,
) -> ScoreSummary:
    """Score every work of a source and write a row for each, by year and then by id.

    Citations count if both works are in the source. Intermediate results are next to the
    table until it is complete: interrupted, the same call continues where it stopped.

    | column | |
    |---|---|
    | `work_id`, `year` | the work |
    | `references` | its references that are in the source |
    | `n_i`, `n_j`, `n_k` | citers within the window by kind, see `citations` |
    | `impact` | all that cite it up to the window's end |
    | `cd5`, `mcd5` | CD index in [-1, 1] of a window of 5 years, and times `impact`; empty if no
      reference is in the source: 1 for every cited work would be an artefact |
    | `di_l5` | DI_l, where only citers of at least 5 references count in n_j; empty below 5 |
    | `uzzi_z10`, `uzzi_z50` | 10th percentile and median of the z-scores of its venue pairs |
    | `window_complete` | whether the source covers the window |

    Args:
        recipe: the source, the window, shuffles and seed; other fields are not used. Without
            `last_year` the latest year of the source is the last that it covers.
        out: the CSV file to write, in a folder that is made if necessary.
        least_shared: the l of DI_l, >= 1.
        executor: where to read parts and score years; here, one after another, if `None`.
        progress: called after each step.

    Raises:
        DataError: if a file of the source is damaged and not to be skipped.
    """
    inputs = find_inputs(recipe, executor, progress)
    folder = out.with_name(f".{out.name}.steps")
    identity = [recipe.identity, least_shared, inputs.hashes]
    steps = Steps(folder, identity, executor, progress)
    read = read_source(recipe, inputs, steps)
    years = np.unique(CitationGraph.open(read.graph).times).tolist()
    if not years:
        raise DataError(f"{recipe.source} holds no work with a year of publication")
    window = recipe.window
    options = {"window": window, "l": least_shared, "seed": recipe.seed}
    options["shuffles"] = recipe.shuffles
    makes = {
        f"year-{year}": partial(_score_year, read.numbers, read.graph, year, options)
        for year in years
    }
    scored = steps.run("score years", makes)
    last_year = years[-1] if recipe.last_year is None else recipe.last_year
    (ids,) = load_columns(read.numbers, "id")
    header = (
        *("work_id", "year", "references", "n_i", "n_j", "n_k", "impact"),
        *(f"cd{window}", f"mcd{window}", f"di_l{least_shared}", "uzzi_z10", "uzzi_z50"),
        "window_complete",
    )
    totals = np.zeros(6, dtype=np.int64)
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as part, part.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(header)
        for year, done in zip(years, scored, strict=True):
            complete = year + window <= last_year
            for columns, counted in _make_rows(done, ids, year, complete, least_shared):
                lines.writerows(zip(*columns, strict=True))
                totals += counted
    shutil.rmtree(folder)
    return ScoreSummary(read, inputs.ignored, *totals.tolist())


def _score_year(
    numbers: Path, graph: Path, year: int, options: dict[str, int], folder: Path
) -> None:
    """Write the counts and z-scores of all works of a year, in ascending number."""
    scores = Corpus.open(numbers, graph).score(year, **options)
    columns = (scores.number, scores.references, *scores.counts, *scores.novelty.T)
    save_columns(folder, **dict(zip(_COLUMNS, columns, strict=True)))


def _make_rows(
    done: Path, ids: Any, year: int, complete: bool, least_shared: int
) -> Iterator[tuple[list[Any], list[int]]]:
    """Yield the columns of some rows of a year, and what `ScoreSummary` counts of them."""
    number, *every = load_columns(done, *_COLUMNS)
    for begin in range(0, len(number), _CHUNK):
        at = slice(begin, begin + _CHUNK)
        works = [f"W{one}" for one in ids[number[at]].tolist()]
        references, *counted, tenth, median = (column[at] for column in every)
        counts = CitationCounts(*counted)
        cd, mcd = (np.where(references, score, np.nan) for score in (counts.cd(), counts.mcd()))
        di_l = np.where(references >= least_shared, counts.di_l(), np.nan)
        whole = [references, counts.n_i, counts.n_j, counts.n_k, counts.impact]
        columns = [
            works,
            [year] * len(works),
            *(column.tolist() for column in whole),
            *map(_defined, (cd, mcd, di_l, tenth, median)),
            [complete] * len(works),
        ]
        sides = references == 0, ~np.isnan(cd), cd > THRESHOLD, cd < -THRESHOLD, ~np.isnan(tenth)
        bare, *defined = (int(side.sum()) for side in sides)
        yield columns, [bare, len(works) * (not complete), *defined]


def _defined(values: Any) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
