"""A predictor that knows the full prompt and how the synthetic literature is made, and no more.

The model of the literature is written again from its description (`envs.disruption.literature`),
by enumeration and with scipy's distributions. Challengers with notes it weighs by the kinds the
prompt names.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]

LABELS = ("disruptive", "consolidating", "neutral")
CITERS, COCITED, USES = np.array([16, 16, 16]), np.array([0.2, 0.8, 0.5]), np.array([4, 9, 24])
YEARLY = np.stack([CITERS * (1 - COCITED), CITERS * COCITED, USES])
"""Mean n_i, n_j and n_k of five years by class, shape (kind, class)."""
KINDS = ("n_i", "n_j", "n_k")
SHARES = {"n": 1 / 4, "m": 9 / 16}
"""Of five years those of the first, n_i, and of the second to fourth, m_i."""
SHIFTED = {
    "references": (10, np.array([8, 14, 11])),
    "age": (1, np.array([9, 5, 7])),
    "authors": (1, np.array([1.25, 3.25, 2.25])),
}
CUES = (
    (
        0.5,
        "We introduce|We propose|We discover",
        "We refine|We extend|We confirm",
        "We review|We apply|We compare",
    ),
    (
        0.55,
        "Earlier accounts no longer hold|None of the earlier steps is needed",
        "Earlier accounts are made complete|Each of the earlier steps is kept",
        "Earlier accounts serve a new purpose|Some of the earlier steps are borrowed",
    ),
    (
        0.6,
        "A common belief turns out wrong|The usual test becomes needless",
        "A common belief gains support|The usual test becomes sharper",
        "A common belief is left open|The usual test moves elsewhere",
    ),
    (
        0.42,
        "Others can start from here|The tools are made from nothing",
        "Others can check their records|The tools are those of the field",
        "Others can choose among several|The tools are lent by neighbours",
    ),
)
MOST = 60
"""Counts of five years above this are too rare to matter."""
NOTED = 45
"""Likewise of the years that notes are about."""


class Predictor:
    """Answers the predictor's Turns of one debate."""

    def __init__(self) -> None:
        self.kinds: list[int] = []
        self.record: list[tuple[list[int], int]] = []
        self.label = 0
        self.years = "n"
        self.facts: dict[str, int] = {}
        self.events: list[Event] = []
        self.literatures: list[tuple[float, dict[str, tuple[int, ...]]]] = [(1.0, {})]

    def reply(self, text: str) -> str:
        """Read a Turn and answer it."""
        if text.startswith("The challenger"):
            belief = self.heard(text) if self.kinds else self.own()
        else:
            assert all(label in text for label in LABELS)
            self.read_paper(text)
            belief = self.own()
            self.label = int(belief.argmax())
        numbers = " ".join(f"{share:.6f}" for share in belief)
        return "\n".join(
            [f"LABEL {LABELS[int(belief.argmax())]}", f"P {numbers}", *self.claims(belief)]
        )

    def own(self) -> Floats:
        """Return what the paper alone makes likely."""
        return posterior(self.by_class(self.events), self.possible())

    def possible(self) -> list[npt.NDArray[np.int64]]:
        """Return which counts of the first year there may be, by kind."""
        return [
            np.array([self.facts[kind]]) if kind in self.facts else np.arange(MOST)
            for kind in KINDS
        ]

    def heard(self, text: str) -> Floats:
        """Return what the paper and a challenger of a kind unknown make likely."""
        (argued,) = re.findall(r"argues for (\w+)", text)
        stated = {"ijk".index(k): int(v) for k, v in re.findall(r"[nm]_([ijk]) = (\d+)", text)}
        found = self.spoken(LABELS.index(argued), stated)
        return np.asarray(found / found.sum())

    def spoken(self, argued: int, stated: Mapping[int, int]) -> Floats:
        """Return P(a challenger argues for a label and states two counts, label of the paper)."""
        weights = self.by_class(self.events)
        whole = float(posterior_weights(weights, self.possible()).sum())
        for kind, name in enumerate(KINDS):
            if name in self.facts:
                weights = weights * stats.poisson.pmf(self.facts[name], YEARLY[kind] / 4)
        said = (argued, frozenset(stated))
        honest, adversarial, careless = self.kinds
        found, heard = np.zeros(3), 0.0
        for order in itertools.permutations(range(3)):
            back = np.argsort(order)
            seen = 1.0
            for earlier, label in self.record:
                seen *= followed(self.years, np.array([earlier])[:, back], None)[:, 0, label].sum()
            in_order = order == (0, 1, 2)
            speaks = honest if in_order else careless / 5
            heard += seen * (speaks + adversarial * in_order)
            noted = [tuple(stated.get(k, other) for k in range(3)) for other in range(NOTED)]
            spoken = says(self.years, np.array(noted), None)
            share = speaks * np.array([one == said for one in spoken], dtype=float)
            if in_order:
                spoken = says(self.years, np.array(noted), self.label)
                share += adversarial * np.array([one == said for one in spoken])
            first = [self.facts[name] for name in KINDS] if "n_k" in self.facts else None
            joint = followed(self.years, np.array(noted)[:, back], first)
            found += seen * np.einsum("c,cnl,n->l", weights, joint, share)
        return np.asarray(found / (whole * heard))

    def end(self, text: str) -> None:
        """Read the last Turn, which says nothing."""
        assert text == ""

    def read_paper(self, text: str) -> None:
        """Find what the text shows of the paper, and how likely each class makes it."""
        paper = text.split("\n\n")[1]
        kinds = r"(\d) is honest.*(\d) is an adversary.*(\d) are careless"
        self.kinds = [int(n) for found in re.findall(kinds, text) for n in found]
        self.facts = {
            name: int(value) for name, value in re.findall(r"(\w+) (\d+)(?=[,\n])", paper)
        }
        earlier = re.findall(r"[nm]_i (\d+), [nm]_j (\d+), [nm]_k (\d+): (\w+)", text)
        self.record = [
            ([int(count) for count in noted], LABELS.index(label)) for *noted, label in earlier
        ]
        self.years = "m" if "(m_i, m_j, m_k)" in text else "n"
        shown, _, others = paper.partition("with what became of them:\n")
        self.events = read_events(shown)
        if others:
            self.literatures = weigh_literatures(others.splitlines())

    def by_class(self, events: Sequence["Event"]) -> Floats:
        """Return how likely each class makes what was seen, over all literatures there may be."""
        found = np.zeros(3)
        for weight, orders in self.literatures:
            found += weight * np.prod([np.ones(3), *in_literature(events, orders)], axis=0)
        return found

    def claims(self, belief: Floats) -> list[str]:
        """Choose up to three claims that bring the judge near to a belief."""
        offers = list(self.events)
        counts = {name: (0, YEARLY[kind] / 4) for kind, name in enumerate(KINDS)}
        for name, (least, means) in {**SHIFTED, **counts}.items():
            if name in self.facts:
                offers += about(name, self.facts[name], least, means)
        best: tuple[float, list[str]] = (float(((belief - 1 / 3) ** 2).sum()), [])
        for size in (1, 2, 3):
            for made in itertools.combinations(offers, size):
                if len({event.name for event in made}) < size:
                    continue  # the judge hears one claim about each thing
                told = posterior(self.by_class(made), [np.arange(MOST)] * 3)
                loss = float(((told - belief) ** 2).sum())
                if loss < best[0]:
                    best = loss, [event.claim for event in made]
        return best[1]


class Event(NamedTuple):
    """Something seen: of which cue or feature, as a claim, and how likely each class makes it."""

    name: str
    claim: str
    rates: Floats


def read_events(paper: str) -> list[Event]:
    """Find what a text says about a paper's use."""
    events = []
    for share, *groups in CUES:
        for place, phrases in enumerate(groups):
            if found := re.search(phrases, paper):
                rates = np.full(3, (1 - share) / 2)
                rates[place] = share
                events.append(Event(str(groups), f'QUOTE "{found[0]}"', rates))
    for name, (least, means) in SHIFTED.items():
        for value in re.findall(rf"{name} (\d+)", paper):
            rates = np.asarray(stats.poisson.pmf(int(value) - least, means))
            events.append(Event(name, f"CLAIM {name} = {value}", rates))
    return events


def about(name: str, value: int, least: int, means: Floats) -> list[Event]:
    """Return the claims that a fact is its value, at least it, and at most it."""
    drawn = stats.poisson(means)
    rates = {
        "=": drawn.pmf(value - least),
        ">=": drawn.sf(value - least - 1),
        "<=": drawn.cdf(value - least),
    }
    return [
        Event(name, f"CLAIM {name} {sign} {value}", np.asarray(rate))
        for sign, rate in rates.items()
    ]


def in_literature(events: Sequence[Event], orders: Mapping[str, tuple[int, ...]]) -> list[Floats]:
    """Return how likely each class makes events where classes have each other's distributions."""
    return [event.rates[list(orders.get(event.name, (0, 1, 2)))] for event in events]


def weigh_literatures(papers: Sequence[str]) -> list[tuple[float, dict[str, tuple[int, ...]]]]:
    """Return every literature there may be, and how likely labelled papers make it."""
    read = [(read_events(paper), LABELS.index(paper.rpartition(": ")[2])) for paper in papers]
    names = [event.name for event in read[0][0]]
    found = []
    for orders in itertools.product(itertools.permutations(range(3)), repeat=len(names)):
        literature = dict(zip(names, orders, strict=True))
        weight = 1.0
        for events, label in read:
            likelihood = np.prod(in_literature(events, literature), axis=0)
            weight *= float(posterior_weights(likelihood, [np.arange(MOST)] * 3)[label])
        found.append((weight, literature))
    return found


def posterior(likelihood: Floats, first_year: Sequence[npt.NDArray[np.int64]]) -> Floats:
    """Return the labels' probabilities by how likely each class is, and a range of first years."""
    drawn = posterior_weights(likelihood, first_year)
    return np.asarray(drawn / drawn.sum())


def posterior_weights(weights: Floats, first_year: Sequence[npt.NDArray[np.int64]]) -> Floats:
    """Return P(label, paper kept, what was seen), balanced, up to a factor."""
    rates = label_rates(tuple(tuple(counts.tolist()) for counts in first_year))
    return np.asarray(weights @ rates / label_rates((tuple(range(MOST)),) * 3).sum(axis=0))


@cache
def label_rates(begun: tuple[tuple[int, ...], ...], share: float = 1 / 4) -> Floats:
    """Return P(some years possible, label, at least 5 citers | class), shape (class, label).

    Args:
        begun: counts of those years that are possible, for each kind.
        share: of those years in five.
    """
    rates = np.zeros((3, 3))
    grid = np.arange(MOST)
    i, j, k = np.meshgrid(grid, grid, grid, indexing="ij", sparse=True)
    edge = 10 * (i - j)
    total = i + j + k
    label = np.where(edge > total, 0, np.where(edge < -total, 1, 2))
    for c in range(3):
        finals = []
        for kind, counts in enumerate(begun):
            first = np.zeros(MOST)
            first[list(counts)] = stats.poisson.pmf(counts, YEARLY[kind, c] * share)
            later = stats.poisson.pmf(grid, YEARLY[kind, c] * (1 - share))
            finals.append(np.convolve(first, later)[:MOST])
        chance = np.einsum("i,j,k->ijk", *finals) * (i + j >= 5)
        rates[c] = [chance[label == one].sum() for one in range(3)]
    return rates


def followed(years: str, counts: npt.NDArray[np.int64], first: Sequence[int] | None) -> Floats:
    """Return P(counts, label, kept | class) up to a factor, shape (class, n, label).

    Args:
        years: which ones are counted, a key of `SHARES`.
        counts: n_i, n_j and n_k of those, shape (n, 3).
        first: those of the first year, if known.
    """
    grid, joint = np.arange(MOST), np.zeros((3, len(counts), 3))
    left = 1.0 - SHARES[years] - (0.0 if first is None else SHARES["n"])
    often = label_rates((tuple(range(MOST)),) * 3).sum(axis=0)
    begun = counts if first is None else counts + np.array(first)
    all_i, all_j = begun[:, 0, None, None] + grid[:, None], begun[:, 1, None, None] + grid
    for c in range(3):
        noted = stats.poisson.pmf(counts, SHARES[years] * YEARLY[:, c]).prod(axis=1)
        later = [stats.poisson.pmf(grid, left * YEARLY[k, c]) for k in range(3)]
        chance = later[0][:, None] * later[1] * (all_i + all_j >= 5)
        up_to = np.append(0.0, np.cumsum(later[2]))
        # CD is above 0.1 as long as n_k is below this bound, and below -0.1 likewise.
        n_k = begun[:, 2, None, None]
        sides = [
            (
                chance * up_to[np.clip(10 * sign * (all_i - all_j) - all_i - all_j - n_k, 0, MOST)]
            ).sum(axis=(1, 2))
            for sign in (1, -1)
        ]
        rest = chance.sum(axis=(1, 2)) - sides[0] - sides[1]
        joint[c] = noted[:, None] * np.stack([*sides, rest], axis=1) / often
    return joint


@cache
def alone(years: str, kind: int, count: int) -> tuple[float, ...]:
    """What one count says of the labels by itself."""
    every = tuple(range(MOST))
    begun = tuple((count,) if one == kind else every for one in range(3))
    drawn = (label_rates(begun, SHARES[years]) / label_rates((every,) * 3).sum(axis=0)).sum(axis=0)
    return tuple((drawn / drawn.sum()).tolist())


def says(
    years: str, noted: npt.NDArray[np.int64], against: int | None
) -> list[tuple[int, frozenset[int]]]:
    """Which label notes argue for, against a label or honestly, and which counts are stated.

    Args:
        years: which ones are counted, a key of `SHARES`.
        noted: counts of those, shape (n, 3).
        against: the label; `None` of honest notes.
    """
    favour = np.array(
        [[alone(years, k, n) for k, n in enumerate(notes)] for notes in noted.tolist()]
    )
    if against is None:
        argued = followed(years, noted, None).sum(axis=0).argmax(axis=1)
    else:
        favour /= favour[..., [against]]
        favour[..., against] = 0.0
        argued = favour.max(axis=1).argmax(axis=1)
    most = [
        np.argsort(-one[:, label], kind="stable") for one, label in zip(favour, argued, strict=True)
    ]
    return [(int(a), frozenset(m[:2].tolist())) for a, m in zip(argued, most, strict=True)]
