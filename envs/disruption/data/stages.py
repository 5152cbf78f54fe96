"""The stages of a build: read, number, label, select and collect, each as steps kept on disk.

Sources differ in how papers get their labels and where their texts stand; what is done with a
labelled paper is the same for all.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.disruption.array_files import map_array
from tokengym.envs.disruption.citations import CitationGraph
from tokengym.envs.disruption.data.columns import PAPER_COLUMNS, load_columns, save_columns
from tokengym.envs.disruption.data.jsonl import read_papers, write_papers
from tokengym.envs.disruption.data.numbering import number_papers
from tokengym.envs.disruption.data.openalex import Work, read_works
from tokengym.envs.disruption.data.reading import Stages, build_corpus
from tokengym.envs.disruption.data.recipe import Input, Recipe
from tokengym.envs.disruption.data.scoring import Corpus, Scored, encode_labels, score_year
from tokengym.envs.disruption.data.selection import Balance, Candidates, select_papers
from tokengym.envs.disruption.data.steps import Done, Step
from tokengym.envs.disruption.labels import (
    DISRUPTION_LABELS,
    LEAST_CITERS,
    LEAST_REFERENCES,
    percentile_labels,
)
from tokengym.envs.disruption.paper import LabelRule, Paper

_WIDER: Mapping[Balance, str] = {
    "field-year": "--balance split balances each split as a whole, --balance none keeps all papers",
    "split": "--balance none keeps all papers",
    "none": "Another --test-from, or more papers, would do",
}
_LABEL_COLUMNS = ("number", "year", "field", "disruption", "novel")


class Labelled(NamedTuple):
    """Labelled papers, before selection.

    Attributes:
        numbered: result of `number_papers`.
        labels: results whose columns are, for some of the papers, `number`, `year`, `field` and the
            positions of the labels, `disruption` and `novel`.
        texts: the files that `part` counts.
        found: figures of the source, for the manifest.
    """

    numbered: Done
    labels: list[Done]
    texts: list[Input]
    found: dict[str, Any]


def label(stages: Stages) -> Labelled:
    """Read the source and label its papers.

    Raises:
        DataError: if a file is damaged and not to be skipped.
    """
    return _label_papers(stages) if stages.recipe.kind == "jsonl" else _label_works(stages)


def _label_papers(stages: Stages) -> Labelled:
    """Label papers that have labels: keep them, or rank by CD if the rule says so."""
    recipe, sources = stages.recipe, [(stages.read("papers"), PAPER_COLUMNS)]
    numbered = stages.run_one("number papers", "numbers", number_papers, sources, None)
    how = numbered, recipe.rule, recipe.share
    labels = stages.run_one("label papers", "labels", _stage_labels, *how)
    found = {"records": numbered.notes["read"], "papers": numbered.notes["papers"]}
    return Labelled(numbered, [labels], stages.inputs("papers"), found)


def _label_works(stages: Stages) -> Labelled:
    """Score and label works by the citations among them, year by year."""
    recipe = stages.recipe
    numbered, graph = build_corpus(stages)
    assert recipe.last_year is not None
    names = ("last_year", "window", "seed", "shuffles", "rule", "share")
    options = {name: getattr(recipe, name) for name in names}
    scored = stages.run(
        "score years",
        [
            Step(f"year-{year}", partial(_stage_year, numbered, graph, year, options))
            for year in np.unique(CitationGraph.open(graph.path).times).tolist()
            if year + recipe.window <= recipe.last_year
        ],
    )
    found = {
        "records": numbered.notes["read"],
        "works": numbered.notes["papers"],
        "citations": graph.notes["citations"],
        "eligible": sum(len(load_columns(one.path, "number")[0]) for one in scored),
    }
    if not found["eligible"]:
        raise DataError(_explain_none(recipe, graph.path, graph.notes["citations"]))
    return Labelled(numbered, scored, stages.inputs("works"), found)


def _explain_none(recipe: Recipe, graph: Path, citations: int) -> str:
    """Return why no work of a source can be labelled, and what would help."""
    years = np.asarray(CitationGraph.open(graph).times)
    if not len(years):
        return f"{recipe.source} holds no work with a year: there is nothing to label"
    first, last, window = int(years.min()), int(years.max()), recipe.window
    whole = f"{recipe.source} holds {len(years):,} works of {first} to {last}"
    assert recipe.last_year is not None
    if first + window > recipe.last_year:
        return (
            f"{whole}, and a work is judged by citers up to {window} years later: --last-year "
            f"{recipe.last_year} is too early for all of them, or their years are too late"
        )
    return (
        f"{whole}, with {citations:,} citations among them: none is an article that cites "
        f"{LEAST_REFERENCES} of these works and is cited by {LEAST_CITERS} of them in the {window} "
        "years after its own. A source needs the works around those it judges: fetch them with "
        "--expand citers,references, or take a --filter of more years and of everything there"
    )


def select(stages: Stages, labelled: Labelled) -> Done:
    """Select papers; each part's are one file `part-000000.npy`, see `_stage_selection`.

    Raises:
        DataError: if too few papers can be selected.
    """
    arguments = stages.recipe, labelled.numbered, labelled.labels
    return stages.run_one("choose papers", "selection", _stage_selection, *arguments)


def collect(stages: Stages, labelled: Labelled, selected: Done) -> dict[str, list[Paper]]:
    """Join the selected papers with their texts, and return those of each split."""
    found = stages.run(
        "write texts",
        [
            Step("texts", partial(_stage_texts, stages.recipe, one, k, selected, labelled.labels))
            for k, one in enumerate(labelled.texts)
            if _part_name(k) in selected.files
        ],
    )
    return {
        split: [p for one in found for p in read_papers(one.path / f"{split}.jsonl")]
        for split in SPLITS
    }


def _stage_labels(numbered: Done, rule: LabelRule, share: float, folder: Path) -> None:
    """Write the labels that papers have, or labels by rank if the rule is `percentile`."""
    year, field, disruption, novel, cd = load_columns(
        numbered.path, "year", "field", "disruption", "novel", "cd"
    )
    if rule == "percentile":
        disruption = encode_labels(percentile_labels(cd, field, year, share=share))
    save_columns(
        folder,
        number=np.arange(len(year)),
        year=year,
        field=np.unique(field, return_inverse=True)[1],  # names that occur, in their order
        disruption=disruption,
        novel=novel,
    )


def _stage_year(
    numbered: Done, graph: Done, year: int, options: dict[str, Any], folder: Path
) -> None:
    """Write the scores and labels of one year, one column per field of `Scored`."""
    scored = score_year(Corpus.open(numbered, graph), year, **options, folder=folder)
    save_columns(folder, **scored._asdict())


def _stage_selection(
    recipe: Recipe, numbered: Done, labels: Sequence[Done], folder: Path
) -> dict[str, Any]:
    """Write a row per selected paper: row of its part, split, and which entry of which labels."""
    key, title, abstract, leaks, part, row = load_columns(
        numbered.path, "id", "title", "abstract", "leaks", "part", "row"
    )
    tables = [load_columns(one.path, *_LABEL_COLUMNS) for one in labels]
    number, year, field, disruption, novel = (
        np.concatenate([np.zeros(0, np.int64), *(table[k] for table in tables)])
        for k in range(len(_LABEL_COLUMNS))
    )
    both = np.where((disruption < 0) | (novel < 0), -1, 3 * disruption + novel)
    selection = select_papers(
        Candidates(
            key=key[number].astype(np.uint64),
            year=year,
            field=field,
            label={"disruption": disruption, "novelty": novel, "both": both}[recipe.target],
            title=title[number],
            abstract=abstract[number],
            leaks=leaks[number],
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
            f"by --balance {recipe.balance}, and one of them never occurs. "
            f"{_WIDER[recipe.balance]}. Left out: {dict(selection.dropped)}"
        )
    at = np.flatnonzero(selection.split >= 0)
    ends = np.cumsum([len(table[0]) for table in tables], dtype=np.int64)
    which = np.searchsorted(ends, at, side="right")
    entry = at - np.append(0, ends)[which]
    rows = np.stack([row[number[at]], selection.split[at], which, entry], axis=1)
    parts = part[number[at]]
    for one in np.unique(parts).tolist():
        np.save(folder / _part_name(one), rows[parts == one])
    return {"test_from": selection.test_from, "left_out": dict(selection.dropped)}


def _stage_texts(
    recipe: Recipe, one: Input, part: int, selected: Done, labels: Sequence[Done], folder: Path
) -> None:
    """Write the selected papers of a part, one file a split."""
    rows = {row: rest for row, *rest in map_array(selected.path / _part_name(part)).tolist()}
    skipped: list[str] | None = [] if recipe.skip_corrupt else None
    if recipe.kind == "jsonl":
        records: Iterator[Work | Paper] = read_papers(one.path, skipped)
    else:
        records = read_works([one.path], skipped)
    open_scored = cache(lambda k: Scored(*load_columns(labels[k].path, *Scored._fields)))
    papers: dict[str, list[Paper]] = {split: [] for split in SPLITS}
    for row, record in enumerate(records):
        if row not in rows:
            continue
        split, table, entry = rows[row]
        if isinstance(record, Work):
            paper = open_scored(table).make_paper(entry, record, recipe.rule)
        else:
            paper = record
            if recipe.rule == "percentile":
                code = int(load_columns(labels[table].path, "disruption")[0][entry])
                name = DISRUPTION_LABELS[code] if code >= 0 else None
                paper = dataclasses.replace(paper, disruption_label=name, label_rule="percentile")
        papers[SPLITS[split]].append(paper)
    for name, listed in papers.items():
        write_papers(folder / f"{name}.jsonl", listed)


def _part_name(part: int) -> str:
    return f"part-{part:06d}.npy"
