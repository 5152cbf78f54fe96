"""A predictor that knows the full prompt and how the synthetic literature is made, and no more.

The model of the literature is written again from its description (`envs.disruption.literature`),
by enumeration and with scipy's distributions. Of a challenger it believes what was checked.
"""

import itertools
import re
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]

LABELS = ("disruptive", "consolidating", "neutral")
CITERS, COCITED, USES = np.array([16, 16, 16]), np.array([0.2, 0.8, 0.5]), np.array([4, 9, 24])
YEARLY = np.stack([CITERS * (1 - COCITED), CITERS * COCITED, USES])
"""Mean n_i, n_j and n_k of five years by class, shape (kind, class); a quarter is in the first."""
KINDS = ("n_i", "n_j", "n_k")
SHIFTED = {"references": (10, np.array([8, 14, 11])), "age": (1, np.array([9, 5, 7]))}
CUES = (
    (0.5, "introduce|propose|discover", "refine|extend|confirm", "review|apply|compare"),
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
"""Counts above this are too rare to matter."""


class Predictor:
    """Answers the predictor's Turns of one debate."""

    def __init__(self) -> None:
        self.facts: dict[str, int] = {}
        self.events: list[tuple[str, Floats]] = []

    def reply(self, text: str) -> str:
        """Read a Turn and answer it."""
        heard: dict[str, str] = {}
        if text.startswith("The challenger"):
            if "were checked and are true" in text:
                heard = dict(re.findall(r"(?:since|and) ((n_[ijk]) [<>=]+ \d+)", text))
        else:
            assert all(label in text for label in LABELS)
            self.read_paper(text)
        belief = posterior([rates for _, rates in self.events], self.first_year(list(heard)))
        numbers = " ".join(f"{share:.6f}" for share in belief)
        claims = self.claims(belief, [f"CLAIM {claim}" for claim in heard])
        return "\n".join([f"LABEL {LABELS[int(belief.argmax())]}", f"P {numbers}", *claims])

    def end(self, text: str) -> None:
        """Read the last Turn, which says nothing."""
        assert text == ""

    def read_paper(self, text: str) -> None:
        """Find what the text shows of the paper, and how likely each class makes it."""
        paper = text.split("\n\n")[1]
        self.facts = {
            name: int(value) for name, value in re.findall(r"(\w+) (\d+)(?=[,\n])", paper)
        }
        for share, *groups in CUES:
            for place, phrases in enumerate(groups):
                if found := re.search(phrases, paper):
                    rates = np.full(3, (1 - share) / 2)
                    rates[place] = share
                    self.events.append((f'QUOTE "{found[0]}"', rates))
        for name, (least, means) in SHIFTED.items():
            if name in self.facts:
                rates = np.asarray(stats.poisson.pmf(self.facts[name] - least, means))
                self.events.append((f"CLAIM {name} = {self.facts[name]}", rates))

    def first_year(self, heard: Sequence[str]) -> list[npt.NDArray[np.int64]]:
        """Return the counts of each kind that are possible."""
        possible = []
        for kind in KINDS:
            counts = np.arange(MOST)
            for name, sign, value in (claim.split() for claim in heard):
                if name == kind:
                    signs = {"=": np.equal, ">=": np.greater_equal, "<=": np.less_equal}
                    counts = counts[signs[sign](counts, int(value))]
            possible.append(np.array([self.facts[kind]]) if kind in self.facts else counts)
        return possible

    def claims(self, belief: Floats, heard: Sequence[str]) -> list[str]:
        """Choose up to three claims that bring the judge near to a belief."""
        offers = list(self.events)
        for kind, name in enumerate(KINDS):
            if name in self.facts:
                rates = stats.poisson.pmf(self.facts[name], YEARLY[kind] / 4)
                offers.append((f"CLAIM {name} = {self.facts[name]}", rates))
        for claim in heard:
            _, name, sign, value = claim.split()
            counts, means = np.arange(MOST)[:, None], YEARLY[KINDS.index(name)] / 4
            holds = {"=": counts == int(value), ">=": counts >= int(value)}.get(
                sign, counts <= int(value)
            )
            offers.append((claim, (stats.poisson.pmf(counts, means) * holds).sum(axis=0)))
        best: tuple[float, list[str]] = (2 / 3, [])
        for size in (1, 2, 3):
            for made in itertools.combinations(offers, size):
                told = posterior([rates for _, rates in made], [np.arange(MOST)] * 3)
                loss = float(((told - belief) ** 2).sum())
                if loss < best[0]:
                    best = loss, [claim for claim, _ in made]
        return best[1]


def posterior(events: Sequence[Floats], first_year: Sequence[npt.NDArray[np.int64]]) -> Floats:
    """Return the labels' probabilities given independent events and a range of first years."""
    weights = np.prod([np.ones(3), *events], axis=0)
    rates = label_rates(tuple(tuple(counts.tolist()) for counts in first_year))
    drawn = weights @ rates / label_rates((tuple(range(MOST)),) * 3).sum(axis=0)
    return np.asarray(drawn / drawn.sum())


@cache
def label_rates(first_year: tuple[tuple[int, ...], ...]) -> Floats:
    """Return P(first year possible, label, at least 5 citers | class), shape (class, label)."""
    rates = np.zeros((3, 3))
    grid = np.arange(MOST)
    i, j, k = np.meshgrid(grid, grid, grid, indexing="ij", sparse=True)
    edge = 10 * (i - j)
    total = i + j + k
    label = np.where(edge > total, 0, np.where(edge < -total, 1, 2))
    for c in range(3):
        finals = []
        for kind, counts in enumerate(first_year):
            first = np.zeros(MOST)
            first[list(counts)] = stats.poisson.pmf(counts, YEARLY[kind, c] / 4)
            later = stats.poisson.pmf(grid, YEARLY[kind, c] * 3 / 4)
            finals.append(np.convolve(first, later)[:MOST])
        chance = np.einsum("i,j,k->ijk", *finals) * (i + j >= 5)
        rates[c] = [chance[label == one].sum() for one in range(3)]
    return rates
