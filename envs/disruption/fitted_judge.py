"""A judge fitted to a user's papers: how often a claim holds among those of each label."""

import re
from collections import Counter
from functools import lru_cache

import numpy as np

from tokengym.envs.disruption.claims import Claim, Fact, Quote
from tokengym.envs.disruption.data.dataset import PaperSet
from tokengym.envs.disruption.evidence import Evidence, evidence_of_paper
from tokengym.envs.disruption.judge import FLOOR, Judge
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import FloatArray

_SHRINKAGE = 4.0
"""Papers by which the share of a label counts as that of all papers: so rare words say little."""
_MOST_QUOTES = 24


class FittedJudge(Judge):
    """Takes labels for classes, and words and facts of a paper for independent given its label.

    Args:
        papers: whose training split it is fitted to.
    """

    def __init__(self, papers: PaperSet) -> None:
        self._facts: dict[tuple[Target, int], list[dict[str, int]]] = {}
        self._words: dict[tuple[Target, int], Counter[str]] = {}
        for target, names in LABELS.items():
            for place, name in enumerate(names):
                train = papers.papers["train"]
                of_label = [paper for paper in train if paper.labels()[target] == name]
                shown = [evidence_of_paper(paper, "L2") for paper in of_label]
                self._facts[target, place] = [dict(evidence.facts) for evidence in shown]
                words = Counter(word for evidence in shown for word in set(_words(evidence.text)))
                self._words[target, place] = words

    def likelihood(self, claim: Claim, target: Target) -> FloatArray:
        """Return how often a claim holds among the papers of each label."""
        if isinstance(claim, Quote):
            product = np.ones(3)
            for word in set(_words(claim.words)):
                using = [self._words[target, label][word] for label in range(3)]
                product *= _shares(using, [len(self._facts[target, k]) for k in range(3)])
            return product
        if not isinstance(claim, Fact):
            return np.ones(3)
        low, high = claim.interval()
        known = [
            [facts[claim.feature] for facts in self._facts[target, k] if claim.feature in facts]
            for k in range(3)
        ]
        holding = [sum(low <= value <= high for value in values) for values in known]
        return _shares(holding, [len(values) for values in known])

    def weights(self, target: Target) -> FloatArray:
        """Return the identity: a class is a label."""
        return np.eye(3)

    def subjects(self, claim: Claim) -> frozenset[str]:
        """Return the feature or the words that a claim is about."""
        if isinstance(claim, Fact):
            return frozenset({claim.feature})
        return frozenset(_words(claim.words)) if isinstance(claim, Quote) else frozenset()

    def quotes(self, evidence: Evidence) -> list[Claim]:
        """Return the words of the paper that tell labels apart best."""
        quotes: list[Claim] = [Quote(word) for word in sorted(set(_words(evidence.text)))]

        def telling(quote: Claim) -> float:
            return max(float(np.ptp(np.log(self.likelihood(quote, t)))) for t in LABELS)

        return sorted(quotes, key=telling, reverse=True)[:_MOST_QUOTES]


@lru_cache(maxsize=8)
def fitted_judge(papers: PaperSet) -> FittedJudge:
    """Return the judge of a user's papers, fitted once per process."""
    return FittedJudge(papers)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _shares(holding: list[int], papers: list[int]) -> FloatArray:
    """Return the share of papers of each label, shrunk towards that of all."""
    overall = sum(holding) / max(sum(papers), 1)
    shares = (np.array(holding) + _SHRINKAGE * overall) / (np.array(papers) + _SHRINKAGE)
    return np.maximum(shares, FLOOR)
