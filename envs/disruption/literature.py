"""A synthetic literature: a paper's two hidden classes determine its features and its labels.

A paper's character is how it is used: n_i ~ Poisson(λ(1-r)), n_j ~ Poisson(λr), n_k ~ Poisson(κ)
over five years, spread over them as in `SHARES`. Its reach is how it combines venues. Given both,
all features are independent, so the posterior of the labels given any of them is exact. `generator`
accepts papers at rates that make the labels of either target equally frequent.
"""

import json
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.evidence import CITER_FEATURES, NEXT_FEATURES, Evidence
from tokengym.envs.disruption.labels import LABELS, LEAST_CITERS, Target
from tokengym.rewards.arrays import Floats

Probabilities = tuple[float, float, float]

FIELD_MEDIAN = 1.0
SHARES: Mapping[tuple[str, ...], float] = {CITER_FEATURES: 0.25, NEXT_FEATURES: 0.5625}
"""Shares of the five years' citers by what counts them; the rest comes later."""
_TAIL = 1e-14


class Character(NamedTuple):
    """The use of a paper: λ citers, a share r of them citing its references too, κ only those."""

    citers: float
    cocitation: float
    reference_use: float


class VenuePairModel(NamedTuple):
    """z-scores of venue pairs: 10th percentile ~ N(tenth, 1), the median an Exp(gap) above it."""

    tenth: float
    gap: float


CHARACTERS = (Character(16.0, 0.2, 4.0), Character(16.0, 0.8, 9.0), Character(16.0, 0.5, 24.0))
REACHES = (VenuePairModel(-1.5, 1.5), VenuePairModel(1.0, 3.0), VenuePairModel(-1.0, 6.0))


class Cue(NamedTuple):
    """A part of an abstract whose wording depends on the class of one target.

    Attributes:
        target: the target.
        phrases: by class, the phrases used most often for it.
        share: probability that a paper uses a phrase of its own class; the others share the rest.
    """

    target: Target
    phrases: tuple[tuple[str, ...], ...]
    share: float


def _read_cues(table: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Cue]:
    return {
        name: Cue(cue["target"], tuple(map(tuple, cue["phrases"])), cue["share"])
        for name, cue in table.items()
    }


_TABLES = tomllib.loads(Path(__file__).with_name("cues.toml").read_text("utf-8"))
CUES, LONG_CUES = _read_cues(_TABLES["every"]), _read_cues(_TABLES["long"])
"""Cues of every abstract; and further ones of long abstracts, of differing reliability."""

ALL_CUES: Mapping[str, Cue] = {**CUES, **LONG_CUES}
_SEARCHED = {
    name: tuple(tuple(phrase.lower() for phrase in phrases) for phrases in cue.phrases)
    for name, cue in ALL_CUES.items()
}
PHRASES = tuple(
    phrase for cue in ALL_CUES.values() for phrases in cue.phrases for phrase in phrases
)


def _poisson(mean: float, most: float = 0.0) -> Floats:
    """Probabilities of 0, 1, 2, … up to a tail below 1e-14, as many as a mean of `most` needs."""
    width = len(_poisson(most)) if most > mean else 0
    values = [math.exp(-mean)]
    while len(values) < max(mean, width) or values[-1] > _TAIL:
        values.append(values[-1] * mean / len(values))
    return np.array(values) / sum(values)


def _binomial(trials: int, share: float) -> Floats:
    """Probabilities of 0 to `trials` successes."""
    return np.array(
        [math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(trials + 1)]
    )


class Feature(NamedTuple):
    """A feature's distribution in each class of one target: `pmf[c][v - least]`."""

    target: Target
    least: int
    pmf: tuple[Floats, Floats, Floats]


def peaked(label: int, degree: float) -> Probabilities:
    """Put `degree` on a label and share the rest equally between the others."""
    a, b, c = (degree if k == label else (1.0 - degree) / 2.0 for k in range(3))
    return a, b, c


def normalised(weights: npt.ArrayLike) -> Probabilities:
    """Return the probabilities that are proportional to three weights."""
    a, b, c = np.asarray(weights, np.float64).tolist()
    whole = a + b + c
    return a / whole, b / whole, c / whole


def _shifted(least: int, *means: float) -> Feature:
    """Return the feature that is at least `least`, by its mean above it in each class."""
    a, b, c = (_poisson(mean, max(means)) for mean in means)
    return Feature("disruption", least, (a, b, c))


def _means(character: Character, share: float) -> Probabilities:
    citers, cocitation, reference_use = character
    return (share * citers * (1 - cocitation), share * citers * cocitation, share * reference_use)


def citer_pmfs(c: int, share: float) -> list[Floats]:
    """Return the chances of n_i, n_j and n_k of a class in a share of the five years.

    All are as long as the longest of any class.
    """
    most = max(max(_means(character, share)) for character in CHARACTERS)
    return [_poisson(mean, most) for mean in _means(CHARACTERS[c], share)]


FEATURE_TABLE: Mapping[str, Feature] = {
    "references": _shifted(10, 8.0, 14.0, 11.0),
    "age": _shifted(1, 9.0, 5.0, 7.0),
    # Small teams disrupt, large ones develop (Wu, Wang & Evans 2019): weaker than the rest.
    "authors": _shifted(1, 1.25, 3.25, 2.25),
    "venues": Feature("novelty", 1, (_binomial(9, 0.65), _binomial(9, 0.3), _binomial(9, 0.5))),
    "fields": Feature("novelty", 1, (_binomial(5, 0.6), _binomial(5, 0.15), _binomial(5, 0.3))),
    **{
        name: Feature("disruption", 0, (pmfs[0][k], pmfs[1][k], pmfs[2][k]))
        for names, share in SHARES.items()
        for pmfs in [[citer_pmfs(c, share) for c in range(3)]]
        for k, name in enumerate(names)
    },
}
_IN_NO_TABLE = (1.0, 1.0, 1.0)
"""Says nothing."""
# Numbers of Python's own: three at a time are multiplied sooner than arrays of three are made.
_FEATURE_LIKELIHOODS = {
    name: [(a, b, c) for a, b, c in np.transpose(feature.pmf).tolist()]
    for name, feature in FEATURE_TABLE.items()
}


@cache
def cited_above(citations: int) -> int:
    """Return the percentage of papers with fewer first-year citations, n_i + n_j, rounded down.

    Of all papers of the literature, each class as often, whether they would be eligible or kept by
    balance or not: fields and years differ in nothing. Below 100, since every number occurs.
    """
    first_year = [citer_pmfs(c, SHARES[CITER_FEATURES]) for c in range(3)]
    fewer = np.mean([np.convolve(n_i, n_j)[:citations].sum() for n_i, n_j, _ in first_year])
    return min(99, int(100 * fewer))


@cache
def cue_likelihood(cue: str, group: int) -> Probabilities:
    """Probability that a cue is a phrase of `group`, in a paper of each class."""
    return peaked(group, ALL_CUES[cue].share)


@lru_cache(maxsize=16384)
def cues_in(text: str) -> Mapping[str, int]:
    """Return the cues of a text and the class whose phrases each has.

    A cue with phrases of several classes is left out.

    Args:
        text: in lower case with single blanks.
    """
    used = {name: _groups(groups, text) for name, groups in _SEARCHED.items()}
    return {name: groups.pop() for name, groups in used.items() if len(groups) == 1}


def _groups(searched: tuple[tuple[str, ...], ...], text: str) -> set[int]:
    return {
        group for group, phrases in enumerate(searched) if any(phrase in text for phrase in phrases)
    }


def class_posterior(evidence: Evidence, target: Target) -> Probabilities:
    """Return the posterior of the hidden class given the evidence, with equal priors."""
    if evidence.examples:
        weights_O = order_posterior(evidence.examples, target)
        return normalised(weights_O @ in_orders(_seen(evidence, target), target))
    return normalised(class_likelihood(evidence, target))


def class_likelihood(evidence: Evidence, target: Target) -> Probabilities:
    """Return how likely each class of the usual literature makes what is shown."""
    a, b, c = 1.0, 1.0, 1.0
    for _, (x, y, z) in _seen(evidence, target):
        a, b, c = a * x, b * y, c * z
    return a, b, c


def _seen(evidence: Evidence, target: Target) -> Iterator[tuple[str, Probabilities]]:
    """Yield each cue and feature shown, and how likely each class of `target` makes it."""
    for cue, group in cues_in(evidence.text).items():
        if ALL_CUES[cue].target == target:
            yield cue, cue_likelihood(cue, group)
    for name, value in evidence.facts.items():
        feature, rows = FEATURE_TABLE[name], _FEATURE_LIKELIHOODS[name]
        if feature.target == target:
            place = value - feature.least
            yield name, rows[place] if 0 <= place < len(rows) else _IN_NO_TABLE


ORDERS = tuple(permutations(range(3)))
VARIED: Mapping[Target, tuple[str, ...]] = {
    "disruption": ("references", "age", "aim"),
    "novelty": ("venues", "fields", "mix"),
}
"""Differences between literatures: which class has which of the distributions of
each of these. 216 literatures for each target, all as likely."""


def in_orders(seen: Iterable[tuple[str, npt.ArrayLike]], target: Target) -> Floats:
    """Return how likely every literature and class makes what is seen, shape (216, class).

    Args:
        seen: names of cues and features, and how likely each class of the usual literature makes
            what is known of them.
        target: the target.
    """
    product = np.ones((len(ORDERS),) * 3 + (3,))
    for name, likelihood in seen:
        table, shape = np.array(likelihood), [1, 1, 1]
        if name in VARIED[target]:
            table, shape[VARIED[target].index(name)] = table[np.array(ORDERS)], len(ORDERS)
        product = product * table.reshape(*shape, 3)
    return product.reshape(-1, 3)


def order_posterior(examples: Sequence[Mapping[str, Any]], target: Target) -> Floats:
    """Return the probability of each literature given labelled papers of it, shape (216,)."""
    return _order_posterior(json.dumps(list(examples)), target)


@lru_cache(maxsize=1024)
def _order_posterior(examples: str, target: Target) -> Floats:
    rates = label_weights(target)
    weights = np.full(len(ORDERS) ** 3, 1.0 / len(ORDERS) ** 3)
    for paper in json.loads(examples):
        shown = Evidence("", paper["abstract"], 0, "", paper["facts"])
        place = LABELS[target].index(paper["labels"][target])
        weights *= in_orders(_seen(shown, target), target) @ rates[:, place]
        weights /= weights.sum()
    return weights


def posterior(evidence: Evidence, target: Target) -> Probabilities:
    """Return the exact posterior of the labels of `target` given the evidence, as in `LABELS`.

    Exact for papers of this literature. Of real papers it is a guess by analogy.
    """
    classes = np.array(class_posterior(evidence, target))
    return normalised(classes @ label_rates(target, *counted(evidence)) / frequencies(target))


def counted(evidence: Evidence) -> tuple[list[int], float]:
    """Return n_i, n_j and n_k of all years that are shown, and the share of five years to come."""
    shown = [names for names in SHARES if names[-1] in evidence.facts]
    citers = [sum(evidence.facts[names[k]] for names in shown) for k in range(3)]
    return citers, 1.0 - sum(SHARES[names] for names in shown)


def label_rates(target: Target, citers: Iterable[Any] = (0, 0, 0), left: float = 1.0) -> Floats:
    """Return the probability of each label and of being eligible, given the citers so far.

    Args:
        target: the target; novelty does not depend on citers.
        citers: n_i, n_j and n_k so far, integers or arrays of shape (n,); those that are more than
            in any table are taken for the largest in it.
        left: share of the five years' citers that is to come.

    Returns:
        Shape (class, label) or (class, n, label).
    """
    if target == "novelty":
        return _NOVELTY_RATES
    table = _rates_by_citers(left)
    i, j, k = map(np.minimum, citers, np.array(table.shape[1:4]) - 1)
    return table[:, i, j, k]


@cache
def _rates_by_citers(left: float) -> Floats:
    """Return the rates by class, n_i, n_j and n_k so far, and label: final counts, summed over."""
    so_far, to_come = ([citer_pmfs(c, s) for c in range(3)] for s in (1.0 - left, left))
    begun, ends = (
        [max(len(pmf[n]) for pmf in each) for n in range(3)] for each in (so_far, to_come)
    )
    i, j, k = np.ogrid[tuple(slice(b + e) for b, e in zip(begun, ends, strict=True))]
    lead, total = 10 * (i - j), i + j + k
    sides = np.stack([lead > total, lead < -total, abs(lead) <= total]) & (i + j >= LEAST_CITERS)
    tables = []
    for pmfs in to_come:
        rates = sides.astype(np.float64)
        for start, pmf in zip(begun, pmfs, strict=True):  # one axis goes, and comes back last
            further = np.arange(rates.shape[1]) - np.arange(start)[:, None]
            inside = (further >= 0) & (further < len(pmf))
            steps = np.where(inside, pmf[np.where(inside, further, 0)], 0.0)
            rates = np.tensordot(rates, steps, axes=(1, 1))
        tables.append(np.moveaxis(rates, 0, -1))
    return np.array(tables)


@cache
def frequencies(target: Target) -> Floats:
    """Return the frequency of each label among eligible papers before balancing, up to a factor."""
    return np.asarray(label_rates(target).mean(axis=0))


@cache
def label_weights(target: Target) -> Floats:
    """Return the balanced weight of each label in each class, shape (class, label)."""
    return np.asarray(label_rates(target) / frequencies(target))


def _novelty_rates(reach: VenuePairModel) -> Probabilities:
    """Closed form: a normal variable below 0, and its sum with an exponential one below M."""
    below = _normal_cdf(-reach.tenth)
    rate = 1.0 / reach.gap
    tail = math.exp(rate * (reach.tenth - FIELD_MEDIAN) + rate * rate / 2.0)
    balanced = tail * _normal_cdf(-reach.tenth - rate)
    return below - balanced, 1.0 - below, balanced


def _normal_cdf(x: float) -> float:
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


_NOVELTY_RATES = np.array([_novelty_rates(reach) for reach in REACHES])
