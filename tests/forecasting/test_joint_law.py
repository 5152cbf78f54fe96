"""Every family against its own world: hidden law, facts shown, and a future drawn from that law.

The odds are checked against what happens, not against the posterior that they were computed with:
a family's draw is watched for the hidden parameter that it makes and never keeps, and futures are
simulated step by step from it. Facts that say more than they show, such as a threshold drawn around
the hidden rate, are found too.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from tokengym.envs.core.task import to_plain_json
from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.families.base import Shown, before_news
from tokengym.envs.forecasting.levels import LEVELS

Drawn = dict[str, list[Any]]
"""What a generator returned, by the name of its method, in order; futures take what they use."""
Future = Callable[[Shown, Drawn, np.random.Generator], Any]
"""Draws the numbers, or the outcomes, of many futures of the same hidden law, shape (futures,)."""

Law = Callable[[list[int], int], list[bool]]
"""What a hidden law, by its number, says of each case."""

QUESTIONS, FUTURES = 1500, 12
ASKED = [(level, name) for level, row in LEVELS.items() for name in row.families]


class Watched:
    """A generator that notes what it returned."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.drawn: Drawn = defaultdict(list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._rng, name)

        def draw(*arguments: Any, **options: Any) -> Any:
            self.drawn[name].append(method(*arguments, **options))
            return self.drawn[name][-1]

        return draw


def frequency(shown: Shown, drawn: Drawn, rng: np.random.Generator) -> Any:
    return rng.random(FUTURES) < drawn["beta"].pop(0)[shown["asked"]]


def contest(shown: Shown, drawn: Drawn, rng: np.random.Generator) -> Any:
    drawn["normal"].pop(0)  # the ratings, which are shown
    a, b = shown["ratings"]
    true = a - b + np.hypot(*shown["errors"]) * drawn["normal"].pop(0)
    won, lost = shown["later"] or shown["score"]
    need = shown["games"] // 2 + 1
    wins = []
    for _ in range(FUTURES):
        of_a, of_b = won, lost
        while max(of_a, of_b) < need:
            ahead = rng.random() < 1.0 / (1.0 + 10.0 ** (-true / 400.0))
            of_a, of_b = of_a + ahead, of_b + (not ahead)
        wins.append(of_a == need)
    return np.array(wins)


def faults(shown: Shown, drawn: Drawn, rng: np.random.Generator) -> Any:
    rate = drawn["gamma"].pop(0)
    return rng.poisson(rate, size=(shown["ahead"], FUTURES)).sum(axis=0)


def walk(shown: Shown, drawn: Drawn, rng: np.random.Generator) -> Any:
    ups = rng.random((shown["steps"], FUTURES)) < drawn["beta"].pop(0)
    return np.where(ups, 1, -1).cumsum(axis=0).max(axis=0) >= shown["rise"]


def markov(shown: Shown, drawn: Drawn, rng: np.random.Generator) -> Any:
    rows = drawn["dirichlet"].pop(0)
    found = []
    for _ in range(FUTURES):
        path = [shown["now"]]
        for _ in range(shown["steps"]):
            path.append(int(rng.choice(len(rows), p=rows[path[-1]])))
        found.append(shown["target"] in (path[1:] if shown["ever"] else path[-1:]))
    return np.array(found)


def branching(shown: Shown, drawn: Drawn, rng: np.random.Generator) -> Any:
    chances = np.array(shown["hundredths"]) / 100.0
    found = []
    for _ in range(FUTURES):
        cells = shown["cells"]
        for _ in range(shown["generations"]):
            # A line of so many cells does not die out any more.
            if 0 < cells < 10_000:
                cells = int(rng.multinomial(cells, chances) @ np.arange(4))
        found.append(cells == 0)
    return np.array(found)


def readings(shown: Shown, drawn: Drawn, rng: np.random.Generator) -> Any:
    level = np.full(FUTURES, float(shown["series"][-1] - shown["mean"]))
    hidden = ((0.3, 3.0), (0.3, 8.0), (0.8, 3.0), (0.8, 8.0), (0.95, 3.0), (0.95, 8.0))
    pull, noise = hidden[drawn["integers"][1]]
    return shown["mean"] + np.round(pull * level + noise * rng.normal(size=FUTURES))


def votes(shown: Shown, drawn: Drawn, rng: np.random.Generator) -> Any:
    return rng.binomial(shown["voters"], drawn["beta"].pop(0), size=FUTURES)


def voter(shown: Shown, drawn: Drawn, rng: np.random.Generator) -> Any:
    shares = drawn["dirichlet"].pop(0)
    return rng.choice(len(shares), p=shares, size=FUTURES)


def switches(days: list[int], law: int) -> list[bool]:
    return [(law & on).bit_count() % 2 == 1 for on in days]


def gauges(days: list[int], law: int) -> list[bool]:
    choice, meaning = divmod(law, 4)
    guide, one, other = list(itertools.permutations(range(5), 3))[choice]
    means = []
    for day in days:
        high = [digit == "1" for digit in f"{day:05b}"]
        counts, when_low = (one, meaning // 2) if high[guide] else (other, meaning % 2)
        means.append(high[counts] != bool(when_low))
    return means


def buttons(pressed: list[int], law: int) -> list[bool]:
    runs, effects = divmod(law, 4**3)
    effect = [effects // 16, effects // 4 % 4, effects % 4]
    states = []
    for button in pressed:
        runs = (runs, 0, 1, 1 - runs)[effect[button]]
        states.append(runs == 1)
    return states


def to_come(law: Law, shown: Shown, drawn: Drawn, rng: np.random.Generator) -> list[Any]:
    """Futures of the cases asked about: a fault departs from its law at times, a state never."""
    hidden = drawn["integers"].pop()
    if "ahead" in shown:
        states = law([*shown["pressed"], *shown["ahead"]], hidden)
        first = states[len(shown["pressed"])]
        return [np.full(FUTURES, state) for state in [first, states[-1]][-shown["cases"] :]]
    error = shown["error"] / 100.0
    return [day ^ (rng.random(FUTURES) < error) for day in law(shown["asked"], hidden)]


def censored(shown: Shown, drawn: Drawn, rng: np.random.Generator) -> Any:
    return rng.poisson(drawn["choice"].pop(0), size=FUTURES)


def above(number: Future) -> Future:
    """Whether a number exceeds the threshold."""
    return lambda shown, drawn, rng: number(shown, drawn, rng) > shown["threshold"]


def conjunction(shown: Shown, drawn: Drawn, rng: np.random.Generator) -> Any:
    first, second = (FUTURE[part["family"]](part["shown"], drawn, rng) for part in shown["parts"])
    return np.logical_and(first, second)


def one_case(law: Law) -> Future:
    """Whether the only case asked about comes true."""
    return lambda shown, drawn, rng: to_come(law, shown, drawn, rng)[0]


def two_cases(law: Law) -> Future:
    """Which of two cases come true: neither, the second, the first, both."""

    def states(shown: Shown, drawn: Drawn, rng: np.random.Generator) -> Any:
        first, second = to_come(law, shown["facts"], drawn, rng)
        return 2 * first + second

    return states


LAWS: tuple[Law, ...] = (switches, gauges, buttons)
FUTURE: dict[str, Future] = {
    "frequency": frequency,
    "contest": contest,
    "poisson": above(faults),
    "walk": walk,
    "markov": markov,
    "branching": branching,
    "autoregression": above(readings),
    "polls": lambda shown, drawn, rng: votes(shown, drawn, rng) > shown["voters"] // 2,
    "voter": voter,
    "censored": above(censored),
    "conjunction": conjunction,
    **{law.__name__: one_case(law) for law in LAWS},
    **{f"twin_{law.__name__}": two_cases(law) for law in LAWS},
}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_resolved_cases_depart_from_laws_as_stated(law: Law) -> None:
    departed: dict[int, list[bool]] = defaultdict(list)
    for seed in range(400):
        watched: Any = Watched(seed)
        shown = FAMILIES[law.__name__].draw(watched, LEVELS["expert"].knobs)
        cases, seen = (
            (shown["days"], shown["faults"])
            if "days" in shown
            else (shown["pressed"], shown["sensor"])
        )
        means = law(cases.tolist(), int(watched.drawn["integers"].pop()))
        departed[shown["error"]] += [
            bool(said) != meant for said, meant in zip(seen, means, strict=True) if said is not None
        ]
    assert set(departed) == {2, 5, 10}
    for error, found in departed.items():
        assert binomtest(sum(found), len(found), error / 100.0).pvalue > 1e-6


def numbers_in(shown: object, at: str = "") -> dict[str, float]:
    """Every fact that is shown as a number: of lists their lengths, means and ends, of words none.

    Where a fact may be missing, whether it is there is one too.
    """
    if isinstance(shown, int | float):
        return {at: float(shown)}
    if isinstance(shown, dict):
        parts = [numbers_in(value, f"{at} {name}") for name, value in shown.items()]
        return {name: value for part in parts for name, value in part.items()}
    found = {f"{at} there": float(shown is not None)}
    if isinstance(shown, list):
        found[f"{at} length"] = float(len(shown))
        if shown and all(isinstance(value, int | float) for value in shown):
            found |= {f"{at} mean": float(np.mean(shown)), f"{at} last": float(shown[-1])}
    return found


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_a_simulated_law(name: str) -> None:
    assert name in FUTURE, f"write how the future of {name!r} is drawn in FUTURE of this file"


@pytest.mark.nightly
@pytest.mark.parametrize(("level", "name"), ASKED)
def test_the_odds_are_those_of_the_hidden_law(level: str, name: str) -> None:
    """Residuals are 0 on average, weighed by any function of what is shown.

    In two turns the first one's odds are checked too.
    """
    family, knobs = FAMILIES[name], LEVELS[level].knobs
    rng = np.random.default_rng(7)
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    stated, came_true = [], []
    for seed in range(QUESTIONS):
        watched: Any = Watched(seed)
        shown = to_plain_json(family.draw(watched, knobs))
        outcomes = FUTURE[name](shown, watched.drawn, rng)
        asked = [shown, before_news(shown)] if knobs.staged else [shown]
        for turn, seen in enumerate(asked):
            odds, naive = family.predictive(seen), family.empirical(seen)
            facts = numbers_in(seen)
            for outcome in range(len(odds)):
                share = float((outcomes == outcome).mean())
                stated.append(odds[outcome])
                came_true.append(share)
                weights = {"": 1.0, "odds": odds[outcome] - 0.5, "naive": naive[outcome] - 0.5}
                for what, weight in (weights | facts).items():
                    both = sums[f"turn {turn}, outcome {outcome}, by{what}"]
                    residual = weight * (share - odds[outcome])
                    both[0] += residual
                    both[1] += residual**2
    scores = {what: total / np.sqrt(squares) for what, (total, squares) in sums.items() if squares}
    assert max(map(abs, scores.values())) < 5.0, scores
    # Nor are they right by saying little.
    assert np.corrcoef(stated, came_true)[0, 1] > 0.3
