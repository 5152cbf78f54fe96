"""Judges: the beliefs of a reader who sees verified claims and nothing else.

A judge is a Bayesian over hidden classes of papers: a claim about a feature is the event that the
feature lies in the claimed interval, a quote the event that its words were used. It considers one
claim a feature or cue and holds all labels alike before it reads any. A likelihood below 1e-6
counts as 1e-6, so it does not extrapolate. Of papers of a literature that a Task shows by examples
it knows those; judges of a user's papers are in `fitted_judge`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache, reduce
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from tokengym.envs.disruption.claims import Claim, Fact, Quote
from tokengym.envs.disruption.evidence import Evidence
from tokengym.envs.disruption.labels import LABELS, Target
from tokengym.envs.disruption.literature import (
    ALL_CUES,
    FEATURE_TABLE,
    PHRASES,
    Probabilities,
    cue_likelihood,
    cues_in,
    in_orders,
    label_weights,
    normalised,
    order_posterior,
)
from tokengym.envs.intake.near import is_filler
from tokengym.rewards.arrays import Floats

FLOOR = 1e-6
LEAST_EVIDENCE = 0.02
"""By how much evidence moves the probability of a label at least."""


class Judge(ABC):
    """Forms beliefs about labels from claims."""

    @abstractmethod
    def likelihood(self, claim: Claim, target: Target) -> Floats:
        """Return the probability of a claim in each class; ones if it is not about `target`."""

    @abstractmethod
    def weights(self, target: Target) -> Floats:
        """Return the weight of each label in each class, shape (class, label)."""

    @abstractmethod
    def subjects(self, claim: Claim) -> frozenset[str]:
        """Return what a claim is about."""

    @abstractmethod
    def quotes(self, evidence: Evidence) -> list[Claim]:
        """Return quotes of the paper that may change its beliefs."""

    def believe(self, claims: Sequence[Claim], target: Target) -> Probabilities:
        """Return the probabilities of the labels of `target`, in the order of `LABELS`.

        Args:
            claims: verified claims.
            target: `disruption` or `novelty`.
        """
        weights = self.weights(target)
        if not claims:
            return normalised(weights.sum(axis=0))
        return normalised(reduce(mul, [self.likelihood(c, target) for c in claims]) @ weights)

    def apart_from(self, evidence: Evidence) -> "Judge":
        """Return the judge of one paper, which must not count among those it was fitted to."""
        return self

    def verify(
        self, claims: Sequence[Claim], evidence: Evidence, granted: Sequence[Claim] = ()
    ) -> "Verified":
        """Check claims against the shown evidence.

        Args:
            claims: the claims.
            evidence: what is shown.
            granted: claims that hold whether the evidence shows it or not.
        """
        true = [claim for claim in claims if claim in granted or claim.holds(evidence)]
        counted: list[Claim] = []
        covered: set[str] = set()
        for claim in true:
            about = self.subjects(claim)
            if covered.isdisjoint(about):
                counted.append(claim)
                covered |= about
        return Verified(tuple(counted), len(claims) - len(true))

    def evidence_among(self, claims: Sequence[Claim], targets: Sequence[Target]) -> list[Claim]:
        """Return verified claims without filler; none if together they tell the judge nothing.

        Filler is what any paper could be quoted for: words without content, and claims that alone
        move no probability by `LEAST_EVIDENCE`.
        """
        words = [c for c in claims if not (isinstance(c, Quote) and is_filler(c.words))]
        found = [claim for claim in words if self._moves([claim], targets)]
        return found if self._moves(found, targets) else []

    def _moves(self, claims: Sequence[Claim], targets: Sequence[Target]) -> bool:
        told, held = ([self.believe(heard, t) for t in targets] for heard in (claims, ()))
        return bool(np.abs(np.subtract(told, held)).max() >= LEAST_EVIDENCE)


class Verified(NamedTuple):
    """The claims that hold.

    Attributes:
        claims: the claims that hold, the first about each subject only.
        false: how many do not hold.
    """

    claims: tuple[Claim, ...]
    false: int


class LiteratureJudge(Judge):
    """Knows the synthetic literature; of a paper shown with examples, what those say of it.

    Args:
        examples: labelled papers of the literature, see `Evidence.examples`.
    """

    def __init__(self, examples: Sequence[Mapping[str, Any]] = ()) -> None:
        self._weights = {target: label_weights(target) for target in LABELS}
        self._varied = bool(examples)
        for target in LABELS if examples else ():
            by_order = order_posterior(examples, target)[:, None, None] * label_weights(target)
            self._weights[target] = by_order.reshape(-1, 3)

    def likelihood(self, claim: Claim, target: Target) -> Floats:
        """Return the probability of a claim in each class, or in each literature and class."""
        return _likelihood(claim, target, self._varied)

    def weights(self, target: Target) -> Floats:
        """Return the balanced weight of each label in each class."""
        return self._weights[target]

    def subjects(self, claim: Claim) -> frozenset[str]:
        """Return the feature or the cues that a claim is about."""
        if isinstance(claim, Fact):
            return frozenset({claim.feature})
        return frozenset(_cues(claim)) if isinstance(claim, Quote) else frozenset()

    def quotes(self, evidence: Evidence) -> list[Claim]:
        """Return the phrases of cues that the paper uses."""
        text = evidence.text
        return [Quote(phrase) for phrase in PHRASES if phrase.lower() in text]


@lru_cache(maxsize=8192)
def _likelihood(claim: Claim, target: Target, varied: bool) -> Floats:
    found = _likelihoods(claim, target)
    if varied:
        return in_orders(found.items(), target).reshape(-1)
    return np.asarray(np.prod([np.ones(3), *found.values()], axis=0))


def _likelihoods(claim: Claim, target: Target) -> Mapping[str, Floats]:
    """Return by cue and feature how likely each class of `target` makes a claim."""
    if isinstance(claim, Quote):
        return {
            cue: np.array(cue_likelihood(cue, group))
            for cue, group in _cues(claim).items()
            if ALL_CUES[cue].target == target
        }
    if not isinstance(claim, Fact) or FEATURE_TABLE[claim.feature].target != target:
        return {}
    feature = FEATURE_TABLE[claim.feature]
    width = len(feature.pmf[0])
    low, high = claim.interval()
    first = int(min(max(low - feature.least, 0), width))
    end = int(min(max(high - feature.least + 1, 0), width))
    return {claim.feature: np.maximum(np.array(feature.pmf)[:, first:end].sum(axis=1), FLOOR)}


def _cues(quote: Quote) -> Mapping[str, int]:
    return cues_in(" ".join(quote.words.lower().split()))


LITERATURE = LiteratureJudge()
