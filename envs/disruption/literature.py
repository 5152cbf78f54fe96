"""A synthetic literature: a paper's two hidden classes determine its features and its labels.

A paper's character is how it is used: n_i ~ Poisson(λ(1-r)), n_j ~ Poisson(λr), n_k ~ Poisson(κ)
over five years, a quarter of it in the first. Its reach is how it combines venues. Given both, all
features are independent, so the posterior of the labels given any of them is exact. `generator`
accepts papers at rates that make the labels of either target equally frequent.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.evidence import CITER_FEATURES, Evidence
from tokengym.envs.disruption.labels import LABELS, LEAST_CITERS, Target
from tokengym.rewards.arrays import Floats, Ints

Probabilities = tuple[float, float, float]

FIELD_MEDIAN = 1.0
FIRST_YEAR_SHARE = 0.25
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


CUES: Mapping[str, Cue] = {
    "aim": Cue(
        "disruption",
        (
            ("We introduce", "We propose", "We discover"),
            ("We refine", "We extend", "We confirm"),
            ("We review", "We apply", "We compare"),
        ),
        0.5,
    ),
    "mix": Cue(
        "novelty",
        (
            ("with tools from a distant field", "by an unusual mix of ideas"),
            ("with standard methods", "by established means"),
            ("with known tools and one new idea", "by a fresh turn of old methods"),
        ),
        0.5,
    ),
}
"""Cues of every abstract."""

LONG_CUES: Mapping[str, Cue] = {
    "relation": Cue(
        "disruption",
        (
            ("Earlier accounts no longer hold", "None of the earlier steps is needed"),
            ("Earlier accounts are made complete", "Each of the earlier steps is kept"),
            ("Earlier accounts serve a new purpose", "Some of the earlier steps are borrowed"),
        ),
        0.55,
    ),
    "result": Cue(
        "disruption",
        (
            ("A common belief turns out wrong", "The usual test becomes needless"),
            ("A common belief gains support", "The usual test becomes sharper"),
            ("A common belief is left open", "The usual test moves elsewhere"),
        ),
        0.6,
    ),
    "use": Cue(
        "disruption",
        (
            ("Others can start from here", "The tools are made from nothing"),
            ("Others can check their records", "The tools are those of the field"),
            ("Others can choose among several", "The tools are lent by neighbours"),
        ),
        0.42,
    ),
    "sources": Cue(
        "novelty",
        (
            ("Its sources seldom meet", "Its readers will be surprised"),
            ("Its sources are the usual ones", "Its readers will feel at home"),
            ("Its sources have one odd member", "Its readers will nod, then pause"),
        ),
        0.6,
    ),
    "team": Cue(
        "novelty",
        (
            ("The authors come from far apart", "The reviewers were hard to find"),
            ("The authors share one school", "The reviewers were near at hand"),
            ("The authors took in one guest", "The reviewers came from two fields"),
        ),
        0.5,
    ),
}
"""Further cues of long abstracts, of differing reliability."""

ALL_CUES: Mapping[str, Cue] = {**CUES, **LONG_CUES}
_SEARCHED = {
    name: tuple(tuple(phrase.lower() for phrase in phrases) for phrases in cue.phrases)
    for name, cue in ALL_CUES.items()
}
PHRASES = tuple(
    phrase for cue in ALL_CUES.values() for phrases in cue.phrases for phrase in phrases
)


def _poisson(mean: float) -> Floats:
    """Probabilities of 0, 1, 2, … up to a tail below 1e-14."""
    values = [math.exp(-mean)]
    while len(values) < mean or values[-1] > _TAIL:
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


def _feature(target: Target, least: int, *pmf: Floats) -> Feature:
    width = max(map(len, pmf))
    a, b, c = (np.pad(p, (0, width - len(p))) for p in pmf)
    return Feature(target, least, (a, b, c))


def _means(character: Character, share: float) -> Probabilities:
    citers, cocitation, reference_use = character
    return (share * citers * (1 - cocitation), share * citers * cocitation, share * reference_use)


FEATURE_TABLE: Mapping[str, Feature] = {
    "references": _feature("disruption", 10, _poisson(8.0), _poisson(14.0), _poisson(11.0)),
    "age": _feature("disruption", 1, _poisson(9.0), _poisson(5.0), _poisson(7.0)),
    "venues": _feature("novelty", 1, _binomial(9, 0.65), _binomial(9, 0.3), _binomial(9, 0.5)),
    "fields": _feature("novelty", 1, _binomial(5, 0.6), _binomial(5, 0.15), _binomial(5, 0.3)),
    **{
        name: _feature(
            "disruption", 0, *(_poisson(_means(c, FIRST_YEAR_SHARE)[k]) for c in CHARACTERS)
        )
        for k, name in enumerate(CITER_FEATURES)
    },
}
_IN_NO_TABLE = (_TAIL, _TAIL, _TAIL)
# Numbers of Python's own: three at a time are multiplied sooner than arrays of three are made.
_FEATURE_LIKELIHOODS = {
    name: [
        (max(a, _TAIL), max(b, _TAIL), max(c, _TAIL))
        for a, b, c in np.transpose(feature.pmf).tolist()
    ]
    for name, feature in FEATURE_TABLE.items()
}
LATER = [[_poisson(m) for m in _means(c, 1 - FIRST_YEAR_SHARE)] for c in CHARACTERS]


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
"""What differs between literatures that are drawn: which class has which of the distributions of
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
    seen = first_year_counts(evidence) if target == "disruption" else None
    rates = np.array([label_rates(target, c, seen) for c in range(3)])
    joint = np.array(class_posterior(evidence, target)) @ rates
    return normalised(joint / np.array(frequencies(target)))


@lru_cache(maxsize=8192)
def label_rates(target: Target, c: int, seen: tuple[int, int, int] | None) -> Probabilities:
    """Probability of each label and of being eligible in class `c`, given first-year counts."""
    if target == "novelty":
        return _novelty_rates(REACHES[c])
    if seen is None:
        n_i, n_j, n_k = (_poisson(mean) for mean in _means(CHARACTERS[c], 1.0))
        seen = (0, 0, 0)
    else:
        n_i, n_j, n_k = LATER[c]
    i = seen[0] + np.arange(len(n_i))[:, None]
    j = seen[1] + np.arange(len(n_j))[None, :]
    weight = n_i[:, None] * n_j[None, :] * (i + j >= LEAST_CITERS)
    up_to = np.concatenate([[0.0], np.cumsum(n_k)])

    def fewer(bound: Ints) -> Floats:
        """Probability that the final n_k is below `bound`."""
        return up_to[np.clip(bound - seen[2], 0, len(n_k))]

    disruptive = float((weight * fewer(10 * (i - j) - i - j)).sum())
    consolidating = float((weight * fewer(10 * (j - i) - i - j)).sum())
    return disruptive, consolidating, float(weight.sum()) - disruptive - consolidating


@lru_cache(maxsize=8192)
def frequencies(target: Target) -> Probabilities:
    """Return the frequency of each label among eligible papers before balancing, up to a factor."""
    a, b, c = (sum(label_rates(target, k, None)[y] for k in range(3)) / 3 for y in range(3))
    return a, b, c


@cache
def label_weights(target: Target) -> Floats:
    """Return the balanced weight of each label in each class, shape (class, label)."""
    rates = np.array([label_rates(target, c, None) for c in range(3)], np.float64)
    return np.asarray(rates / np.array(frequencies(target)))


def first_year_counts(evidence: Evidence) -> tuple[int, int, int] | None:
    """Return n_i, n_j and n_k of the first year; `None` if they are not shown."""
    facts = evidence.facts
    return (facts["n_i"], facts["n_j"], facts["n_k"]) if "n_k" in facts else None


def _novelty_rates(reach: VenuePairModel) -> Probabilities:
    """Closed form: a normal variable below 0, and its sum with an exponential one below M."""
    below = _normal_cdf(-reach.tenth)
    rate = 1.0 / reach.gap
    tail = math.exp(rate * (reach.tenth - FIELD_MEDIAN) + rate * rate / 2.0)
    balanced = tail * _normal_cdf(-reach.tenth - rate)
    return below - balanced, 1.0 - below, balanced


def _normal_cdf(x: float) -> float:
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))
