"""The audit of a finished set: no prompt shows the future, no text is in two splits."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.world import PROMPTS
from tokengym.envs.disruption.data.columns import leaks_outcome
from tokengym.envs.disruption.evidence import PAPER_LEVELS, evidence_of_paper
from tokengym.envs.disruption.grammar import PredictorAnswer
from tokengym.envs.disruption.labels import LABELS
from tokengym.envs.disruption.paper import Paper
from tokengym.envs.disruption.texts import Case, macros
from tokengym.envs.intake.near import content_words, hash_words, normal_form

_THIRD = (1 / 3, 1 / 3, 1 / 3)
_ANSWER = PredictorAnswer((2, 2), (_THIRD, _THIRD), ())


def audit(papers: Mapping[str, Sequence[Paper]], window: int) -> dict[str, Any]:
    """Check a set against its rules, and count.

    Args:
        papers: the papers of each split.
        window: years after publication that citers count.

    Returns:
        `prompts_compared`, and what the set holds: `counts` by split and label, `by_field`,
        `by_year`, `last_year_counted` for train and validation, `first_year_of_test`.

    Raises:
        DataError: if a prompt changes with the future of its paper, a text speaks of it, a text is
            in the set twice, or a paper of `test` is as early as what labels of the others count.
    """
    every = [paper for listed in papers.values() for paper in listed]
    compared = sum(map(_compare_prompts, every))
    for paper in every:
        if leaks_outcome(paper.openalex_id, paper.title, paper.abstract):
            raise DataError(f"the text of {paper.openalex_id} speaks of its later use")
    _refuse_repeats(every)
    earlier = [paper.publication_year for s in SPLITS[:2] for paper in papers.get(s, ())]
    tested = [paper.publication_year for paper in papers.get("test", ())]
    counted, first = max(earlier, default=None), min(tested, default=None)
    if counted is not None and first is not None and counted + window >= first:
        raise DataError(
            f"a paper of {counted} is labelled by citers up to {counted + window}, but test "
            f"begins in {first}"
        )
    return {
        "prompts_compared": compared,
        "last_year_counted": None if counted is None else counted + window,
        "first_year_of_test": first,
        "counts": {
            split: {target: _count(str(p.labels()[target]) for p in listed) for target in LABELS}
            for split, listed in papers.items()
        },
        "by_field": {s: _count(p.primary_field for p in listed) for s, listed in papers.items()},
        "by_year": {
            s: _count(str(p.publication_year) for p in listed) for s, listed in papers.items()
        },
    }


def _count(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _compare_prompts(paper: Paper) -> int:
    """Compare all prompts with those of a paper with another future, and return how many."""
    ours, theirs = _prompts(paper), _prompts(_with_another_future(paper))
    if ours != theirs:
        raise DataError(f"a prompt of {paper.openalex_id} depends on the outcome")
    return len(ours)


def _prompts(paper: Paper) -> list[str]:
    targets = tuple(LABELS)
    found = []
    for level in PAPER_LEVELS:
        evidence = evidence_of_paper(paper, level)
        case = Case(evidence, targets, True, "adversary", level)
        for texts in (macros(f"prompt_{prompt}") for prompt in PROMPTS):
            found += [texts.opening(case), texts.challenge(case, _ANSWER.write(case.targets))]
    return found


def _with_another_future(paper: Paper) -> Paper:
    """The same paper with another id, other later counts, other scores and other labels."""
    cd, disruption = (-0.9, "consolidating")
    if paper.disruption_label == disruption:
        cd, disruption = (0.9, "disruptive")
    scores, novelty = (1.25, 2.5), "conventional"
    if paper.novelty_label == novelty:
        scores, novelty = (-1.25, -0.5), "novel"
    return dataclasses.replace(
        paper,
        openalex_id="W0",
        cited_by_count=paper.cited_by_count + 1,
        cd_index=cd,
        disruption_label=disruption,
        novelty_score=scores[0],
        conventionality_score=scores[1],
        novelty_label=novelty,
        novelty_scale=None,
        field_median=0.0,
        cd_by_window=(),
    )


def _refuse_repeats(papers: Iterable[Paper]) -> None:
    seen: dict[tuple[str, int], str] = {}
    for paper in papers:
        words = {"title": content_words(paper.title), "abstract": normal_form(paper.abstract)}
        for kind, text in words.items():
            key = kind, hash_words(text)
            if key[1] and seen.setdefault(key, paper.openalex_id) != paper.openalex_id:
                raise DataError(f"{seen[key]} and {paper.openalex_id} have the same {kind}")
