"""Scores and labels of the papers of a citation graph, year by year."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.array_files import scratch_arrays
from tokengym.envs.disruption.citations import CitationCounts, CitationGraph, offsets, row_blocks
from tokengym.envs.disruption.data.columns import load_columns
from tokengym.envs.disruption.data.openalex import Work
from tokengym.envs.disruption.data.steps import Done
from tokengym.envs.disruption.labels import (
    DISRUPTION_LABELS,
    NOVELTY_LABELS,
    THRESHOLD,
    eligible,
    novelty_label,
    percentile_labels,
)
from tokengym.envs.disruption.novelty import ReferenceSlots, shuffled_scores
from tokengym.envs.disruption.paper import FirstYear, LabelRule, Paper, ReferenceFacts
from tokengym.rewards.arrays import Flags, Floats, Ints

WINDOWS = (3, 5, 10)
"""Citation windows in years in which CD is computed besides a set's own, where complete."""

_REFERENCES = 1 << 21
"""References looked up at once."""


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
        article: whether it is an article, shape (n,).
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
    def open(cls, numbered: Done, graph: Done) -> Self:
        """Map the results of `number_papers` and `build_graph` into memory."""
        names = ("team", "tenth", "median") if "tenth.npy" in numbered.files else ()
        article, venue, field, *scores = load_columns(
            numbered.path, "article", "venue", "field", *names
        )
        team = scores[0] if scores else None
        return cls(CitationGraph.open(graph.path), article, venue, field, scores[1:], team)

    def score(
        self,
        year: int,
        *,
        window: int,
        seed: int,
        shuffles: int,
        l: int = 5,  # noqa: E741 - the literature's name
        folder: Path | None = None,
    ) -> Cohort:
        """Count the citers of a year's papers, and score the novelty of their references.

        Args:
            year: the publication year.
            window: years after publication that citers count.
            seed: entropy of the shuffles behind the novelty scores.
            shuffles: how many, >= 2; 0 leaves novelty undefined where the source has none.
            l: the l of DI_l.
            folder: for temporary files, see `shuffled_scores`.
        """
        graph = self.graph
        first, end = np.searchsorted(graph.times, [year, year + 1]).tolist()
        number = np.asarray(graph.order[first:end])
        starts = np.asarray(graph.starts[first : end + 1])
        novelty = np.full((len(number), 2), np.nan)
        if self.own:
            novelty = np.stack([scores[number] for scores in self.own], axis=1)
        elif shuffles:
            novelty = self._shuffle(starts, seed, shuffles, folder)
        return Cohort(
            first, number, np.diff(starts), graph.counts(number, window=window, l=l), novelty
        )

    def _shuffle(self, starts: Ints, seed: int, shuffles: int, folder: Path | None) -> Floats:
        """Score the references of papers whose rows begin at `starts`."""
        graph = self.graph
        lengths = [np.zeros(0, dtype=np.int64)]
        with scratch_arrays(folder) as new:
            venue, year = new(np.int64), new(np.int64)
            for a, b in row_blocks(starts, _REFERENCES):
                cited = np.asarray(graph.cited[starts[a] : starts[b]])
                of_cited = self.venue[graph.order[cited]]
                known = of_cited >= 0
                venue.append(of_cited[known])
                year.append(graph.times[cited[known]])
                lengths.append(np.diff(offsets(known)[starts[a : b + 1] - starts[a]]))
            slots = ReferenceSlots(offsets(np.concatenate(lengths)), venue, year)
            return shuffled_scores(slots, seed=seed, shuffles=shuffles, folder=folder)

    def describe_references(self, position: int) -> tuple[int, int, int, int]:
        """Return the `ReferenceFacts` of the paper at a position of the graph's order."""
        graph = self.graph
        cited = np.asarray(graph.cited[graph.starts[position] : graph.starts[position + 1]])
        number = graph.order[cited]
        age = np.maximum(0, graph.times[position] - graph.times[cited])
        venues, fields = np.unique(self.venue[number]), np.unique(self.field[number])
        known = int((venues >= 0).sum()), int((fields >= 0).sum())
        return len(cited), int(np.rint(np.median(age))), *known


class Scored(NamedTuple):
    """Scores and labels of eligible papers, one entry per paper.

    Attributes:
        number: which paper, shape (k,).
        year: publication year, shape (k,).
        field: number of the field, shape (k,).
        disruption: position of the CD index's label in `DISRUPTION_LABELS`, shape (k,).
        novel: position of the novelty label in `NOVELTY_LABELS`, -1 if undefined, shape (k,).
        cd: CD index, shape (k,).
        by_window: CD index within each of `WINDOWS`, NaN if undefined or incomplete, shape (k, 3).
        references: count, median age, venues and fields of the references, shape (k, 4).
        first_year: citers of the first year by kind, shape (k, 3).
        novelty: 10th percentile and median of the pairs' z-scores, NaN if undefined, shape (k, 2).
        usual: median conventionality of its field and year, NaN where `novelty` is, shape (k,).
        team: how many wrote it, 0 where the source's tables do not say, shape (k,).
    """

    number: Ints
    year: Ints
    field: Ints
    disruption: npt.NDArray[np.int8]
    novel: npt.NDArray[np.int8]
    cd: Floats
    by_window: Floats
    references: Ints
    first_year: Ints
    novelty: Floats
    usual: Floats
    team: Ints

    def make_paper(self, k: int, work: Work, rule: LabelRule) -> Paper:
        """Join the k-th entry and the work it was computed for."""
        (tenth, median), usual = self.novelty[k].tolist(), float(self.usual[k])
        paired = not np.isnan(tenth)
        return Paper(
            openalex_id=work.id,
            title=work.title,
            abstract=" ".join(work.abstract.split()),
            publication_year=int(self.year[k]),
            cited_by_count=work.cited_by_count,
            cd_index=float(self.cd[k]),
            novelty_score=tenth if paired else None,
            conventionality_score=median if paired else None,
            disruption_label=DISRUPTION_LABELS[self.disruption[k]],
            novelty_label=NOVELTY_LABELS[self.novel[k]] if paired else None,
            primary_field=work.field,
            references=ReferenceFacts(*self.references[k].tolist()),
            first_year=FirstYear(*self.first_year[k].tolist()),
            field_median=usual if paired else None,
            label_rule=rule,
            cd_by_window=tuple(
                (years, value)
                for years, value in zip(WINDOWS, self.by_window[k].tolist(), strict=True)
                if not np.isnan(value)
            ),
            authors=int(self.team[k]) or work.authors or None,
        )


def score_year(
    corpus: Corpus,
    year: int,
    *,
    last_year: int,
    window: int,
    seed: int,
    shuffles: int,
    rule: LabelRule,
    share: float,
    folder: Path | None = None,
) -> Scored:
    """Score and label the eligible papers of one publication year, in ascending number.

    Args:
        corpus: the papers.
        year: the publication year.
        last_year: last year that the graph covers completely.
        window: years after publication that citers count.
        seed: entropy of the shuffles behind the novelty scores.
        shuffles: how many shuffles; 0 leaves novelty undefined.
        rule: `threshold` labels CD by ±0.1; `percentile` by rank within field and year.
        share: size of either tail of the percentile rule.
        folder: for temporary files, see `shuffled_scores`.
    """
    graph = corpus.graph
    cohort = corpus.score(year, window=window, seed=seed, shuffles=shuffles, folder=folder)
    field = cast(Ints, corpus.field[cohort.number])
    usual = _compute_field_medians(field, cohort.novelty[:, 1])
    place = np.flatnonzero(
        eligible(
            cohort.references,
            cohort.counts.citers,
            year,
            last_year=last_year,
            window=window,
            article=corpus.article[cohort.number],
        )
    )
    number, field, usual = cohort.number[place], field[place], usual[place]
    novelty, cd = cohort.novelty[place], cohort.counts.cd()[place]
    years = np.full(len(place), year)
    if rule == "threshold":  # a ratio of counts is at the threshold exactly or by more than rounds
        disruption = np.select([cd > THRESHOLD, cd < -THRESHOLD], [0, 1], 2).astype(np.int8)
    else:
        disruption = encode_labels(percentile_labels(cd, field, years, share=share))
    novel = [
        -1 if np.isnan(tenth) else NOVELTY_LABELS.index(novelty_label(tenth, median, common))
        for tenth, median, common in np.column_stack([novelty, usual]).tolist()
    ]
    early = graph.counts(number, window=1)
    facts = [corpus.describe_references(position) for position in (cohort.first + place).tolist()]
    by_window = [
        graph.counts(number, window=span).cd()
        if year + span <= last_year
        else np.full(len(number), np.nan)
        for span in WINDOWS
    ]
    return Scored(
        number=number,
        year=years,
        field=field,
        disruption=disruption,
        novel=np.array(novel, dtype=np.int8),
        cd=cd,
        by_window=np.stack(by_window, axis=1),
        references=np.array(facts, dtype=np.int64).reshape(-1, 4),
        first_year=np.stack([early.n_i, early.n_j, early.n_k], axis=1),
        novelty=novelty,
        usual=usual,
        team=np.zeros_like(number) if corpus.team is None else corpus.team[number],
    )


def encode_labels(labels: npt.NDArray[np.str_]) -> npt.NDArray[np.int8]:
    """Return the position of each label in `DISRUPTION_LABELS`, -1 of the empty string."""
    return np.select([labels == name for name in DISRUPTION_LABELS], range(3), -1).astype(np.int8)


def _compute_field_medians(field: npt.NDArray[np.integer[Any]], median: Floats) -> Floats:
    """Median of `median` in each paper's field; NaN where it is NaN itself."""
    usual = np.full(len(median), np.nan)
    known = ~np.isnan(median)
    for one in np.unique(field[known]):
        of_field = known & (field == one)
        usual[of_field] = np.median(median[of_field])
    return usual
