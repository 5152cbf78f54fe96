"""From a citation graph to scores and labels of the papers that are eligible for them."""

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.citations import CitationGraph
from tokengym.envs.disruption.labels import (
    DISRUPTION_LABELS,
    NOVELTY_LABELS,
    disruption_labels,
    eligible,
    novelty_label,
    percentile_labels,
)
from tokengym.envs.disruption.novelty import ReferenceSlots, shuffled_scores
from tokengym.envs.disruption.paper import FirstYear, ReferenceFacts

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
LabelRule = Literal["threshold", "percentile"]


@dataclass(frozen=True, eq=False)
class Corpus:
    """A citation graph and what else is known of its papers, by their numbers in it.

    Attributes:
        graph: who cites whom; times are publication years.
        article: whether it is an article, shape (n,).
        venue: a number of the venue, -1 if unknown, shape (n,).
        field: a number of the field, -1 if unknown, shape (n,).
    """

    graph: CitationGraph
    article: npt.NDArray[np.bool_]
    venue: npt.NDArray[np.integer[Any]]
    field: npt.NDArray[np.integer[Any]]


class Scored(NamedTuple):
    """Eligible papers, one entry a paper.

    Attributes:
        number: which paper, shape (k,).
        year: publication year, shape (k,).
        cd: CD index, shape (k,).
        references: count, median age, venues and fields of the references, shape (k, 4).
        first_year: citers of the first year by kind, shape (k, 3).
        novelty: 10th percentile and median of the pairs' z-scores, NaN if undefined, shape (k, 2).
        usual: median conventionality of its field and year, NaN where `novelty` is, shape (k,).
        disruption: position of the CD index's label in `LABELS`, shape (k,).
        novel: position of the novelty scores' label, -1 where they are undefined, shape (k,).
    """

    number: IntArray
    year: IntArray
    cd: FloatArray
    references: IntArray
    first_year: IntArray
    novelty: FloatArray
    usual: FloatArray
    disruption: npt.NDArray[np.int8]
    novel: npt.NDArray[np.int8]

    def fields(self, k: int) -> dict[str, Any]:
        """The k-th paper as fields of a `Paper`, without what a source says of it."""
        (tenth, median), usual = self.novelty[k].tolist(), float(self.usual[k])
        paired = not np.isnan(tenth)
        return {
            "publication_year": int(self.year[k]),
            "cd_index": float(self.cd[k]),
            "novelty_score": tenth if paired else None,
            "conventionality_score": median if paired else None,
            "disruption_label": DISRUPTION_LABELS[self.disruption[k]],
            "novelty_label": NOVELTY_LABELS[self.novel[k]] if paired else None,
            "references": ReferenceFacts(*self.references[k].tolist()),
            "first_year": FirstYear(*self.first_year[k].tolist()),
            "field_median": usual if paired else None,
        }


def score_year(
    corpus: Corpus,
    year: int,
    *,
    last_year: int,
    window: int = 5,
    seed: int = 0,
    shuffles: int = 20,
    novelty: FloatArray | None = None,
    rule: LabelRule = "threshold",
    share: float = 0.25,
    executor: Executor | None = None,
) -> Scored:
    """Score and label the eligible papers of one publication year, in ascending number.

    Args:
        corpus: the papers.
        year: the publication year.
        last_year: last year that the graph covers completely.
        window: years after publication that citers count.
        seed: entropy of the shuffles behind the novelty scores.
        shuffles: how many shuffles; 0 leaves novelty undefined.
        novelty: scores that are known already, by number, shape (n, 2), instead of shuffles.
        rule: `threshold` labels CD by ±0.1; `percentile` by rank within field and year.
        share: size of either tail of the percentile rule.
        executor: where to count and shuffle; here if `None`.
    """
    graph = corpus.graph
    first, end = np.searchsorted(graph.times, [year, year + 1]).tolist()
    if year + window > last_year:
        end = first
    number = np.asarray(graph.order[first:end])
    field = np.asarray(corpus.field[number])
    counts = graph.counts(number, window=window, executor=executor)
    if novelty is not None:
        scores = np.asarray(novelty[number], dtype=np.float64)
    elif shuffles:
        scores = _shuffled(corpus, first, end, seed, shuffles, executor)
    else:
        scores = np.full((len(number), 2), np.nan)
    usual = _field_medians(field, scores[:, 1])
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
    early = graph.counts(number[place], window=1, executor=executor)
    cd = counts.cd()[place]
    years = np.full(len(place), year)
    if rule == "threshold":
        kinds = (column[place] for column in (counts.n_i, counts.n_j, counts.n_k))
        disruption = disruption_labels(*kinds).tolist()
    else:
        disruption = percentile_labels(cd, field[place], years, share=share).tolist()
    rows = zip(scores[place].tolist(), usual[place].tolist(), strict=True)
    novel = [
        -1 if np.isnan(tenth) else NOVELTY_LABELS.index(novelty_label(tenth, median, common))
        for (tenth, median), common in rows
    ]
    facts = [_facts(corpus, position) for position in (first + place).tolist()]
    return Scored(
        number=number[place],
        year=years,
        cd=cd,
        references=np.array(facts, dtype=np.int64).reshape(-1, 4),
        first_year=np.stack([early.n_i, early.n_j, early.n_k], axis=1),
        novelty=scores[place],
        usual=usual[place],
        disruption=np.array([DISRUPTION_LABELS.index(x) for x in disruption], dtype=np.int8),
        novel=np.array(novel, dtype=np.int8),
    )


def _shuffled(
    corpus: Corpus, first: int, end: int, seed: int, shuffles: int, executor: Executor | None
) -> FloatArray:
    """Novelty of the papers at positions `first` to `end`, all of one year, shape (k, 2)."""
    graph = corpus.graph
    starts = np.asarray(graph.starts[first : end + 1])
    cited = np.asarray(graph.cited[starts[0] : starts[-1]])
    venue = np.asarray(corpus.venue[graph.order[cited]])
    known = venue >= 0
    if not known.any():
        return np.full((end - first, 2), np.nan)
    kept = np.concatenate([[0], np.cumsum(known)])[starts - starts[0]]
    names = np.unique(venue[known], return_inverse=True)[1]
    slots = ReferenceSlots(kept, names, np.asarray(graph.times[cited[known]]))
    return shuffled_scores(slots, seed=seed, shuffles=shuffles, executor=executor).percentiles()


def _field_medians(field: npt.NDArray[np.integer[Any]], median: FloatArray) -> FloatArray:
    """Median of `median` in each paper's field; NaN where it is NaN itself."""
    usual = np.full(len(median), np.nan)
    known = ~np.isnan(median)
    for one in np.unique(field[known]):
        of_field = known & (field == one)
        usual[of_field] = np.median(median[of_field])
    return usual


def _facts(corpus: Corpus, position: int) -> tuple[int, int, int, int]:
    """`ReferenceFacts` of the paper at a position of the graph's order."""
    graph = corpus.graph
    cited = np.asarray(graph.cited[graph.starts[position] : graph.starts[position + 1]])
    number = graph.order[cited]
    age = np.maximum(0, graph.times[position] - graph.times[cited])
    venues, fields = np.unique(corpus.venue[number]), np.unique(corpus.field[number])
    known = int((venues >= 0).sum()), int((fields >= 0).sum())
    return len(cited), int(np.rint(np.median(age))), *known
