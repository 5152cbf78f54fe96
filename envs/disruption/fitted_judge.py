"""Judges fitted to a user's papers: how often a claim holds among those of each label."""

import copy
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Self

import numpy as np

from tokengym.envs.disruption.claims import Claim, Fact, Quote
from tokengym.envs.disruption.data.dataset import PaperSet
from tokengym.envs.disruption.evidence import FEATURES, Evidence, evidence_of_paper
from tokengym.envs.disruption.judge import FLOOR, Judge, Verified
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import normalised, peaked
from tokengym.envs.disruption.paper import Paper
from tokengym.envs.intake.near import is_filler
from tokengym.rewards.arrays import Floats, Ints
from tokengym.rewards.debate import PRIOR_LOSS, half_brier

_SHRINKAGE = 4.0
"""Papers by which the share of a label counts as that of all papers: so rare words say little."""
_MOST_QUOTES = 24
_TRUSTS = (1.0, 0.25, 1 / 16, 1 / 64)
"""Largest weight of one paper that fits a claim, relative to facts that fit all labels alike."""
_MOST_JUDGED = 500
"""Training papers that decide how far claims are to be trusted."""

_Counts = Ints


class FittedJudge(Judge):
    """Takes labels for classes, and words and facts of a paper for independent given its label.

    Args:
        papers: what it is fitted to.
    """

    def __init__(self, papers: Sequence[Paper]) -> None:
        self._papers: dict[tuple[Target, int], int] = {}
        self._facts: dict[tuple[Target, int, str], _Counts] = {}
        self._words: dict[tuple[Target, int], Counter[str]] = {}
        for target, place in product(LABELS, range(3)):
            shown = [
                evidence_of_paper(paper, "L2")
                for paper in papers
                if paper.labels()[target] == LABELS[target][place]
            ]
            self._papers[target, place] = len(shown)
            for name in FEATURES:
                values = [evidence.facts[name] for evidence in shown if name in evidence.facts]
                self._facts[target, place, name] = np.sort(np.array(values, np.int64))
            words = Counter(word for evidence in shown for word in set(_words(evidence.text)))
            self._words[target, place] = words

    def likelihood(self, claim: Claim, target: Target) -> Floats:
        """Return how often a claim holds among the papers of each label."""
        return np.asarray(np.prod([np.ones(3), *self._shares(claim, target)], axis=0))

    def _shares(self, claim: Claim, target: Target) -> Iterable[Floats]:
        """Return the share of papers of each label, shrunk towards that of all."""
        for holding, papers in self._counts(claim, target):
            overall = holding.sum() / max(papers.sum(), 1)
            yield np.maximum((holding + _SHRINKAGE * overall) / (papers + _SHRINKAGE), FLOOR)

    def _counts(self, claim: Claim, target: Target) -> Iterator[tuple[_Counts, _Counts]]:
        """Yield for each word, or the fact, the papers that have it and all papers, by label."""
        if isinstance(claim, Quote):
            papers = np.array([self._papers[target, label] for label in range(3)])
            for word in sorted(set(_words(claim.words))):
                yield np.array([self._words[target, label][word] for label in range(3)]), papers
        elif isinstance(claim, Fact):
            low, high = claim.interval()
            known = [self._facts[target, label, claim.feature] for label in range(3)]
            holding = [
                max(int(v.searchsorted(high, "right") - v.searchsorted(low)), 0) for v in known
            ]
            yield np.array(holding), np.array([len(values) for values in known])

    def weights(self, target: Target) -> Floats:
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


class HeldOutJudge(FittedJudge):
    """Judges every paper by the others, and trusts words and facts as far as that has served.

    A paper that it was fitted to is left out of the counts that it is judged by. A claim that holds
    for few papers counts for little: how few is fitted on the papers, each judged by the others on
    the claim about it that tells most. Words or facts that do not bring the judge nearer to the
    truth than its prior in this way, by two standard errors, tell it nothing.

    Args:
        papers: what it is fitted to.
    """

    def __init__(self, papers: Sequence[Paper]) -> None:
        super().__init__(papers)
        self._own = FittedJudge(())
        self._by_text: dict[str, list[Paper]] = defaultdict(list)
        for paper in papers:
            self._by_text[evidence_of_paper(paper, "L2").text].append(paper)
        kinds = product(LABELS, (Quote, Fact))
        self._trust: dict[tuple[Target, type], float] = {
            key: self._earned_trust(papers[:_MOST_JUDGED], *key) for key in kinds
        }

    def apart_from(self, evidence: Evidence) -> Self:
        """Return the judge as it were without the papers of this text."""
        apart = copy.copy(self)
        apart._own = FittedJudge(self._by_text.get(evidence.text, ()))
        return apart

    def _shares(self, claim: Claim, target: Target) -> Iterable[Floats]:
        """Return by how much more often than among all papers it is found among each label's."""
        trust = self._trust.get((target, type(claim)), 0.0)
        return (_excess(*counts, trust) for counts in self._counts(claim, target))

    def _counts(self, claim: Claim, target: Target) -> Iterator[tuple[_Counts, _Counts]]:
        every, own = super()._counts(claim, target), self._own._counts(claim, target)
        for (holding, papers), (mine, of_mine) in zip(every, own, strict=True):
            yield holding - mine, papers - of_mine

    def _earned_trust(self, papers: Sequence[Paper], target: Target, kind: type[Claim]) -> float:
        """Return the trust that serves best; 0 if none serves."""
        gains = []
        for paper in papers:
            evidence, label = evidence_of_paper(paper, "L2"), paper.labels()[target]
            claims = _single_claims(evidence, kind)
            if label is None or not claims:
                continue
            apart, truth = self.apart_from(evidence), peaked(LABELS[target].index(label), 1.0)
            counts = [counts for claim in claims for counts in apart._counts(claim, target)]
            holding, of = np.array(counts).swapaxes(0, 1)
            rates = [_excess(holding, of, trust) for trust in _TRUSTS]
            heard = [rate[np.ptp(np.log(rate), axis=1).argmax()] for rate in rates]
            gains.append([PRIOR_LOSS - half_brier(normalised(one), truth) for one in heard])
        if len(gains) < 2:
            return 0.0
        means, errors = np.mean(gains, axis=0), np.std(gains, axis=0, ddof=1) / len(gains) ** 0.5
        best = int(means.argmax())
        return _TRUSTS[best] if means[best] > 2.0 * errors[best] else 0.0


@lru_cache(maxsize=16)
def fitted_judge(papers: PaperSet, *, held_out: bool = False) -> FittedJudge:
    """Return the judge of a user's papers, fitted once per process to the training split.

    Args:
        papers: the papers.
        held_out: whether it judges the papers that it is fitted to by the others.
    """
    return (HeldOutJudge if held_out else FittedJudge)(papers.papers["train"])


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _single_claims(evidence: Evidence, kind: type[Claim]) -> list[Claim]:
    """Return what can be claimed truly of one word, or of one fact from above or below."""
    if kind is Quote:
        return [Quote(w) for w in sorted(set(_words(evidence.text))) if not is_filler(w)]
    facts = product(evidence.facts.items(), (">=", "<="))
    return [Fact(name, op, float(value)) for (name, value), op in facts]


def _excess(holding: _Counts, papers: _Counts, trust: float) -> Floats:
    """Return by label how many of its papers have something, over how many were to be expected.

    Args:
        holding: papers of each label that have it, shape (..., 3).
        papers: all papers of each label, of this shape.
        trust: in [0, 1]; both numbers are multiplied by it and increased by 1.
    """
    totals = [np.sum(part, axis=-1, keepdims=True) for part in (holding, papers)]
    expected = totals[0] / np.maximum(totals[1], 1) * papers
    return np.asarray((1.0 + trust * holding) / (1.0 + trust * expected))
