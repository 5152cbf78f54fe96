"""A source becomes a numbered literature on disk: its papers' columns and their citations.

Papers are numbered in the order of their ids. Memory holds some forty bytes a paper; citations stay
in files.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.citations import (
    CitationCounts,
    CitationGraph,
    build_on_disk,
    find_sorted,
    offsets,
)
from tokengym.envs.disruption.data.columns import TEXT_TYPES, read_part
from tokengym.envs.disruption.data.recipe import Inputs, Recipe
from tokengym.envs.disruption.data.sciscinet import count_row_groups
from tokengym.envs.disruption.data.steps import Steps, load_columns, read_notes, save_columns
from tokengym.envs.disruption.novelty import ReferenceSlots, shuffled_scores
from tokengym.rewards.arrays import Flags, Floats, Ints

_ABSENT = {"venue": -1, "field": -1}


class SourceRead(NamedTuple):
    """A source that was read.

    Attributes:
        numbers: folder of the columns of numbered papers, see `Corpus`.
        graph: folder of the graph of their citations.
        records: records read; several may be of one work.
        works: how many works they are.
        citations: citations among them.
        refused: records that were skipped.
        skipped: why, by the name of the file; the first reasons of many.
        withheld: by reason how many works are not judged.
    """

    numbers: Path
    graph: Path
    records: int
    works: int
    citations: int
    refused: int
    skipped: Mapping[str, Sequence[str]]
    withheld: Mapping[str, int]


def read_source(recipe: Recipe, inputs: Inputs, steps: Steps) -> SourceRead:
    """Read a source, number its works, and build the graph of the citations among them.

    Raises:
        DataError: if a file is damaged and not to be skipped.
    """
    parts: dict[str, list[Path]] = {"works": []}
    refused, skipped, withheld = 0, dict[str, list[str]](), Counter[str]()
    for role, paths in inputs.files.items():
        reads, names = {}, []
        for k, (path, name) in enumerate(zip(paths, inputs.names[role], strict=True)):
            groups = [None] if role == "works" else range(count_row_groups(path))
            for group in groups:
                made = partial(read_part, role, path, name, recipe.skip_corrupt, group)
                reads[f"{role}-{k:06d}-{group or 0:06d}"] = made
                names.append(name)
        parts[role] = steps.run(f"read {role}", reads)
        for name, notes in zip(names, map(read_notes, parts[role]), strict=True):
            refused += notes["refused"]
            withheld.update(notes["withheld"])
            if notes["skipped"]:
                skipped.setdefault(name, []).extend(notes["skipped"])
    sources: list[tuple[list[Path], tuple[str, ...]]] = [(parts["works"], ("year", *TEXT_TYPES))]
    if "scores" in parts:
        of_scores = (parts["scores"], ("year", "tenth", "median", "team"))
        sources = [of_scores, (parts["works"], tuple(TEXT_TYPES))]
    citing = parts.get("citations", parts["works"])
    numbers = steps.run_one("number papers", "numbers", number_papers, sources)
    graph = steps.run_one("build graph", "graph", build_graph, numbers, citing)
    figures = {**read_notes(numbers), **read_notes(graph)}
    return SourceRead(numbers, graph, **figures, refused=refused, skipped=skipped,
                      withheld=dict(sorted(withheld.items())))  # fmt: skip


def number_papers(
    sources: Sequence[tuple[Sequence[Path], Sequence[str]]], folder: Path
) -> dict[str, int]:
    """Number the papers of the first source, each id once, from the first part that holds it.

    The columns of every source are joined by id; `part` and `row` locate a paper in the last
    source, which has the texts, if it has parts.

    Args:
        sources: parts that were read, and the columns to take from them; the parts that count most
            first.
        folder: where the columns go, an entry a paper.

    Returns:
        how many `works` there are, and how many `records` there were.
    """
    ids, place, records = _find_first_records(sources[0][0])
    for k, (parts, names) in enumerate(sources):
        if k:
            known, first, _ = _find_first_records(parts)
            at, found = find_sorted(known, ids)
            place = np.where(found, np.append(first, -1)[at], -1)
        for name in names:
            columns = [load_columns(part, name)[0] for part in parts]
            kind = columns[0].dtype if columns else TEXT_TYPES.get(name, np.int64)
            absent = np.full(1, _ABSENT.get(name, 0), kind)
            save_columns(folder, **{name: np.concatenate([*columns, absent])[place]})
    texts = [load_columns(part, "id")[0] for part in sources[-1][0]]
    ends = np.cumsum([len(own) for own in texts], dtype=np.int64)
    part = np.where(place < 0, -1, np.searchsorted(ends, place, side="right"))
    row = place - np.append(0, ends)[np.maximum(part, 0)]
    save_columns(folder, id=ids, part=part, row=row)
    return {"works": len(ids), "records": records}


def build_graph(numbers: Path, parts: Sequence[Path], folder: Path) -> dict[str, int]:
    """Build the graph of the citations among numbered papers, and count them.

    Args:
        numbers: result of `number_papers`.
        parts: works, whose references are citations, or tables of citations.
        folder: where the graph goes.
    """
    ids, part, row, year = load_columns(numbers, "id", "part", "row", "year")

    def list_chunks() -> Iterator[tuple[Ints, Ints]]:
        for number, folder in enumerate(parts):
            if (folder / "starts.npy").exists():
                own, starts, cited = load_columns(folder, "id", "starts", "references")
                place, found = find_sorted(ids, own)
                # A paper in several parts cites what its first record cites.
                found &= (part[place] == number) & (row[place] == np.arange(len(place)))
                counts = np.diff(starts)
                place, found = np.repeat(place, counts), np.repeat(found, counts)
            else:
                citing, cited = load_columns(folder, "citing", "cited")
                place, found = find_sorted(ids, citing)
            target, known = find_sorted(ids, cited)
            both = known & found
            yield place[both], target[both]

    return {"citations": len(build_on_disk(folder, year, list_chunks()).cited)}


def _find_first_records(parts: Sequence[Path]) -> tuple[Ints, Ints, int]:
    """Return distinct ids, ascending, the place of each one's first record, and all records."""
    listed = [load_columns(part, "id")[0] for part in parts]
    every = np.concatenate([np.zeros(0, np.int64), *listed])
    return *np.unique(every, return_index=True), len(every)


class Cohort(NamedTuple):
    """Scores of all papers of one publication year, in ascending number.

    Attributes:
        first: position of the first in the graph's order.
        number: which papers, shape (k,).
        references: how many each has, shape (k,).
        counts: of their citers, each of shape (k,).
        novelty: 10th percentile and median of the pairs' z-scores, NaN if undefined, shape (k, 2).
    """

    first: int
    number: Ints
    references: Ints
    counts: CitationCounts
    novelty: Floats


@dataclass(frozen=True, eq=False)
class Corpus:
    """A citation graph and other facts about its papers, by their numbers in it.

    Attributes:
        graph: who cites whom; times are publication years.
        article: whether it is an article to judge, shape (n,).
        venue: a number of the venue, -1 if unknown, shape (n,).
        field: a number of the field, -1 if unknown, shape (n,).
        own: 10th percentile and median of the pairs' z-scores, each of shape (n,), where a source
            gives them; otherwise they are estimated by shuffles.
        team: how many wrote it, 0 if unknown, shape (n,), where a table of the source says so.
    """

    graph: CitationGraph
    article: Flags
    venue: npt.NDArray[np.integer[Any]]
    field: npt.NDArray[np.integer[Any]]
    own: Sequence[Floats] = ()
    team: Ints | None = None

    @classmethod
    def open(cls, numbers: Path, graph: Path) -> Self:
        """Map the results of `number_papers` and `build_graph` into memory."""
        names = ("team", "tenth", "median") if (numbers / "tenth.npy").exists() else ()
        article, venue, field, *scores = load_columns(numbers, "article", "venue", "field", *names)
        team = scores[0] if scores else None
        return cls(CitationGraph.open(graph), article, venue, field, scores[1:], team)

    def score(
        self,
        year: int,
        *,
        window: int,
        seed: int,
        shuffles: int,
        l: int = 5,  # noqa: E741 - the literature's name
    ) -> Cohort:
        """Count the citers of a year's papers, and score the novelty of their references.

        Args:
            year: the publication year.
            window: years after publication that citers count.
            seed: entropy of the shuffles behind the novelty scores.
            shuffles: how many, >= 2; 0 leaves novelty undefined where the source has none.
            l: the l of DI_l.
        """
        graph = self.graph
        first, end = np.searchsorted(graph.times, [year, year + 1]).tolist()
        number = np.asarray(graph.order[first:end])
        starts = np.asarray(graph.starts[first : end + 1])
        novelty = np.full((len(number), 2), np.nan)
        if self.own:
            novelty = np.stack([scores[number] for scores in self.own], axis=1)
        elif shuffles:
            cited = np.asarray(graph.cited[starts[0] : starts[-1]])
            venue = self.venue[graph.order[cited]]
            known = venue >= 0
            slots = ReferenceSlots(
                offsets(known)[starts - starts[0]], venue[known], graph.times[cited[known]]
            )
            novelty = shuffled_scores(slots, seed=seed, shuffles=shuffles)
        return Cohort(
            first, number, np.diff(starts), graph.counts(number, window=window, l=l), novelty
        )

    def describe_references(self, position: int) -> tuple[int, int, int, int]:
        """Return the `ReferenceFacts` of the paper at a position of the graph's order."""
        graph = self.graph
        cited = np.asarray(graph.cited[graph.starts[position] : graph.starts[position + 1]])
        number = graph.order[cited]
        age = np.maximum(0, graph.times[position] - graph.times[cited])
        venues, fields = np.unique(self.venue[number]), np.unique(self.field[number])
        known = int((venues >= 0).sum()), int((fields >= 0).sum())
        return len(cited), int(np.rint(np.median(age))), *known
