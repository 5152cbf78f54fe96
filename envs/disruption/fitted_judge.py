"""A judge fitted to a user's papers: how often a claim holds among those of each label."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.claims import Claim, Fact, Quote
from tokengym.envs.disruption.data.dataset import PaperSet
from tokengym.envs.disruption.evidence import FEATURES, Evidence, evidence_of_paper
from tokengym.envs.disruption.judge import FLOOR, Judge, Verified
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
        self._papers: dict[tuple[Target, int], int] = {}
        self._facts: dict[tuple[Target, int, str], npt.NDArray[np.int64]] = {}
        self._words: dict[tuple[Target, int], Counter[str]] = {}
        for target, place in product(LABELS, range(3)):
            shown = [
                evidence_of_paper(paper, "L2")
                for paper in papers.papers["train"]
                if paper.labels()[target] == LABELS[target][place]
            ]
            self._papers[target, place] = len(shown)
            for name in FEATURES:
                values = [evidence.facts[name] for evidence in shown if name in evidence.facts]
                self._facts[target, place, name] = np.sort(np.array(values, np.int64))
            words = Counter(word for evidence in shown for word in set(_words(evidence.text)))
            self._words[target, place] = words

    def likelihood(self, claim: Claim, target: Target) -> FloatArray:
        """Return how often a claim holds among the papers of each label."""
        found = np.ones(3)
        if isinstance(claim, Quote):
            papers = [self._papers[target, label] for label in range(3)]
            for word in set(_words(claim.words)):
                using = [self._words[target, label][word] for label in range(3)]
                found *= _shares(using, papers)
        elif isinstance(claim, Fact):
            low, high = claim.interval()
            known = [self._facts[target, label, claim.feature] for label in range(3)]
            holding = [
                max(int(v.searchsorted(high, "right") - v.searchsorted(low)), 0) for v in known
            ]
            found = _shares(holding, [len(values) for values in known])
        return found

    def weights(self, target: Target) -> FloatArray:
        """Return the identity: a class is a label."""
        return np.eye(3)

    def subjects(self, claim: Claim) -> frozenset[str]:
        """Return the feature or the words that a claim is about."""
        if isinstance(claim, Fact):
            return frozenset({claim.feature})
        return frozenset(_words(claim.words)) if isinstance(claim, Quote) else frozenset()

    def verify(
        self, claims: Sequence[Claim], evidence: Evidence, granted: Sequence[Claim] = ()
    ) -> Verified:
        """Check claims; of the true ones a quote of a part of a word is not counted."""
        found, used = super().verify(claims, evidence, granted), set(_words(evidence.text))
        whole = (c for c in found.claims if isinstance(c, Fact) or used.issuperset(_words(c.words)))
        return found._replace(claims=tuple(whole))

    def quotes(self, evidence: Evidence) -> list[Claim]:
        """Return the words of the paper that tell labels apart best."""
        quotes = map(Quote, sorted(set(_words(evidence.text))))
        # A word of a script without blanks may be longer than a quote can be.
        offers: list[Claim] = [quote for quote in quotes if quote.holds(evidence)]

        def telling(quote: Claim) -> float:
            return max(float(np.ptp(np.log(self.likelihood(quote, t)))) for t in LABELS)

        return sorted(offers, key=telling, reverse=True)[:_MOST_QUOTES]


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
