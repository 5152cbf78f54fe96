"""From a citation graph to scores and labels of the papers that are eligible for them."""

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.citations import CitationCounts, CitationGraph
from tokengym.envs.disruption.labels import (
    DISRUPTION_LABELS,
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

    @property
    def year(self) -> IntArray:
        """Publication year of each paper, shape (n,)."""
        year = np.empty(len(self.graph), dtype=np.int64)
        year[self.graph.order] = self.graph.times
        return year


class Cohort(NamedTuple):
    """Novelty of the papers of one year.

    Attributes:
        number: which papers, shape (k,).
        scores: 10th percentile and median of the pairs' z-scores, NaN if undefined, shape (k, 2).
    """

    number: IntArray
    scores: FloatArray


def cohort_novelty(
    corpus: Corpus, year: int, *, seed: int, shuffles: int, executor: Executor | None = None
) -> Cohort:
    """Score the reference lists of one publication year; references of unknown venue are left out.

    Args:
        corpus: the papers.
        year: the publication year.
        seed: entropy of the shuffles.
        shuffles: how many, >= 2.
        executor: where to run them; here if `None`.
    """
    graph = corpus.graph
    first, end = np.searchsorted(graph.times, [year, year + 1]).tolist()
    number = np.asarray(graph.order[first:end])
    starts = np.asarray(graph.starts[first : end + 1])
    cited = np.asarray(graph.cited[starts[0] : starts[-1]])
    venue = np.asarray(corpus.venue[graph.order[cited]], dtype=np.int64)
    known = venue >= 0
    if not known.any():
        return Cohort(number, np.full((len(number), 2), np.nan))
    kept = np.concatenate([[0], np.cumsum(known)])[starts - starts[0]]
    names = np.unique(venue[known], return_inverse=True)[1]
    slots = ReferenceSlots(kept, names, np.asarray(graph.times[cited[known]]))
    scores = shuffled_scores(slots, seed=seed, shuffles=shuffles, executor=executor)
    return Cohort(number, scores.percentiles())


@dataclass(frozen=True, eq=False)
class Scored:
    """The eligible papers in ascending number, one entry a paper.

    Attributes:
        number: which paper.
        year: publication year.
        field: number of its field.
        cd: CD index.
        first_year: citers of the first year by kind, shape (k, 3).
        novelty: 10th percentile and median of the pairs' z-scores, NaN if undefined, shape (k, 2).
        usual: median conventionality of its field and year, NaN where `novelty` is.
        disruption: label of the CD index.
        novel: label of the novelty scores, the empty string where they are undefined.
    """

    number: IntArray
    year: IntArray
    field: npt.NDArray[np.integer[Any]]
    cd: FloatArray
    first_year: IntArray
    novelty: FloatArray
    usual: FloatArray
    disruption: npt.NDArray[np.str_]
    novel: npt.NDArray[np.str_]


def score(
    corpus: Corpus,
    counts: CitationCounts,
    first_year: CitationCounts,
    novelty: FloatArray,
    *,
    last_year: int,
    window: int,
    rule: LabelRule = "threshold",
    share: float = 0.25,
) -> Scored:
    """Label every eligible paper.

    Args:
        corpus: the papers.
        counts: of all of them, in `window`.
        first_year: of all of them, in a window of one year.
        novelty: 10th percentile and median of all of them, shape (n, 2).
        last_year: last year that the graph covers completely.
        window: years after publication that citers count.
        rule: `threshold` labels CD by ±0.1; `percentile` by rank within field and year.
        share: size of either tail of the percentile rule.
    """
    year = corpus.year
    number = np.flatnonzero(
        eligible(
            corpus.graph.reference_counts,
            counts.citers,
            year,
            last_year=last_year,
            window=window,
            article=corpus.article,
        )
    )
    cd, field = counts.cd()[number], np.asarray(corpus.field[number])
    kinds = [column[number] for column in (counts.n_i, counts.n_j, counts.n_k)]
    if rule == "threshold":
        disruption = disruption_labels(*kinds)
    else:
        disruption = percentile_labels(cd, field, year[number], share=share)
    usual = field_medians(np.asarray(corpus.field), year, novelty[:, 1])[number]
    scores = novelty[number]
    novel = [
        "" if np.isnan(tenth) else novelty_label(tenth, median, common)
        for (tenth, median), common in zip(scores.tolist(), usual.tolist(), strict=True)
    ]
    return Scored(
        number,
        year[number],
        field,
        cd,
        np.stack([column[number] for column in first_year[:3]], axis=1),
        scores,
        usual,
        disruption,
        np.array(novel, dtype="<U12"),
    )


def field_medians(
    field: npt.NDArray[np.integer[Any]], year: IntArray, median: FloatArray
) -> FloatArray:
    """Median of `median` in each paper's field and year; NaN where it is NaN itself."""
    usual = np.full(len(median), np.nan)
    known = np.flatnonzero(~np.isnan(median))
    order = known[np.lexsort((year[known], field[known]))]
    if len(order):
        edges = (np.diff(field[order]) != 0) | (np.diff(year[order]) != 0)
        for cell in np.split(order, np.flatnonzero(edges) + 1):
            usual[cell] = np.median(median[cell])
    return usual


def label_fields(scored: Scored, k: int, rule: LabelRule) -> dict[str, Any]:
    """Scores and labels of the k-th eligible paper, as fields of a `Paper`."""
    (tenth, median), usual = scored.novelty[k].tolist(), float(scored.usual[k])
    paired = not np.isnan(tenth)
    n_i, n_j, n_k = scored.first_year[k].tolist()
    label = str(scored.disruption[k])
    return {
        "publication_year": int(scored.year[k]),
        "cd_index": float(scored.cd[k]),
        "novelty_score": tenth if paired else None,
        "conventionality_score": median if paired else None,
        "disruption_label": label if label in DISRUPTION_LABELS else None,
        "novelty_label": str(scored.novel[k]) if paired else None,
        "first_year": FirstYear(n_i, n_j, n_k),
        "field_median": usual if paired else None,
        "label_rule": rule,
    }


def reference_facts(corpus: Corpus, position: int) -> ReferenceFacts:
    """Facts of the reference list of the paper at a position of the graph's order."""
    graph = corpus.graph
    cited = np.asarray(graph.cited[graph.starts[position] : graph.starts[position + 1]])
    number = graph.order[cited]
    age = np.maximum(0, graph.times[position] - graph.times[cited])
    venues, fields = np.unique(corpus.venue[number]), np.unique(corpus.field[number])
    return ReferenceFacts(
        count=len(cited),
        age=int(np.rint(np.median(age))) if len(cited) else 0,
        venues=int((venues >= 0).sum()),
        fields=int((fields >= 0).sum()),
    )
