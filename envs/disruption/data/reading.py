"""Reading a source in steps kept on disk: records, their numbers, the graph of their citations."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

from tokengym.envs.disruption.data.columns import (
    SCORE_COLUMNS,
    TEXT_COLUMNS,
    WORK_COLUMNS,
    stage_citations,
    stage_merged_ids,
    stage_papers,
    stage_scores,
    stage_works,
)
from tokengym.envs.disruption.data.numbering import build_graph, number_papers
from tokengym.envs.disruption.data.recipe import Input, Recipe, Role
from tokengym.envs.disruption.data.sciscinet import count_row_groups
from tokengym.envs.disruption.data.steps import Done, Progress, Step, run_steps

_READERS: Mapping[Role, Callable[..., dict[str, Any]]] = {
    "works": stage_works,
    "papers": stage_papers,
    "scores": stage_scores,
    "citations": stage_citations,
}


class Stages:
    """What the stages of one build share.

    Attributes:
        recipe: how the source is read, and the set made.
        skipped: why records were skipped, by the name of the file; the first reasons of many.
        refused: how many were.
        withheld: how many works are no papers to judge, by reason.
    """

    def __init__(
        self,
        recipe: Recipe,
        inputs: Sequence[Input],
        folder: Path,
        executor: Executor | None,
        progress: Progress,
    ) -> None:
        self.recipe = recipe
        self.skipped: dict[str, list[str]] = {}
        self.refused = 0
        self.withheld: Counter[str] = Counter()
        self._inputs = inputs
        self._folder = folder
        self._executor = executor
        self._progress = progress

    def inputs(self, role: Role) -> list[Input]:
        """Return the files of one role."""
        return [one for one in self._inputs if one.role == role]

    def run(self, stage: str, steps: Sequence[Step]) -> list[Done]:
        """Run independent steps in the executor."""
        return run_steps(
            self._folder, stage, steps, executor=self._executor, progress=self._progress
        )

    def run_one(self, stage: str, name: str, inputs: Any, make: Callable[[Path], Any]) -> Done:
        """Run one step here."""
        return run_steps(self._folder, stage, [Step(name, inputs, make)], progress=self._progress)[
            0
        ]

    def read(self, role: Role) -> list[Done]:
        """Read the files of one role, tables by row groups, and note what is skipped."""
        skip, keep = self.recipe.skip_corrupt, self.recipe.keep_withheld
        steps, names = [], []
        for one in self.inputs(role):
            groups: Sequence[tuple[int, ...]] = [()]
            if role in ("scores", "citations"):
                skipped: list[str] | None = [] if skip else None
                groups = [(k,) for k in range(count_row_groups(one.path, skipped))]
                reasons = [text.replace(f"{one.root}/", "") for text in skipped or ()]
                self._note(one.name, {"refused": len(reasons), "skipped": reasons})
            for group in groups:
                key = {"name": one.name, "sha256": one.sha256, "skip": skip, "group": group}
                key |= {"keep": keep} if role == "works" else {}
                options = [keep] if role == "works" else []
                make = partial(_READERS[role], one.path, *group, one.root, skip, *options)
                steps.append(Step(role, key, make))
                names.append(one.name)
        done = self.run(f"read {role}", steps)
        for name, result in zip(names, done, strict=True):
            self._note(name, result.notes)
            self.withheld.update(result.notes.get("withheld", {}))
        return done

    def read_merged_ids(self) -> Done | None:
        """Read all lists of merged ids of a snapshot, if there are any."""
        files = self.inputs("merged")
        if not files:
            return None
        skip = self.recipe.skip_corrupt
        key = {"files": {one.name: one.sha256 for one in files}, "skip": skip}
        make = partial(stage_merged_ids, files[0].root, skip)
        done = self.run_one("read merged ids", "merged", key, make)
        self._note("merged_ids", done.notes)
        return done

    def _note(self, name: str, notes: Mapping[str, Any]) -> None:
        self.refused += notes["refused"]
        if notes["skipped"]:
            self.skipped.setdefault(name, []).extend(notes["skipped"])


def build_corpus(stages: Stages) -> tuple[Done, Done]:
    """Read works, number them, and build the graph of the citations among them.

    Returns:
        results of `number_papers`, with the columns of the source's own scores if it has any, and
        of `build_graph`.
    """
    works = stages.read("works")
    sources: list[tuple[list[Done], Sequence[str]]]
    if stages.recipe.kind == "sciscinet":
        sources = [(stages.read("scores"), SCORE_COLUMNS)]
        sources += [(works, TEXT_COLUMNS)] if works else []
        merged, citing, tables = None, [], stages.read("citations")
    else:
        sources = [(works, WORK_COLUMNS)]
        merged, citing, tables = stages.read_merged_ids(), works, []
    numbered = number_records(stages, sources, works, merged)
    key = {"numbers": numbered.digest, "citations": [one.digest for one in (*citing, *tables)]}
    make = partial(
        build_graph,
        numbered.path,
        list_paths(citing),
        None if merged is None else merged.path,
        list_paths(tables),
    )
    return numbered, stages.run_one("build graph", "graph", key, make)


def number_records(
    stages: Stages,
    sources: Sequence[tuple[Sequence[Done], Sequence[str]]],
    texts: Sequence[Done],
    merged: Done | None,
) -> Done:
    """Number the records that were read; see `number_papers`.

    Args:
        stages: of the build.
        sources: results of reading, those that count most first, and the columns to join.
        texts: those of the source that has the texts.
        merged: the list of merged ids, if there is one.
    """
    key = {
        "sources": [[one.digest for one in done] for done, _ in sources],
        "merged": None if merged is None else merged.digest,
    }
    make = partial(
        number_papers,
        [(list_paths(done), names) for done, names in sources],
        [one.notes["fields"] for one in texts],
        None if merged is None else merged.path,
    )
    return stages.run_one("number papers", "numbers", key, make)


def list_paths(done: Sequence[Done]) -> list[Path]:
    """Return the folders of results."""
    return [one.path for one in done]


def score_years(
    stages: Stages,
    score: Callable[..., Any],
    numbered: Done,
    graph: Done,
    years: Sequence[int],
    options: dict[str, Any],
) -> list[Done]:
    """Score works year by year.

    Args:
        stages: of the build.
        score: called with the folders of the graph and of the numbers, a year, the options and the
            folder that it writes to.
        numbered: result of `number_papers`.
        graph: result of `build_graph`.
        years: which.
        options: of the scores, as plain JSON.
    """
    key = {"graph": graph.digest, "numbers": numbered.digest, **options}
    makes = [(year, partial(score, graph.path, numbered.path, year, options)) for year in years]
    return stages.run("score years", [Step(f"year-{year}", key, make) for year, make in makes])
