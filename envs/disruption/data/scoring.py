"""Scores and labels of the eligible papers of a citation graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.array_files import scratch_arrays
from tokengym.envs.disruption.citations import CitationGraph, offsets, row_blocks
from tokengym.envs.disruption.data.openalex import Work
from tokengym.envs.disruption.labels import (
    DISRUPTION_LABELS,
    NOVELTY_LABELS,
    disruption_labels,
    eligible,
    novelty_label,
    percentile_labels,
)
from tokengym.envs.disruption.novelty import ReferenceSlots, shuffled_scores
from tokengym.envs.disruption.paper import FirstYear, LabelRule, Paper, ReferenceFacts

WINDOWS = (3, 5, 10)
"""Citation windows in years in which CD is computed besides a set's own, where complete."""

_REFERENCES = 1 << 21
"""References looked up at once."""

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Corpus:
    """A citation graph and other facts about its papers, by their numbers in it.

    Attributes:
        graph: who cites whom; times are publication years.
        article: whether it is an article, shape (n,).
        venue: a number of the venue, -1 if unknown, shape (n,).
        field: a number of the field, -1 if unknown, shape (n,).
        novelty: 10th percentile and median of the pairs' z-scores, each of shape (n,), where a
            source gives them; otherwise they are estimated by shuffles.
    """

    graph: CitationGraph
    article: npt.NDArray[np.bool_]
    venue: npt.NDArray[np.integer[Any]]
    field: npt.NDArray[np.integer[Any]]
    novelty: tuple[FloatArray, FloatArray] | None = None


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
    """

    number: IntArray
    year: IntArray
    field: IntArray
    disruption: npt.NDArray[np.int8]
    novel: npt.NDArray[np.int8]
    cd: FloatArray
    by_window: FloatArray
    references: IntArray
    first_year: IntArray
    novelty: FloatArray
    usual: FloatArray

    def make_paper(self, k: int, work: Work, rule: LabelRule) -> Paper:
        """Join the k-th entry and the work it was computed for."""
        (tenth, median), usual = self.novelty[k].tolist(), float(self.usual[k])
        paired = not np.isnan(tenth)
        return Paper(
            openalex_id=work.id,
            title=_clean(work.title),
            abstract=_clean(work.abstract),
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
        )


def score_year(
    corpus: Corpus,
    year: int,
    *,
    last_year: int,
    window: int = 5,
    seed: int = 0,
    shuffles: int = 20,
    rule: LabelRule = "threshold",
    share: float = 0.25,
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
    first, end = np.searchsorted(graph.times, [year, year + 1]).tolist()
    if year + window > last_year:
        end = first
    number = np.asarray(graph.order[first:end])
    field = cast(IntArray, corpus.field[number])
    counts = graph.counts(number, window=window)
    how = {"seed": seed, "shuffles": shuffles}
    novelty = score_novelty(graph, corpus.venue, corpus.novelty, first, end, **how, folder=folder)
    usual = _compute_field_medians(field, novelty[:, 1])
    place = np.flatnonzero(
        eligible(
            np.diff(graph.starts[first : end + 1]),
            counts.citers,
            np.full(len(number), year),
            last_year=last_year,
            window=window,
            article=corpus.article[number],
        )
    )
    number, field, novelty, usual = number[place], field[place], novelty[place], usual[place]
    years = np.full(len(place), year)
    cd = counts.cd()[place]
    if rule == "threshold":
        disruption = disruption_labels(*(n[place] for n in (counts.n_i, counts.n_j, counts.n_k)))
    else:
        disruption = percentile_labels(cd, field, years, share=share)
    novel = [
        -1 if np.isnan(tenth) else NOVELTY_LABELS.index(novelty_label(tenth, median, common))
        for tenth, median, common in np.column_stack([novelty, usual]).tolist()
    ]
    early = graph.counts(number, window=1)
    facts = [_describe_references(corpus, position) for position in (first + place).tolist()]
    return Scored(
        number=number,
        year=years,
        field=field,
        disruption=encode_labels(disruption, DISRUPTION_LABELS),
        novel=np.array(novel, dtype=np.int8),
        cd=cd,
        by_window=_compute_cd_by_window(graph, number, year, last_year),
        references=np.array(facts, dtype=np.int64).reshape(-1, 4),
        first_year=np.stack([early.n_i, early.n_j, early.n_k], axis=1),
        novelty=novelty,
        usual=usual,
    )


def label_works(
    works: Sequence[Work],
    *,
    last_year: int,
    window: int = 5,
    seed: int = 0,
    shuffles: int = 20,
    rule: LabelRule = "threshold",
    share: float = 0.25,
) -> list[Paper]:
    """Score and label every eligible article among works in memory.

    Scores see only what is among `works`: a sample of the literature gives the metrics of that
    sample. Novelty is scored within each publication year; a paper without two references of known
    venue has none. No value depends on the order of `works`. For more works than fit into memory
    see `build_papers`, which gives the same labels.

    Args:
        works: records with distinct ids.
        last_year: last year that `works` covers completely.
        window: years after publication that citers count.
        seed: entropy of the shuffles behind the novelty scores.
        shuffles: how many shuffles; 0 leaves novelty undefined.
        rule: `threshold` labels CD by ±0.1; `percentile` by rank within field and year.
        share: size of either tail of the percentile rule.

    Returns:
        papers in the order of `works`.
    """
    listed = sorted(works, key=lambda work: (len(work.id), work.id))
    number = {work.id: k for k, work in enumerate(listed)}
    edges = [
        (k, number[r]) for k, work in enumerate(listed) for r in work.references if r in number
    ]
    corpus = Corpus(
        CitationGraph.from_edges(
            np.array([work.year for work in listed], dtype=np.int64),
            [citing for citing, _ in edges],
            [cited for _, cited in edges],
        ),
        np.array([work.type == "article" and not work.withheld for work in listed], dtype=bool),
        _number_names([work.venue for work in listed]),
        _number_names([work.field for work in listed]),
    )
    papers = {}
    for year in np.unique(corpus.graph.times).tolist():
        scored = score_year(
            corpus,
            year,
            last_year=last_year,
            window=window,
            seed=seed,
            shuffles=shuffles,
            rule=rule,
            share=share,
        )
        for k, which in enumerate(scored.number.tolist()):
            papers[listed[which].id] = scored.make_paper(k, listed[which], rule)
    return [papers[work.id] for work in works if work.id in papers]


def encode_labels(labels: npt.NDArray[np.str_], names: Sequence[str]) -> npt.NDArray[np.int8]:
    """Return the position of each label among `names`, -1 of the empty string."""
    return np.select([labels == name for name in names], range(len(names)), -1).astype(np.int8)


def _compute_cd_by_window(
    graph: CitationGraph, number: IntArray, year: int, last_year: int
) -> FloatArray:
    """CD index of papers of one year within each of `WINDOWS`, NaN where it is not complete."""
    found = np.full((len(number), len(WINDOWS)), np.nan)
    for k, years in enumerate(WINDOWS):
        if year + years <= last_year:
            found[:, k] = graph.counts(number, window=years).cd()
    return found


def _number_names(names: Sequence[str]) -> IntArray:
    """Return a number for each name, -1 for the empty one."""
    code = {name: k for k, name in enumerate(sorted(set(names) - {""}))}
    return np.array([code.get(name, -1) for name in names], dtype=np.int64)


def _clean(text: str) -> str:
    """Put text on one line of valid UTF-8: JSON may spell halves of characters."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def score_novelty(
    graph: CitationGraph,
    venue_of: npt.NDArray[np.integer[Any]] | None,
    own: tuple[FloatArray, FloatArray] | None,
    first: int,
    end: int,
    *,
    seed: int,
    shuffles: int,
    folder: Path | None = None,
) -> FloatArray:
    """Return novelty and conventionality of papers of one year.

    Args:
        graph: who cites whom.
        venue_of: a number of each paper's venue, -1 if unknown, shape (n,), if there are any.
        own: the scores of a source that has them; otherwise venues are shuffled.
        first: position of the first paper in the graph's order.
        end: position after the last.
        seed: entropy of the shuffles.
        shuffles: how many, >= 2; 0 leaves the scores undefined.
        folder: for temporary files, see `shuffled_scores`.

    Returns:
        10th percentile and median of the pairs' z-scores, NaN if undefined, shape (end - first, 2).
    """
    if own is not None:
        return np.stack([scores[graph.order[first:end]] for scores in own], axis=1)
    if not shuffles or venue_of is None:
        return np.full((end - first, 2), np.nan)
    starts = np.asarray(graph.starts[first : end + 1])
    lengths = [np.zeros(0, dtype=np.int64)]
    with scratch_arrays(folder) as new:
        venue, year = new(np.int64), new(np.int64)
        for a, b in row_blocks(starts, _REFERENCES):
            cited = np.asarray(graph.cited[starts[a] : starts[b]])
            of_cited = venue_of[graph.order[cited]]
            known = of_cited >= 0
            venue.append(of_cited[known])
            year.append(graph.times[cited[known]])
            lengths.append(np.diff(offsets(known)[starts[a : b + 1] - starts[a]]))
        slots = ReferenceSlots(offsets(np.concatenate(lengths)), venue, year)
        return shuffled_scores(slots, seed=seed, shuffles=shuffles, folder=folder)


def _compute_field_medians(field: npt.NDArray[np.integer[Any]], median: FloatArray) -> FloatArray:
    """Median of `median` in each paper's field; NaN where it is NaN itself."""
    usual = np.full(len(median), np.nan)
    known = ~np.isnan(median)
    for one in np.unique(field[known]):
        of_field = known & (field == one)
        usual[of_field] = np.median(median[of_field])
    return usual


def _describe_references(corpus: Corpus, position: int) -> tuple[int, int, int, int]:
    """Return the `ReferenceFacts` of the paper at a position of the graph's order."""
    graph = corpus.graph
    cited = np.asarray(graph.cited[graph.starts[position] : graph.starts[position + 1]])
    number = graph.order[cited]
    age = np.maximum(0, graph.times[position] - graph.times[cited])
    venues, fields = np.unique(corpus.venue[number]), np.unique(corpus.field[number])
    known = int((venues >= 0).sum()), int((fields >= 0).sum())
    return len(cited), int(np.rint(np.median(age))), *known
