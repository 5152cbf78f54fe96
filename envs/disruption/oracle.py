"""The optimum of the debate: the claims that serve a report best, and bounds of the returns."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tokengym.envs.disruption.claims import Claim, Fact
from tokengym.envs.disruption.evidence import Evidence
from tokengym.envs.disruption.inference import replies_to
from tokengym.envs.disruption.judge import Judge
from tokengym.envs.disruption.labels import Target
from tokengym.envs.disruption.literature import FEATURE_TABLE, Probabilities
from tokengym.rewards import debate
from tokengym.rewards.debate import MOST_CLAIMS


def likeliest(report: Probabilities) -> int:
    """Return the position of the largest probability, the first of equals."""
    return report.index(max(report))


def best_total(first: Sequence[Probabilities], final: Sequence[Any], reward: str) -> Any:
    """Return the expected total of honest reports, and of a judge that agrees with the final one.

    Args:
        first: for each target, the posterior given what the predictor is shown.
        final: likewise given what it can know in the end; probabilities, or arrays of them.
        reward: a name of `debate.REWARDS`.
    """
    share = 1.0 / len(final)
    before = sum(debate.half_brier(p, p) for p in first) * share
    after = sum(debate.half_brier(p, p) for p in final) * share
    surest = [np.max(p, axis=0) for p in final]
    if reward == "original":
        return sum(debate.original(math.prod(surest), 1.0, after, before, after).values())
    right = sum(debate.RIGHT_LABEL * (2.0 * p - 1.0) for p in surest) * share
    return right + debate.reasoning(after) + debate.calibration(before, after)


def best_expected(
    evidence: Evidence, own: Sequence[Probabilities], reward: str, argued: bool
) -> float:
    """Return the bound of a predictor's expected return, over all that a challenger may say.

    Args:
        evidence: what is shown, with the kind of challenger if there are several.
        own: for each target, the posterior given what the predictor is shown.
        reward: a name of `debate.REWARDS`.
        argued: whether a challenger whose kinds are known will reply.
    """
    if not (argued and evidence.kind):
        return float(best_total(own, own, reward))
    told = [replies_to(evidence, label) for label in range(3)]
    totals = [best_total(own, (one.beliefs.T, *own[1:]), reward) for one in told]
    return max(float(one.chances @ total) for one, total in zip(told, totals, strict=True))


class Choice(NamedTuple):
    """Claims that support some beliefs, and the judge's expected half-Brier given them."""

    claims: tuple[Claim, ...]
    loss: float


def best_claims(
    evidence: Evidence, targets: Sequence[Target], beliefs: Sequence[Probabilities], judge: Judge
) -> Choice:
    """Choose up to three true claims that bring the judge closest to `beliefs`.

    Claims are added one by one and exchanged one for one until no exchange helps. The loss is no
    less than that of stating the beliefs themselves, and within about 0.002 of it on average.

    Args:
        evidence: what is shown.
        targets: the targets to judge.
        beliefs: for each target, probabilities of its labels under which loss is expected.
        judge: the judge.
    """
    offers = true_claims(evidence, judge)
    if not offers:
        return Choice((), debate.PRIOR_LOSS)
    abouts = [judge.subjects(claim) for claim in offers]
    rivals = {own: np.array([not own.isdisjoint(about) for about in abouts]) for own in set(abouts)}
    # table: target, claim, class; weights: target, class, label; truth (target, 1, label)
    table = np.array([[judge.likelihood(claim, t) for claim in offers] for t in targets])
    weights = np.array([judge.weights(target) for target in targets])
    truth = np.array(beliefs)[:, None]
    chosen: list[int] = []
    best = debate.PRIOR_LOSS
    improved = True
    while improved:
        improved = False
        for slot in range(min(len(chosen) + 1, MOST_CLAIMS)):
            others = [k for place, k in enumerate(chosen) if place != slot]
            product = table
            for k in others:
                product = product * table[:, k, None]
            scores = product @ weights
            scores /= scores.sum(axis=2, keepdims=True)
            losses = 0.5 * (1.0 + (scores * (scores - 2.0 * truth)).sum(axis=2)).mean(axis=0)
            for k in others:
                losses[rivals[abouts[k]]] = np.inf
            least = int(losses.argmin())
            if losses[least] < best - 1e-9:
                best, improved = float(losses[least]), True
                chosen[slot : slot + 1] = [least]
    return Choice(tuple(offers[k] for k in chosen), best)


def true_claims(evidence: Evidence, judge: Judge) -> list[Claim]:
    """Return every true claim that can change the judge's beliefs differently from the others."""
    facts = chain.from_iterable(true_facts(*fact) for fact in evidence.facts.items())
    return [*judge.quotes(evidence), *facts]


@lru_cache(maxsize=4096)
def true_facts(name: str, value: int) -> tuple[Fact, ...]:
    """Return every true claim about one feature that can change the judge's beliefs."""
    feature = FEATURE_TABLE[name]
    last = feature.least + len(feature.pmf[0]) - 1
    bounds: dict[str, Sequence[int]] = {
        "=": [value],
        ">=": range(feature.least, min(value, last) + 1),
        "<=": range(max(value, feature.least), last),
    }
    return tuple(Fact(name, sign, float(bound)) for sign in bounds for bound in bounds[sign])
