"""From works in memory to labelled papers: graph, CD index, novelty, facts, eligibility.

For more works than fit into memory see `build`, which gives the same labels.
"""

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.citations import CitationGraph
from tokengym.envs.disruption.data.scoring import Corpus, LabelRule, score_year
from tokengym.envs.disruption.data.work import Work
from tokengym.envs.disruption.paper import Paper


def papers_of(
    works: Sequence[Work],
    *,
    last_year: int,
    window: int = 5,
    seed: int = 0,
    shuffles: int = 20,
    rule: LabelRule = "threshold",
    share: float = 0.25,
    executor: Executor | None = None,
) -> list[Paper]:
    """Compute scores and labels of every eligible article among `works`.

    Scores see only what is among `works`: a sample of the literature gives the metrics of that
    sample. Novelty is scored within each publication year; a paper without two references of known
    venue has none. No value depends on the order of `works`.

    Args:
        works: records with distinct ids.
        last_year: last year that `works` covers completely.
        window: years after publication that citers count.
        seed: entropy of the shuffles behind the novelty scores.
        shuffles: how many shuffles.
        rule: `threshold` labels CD by ±0.1; `percentile` by rank within field and year.
        share: size of either tail of the percentile rule.
        executor: where to count and shuffle; here if `None`.

    Returns:
        papers in the order of `works`.
    """
    listed = sorted(works, key=lambda work: (len(work.id), work.id))
    corpus = _corpus(listed)
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
            executor=executor,
        )
        for k, number in enumerate(scored.number.tolist()):
            work = listed[number]
            papers[work.id] = Paper(
                openalex_id=work.id,
                title=work.title,
                abstract=work.abstract,
                cited_by_count=work.cited_by_count,
                primary_field=work.field,
                label_rule=rule,
                **scored.fields(k),
            )
    return [papers[work.id] for work in works if work.id in papers]


def _corpus(works: Sequence[Work]) -> Corpus:
    """The graph among works, numbered in their order."""
    number = {work.id: k for k, work in enumerate(works)}
    edges = [(k, number[r]) for k, work in enumerate(works) for r in work.references if r in number]
    return Corpus(
        CitationGraph.from_edges(
            np.array([work.year for work in works], dtype=np.int64),
            [citing for citing, _ in edges],
            [cited for _, cited in edges],
        ),
        np.array([work.type == "article" for work in works], dtype=bool),
        _codes([work.venue for work in works]),
        _codes([work.field for work in works]),
    )


def _codes(names: Sequence[str]) -> npt.NDArray[np.int64]:
    """A number for each name, -1 for the empty one."""
    code = {name: k for k, name in enumerate(sorted(set(names) - {""}))}
    return np.array([code.get(name, -1) for name in names], dtype=np.int64)
