"""Scores of every work of a source as a table: CD, mCD, DI_l, and the novelty of Uzzi et al."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.core.table_files import open_table, require_table
from tokengym.envs.disruption.citations import CitationCounts, CitationGraph
from tokengym.envs.disruption.data.columns import load_columns, save_columns
from tokengym.envs.disruption.data.reading import Stages, build_corpus
from tokengym.envs.disruption.data.recipe import Recipe, find_inputs
from tokengym.envs.disruption.data.scoring import Corpus
from tokengym.envs.disruption.data.steps import Done, Progress, Step, ignore_progress
from tokengym.envs.disruption.labels import THRESHOLD

_CHUNK = 1 << 16
_COLUMNS = ("number", "references", *CitationCounts._fields, "tenth", "median")


class ScoreSummary(NamedTuple):
    """The totals of a table of scores.

    Attributes:
        records: records read; several may be of one work.
        refused: records that were skipped.
        works: rows.
        citations: among the works.
        unreferenced: works without a reference in the source: their CD index and DI_l are empty.
        incomplete: works whose window reaches beyond the last year of the source.
        cd: works whose CD index is defined.
        disruptive: of them, those above 0.1.
        consolidating: those below -0.1.
        novelty: works whose z-scores are defined.
        skipped: why records were skipped, by the name of the file; the first reasons of many.
        ignored: what else lies in the source's folder, by name, and what it holds.
    """

    records: int
    refused: int
    works: int
    citations: int
    unreferenced: int
    incomplete: int
    cd: int
    disruptive: int
    consolidating: int
    novelty: int
    skipped: Mapping[str, Sequence[str]]
    ignored: Mapping[str, str]


def score_works(
    recipe: Recipe,
    out: Sequence[Path],
    *,
    least_shared: int = 5,
    executor: Executor | None = None,
    progress: Progress = ignore_progress,
) -> ScoreSummary:
    """Score every work of a source and write a row for each, by year and then by id.

    Citations count if both works are in the source. Intermediate results are next to the first
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
        out: files to write, `.csv` or `.parquet`.
        least_shared: the l of DI_l, >= 1.
        executor: where to read parts and score years; here, one after another, if `None`.
        progress: called after each step.

    Raises:
        OptionError: if a file has another suffix, Parquet is asked for and pyarrow is not
            installed, or the source holds labelled papers.
        DataError: if a file of the source is damaged and not to be skipped.
        ImportError: if the source is Parquet and pyarrow is not installed.
    """
    if not out:
        raise OptionError("name at least one file for the table of scores")
    for path in out:
        require_table(path)
    if recipe.kind == "jsonl":
        raise OptionError(
            f"{recipe.source} holds labelled papers without references; scores need works of "
            "OpenAlex or tables of SciSciNet"
        )
    inputs, ignored = find_inputs(recipe, executor, progress)
    folder = out[0].with_name(f".{out[0].name}.steps")
    stages = Stages(recipe, inputs, folder, executor, progress)
    numbered, graph = build_corpus(stages)
    times = np.unique(CitationGraph.open(graph.path).times).tolist()
    if not times:
        raise DataError(f"{recipe.source} holds no work with a year of publication")
    window, shuffles = recipe.window, recipe.shuffles
    options = {"window": window, "l": least_shared, "seed": recipe.seed, "shuffles": shuffles}
    steps = [
        Step(f"year-{year}", partial(_stage_scores, numbered, graph, year, options))
        for year in times
    ]
    scored = stages.run("score years", steps)
    last_year = times[-1] if recipe.last_year is None else recipe.last_year
    (ids,) = load_columns(numbered.path, "id")
    types = {
        "work_id": str,
        **dict.fromkeys(("year", "references", "n_i", "n_j", "n_k", "impact"), int),
        **dict.fromkeys((f"cd{window}", f"mcd{window}", f"di_l{least_shared}"), float),
        **dict.fromkeys(("uzzi_z10", "uzzi_z50"), float),
        "window_complete": bool,
    }
    totals = np.zeros(7, dtype=np.int64)
    with ExitStack() as opened:
        writers = [opened.enter_context(open_table(path, types)) for path in out]
        for year, done in zip(times, scored, strict=True):
            complete = year + window <= last_year
            for columns, counted in _make_rows(done, ids, year, complete, least_shared):
                totals += counted
                for write in writers:
                    write(columns)
    shutil.rmtree(folder)
    works, *defined = totals.tolist()
    figures = [numbered.notes["read"], stages.refused, works, graph.notes["citations"], *defined]
    return ScoreSummary._make([*figures, stages.skipped, ignored])


def _stage_scores(
    numbered: Done, graph: Done, year: int, options: dict[str, int], folder: Path
) -> None:
    """Write the counts and z-scores of all works of a year, in ascending number."""
    scores = Corpus.open(numbered, graph).score(year, **options, folder=folder)
    columns = (scores.number, scores.references, *scores.counts, *scores.novelty.T)
    save_columns(folder, **dict(zip(_COLUMNS, columns, strict=True)))


def _make_rows(
    done: Done, ids: Any, year: int, complete: bool, least_shared: int
) -> Iterator[tuple[list[Any], list[int]]]:
    """Yield the columns of some rows of a year, and how many there are.

    Counted are the works, those without references, with an incomplete window, with CD, with CD
    above and below the threshold, and with novelty.
    """
    number, *every = load_columns(done.path, *_COLUMNS)
    for begin in range(0, len(number), _CHUNK):
        at = slice(begin, begin + _CHUNK)
        works = [f"W{one}" for one in ids[number[at]].tolist()]
        references, *counted, tenth, median = (column[at] for column in every)
        counts = CitationCounts(*counted)
        size = len(works)
        cd, mcd = (np.where(references, score, np.nan) for score in (counts.cd(), counts.mcd()))
        di_l = np.where(references >= least_shared, counts.di_l(), np.nan)
        whole = [references, counts.n_i, counts.n_j, counts.n_k, counts.impact]
        columns = [
            works,
            [year] * size,
            *(column.tolist() for column in whole),
            *map(_defined, (cd, mcd, di_l, tenth, median)),
            [complete] * size,
        ]
        bare, open_ended = references == 0, np.full(size, not complete)
        sides = bare, open_ended, ~np.isnan(cd), cd > THRESHOLD, cd < -THRESHOLD, ~np.isnan(tenth)
        yield columns, [size, *(int(side.sum()) for side in sides)]


def _defined(values: Any) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
