"""A source of any size becomes a folder of papers: balanced, split, audited, with a manifest.

Memory holds some forty bytes a work of the source, about a hundred an eligible paper, the largest
year's references, and the set itself; citations and texts stay on disk.
"""

import shutil
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tokengym.envs.core.errors import DataError, OptionError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.disruption.citations import CitationGraph
from tokengym.envs.disruption.data.audit import audit
from tokengym.envs.disruption.data.corpus import Corpus, SourceRead, read_source
from tokengym.envs.disruption.data.jsonl import write_papers
from tokengym.envs.disruption.data.manifest import (
    FOLDER_FORMAT,
    MANIFEST,
    check_files,
    read_manifest,
    write_manifest,
)
from tokengym.envs.disruption.data.openalex import read_works
from tokengym.envs.disruption.data.recipe import Inputs, Recipe, find_inputs
from tokengym.envs.disruption.data.scoring import ScoredPapers, score_year
from tokengym.envs.disruption.data.selection import Candidates, Selection, select_papers
from tokengym.envs.disruption.data.steps import (
    Progress,
    Steps,
    ignore_progress,
    load_columns,
    save_columns,
)
from tokengym.envs.disruption.labels import LEAST_CITERS, LEAST_REFERENCES
from tokengym.envs.disruption.paper import Paper
from tokengym.envs.intake.files import sha256
from tokengym.rewards.arrays import Ints

STEPS = ".steps"
PAPERS_PER_FILE = 50_000


def build_papers(
    recipe: Recipe,
    out: Path,
    *,
    executor: Executor | None = None,
    progress: Progress = ignore_progress,
) -> dict[str, Any]:
    """Make the set of a recipe in a folder, or continue making it, and return its manifest.

    A set that is there already and intact is left as it is. Intermediate results lie in `.steps` of
    the folder until the set is complete: interrupted, the same call continues where it stopped and
    leaves the same bytes.

    Args:
        recipe: how.
        out: the folder, which `make_world("disruption", data=out)` plays.
        executor: where to read parts, score years and join texts; here, one after another, if
            `None`. The bytes are the same.
        progress: called after each step.

    Raises:
        OptionError: if the recipe lacks `last_year`, `texts` or `shuffles`.
        DataError: if a file of the source is damaged and not to be skipped, too few papers can be
            selected, the set fails the audit, or `out` holds something else.
    """
    if recipe.last_year is None:
        raise OptionError("papers are labelled by later citations: last_year must be given")
    inputs = find_inputs(recipe, executor, progress)
    if "works" not in inputs.files:
        raise OptionError(f"the tables of {recipe.source} have no titles and abstracts: name texts")
    if recipe.target != "disruption" and not (recipe.shuffles or "scores" in inputs.files):
        raise OptionError(f"target={recipe.target!r} needs novelty: shuffles must not be 0")
    head = {
        "format": FOLDER_FORMAT,
        "versions": {name: version(name) for name in ("tokengym", "numpy", "scipy")},
        "arguments": recipe.identity,
        "inputs": inputs.hashes,
    }
    finished = _read_finished(out, head)
    if finished is not None:
        return finished
    steps = Steps(out / STEPS, head, executor, progress)
    read = read_source(recipe, inputs, steps)
    scored = _score_years(recipe, read, steps)
    selection = _select(recipe, read, scored)
    papers = _collect(recipe, inputs, read, scored, selection, steps)
    progress("audit", 0, 1)
    findings = audit(papers, recipe.window)
    progress("audit", 1, 1)
    files = {}
    for split in SPLITS:
        for first in range(0, len(papers[split]), PAPERS_PER_FILE):
            some = papers[split][first : first + PAPERS_PER_FILE]
            path = out / f"{split}-{first // PAPERS_PER_FILE:04d}.jsonl"
            write_papers(path, some)
            files[path.name] = {"split": split, "papers": len(some), "sha256": sha256(path)}
    manifest = {
        **head,
        "source": {
            **{name: getattr(read, name) for name in ("records", "works", "citations", "refused")},
            "eligible": len(selection.split),
            "test_from": selection.test_from,
            "left_out": dict(selection.dropped),
            "withheld": read.withheld,
            "ignored_files": inputs.ignored,
        },
        "skipped": read.skipped,
        "audit": findings,
        "files": files,
    }
    write_manifest(out, manifest)
    shutil.rmtree(out / STEPS)
    return manifest


def _read_finished(out: Path, head: dict[str, Any]) -> dict[str, Any] | None:
    """The manifest of the set in a folder, `None` if there is none or it was damaged.

    Raises:
        DataError: if the folder holds another set, or files and no set.
    """
    if not (out / MANIFEST).exists():
        if out.exists() and any(out.iterdir()) and not (out / STEPS).exists():
            raise DataError(f"{out} holds files that are not a set of papers; take another folder")
        return None
    manifest = read_manifest(out)
    differing = [name for name in head if manifest.get(name) != head[name]]
    if differing:
        raise DataError(
            f"{out} holds a set made with other {' and '.join(differing)}; take another folder"
        )
    try:
        check_files(out)
    except DataError:
        return None
    return manifest


def _score_years(recipe: Recipe, read: SourceRead, steps: Steps) -> Path:
    """Score and label works year by year; return a folder with the columns of `ScoredPapers`.

    Raises:
        DataError: if no work is eligible.
    """
    assert recipe.last_year is not None
    names = ("last_year", "window", "seed", "shuffles", "rule", "share")
    options = {name: getattr(recipe, name) for name in names}
    years = np.unique(CitationGraph.open(read.graph).times)
    makes = {
        f"year-{year}": partial(_score_year, read.numbers, read.graph, year, options)
        for year in years.tolist()
        if year + recipe.window <= recipe.last_year
    }
    scored = steps.run("score years", makes)
    if not sum(len(load_columns(folder, "number")[0]) for folder in scored):
        raise DataError(_explain_none(recipe, read, years))
    return steps.run_one("join years", "scored", _join_years, scored)


def _score_year(
    numbers: Path, graph: Path, year: int, options: dict[str, Any], folder: Path
) -> None:
    save_columns(folder, **score_year(Corpus.open(numbers, graph), year, **options)._asdict())


def _join_years(scored: Sequence[Path], folder: Path) -> None:
    for name in ScoredPapers._fields:
        every = np.concatenate([load_columns(year, name)[0] for year in scored])
        save_columns(folder, **{name: every})


def _explain_none(recipe: Recipe, read: SourceRead, years: Ints) -> str:
    """Return why no work of a source can be labelled, and what would help."""
    if not len(years):
        return f"{recipe.source} holds no work with a year: there is nothing to label"
    window = recipe.window
    whole = f"{recipe.source} holds {read.works:,} works of {years[0]} to {years[-1]}"
    assert recipe.last_year is not None
    if years[0] + window > recipe.last_year:
        return (
            f"{whole}, and a work is judged by citers up to {window} years later: --last-year "
            f"{recipe.last_year} is too early for all of them, or their years are too late"
        )
    return (
        f"{whole}, with {read.citations:,} citations among them: none is an article that cites "
        f"{LEAST_REFERENCES} of these works and is cited by {LEAST_CITERS} of them in the {window} "
        "years after its own. A source needs the works around those it judges: fetch them with "
        "--expand citers,references, or take a --filter of more years and of everything there"
    )


def _select(recipe: Recipe, read: SourceRead, scored: Path) -> Selection:
    """Select papers among those scored.

    Raises:
        DataError: if too few papers can be selected.
    """
    number, year, field, disruption, novel = load_columns(
        scored, "number", "year", "field", "disruption", "novel"
    )
    key, *texts = load_columns(read.numbers, "id", "title", "abstract", "leaks")
    both = np.where((disruption < 0) | (novel < 0), -1, 3 * disruption + novel)
    label = {"disruption": disruption, "novelty": novel, "both": both}[recipe.target]
    selection = select_papers(
        Candidates(
            key[number].astype(np.uint64),
            year,
            field,
            label.astype(np.int64),
            *(column[number] for column in texts),
        ),
        3 ** len(recipe.targets),
        window=recipe.window,
        test_from=recipe.test_from,
        balance=recipe.balance,
        seed=recipe.seed,
    )
    empty = [split for k, split in ((0, "train"), (2, "test")) if k not in selection.split]
    if empty:
        raise DataError(
            f"no paper is left for {' and '.join(empty)}: its classes are made equally frequent "
            f"by --balance {recipe.balance}, and one of them never occurs. --balance split "
            "balances each split as a whole, --balance none keeps all papers. "
            f"Left out: {dict(selection.dropped)}"
        )
    return selection


def _collect(
    recipe: Recipe,
    inputs: Inputs,
    read: SourceRead,
    scored: Path,
    selection: Selection,
    steps: Steps,
) -> dict[str, list[Paper]]:
    """Join the selected papers with their texts, and return those of each split by year and id."""
    (number,) = load_columns(scored, "number")
    part, row = load_columns(read.numbers, "part", "row")
    entries = np.flatnonzero(selection.split >= 0)
    part_of, row_of = part[number[entries]], row[number[entries]]
    parts = [k for k in np.unique(part_of).tolist() if k >= 0]  # -1 has no text
    wanted = [
        dict(zip(row_of[part_of == k].tolist(), entries[part_of == k].tolist(), strict=True))
        for k in parts
    ]
    make = partial(_join_texts, recipe.skip_corrupt, recipe.rule, scored)
    run = map if steps.executor is None else steps.executor.map
    papers: dict[str, list[Paper]] = {split: [] for split in SPLITS}
    steps.progress("read texts", 0, len(parts))
    paths = [inputs.files["works"][k] for k in parts]
    for done, joined in enumerate(run(make, paths, wanted), start=1):
        for entry, paper in joined:
            papers[SPLITS[selection.split[entry]]].append(paper)
        steps.progress("read texts", done, len(parts))
    return {split: sorted(listed, key=_order) for split, listed in papers.items()}


def _join_texts(
    skip: bool, rule: Any, scored: Path, path: Path, wanted: dict[int, int]
) -> list[tuple[int, Paper]]:
    """Return the entries wanted of a part, by row of the part, as papers."""
    table = ScoredPapers(*load_columns(scored, *ScoredPapers._fields))
    works = enumerate(read_works([path], [] if skip else None))
    return [
        (wanted[row], table.make_paper(wanted[row], work, rule))
        for row, work in works
        if row in wanted
    ]


def _order(paper: Paper) -> tuple[int, int, str]:
    return paper.publication_year, len(paper.openalex_id), paper.openalex_id
