"""From works to labelled papers: graph, CD index, novelty, reference facts, eligibility."""

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.citations import CitationGraph
from tokengym.envs.disruption.labels import disruption_label, eligible, novelty_label
from tokengym.envs.disruption.novelty import ReferenceSlots, shuffled_scores
from tokengym.envs.disruption.paper import FirstYear, Paper, ReferenceFacts
from tokengym.envs.disruption.sources.work import Work

IntArray = npt.NDArray[np.int64]


def papers_of(
    works: Sequence[Work],
    *,
    last_year: int,
    window: int = 5,
    seed: int = 0,
    shuffles: int = 20,
    executor: Executor | None = None,
) -> list[Paper]:
    """Compute scores and labels of every eligible article among `works`.

    Scores see only what is among `works`: a sample of the literature gives the metrics of that
    sample. Novelty is scored within each publication year; a paper without two references of known
    venue has none.

    Args:
        works: records with distinct ids.
        last_year: last year that `works` covers completely.
        window: years after publication that citers count.
        seed: entropy of the shuffles behind the novelty scores.
        shuffles: how many shuffles.
        executor: where to count and shuffle; here if `None`.

    Returns:
        papers in the order of `works`.
    """
    number = {work.id: k for k, work in enumerate(works)}
    years = np.array([work.year for work in works], dtype=np.int64)
    lists = [
        np.array(sorted({number[r] for r in work.references if r in number}), dtype=np.int64)
        for work in works
    ]
    citing = np.repeat(np.arange(len(works)), [len(listed) for listed in lists])
    cited = np.concatenate(lists) if lists else np.array([], dtype=np.int64)
    graph = CitationGraph.from_edges(years, citing, cited)
    counts = graph.counts(window=window, executor=executor)
    first = graph.counts(window=1, executor=executor)
    chosen = eligible(
        graph.reference_counts,
        counts.citers,
        years,
        last_year=last_year,
        window=window,
        article=np.array([work.type == "article" for work in works], dtype=bool),
    )
    novelty = _novelty(works, lists, years, seed, shuffles, executor)
    medians = _field_medians(works, novelty)
    cd = counts.cd()
    papers = []
    for k in np.flatnonzero(chosen).tolist():
        work = works[k]
        tenth, median = novelty[k].tolist()
        scored = not np.isnan(tenth)
        usual = medians.get((work.field, work.year), 0.0)
        papers.append(
            Paper(
                openalex_id=work.id,
                title=work.title,
                abstract=work.abstract,
                publication_year=work.year,
                cited_by_count=work.cited_by_count,
                cd_index=float(cd[k]),
                novelty_score=tenth if scored else None,
                conventionality_score=median if scored else None,
                disruption_label=disruption_label(
                    int(counts.n_i[k]), int(counts.n_j[k]), int(counts.n_k[k])
                ),
                novelty_label=novelty_label(tenth, median, usual) if scored else None,
                primary_field=work.field,
                references=_facts(works, lists[k], work.year),
                first_year=FirstYear(int(first.n_i[k]), int(first.n_j[k]), int(first.n_k[k])),
                field_median=usual if scored else None,
            )
        )
    return papers


def _facts(works: Sequence[Work], references: IntArray, year: int) -> ReferenceFacts:
    listed = [works[k] for k in references.tolist()]
    ages = [max(0, year - reference.year) for reference in listed]
    return ReferenceFacts(
        count=len(listed),
        age=int(np.rint(np.median(ages))),
        venues=len({reference.venue for reference in listed} - {""}),
        fields=len({reference.field for reference in listed} - {""}),
    )


def _novelty(
    works: Sequence[Work],
    lists: Sequence[IntArray],
    years: IntArray,
    seed: int,
    shuffles: int,
    executor: Executor | None,
) -> npt.NDArray[np.float64]:
    """Novelty and conventionality of every work, shape (n, 2); NaN where undefined."""
    names = sorted({work.venue for work in works} - {""})
    venue_number = {name: k for k, name in enumerate(names)}
    venues = np.array([venue_number.get(work.venue, -1) for work in works], dtype=np.int64)
    out = np.full((len(works), 2), np.nan)
    for year in np.unique(years).tolist():
        cohort = np.flatnonzero(years == year)
        kept = [lists[k][venues[lists[k]] >= 0] for k in cohort.tolist()]
        slots = np.concatenate(kept)
        if len(slots):
            starts = np.concatenate([[0], np.cumsum([len(listed) for listed in kept])])
            scores = shuffled_scores(
                ReferenceSlots(starts, venues[slots], years[slots]),
                seed=seed,
                shuffles=shuffles,
                executor=executor,
            )
            out[cohort] = scores.percentiles()
    return out


def _field_medians(
    works: Sequence[Work], novelty: npt.NDArray[np.float64]
) -> dict[tuple[str, int], float]:
    """Median conventionality of each field and year."""
    groups: dict[tuple[str, int], list[float]] = {}
    for work, (_, median) in zip(works, novelty.tolist(), strict=True):
        if not np.isnan(median):
            groups.setdefault((work.field, work.year), []).append(median)
    return {group: float(np.median(values)) for group, values in groups.items()}
