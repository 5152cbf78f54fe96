"""A synthetic literature: two hidden classes of a paper set all that is seen of it and its labels.

A paper's character is how it is used: n_i ~ Poisson(λ(1-r)), n_j ~ Poisson(λr), n_k ~ Poisson(κ)
over five years, a quarter of it in the first. Its reach is how it combines venues. Given both, all
features are independent, so the posterior of the labels given any of them is exact. Papers are
accepted at rates that make the labels of either target equally frequent.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.evidence import CITER_FEATURES, Evidence
from tokengym.envs.disruption.labels import (
    LABELS,
    LEAST_CITERS,
    Target,
    disruption_label,
    novelty_label,
)

Probabilities = tuple[float, float, float]
FloatArray = npt.NDArray[np.float64]

FIELD_MEDIAN = 1.0
FIRST_YEAR_SHARE = 0.25
_TAIL = 1e-14


class Character(NamedTuple):
    """How a paper is used: λ citers, a share r of them citing its references too, κ only those."""

    citers: float
    cocitation: float
    reference_use: float


class Reach(NamedTuple):
    """z-scores of venue pairs: 10th percentile ~ N(tenth, 1), the median an Exp(gap) above it."""

    tenth: float
    gap: float


CHARACTERS = (Character(16.0, 0.2, 4.0), Character(16.0, 0.8, 9.0), Character(16.0, 0.5, 24.0))
REACHES = (Reach(-1.5, 1.5), Reach(1.0, 3.0), Reach(-1.0, 6.0))

CUES: Mapping[Target, tuple[tuple[str, ...], ...]] = {
    "disruption": (
        ("We introduce", "We propose", "We discover"),
        ("We refine", "We extend", "We confirm"),
        ("We review", "We apply", "We compare"),
    ),
    "novelty": (
        ("with tools from a distant field", "by an unusual mix of ideas"),
        ("with standard methods", "by established means"),
        ("with known tools and one new idea", "by a fresh turn of old methods"),
    ),
}
"""Phrases of an abstract by the class they are most often used for."""

ALL_CUES = tuple(phrase for groups in CUES.values() for group in groups for phrase in group)

_CUE_SHARE = 0.5
"""How often a paper uses a phrase of its own class; the other two share the rest."""

_TOPICS: Mapping[str, tuple[str, ...]] = {
    "Physics": ("spin waves", "cold atoms", "thin films", "dark matter", "plasma flow"),
    "Biology": ("gene drift", "cell growth", "plant roots", "protein folds", "bird songs"),
    "Chemistry": ("zinc cells", "polymer gels", "gas sensors", "metal salts", "dye light"),
    "Medicine": ("sleep loss", "bone repair", "heart rate", "drug doses", "nerve pain"),
    "Economics": ("wage gaps", "trade costs", "rent prices", "bank runs", "tax rules"),
    "Computing": ("graph search", "data stores", "code tests", "text models", "image noise"),
}
_SETTINGS = ("at scale", "under stress", "in two regimes", "over time", "in small samples")
_YEARS = (1990, 2015)


def _poisson(mean: float) -> FloatArray:
    """Probabilities of 0, 1, 2, … up to a tail below 1e-14."""
    values = [math.exp(-mean)]
    while len(values) < mean or values[-1] > _TAIL:
        values.append(values[-1] * mean / len(values))
    return np.array(values) / sum(values)


def _binomial(trials: int, share: float) -> FloatArray:
    """Probabilities of 0 to `trials` successes."""
    return np.array(
        [math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(trials + 1)]
    )


class Feature(NamedTuple):
    """A feature's distribution in each class of one target: `pmf[c][v - least]`."""

    target: Target
    least: int
    pmf: tuple[FloatArray, FloatArray, FloatArray]


def _feature(target: Target, least: int, *pmf: FloatArray) -> Feature:
    width = max(map(len, pmf))
    a, b, c = (np.pad(p, (0, width - len(p))) for p in pmf)
    return Feature(target, least, (a, b, c))


def _means(character: Character, share: float) -> Probabilities:
    citers, cocitation, reference_use = character
    return (
        share * citers * (1 - cocitation),
        share * citers * cocitation,
        share * reference_use,
    )


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
_LATER = [[_poisson(m) for m in _means(c, 1 - FIRST_YEAR_SHARE)] for c in CHARACTERS]
_CUMULATIVE = {
    name: tuple(np.cumsum(pmf) for pmf in feature.pmf) for name, feature in FEATURE_TABLE.items()
}
_LATER_CUMULATIVE = [[np.cumsum(pmf) for pmf in row] for row in _LATER]


def cue_likelihood(group: int) -> Probabilities:
    """Probability of a phrase of `group` in a paper of each class."""
    other = (1.0 - _CUE_SHARE) / 2.0
    a, b, c = (_CUE_SHARE if k == group else other for k in range(3))
    return (a, b, c)


def cue_group(text: str, target: Target) -> int | None:
    """Which class's phrases `text` (in lower case) holds; `None` if of no class or of several."""
    found = {
        group
        for group, phrases in enumerate(CUES[target])
        for phrase in phrases
        if phrase.lower() in text
    }
    return found.pop() if len(found) == 1 else None


def class_posterior(evidence: Evidence, target: Target) -> Probabilities:
    """Posterior of the hidden class given what is shown, with equal priors."""
    group = cue_group(evidence.text, target)
    weights = np.ones(3) if group is None else np.array(cue_likelihood(group))
    for name, value in evidence.facts.items():
        feature = FEATURE_TABLE[name]
        if feature.target == target:
            place = value - feature.least
            inside = 0 <= place < len(feature.pmf[0])
            weights = weights * [max(p[place], _TAIL) if inside else _TAIL for p in feature.pmf]
    return _normal(weights)


def posterior(evidence: Evidence, target: Target) -> Probabilities:
    """Exact posterior of the labels of `target` given what is shown, in the order of `LABELS`.

    Exact for papers of this literature. Of real papers it is a guess by analogy.
    """
    seen = _seen_counts(evidence) if target == "disruption" else None
    rates = np.array([label_rates(target, c, seen) for c in range(3)])
    joint = np.array(class_posterior(evidence, target)) @ rates
    return _normal(joint / np.array(frequencies(target)))


@lru_cache(maxsize=8192)
def label_rates(target: Target, c: int, seen: tuple[int, int, int] | None) -> Probabilities:
    """Probability of each label and of being eligible in class `c`, given first-year counts."""
    if target == "novelty":
        return _novelty_rates(REACHES[c])
    if seen is None:
        n_i, n_j, n_k = (_poisson(mean) for mean in _means(CHARACTERS[c], 1.0))
        seen = (0, 0, 0)
    else:
        n_i, n_j, n_k = _LATER[c]
    i = seen[0] + np.arange(len(n_i))[:, None]
    j = seen[1] + np.arange(len(n_j))[None, :]
    weight = n_i[:, None] * n_j[None, :] * (i + j >= LEAST_CITERS)
    up_to = np.concatenate([[0.0], np.cumsum(n_k)])

    def fewer(bound: npt.NDArray[np.int64]) -> FloatArray:
        """Probability that the final n_k is below `bound`."""
        return up_to[np.clip(bound - seen[2], 0, len(n_k))]

    disruptive = float((weight * fewer(10 * (i - j) - i - j)).sum())
    consolidating = float((weight * fewer(10 * (j - i) - i - j)).sum())
    return disruptive, consolidating, float(weight.sum()) - disruptive - consolidating


@lru_cache(maxsize=8192)
def frequencies(target: Target) -> Probabilities:
    """How often each label would occur among eligible papers before balancing, times a constant."""
    a, b, c = (sum(label_rates(target, k, None)[y] for k in range(3)) / 3 for y in range(3))
    return a, b, c


def draw_evidence(rng: np.random.Generator, tier: str) -> Evidence:
    """Draw what `tier` shows of a paper from the balanced literature."""
    while True:
        character, reach = int(rng.integers(3)), int(rng.integers(3))
        seen = _draw_seen(rng, character)
        if (
            _accepted_counts(rng, character, seen) is not None
            and _accepted_scores(rng, reach) is not None
        ):
            return _describe(rng, tier, character, reach, seen)


class Outcome(NamedTuple):
    """What came of a paper: citers over five years by kind, and its scores."""

    n_i: int
    n_j: int
    n_k: int
    novelty_score: float
    conventionality_score: float

    def labels(self) -> dict[Target, str]:
        """The label of each target by the rules of `labels`."""
        disruption = disruption_label(self.n_i, self.n_j, self.n_k)
        assert disruption is not None, "an eligible paper has citers"
        novelty = novelty_label(self.novelty_score, self.conventionality_score, FIELD_MEDIAN)
        return {"disruption": disruption, "novelty": novelty}


def draw_outcome(rng: np.random.Generator, evidence: Evidence) -> Outcome:
    """Draw what comes of a paper given what is shown of it, exactly by the posterior."""
    characters = np.cumsum(class_posterior(evidence, "disruption"))
    reaches = np.cumsum(class_posterior(evidence, "novelty"))
    shown = _seen_counts(evidence)
    while True:
        c = _pick(rng, characters)
        counts = _accepted_counts(rng, c, shown or _draw_seen(rng, c))
        if counts is not None:
            break
    while True:
        scores = _accepted_scores(rng, _pick(rng, reaches))
        if scores is not None:
            return Outcome(*counts, *scores)


def _seen_counts(evidence: Evidence) -> tuple[int, int, int] | None:
    facts = evidence.facts
    return (facts["n_i"], facts["n_j"], facts["n_k"]) if "n_k" in facts else None


def _draw_seen(rng: np.random.Generator, c: int) -> tuple[int, int, int]:
    n_i, n_j, n_k = (_pick(rng, _CUMULATIVE[name][c]) for name in CITER_FEATURES)
    return n_i, n_j, n_k


def _accepted_counts(
    rng: np.random.Generator, c: int, seen: tuple[int, int, int]
) -> tuple[int, int, int] | None:
    """Draw the later years; `None` if the paper is not eligible or balance drops it."""
    n_i, n_j, n_k = (s + _pick(rng, p) for s, p in zip(seen, _LATER_CUMULATIVE[c], strict=True))
    label = disruption_label(n_i, n_j, n_k)
    if n_i + n_j < LEAST_CITERS or label is None or not _balanced(rng, "disruption", label):
        return None
    return n_i, n_j, n_k


def _accepted_scores(rng: np.random.Generator, m: int) -> tuple[float, float] | None:
    tenth = float(rng.normal(REACHES[m].tenth, 1.0))
    median = tenth + float(rng.exponential(REACHES[m].gap))
    label = novelty_label(tenth, median, FIELD_MEDIAN)
    return (tenth, median) if _balanced(rng, "novelty", label) else None


def _balanced(rng: np.random.Generator, target: Target, label: str) -> bool:
    """Accept a label at the rate that makes all of them as frequent as the rarest."""
    rates = frequencies(target)
    return float(rng.random()) * rates[LABELS[target].index(label)] < min(rates)


def _describe(
    rng: np.random.Generator, tier: str, character: int, reach: int, seen: tuple[int, int, int]
) -> Evidence:
    field = list(_TOPICS)[int(rng.integers(len(_TOPICS)))]
    topic = _TOPICS[field][int(rng.integers(len(_TOPICS[field])))]
    setting = _SETTINGS[int(rng.integers(len(_SETTINGS)))]
    first = _draw_cue(rng, "disruption", character)
    second = _draw_cue(rng, "novelty", reach)
    facts: dict[str, int] = {}
    if tier != "L0":
        for name in ("references", "age", "venues", "fields"):
            feature = FEATURE_TABLE[name]
            c = character if feature.target == "disruption" else reach
            facts[name] = feature.least + _pick(rng, _CUMULATIVE[name][c])
    if tier == "L2":
        facts |= zip(CITER_FEATURES, seen, strict=True)
    return Evidence(
        title=f"{topic.capitalize()} {setting}",
        abstract=f"{first} a view of {topic} {second}.",
        year=int(rng.integers(_YEARS[0], _YEARS[1] + 1)),
        field=field,
        facts=facts,
    )


def _draw_cue(rng: np.random.Generator, target: Target, c: int) -> str:
    rates = np.cumsum([cue_likelihood(group)[c] for group in range(3)])
    phrases = CUES[target][_pick(rng, rates)]
    return phrases[int(rng.integers(len(phrases)))]


def _pick(rng: np.random.Generator, cumulative: FloatArray) -> int:
    """Draw a position from cumulative probabilities."""
    place = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
    return min(place, len(cumulative) - 1)


def _novelty_rates(reach: Reach) -> Probabilities:
    """Closed form: a normal variable below 0, and its sum with an exponential one below M."""
    below = _normal_cdf(-reach.tenth)
    rate = 1.0 / reach.gap
    tail = math.exp(rate * (reach.tenth - FIELD_MEDIAN) + rate * rate / 2.0)
    balanced = tail * _normal_cdf(-reach.tenth - rate)
    return below - balanced, 1.0 - below, balanced


def _normal_cdf(x: float) -> float:
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


def _normal(weights: FloatArray) -> Probabilities:
    a, b, c = (weights / weights.sum()).tolist()
    return a, b, c
