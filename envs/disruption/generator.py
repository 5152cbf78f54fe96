"""Drawing instances: papers of the synthetic literature, as a level shows them; and outcomes."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate, chain
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from tokengym.envs.disruption.evidence import (
    CITER_FEATURES,
    KINDS,
    NEXT_FEATURES,
    PUBLICATION_FEATURES,
    REFERENCE_FEATURES,
    Evidence,
    share_facts,
)
from tokengym.envs.disruption.labels import (
    LABELS,
    LEAST_CITERS,
    Target,
    disruption_label,
    novelty_label,
)
from tokengym.envs.disruption.literature import (
    ALL_CUES,
    FEATURE_TABLE,
    FIELD_MEDIAN,
    LONG_CUES,
    ORDERS,
    REACHES,
    SHARES,
    VARIED,
    cited_above,
    citer_pmfs,
    class_posterior,
    cue_likelihood,
    frequencies,
)

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
EXAMPLES = 12
"""Labelled papers that the level `examples` shows."""
EARLIER = 4
"""Earlier papers whose notes are shown."""
# Lists: looking up one number in a short array takes longer than all the rest of a draw.
_CUMULATIVE = {
    name: [list(accumulate(pmf.tolist())) for pmf in feature.pmf]
    for name, feature in FEATURE_TABLE.items()
}
_PARTS = (*SHARES.values(), 1.0 - sum(SHARES.values()))
_CITERS = [
    [list(accumulate(pmf.tolist())) for share in _PARTS for pmf in citer_pmfs(c, share)]
    for c in range(3)
]
"""By class, the cumulative chances of n_i, n_j and n_k in each part of the five years."""
_COUNTED = {name: place for place, name in enumerate(chain.from_iterable(SHARES))}
_EQUAL = (1.0, 2.0, 3.0)
"""Cumulative chances of classes that are equally likely."""

Years = dict[str, int]
"""Citers by kind of the years that are counted apart, such as `n_i` and `m_i`."""


def draw_evidence(rng: np.random.Generator, level: str) -> Evidence:
    """Draw the evidence of a paper from the balanced literature, as `level` shows it."""
    orders = {}
    if level == "examples":
        varied = [name for names in VARIED.values() for name in names]
        orders = {name: ORDERS[int(rng.integers(len(ORDERS)))] for name in varied}
    evidence, _ = draw_paper(rng, level, orders)
    if orders:
        papers = (draw_paper(rng, level, orders) for _ in range(EXAMPLES))
        return evidence._replace(
            examples=[
                {"abstract": paper.abstract, "facts": paper.facts, "labels": outcome.labels()}
                for paper, outcome in papers
            ]
        )
    return draw_challenger(rng, evidence)


def draw_paper(
    rng: np.random.Generator, level: str, orders: Mapping[str, Sequence[int]]
) -> tuple[Evidence, "CitationDraw"]:
    """Draw a paper of the balanced literature and what came of it.

    Args:
        rng: the Task's.
        level: what is shown of it.
        orders: by cue or feature, which distribution each class has in the place of its own.
    """
    character, years, counts = _draw_citers(rng, _EQUAL, {})
    reach, scores = _draw_scores(rng, _EQUAL)
    evidence = _describe(rng, level, character, reach, years, orders)
    return evidence, CitationDraw(*counts, *scores)


def draw_challenger(rng: np.random.Generator, evidence: Evidence) -> Evidence:
    """Draw which kind of challenger a paper meets, and what it notes of the citers.

    Args:
        rng: the Task's.
        evidence: with private facts about citers, or it is returned as it is.
    """
    if not evidence.private:
        return evidence
    kind = list(KINDS)[_pick(rng, list(accumulate(KINDS.values())))]
    mixed_up = int(rng.integers(1, len(ORDERS))) if kind == "careless" else 0
    names = CITER_FEATURES if CITER_FEATURES[0] in evidence.private else NEXT_FEATURES
    columns = [names[k] for k in ORDERS[mixed_up]]

    def noted(facts: Mapping[str, int]) -> dict[str, int]:
        return {name: facts[column] for name, column in zip(names, columns, strict=True)}

    earlier = (_draw_citers(rng, _EQUAL, {}) for _ in range(EARLIER))
    record = [
        {"notes": noted(years), "label": disruption_label(*counts)} for _, years, counts in earlier
    ]
    return evidence._replace(kind=kind, notes=noted(evidence.private), record=record)


class CitationDraw(NamedTuple):
    """Citers of a paper over five years by kind, and its scores."""

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


def draw_outcome(rng: np.random.Generator, evidence: Evidence) -> CitationDraw:
    """Draw the outcome of a paper given all that is shown of it, exactly by the posterior."""
    evidence = evidence.known
    characters = list(accumulate(class_posterior(evidence, "disruption")))
    reaches = list(accumulate(class_posterior(evidence, "novelty")))
    _, _, counts = _draw_citers(rng, characters, evidence.facts)
    _, scores = _draw_scores(rng, reaches)
    return CitationDraw(*counts, *scores)


def _draw_citers(
    rng: np.random.Generator, characters: Sequence[float], known: Mapping[str, int]
) -> tuple[int, Years, tuple[int, int, int]]:
    """Draw a paper's character and citers until it is eligible and balance keeps it.

    Args:
        rng: the Task's.
        characters: cumulative chances of the characters.
        known: citers by kind of the years that are known, among other facts.

    Returns:
        The character, citers of the years that are counted apart, those of all five years.
    """
    while True:
        c = _pick(rng, characters)
        drawn = [_pick(rng, pmf) for pmf in _CITERS[c]]
        for name in known:
            if name in _COUNTED:
                drawn[_COUNTED[name]] = known[name]
        i, j, k = (drawn[n] + drawn[n + 3] + drawn[n + 6] for n in range(3))
        label = disruption_label(i, j, k)
        if i + j >= LEAST_CITERS and label and _balanced(rng, "disruption", label):
            return c, dict(zip(_COUNTED, drawn, strict=False)), (i, j, k)


def _draw_scores(
    rng: np.random.Generator, reaches: Sequence[float]
) -> tuple[int, tuple[float, float]]:
    """Draw a paper's reach and scores until balance keeps it; likewise."""
    while True:
        m = _pick(rng, reaches)
        tenth = float(rng.normal(REACHES[m].tenth, 1.0))
        median = tenth + float(rng.exponential(REACHES[m].gap))
        if _balanced(rng, "novelty", novelty_label(tenth, median, FIELD_MEDIAN)):
            return m, (tenth, median)


def _balanced(rng: np.random.Generator, target: Target, label: str) -> bool:
    """Accept a label at the rate that makes all labels as frequent as the rarest."""
    return rng.random() < _kept(target)[label]


@cache
def _kept(target: Target) -> Mapping[str, float]:
    rates = frequencies(target)
    return dict(zip(LABELS[target], (rates.min() / rates).tolist(), strict=True))


def _describe(
    rng: np.random.Generator,
    level: str,
    character: int,
    reach: int,
    years: Years,
    orders: Mapping[str, Sequence[int]],
) -> Evidence:
    field = list(_TOPICS)[int(rng.integers(len(_TOPICS)))]
    topic = _TOPICS[field][int(rng.integers(len(_TOPICS[field])))]
    setting = _SETTINGS[int(rng.integers(len(_SETTINGS)))]
    classes: Mapping[Target, int] = {"disruption": character, "novelty": reach}
    first = _draw_cue(rng, "aim", classes, orders)
    second = _draw_cue(rng, "mix", classes, orders)
    published: dict[str, int] = {}
    if level not in ("L0", "first_year"):
        for name in PUBLICATION_FEATURES if level == "L2" else REFERENCE_FEATURES:
            feature = FEATURE_TABLE[name]
            c = orders.get(name, range(3))[classes[feature.target]]
            published[name] = feature.least + _pick(rng, _CUMULATIVE[name][c])
    periods = ({name: years[name] for name in names} for names in SHARES)
    facts, private = share_facts(level, published, *periods)
    count = years["n_i"] + years["n_j"]
    year = int(rng.integers(_YEARS[0], _YEARS[1] + 1))
    abstract = f"{first} a view of {topic} {second}."
    return Evidence(
        title=f"{topic.capitalize()} {setting}",
        abstract=f"{abstract} {_draw_details(rng, classes)}" if level == "L0" else abstract,
        year=year,
        field=field,
        facts=facts,
        private=private,
        citations={"count": count, "above": cited_above(count)} if level == "L2" else {},
    )


def _draw_details(rng: np.random.Generator, classes: Mapping[Target, int]) -> str:
    """Draw the rest of a long abstract: further cues, and numbers that mean nothing."""
    sentences = [_draw_cue(rng, name, classes) for name in LONG_CUES]
    cases, years = int(rng.integers(20, 1000)), int(rng.integers(2, 10))
    sentences.append(f"The data are {cases} cases of {years} years")
    return " ".join(f"{sentences[k]}." for k in rng.permutation(len(sentences)).tolist())


def _draw_cue(
    rng: np.random.Generator,
    name: str,
    classes: Mapping[Target, int],
    orders: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> str:
    cue = ALL_CUES[name]
    c = orders.get(name, range(3))[classes[cue.target]]
    phrases = cue.phrases[_pick(rng, _cue_cumulative(name, c))]
    return phrases[int(rng.integers(len(phrases)))]


@cache
def _cue_cumulative(name: str, c: int) -> tuple[float, ...]:
    """Cumulative probabilities of the groups of a cue's phrases in a paper of class `c`."""
    return tuple(accumulate(cue_likelihood(name, group)[c] for group in range(3)))


def _pick(rng: np.random.Generator, cumulative: Sequence[float]) -> int:
    """Draw a position from cumulative probabilities."""
    return bisect_right(cumulative, rng.random() * cumulative[-1], 0, len(cumulative) - 1)
