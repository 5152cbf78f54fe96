"""From works and citations to the papers of a set, step by step on disk."""

import dataclasses
import json
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.disruption.citations import CitationGraph
from tokengym.envs.disruption.data.columns import (
    load,
    numbered_works,
    stage_citations,
    stage_merged_ids,
    stage_scores,
    stage_works,
)
from tokengym.envs.disruption.data.jsonl import read_papers, write_papers
from tokengym.envs.disruption.data.numbering import (
    graph_of_citations,
    graph_of_works,
    number_scores,
    number_works,
    open_corpus,
    open_papers,
)
from tokengym.envs.disruption.data.parts import refuse
from tokengym.envs.disruption.data.recipe import Chosen, Input, Recipe
from tokengym.envs.disruption.data.sciscinet import row_groups
from tokengym.envs.disruption.data.scoring import LabelRule, Scored, score_year
from tokengym.envs.disruption.data.selecting import Candidates, select
from tokengym.envs.disruption.data.steps import Done, Progress, Step, run_steps
from tokengym.envs.disruption.paper import FirstYear, Paper, ReferenceFacts


class _Line:
    """The steps of one build, in order."""

    def __init__(
        self, recipe: Recipe, folder: Path, executor: Executor | None, progress: Progress
    ) -> None:
        self.recipe = recipe
        self.folder = folder
        self.executor = executor
        self.progress = progress
        self.skipped: dict[str, list[str]] = {}

    def each(self, stage: str, steps: Sequence[Step], names: Sequence[str] = ()) -> list[Done]:
        """Run steps that do not need each other; `names` are of files of which some is skipped."""
        done = run_steps(self.folder, stage, steps, executor=self.executor, progress=self.progress)
        for name, one in zip(names, done, strict=True) if names else ():
            if one.notes["skipped"]:
                self.skipped.setdefault(name, []).extend(one.notes["skipped"])
        return done

    def one(self, stage: str, step: Step) -> Done:
        """Run one step here."""
        return run_steps(self.folder, stage, [step], progress=self.progress)[0]


def choose_works(
    recipe: Recipe,
    inputs: Sequence[Input],
    folder: Path,
    executor: Executor | None,
    progress: Progress,
) -> Chosen:
    """Read, number, score, label, choose; return the papers with their texts.

    Args:
        recipe: of a kind with citations.
        inputs: its files.
        folder: where the steps are kept.
        executor: where to read parts, score years and fetch texts; here if `None`.
        progress: told after each step.

    Raises:
        DataError: if a file is damaged and not to be skipped, or too few papers can be chosen.
    """
    line = _Line(recipe, folder, executor, progress)
    parts = [one for one in inputs if one.role == "works"]
    works = line.each(
        "read works",
        [_reading("works", one, recipe, stage_works) for one in parts],
        [one.name for one in parts],
    )
    numbered, graph = _numbered_graph(line, inputs, works)
    corpus_of = {"graph": graph.digest, "numbers": numbered.digest}
    assert recipe.last_year is not None
    times = np.unique(CitationGraph.open(graph.path).times)
    years = [y for y in times.tolist() if y + recipe.window <= recipe.last_year]
    knobs = {
        "last_year": recipe.last_year,
        "window": recipe.window,
        "seed": recipe.seed,
        "shuffles": 0 if recipe.kind == "sciscinet" else recipe.shuffles,
        "rule": recipe.rule,
        "share": recipe.share,
    }
    scored = line.each(
        "score years",
        [
            Step(
                f"year-{year}",
                {**corpus_of, **knobs},
                partial(_stage_year, graph.path, numbered.path, year, knobs),
            )
            for year in years
        ],
    )
    chosen = line.one(
        "choose papers",
        Step(
            "choice",
            {
                "numbers": numbered.digest,
                "years": [one.digest for one in scored],
                "recipe": recipe.arguments(),
            },
            partial(_stage_choice, recipe, numbered, [one.path for one in scored]),
        ),
    )
    told = [k for k in range(len(parts)) if _records(chosen.path, k).exists()]
    texts = line.each(
        "write texts",
        [
            Step(
                "texts",
                {
                    "name": parts[k].name,
                    "sha256": parts[k].sha256,
                    "skip": recipe.skip_corrupt,
                    "records": chosen.files[_records(chosen.path, k).name],
                },
                partial(
                    _stage_texts,
                    parts[k].path,
                    _records(chosen.path, k),
                    recipe.skip_corrupt,
                    recipe.rule,
                ),
            )
            for k in told
        ],
    )
    papers = {
        split: [p for one in texts for p in read_papers(one.path / f"{split}.jsonl")]
        for split in SPLITS
    }
    found = {
        "records": numbered.notes["read"],
        "works": len(open_papers(numbered.path).id),
        "citations": graph.notes["citations"],
        **chosen.notes,
    }
    return Chosen(papers, line.skipped, found)


def _reading(name: str, one: Input, recipe: Recipe, stage: Any, *group: int) -> Step:
    """A step that reads one input, or one row group of it."""
    inputs = {"name": one.name, "sha256": one.sha256, "skip": recipe.skip_corrupt, "group": group}
    return Step(name, inputs, partial(stage, one.path, *group, one.root, recipe.skip_corrupt))


def _numbered_graph(
    line: _Line, inputs: Sequence[Input], works: Sequence[Done]
) -> tuple[Done, Done]:
    """Number the papers and build their graph."""
    recipe = line.recipe
    paths, fields = [one.path for one in works], [one.notes["fields"] for one in works]
    digests = [one.digest for one in works]
    merged_files = [one for one in inputs if one.role == "merged"]
    if recipe.kind != "sciscinet":
        merged = None
        if merged_files:
            told = {"files": {o.name: o.sha256 for o in merged_files}, "skip": recipe.skip_corrupt}
            make = partial(stage_merged_ids, recipe.source, recipe.skip_corrupt)
            merged = line.one("read merged ids", Step("merged", told, make))
            if merged.notes["skipped"]:
                line.skipped["merged_ids"] = merged.notes["skipped"]
        told = {"works": digests, "merged": None if merged is None else merged.digest}
        at = None if merged is None else merged.path
        make = partial(number_works, paths, fields, at)
        numbered = line.one("number works", Step("numbers", told, make))
        make = partial(graph_of_works, numbered.path, paths, at)
        graph = line.one("build graph", Step("graph", {**told, "numbers": numbered.digest}, make))
        return numbered, graph
    scores = _tables(line, inputs, "scores", stage_scores)
    told = {"scores": [one.digest for one in scores], "works": digests}
    make = partial(number_scores, [one.path for one in scores], paths, fields)
    numbered = line.one("number works", Step("numbers", told, make))
    tables = _tables(line, inputs, "citations", stage_citations)
    told = {"citations": [one.digest for one in tables], "numbers": numbered.digest}
    make = partial(graph_of_citations, numbered.path, [one.path for one in tables])
    return numbered, line.one("build graph", Step("graph", told, make))


def _tables(line: _Line, inputs: Sequence[Input], role: str, stage: Any) -> list[Done]:
    """Read the row groups of the tables of one role; one that cannot be opened may be skipped."""
    found = []
    for one in (one for one in inputs if one.role == role):
        skipped: list[str] | None = [] if line.recipe.skip_corrupt else None
        try:
            found += [(one, group) for group in range(row_groups(one.path))]
        except DataError as error:
            refuse(str(error), skipped, error)
            line.skipped[one.name] = [str(error).replace(f"{one.root}/", "")]
    steps = [_reading(role, one, line.recipe, stage, group) for one, group in found]
    return line.each(f"read {role}", steps, [one.name for one, _ in found])


def _stage_year(
    graph: Path, numbered: Path, year: int, knobs: dict[str, Any], folder: Path
) -> None:
    """Write what is scored of one year, an array a field of `Scored`."""
    known = numbered / "novelty.npy"
    novelty = np.load(known, mmap_mode="r") if known.exists() else None
    scored = score_year(open_corpus(graph, numbered), year, novelty=novelty, **knobs)
    for name, array in scored._asdict().items():
        np.save(folder / f"{name}.npy", array)


def _stage_choice(
    recipe: Recipe, numbered: Done, years: Sequence[Path], folder: Path
) -> dict[str, Any]:
    """Choose papers and write what is known of them but their texts, one file a part."""
    papers = open_papers(numbered.path)
    scored = [Scored(*load(path, *Scored._fields)) for path in years]

    def column(name: str) -> npt.NDArray[Any]:
        return np.concatenate([np.zeros(0, np.int64), *(getattr(one, name) for one in scored)])

    number = column("number")
    disruption, novel = column("disruption"), column("novel")
    label = {
        "disruption": disruption,
        "novelty": novel,
        "both": np.where((disruption < 0) | (novel < 0), -1, 3 * disruption + novel),
    }[recipe.target]
    candidates = Candidates(
        key=papers.id[number].astype(np.uint64),
        year=column("year"),
        field=papers.field[number].astype(np.int64),
        label=label,
        title=papers.title[number],
        abstract=papers.abstract[number],
        tells=papers.tells[number],
    )
    selection = select(
        candidates,
        9 if recipe.target == "both" else 3,
        window=recipe.window,
        test_from=recipe.test_from,
        balance=recipe.balance,
        seed=recipe.seed,
    )
    place = np.flatnonzero(selection.split >= 0)
    part, row = papers.part[number[place]], papers.row[number[place]]
    ends = np.cumsum([len(one.number) for one in scored])
    order = np.lexsort((row, part))
    for split_at in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
        if not len(split_at):
            continue
        with _records(folder, int(part[split_at[0]])).open("w", encoding="utf-8") as file:
            for k in split_at.tolist():
                at = int(place[k])
                year = int(np.searchsorted(ends, at, side="right"))
                begin = int(ends[year - 1]) if year else 0
                fields = scored[year].fields(at - begin)
                code = int(papers.field[number[at]])
                fields["references"] = dataclasses.asdict(fields["references"])
                fields["first_year"] = dataclasses.asdict(fields["first_year"])
                fields["primary_field"] = numbered.notes["fields"][code] if code >= 0 else ""
                told = {"row": int(row[k]), "split": SPLITS[selection.split[at]], "fields": fields}
                file.write(json.dumps(told) + "\n")
    return {
        "eligible": len(number),
        "test_from": selection.test_from,
        "left_out": dict(selection.dropped),
    }


def _records(folder: Path, part: int) -> Path:
    return folder / f"part-{part:06d}.jsonl"


def _stage_texts(path: Path, records: Path, skip: bool, rule: LabelRule, folder: Path) -> None:
    """Write the chosen papers of a part with their texts, one file a split."""
    lines = map(json.loads, records.read_text(encoding="utf-8").splitlines())
    wanted = {line["row"]: line for line in lines}
    found: dict[str, list[Paper]] = {split: [] for split in SPLITS}
    for row, (_, work) in enumerate(numbered_works(path, [] if skip else None)):
        if row in wanted:
            fields = wanted[row]["fields"]
            paper = Paper(
                openalex_id=work.id,
                title=_plain(work.title),
                abstract=_plain(work.abstract),
                cited_by_count=work.cited_by_count,
                label_rule=rule,
                **{
                    **fields,
                    "references": ReferenceFacts(**fields["references"]),
                    "first_year": FirstYear(**fields["first_year"]),
                },
            )
            found[wanted[row]["split"]].append(paper)
    for split, papers in found.items():
        write_papers(folder / f"{split}.jsonl", papers)


def _plain(text: str) -> str:
    """Text on one line that UTF-8 can hold: JSON may spell halves of characters."""
    return " ".join(text.encode("utf-8", "replace").decode().split())
