"""Scores and labels of the papers of a citation graph, year by year."""

from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.data.corpus import Corpus
from tokengym.envs.disruption.data.openalex import Work
from tokengym.envs.disruption.labels import (
    DISRUPTION_LABELS,
    LEAST_CITERS,
    LEAST_REFERENCES,
    NOVELTY_LABELS,
    THRESHOLD,
    novelty_label,
    percentile_places,
)
from tokengym.envs.disruption.paper import FirstYear, LabelRule, Paper, ReferenceFacts
from tokengym.rewards.arrays import Floats, Ints

WINDOWS = (3, 5, 10)
"""Citation windows in years in which CD is computed besides a set's own, where complete."""


class ScoredPapers(NamedTuple):
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
) -> ScoredPapers:
    """Score and label the eligible papers of one publication year, in ascending number.

    Eligible are articles with five references in the graph and five citers.

    Args:
        corpus: the papers.
        year: the publication year, whose window ends by `last_year`.
        last_year: last year that the graph covers completely.
        window: years after publication that citers count.
        seed: entropy of the shuffles behind the novelty scores.
        shuffles: how many shuffles; 0 leaves novelty undefined.
        rule: `threshold` labels CD by ±0.1; `percentile` by rank within field and year.
        share: size of either tail of the percentile rule.
    """
    graph = corpus.graph
    cohort = corpus.score(year, window=window, seed=seed, shuffles=shuffles)
    field = cast(Ints, corpus.field[cohort.number])
    usual = _compute_field_medians(field, cohort.novelty[:, 1])
    place = np.flatnonzero(
        (cohort.references >= LEAST_REFERENCES)
        & (cohort.counts.citers >= LEAST_CITERS)
        & corpus.article[cohort.number]
    )
    number, field, usual = cohort.number[place], field[place], usual[place]
    novelty, cd = cohort.novelty[place], cohort.counts.cd()[place]
    if rule == "threshold":  # a ratio of counts is at the threshold exactly or by more than rounds
        disruption = np.select([cd > THRESHOLD, cd < -THRESHOLD], [0, 1], 2).astype(np.int8)
    else:
        disruption = percentile_places(cd, field, share)
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
    return ScoredPapers(
        number=number,
        year=np.full(len(place), year),
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


def _compute_field_medians(field: npt.NDArray[np.integer[Any]], median: Floats) -> Floats:
    """Median of `median` in each paper's field; NaN where it is NaN itself."""
    usual = np.full(len(median), np.nan)
    known = ~np.isnan(median)
    for one in np.unique(field[known]):
        of_field = known & (field == one)
        usual[of_field] = np.median(median[of_field])
    return usual
