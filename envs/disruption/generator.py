"""Drawing instances: papers of the synthetic literature, as a level shows them; and outcomes."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from tokengym.envs.disruption.evidence import (
    CITER_FEATURES,
    KINDS,
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
    LATER,
    LONG_CUES,
    ORDERS,
    REACHES,
    VARIED,
    class_posterior,
    cue_likelihood,
    first_year_counts,
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
"""Earlier papers whose notes the level `private` shows."""
# Lists: looking up one number in a short array takes longer than all the rest of a draw.
_CUMULATIVE = {
    name: [list(accumulate(pmf.tolist())) for pmf in feature.pmf]
    for name, feature in FEATURE_TABLE.items()
}
_LATER_CUMULATIVE = [[list(accumulate(pmf.tolist())) for pmf in row] for row in LATER]


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
    while True:
        character, reach = int(rng.integers(3)), int(rng.integers(3))
        seen = _draw_seen(rng, character)
        counts = _accepted_counts(rng, character, seen)
        scores = None if counts is None else _accepted_scores(rng, reach)
        if counts is not None and scores is not None:
            evidence = _describe(rng, level, character, reach, seen, orders)
            return evidence, CitationDraw(*counts, *scores)


def draw_challenger(rng: np.random.Generator, evidence: Evidence) -> Evidence:
    """Draw which kind of challenger a paper meets, and what it notes of the first year.

    Args:
        rng: the Task's.
        evidence: with private facts about the first year, or it is returned as it is.
    """
    if not evidence.private:
        return evidence
    kind = list(KINDS)[_pick(rng, list(accumulate(KINDS.values())))]
    mixed_up = int(rng.integers(1, len(ORDERS))) if kind == "careless" else 0
    columns = [CITER_FEATURES[k] for k in ORDERS[mixed_up]]

    def noted(facts: Mapping[str, int]) -> dict[str, int]:
        return {name: facts[column] for name, column in zip(CITER_FEATURES, columns, strict=True)}

    earlier = [draw_paper(rng, "L2", {}) for _ in range(EARLIER)]
    record = [
        {"notes": noted(paper.facts), "label": outcome.labels()["disruption"]}
        for paper, outcome in earlier
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
    first_year = first_year_counts(evidence)
    while True:
        c = _pick(rng, characters)
        counts = _accepted_counts(rng, c, first_year or _draw_seen(rng, c))
        if counts is not None:
            break
    while True:
        scores = _accepted_scores(rng, _pick(rng, reaches))
        if scores is not None:
            return CitationDraw(*counts, *scores)


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
    """Accept a label at the rate that makes all labels as frequent as the rarest."""
    rates = frequencies(target)
    return float(rng.random()) * rates[LABELS[target].index(label)] < min(rates)


def _describe(
    rng: np.random.Generator,
    level: str,
    character: int,
    reach: int,
    seen: tuple[int, int, int],
    orders: Mapping[str, Sequence[int]],
) -> Evidence:
    field = list(_TOPICS)[int(rng.integers(len(_TOPICS)))]
    topic = _TOPICS[field][int(rng.integers(len(_TOPICS[field])))]
    setting = _SETTINGS[int(rng.integers(len(_SETTINGS)))]
    classes: Mapping[Target, int] = {"disruption": character, "novelty": reach}
    first = _draw_cue(rng, "aim", classes, orders)
    second = _draw_cue(rng, "mix", classes, orders)
    references: dict[str, int] = {}
    if level != "L0":
        for name in REFERENCE_FEATURES:
            feature = FEATURE_TABLE[name]
            c = orders.get(name, range(3))[classes[feature.target]]
            references[name] = feature.least + _pick(rng, _CUMULATIVE[name][c])
    citers: dict[str, int] = dict(zip(CITER_FEATURES, seen, strict=True))
    facts, private = share_facts(level, references, citers)
    year = int(rng.integers(_YEARS[0], _YEARS[1] + 1))
    abstract = f"{first} a view of {topic} {second}."
    return Evidence(
        title=f"{topic.capitalize()} {setting}",
        abstract=f"{abstract} {_draw_details(rng, classes)}" if level == "L0" else abstract,
        year=year,
        field=field,
        facts=facts,
        private=private,
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
    place = bisect_right(cumulative, rng.random() * cumulative[-1])
    return min(place, len(cumulative) - 1)
