"""Reading a source in steps kept on disk: records, their numbers, the graph of their citations."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tokengym.envs.disruption.data.columns import (
    SCORE_COLUMNS,
    TEXT_COLUMNS,
    WORK_COLUMNS,
    describe_skipped,
    read_part,
)
from tokengym.envs.disruption.data.numbering import build_graph, number_papers
from tokengym.envs.disruption.data.recipe import Input, Recipe, Role
from tokengym.envs.disruption.data.sciscinet import count_row_groups
from tokengym.envs.disruption.data.steps import Done, Progress, Step, run_steps


@dataclass
class Stages:
    """What the stages of one build share.

    Attributes:
        recipe: how the source is read, and the set made.
        files: the input files.
        folder: where the results of steps lie.
        executor: where to run them; here, one after another, if `None`.
        progress: called after each step.
        skipped: why records were skipped, by the name of the file; the first reasons of many.
        refused: how many were.
        withheld: how many works are no papers to judge, by reason.
    """

    recipe: Recipe
    files: Sequence[Input]
    folder: Path
    executor: Executor | None
    progress: Progress
    skipped: dict[str, list[str]] = field(default_factory=dict)
    refused: int = 0
    withheld: Counter[str] = field(default_factory=Counter)

    def inputs(self, role: Role) -> list[Input]:
        """Return the files of one role."""
        return [one for one in self.files if one.role == role]

    def run(self, stage: str, steps: Sequence[Step]) -> list[Done]:
        """Run independent steps in the executor."""
        return run_steps(self.folder, stage, steps, self.executor, self.progress)

    def run_one(self, stage: str, name: str, make: Callable[..., Any], *arguments: Any) -> Done:
        """Run one step here."""
        steps = [Step(name, partial(make, *arguments))]
        return run_steps(self.folder, stage, steps, None, self.progress)[0]

    def read(self, role: Role) -> list[Done]:
        """Read the files of one role, tables by row groups, and note what is skipped."""
        skip = self.recipe.skip_corrupt
        steps, names = [], []
        for one in self.inputs(role):
            options: list[list[int]] = [[self.recipe.keep_withheld]] if role == "works" else [[]]
            if role in ("scores", "citations"):
                skipped: list[str] | None = [] if skip else None
                options = [[group] for group in range(count_row_groups(one.path, skipped))]
                self._note(one.name, describe_skipped(skipped, one.root))
            steps += [Step(role, partial(read_part, role, [one], skip, some)) for some in options]
            names += [one.name] * len(options)
        done = self.run(f"read {role}", steps)
        for name, result in zip(names, done, strict=True):
            self._note(name, result.notes)
        return done

    def read_merged_ids(self) -> Done | None:
        """Read all lists of merged ids of a snapshot, if there are any."""
        files, skip = self.inputs("merged"), self.recipe.skip_corrupt
        if not files:
            return None
        done = self.run_one("read merged ids", "merged", read_part, "merged", files, skip, [])
        self._note("merged_ids", done.notes)
        return done

    def _note(self, name: str, notes: Mapping[str, Any]) -> None:
        self.refused += notes["refused"]
        self.withheld.update(notes.get("withheld", {}))
        if notes["skipped"]:
            self.skipped.setdefault(name, []).extend(notes["skipped"])


def build_corpus(stages: Stages) -> tuple[Done, Done]:
    """Read works, number them, and build the graph of the citations among them.

    Returns:
        results of `number_papers`, with the columns of the source's own scores if it has any, and
        of `build_graph`.
    """
    works, merged = stages.read("works"), None
    citing, sources = works, list[tuple[list[Done], tuple[str, ...]]]([(works, WORK_COLUMNS)])
    if stages.recipe.kind == "sciscinet":
        sources = [(stages.read("scores"), SCORE_COLUMNS), (works, TEXT_COLUMNS)]
        citing = stages.read("citations")
    else:
        merged = stages.read_merged_ids()
    numbered = stages.run_one("number papers", "numbers", number_papers, sources, merged)
    return numbered, stages.run_one("build graph", "graph", build_graph, numbered, citing, merged)
