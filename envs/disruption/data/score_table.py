"""Scores of every work of a source as a table: CD, mCD, DI_l, and the novelty of Uzzi et al."""

import csv
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tokengym.atomic_write import replacing
from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.disruption.citations import CitationCounts, CitationGraph
from tokengym.envs.disruption.data.columns import load_columns, load_own_scores, save_columns
from tokengym.envs.disruption.data.reading import Stages, build_corpus, score_years
from tokengym.envs.disruption.data.recipe import Recipe, find_inputs
from tokengym.envs.disruption.data.scoring import score_novelty
from tokengym.envs.disruption.data.steps import Done, Progress, ignore_progress
from tokengym.envs.disruption.labels import THRESHOLD

SUFFIXES = (".csv", ".parquet")

_CHUNK = 1 << 16
_COLUMNS = ("number", "references", *CitationCounts._fields, "tenth", "median")

Rows = Mapping[str, list[Any]]
"""Some rows of the table, by column; `None` where a score is undefined."""


class ScoreSummary(NamedTuple):
    """The totals of a table of scores.

    Attributes:
        records: records read; several may be of one work.
        refused: records that were skipped.
        works: rows.
        citations: among the works.
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
    | `cd5`, `mcd5` | CD index in [-1, 1] of a window of 5 years, and times `impact` |
    | `di_l5` | DI_l, where only citers of at least 5 references count in n_j |
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
    _check_tables(out)
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
    options = {"window": recipe.window, "l": least_shared, "seed": recipe.seed}
    options["shuffles"] = 0 if recipe.kind == "sciscinet" else recipe.shuffles
    scored = score_years(stages, _stage_scores, numbered, graph, times, options)
    last_year = times[-1] if recipe.last_year is None else recipe.last_year
    (ids,) = load_columns(numbered.path, "id")
    totals = np.zeros(5, dtype=np.int64)
    with ExitStack() as opened:
        writers = [opened.enter_context(_open_table(path)) for path in out]
        for year, done in zip(times, scored, strict=True):
            complete = year + recipe.window <= last_year
            for rows in _make_rows(done, ids, year, complete, recipe.window, least_shared):
                totals += _count(rows, f"cd{recipe.window}")
                for write in writers:
                    write(rows)
    shutil.rmtree(folder)
    works, *counted = totals.tolist()
    figures = [numbered.notes["read"], stages.refused, works, graph.notes["citations"], *counted]
    return ScoreSummary._make([*figures, stages.skipped, ignored])


def _check_tables(out: Sequence[Path]) -> None:
    """Refuse tables that cannot be written, before doing any work."""
    if not out:
        raise OptionError("name at least one file for the table of scores")
    for path in out:
        if path.suffix not in SUFFIXES:
            raise OptionError(f"a table of scores ends in {' or '.join(SUFFIXES)}, got {path}")
        if path.suffix == ".parquet" and find_spec("pyarrow") is None:
            raise OptionError(f"{path} needs pyarrow: pip install 'tokengym[data]'")


def _stage_scores(
    graph_path: Path, numbered: Path, year: int, options: dict[str, int], folder: Path
) -> None:
    """Write the counts and z-scores of all works of a year, in ascending number."""
    graph = CitationGraph.open(graph_path)
    first, end = np.searchsorted(graph.times, [year, year + 1]).tolist()
    number = np.asarray(graph.order[first:end])
    counts = graph.counts(number, window=options["window"], l=options["l"])
    own, how = load_own_scores(numbered), {name: options[name] for name in ("seed", "shuffles")}
    venue = None if own else load_columns(numbered, "venue")[0]
    novelty = score_novelty(graph, venue, own, first, end, **how, folder=folder)
    references = np.diff(graph.starts[first : end + 1])
    columns = (number, references, *counts, *novelty.T)
    save_columns(folder, **dict(zip(_COLUMNS, columns, strict=True)))


def _make_rows(
    done: Done, ids: Any, year: int, complete: bool, window: int, least_shared: int
) -> Iterator[Rows]:
    """Yield the rows of a year in chunks."""
    number, references, *counted, tenth, median = load_columns(done.path, *_COLUMNS)
    for begin in range(0, len(number), _CHUNK):
        at = slice(begin, begin + _CHUNK)
        counts = CitationCounts(*(column[at] for column in counted))
        size = len(counts.n_i)
        yield {
            "work_id": [f"W{one}" for one in ids[number[at]].tolist()],
            "year": [year] * size,
            "references": references[at].tolist(),
            "n_i": counts.n_i.tolist(),
            "n_j": counts.n_j.tolist(),
            "n_k": counts.n_k.tolist(),
            "impact": counts.impact.tolist(),
            f"cd{window}": _defined(counts.cd()),
            f"mcd{window}": _defined(counts.mcd()),
            f"di_l{least_shared}": _defined(counts.di_l()),
            "uzzi_z10": _defined(tenth[at]),
            "uzzi_z50": _defined(median[at]),
            "window_complete": [complete] * size,
        }


def _defined(values: Any) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _count(rows: Rows, name: str) -> list[int]:
    """Count works, and those with CD, above and below the threshold, and with novelty."""
    cd = [value for value in rows[name] if value is not None]
    return [
        len(rows["work_id"]),
        len(cd),
        sum(value > THRESHOLD for value in cd),
        sum(value < -THRESHOLD for value in cd),
        sum(value is not None for value in rows["uzzi_z10"]),
    ]


@contextmanager
def _open_table(path: Path) -> Iterator[Callable[[Rows], None]]:
    """Return a writer of rows into a table, which appears only once it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_rows = _write_csv if path.suffix == ".csv" else _write_parquet
    with replacing(path) as part, write_rows(part) as write:
        yield write


@contextmanager
def _write_csv(path: Path) -> Iterator[Callable[[Rows], None]]:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")

        def write(rows: Rows) -> None:
            if not file.tell():
                writer.writerow(rows)
            writer.writerows(zip(*rows.values(), strict=True))

        yield write


@contextmanager
def _write_parquet(path: Path) -> Iterator[Callable[[Rows], None]]:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    types = {
        "work_id": pa.string(),
        "window_complete": pa.bool_(),
        **dict.fromkeys(("year", "references", "n_i", "n_j", "n_k", "impact"), pa.int64()),
    }
    with ExitStack() as opened:
        writers: list[Any] = []

        def write(rows: Rows) -> None:
            schema = pa.schema([(name, types.get(name, pa.float64())) for name in rows])
            if not writers:
                writers.append(opened.enter_context(parquet.ParquetWriter(path, schema)))
            writers[0].write_table(pa.table(dict(rows), schema=schema))

        yield write
