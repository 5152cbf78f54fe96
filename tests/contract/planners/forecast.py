"""A forecaster that reads only the full prompt: it parses, and integrates where it does not know.

What questions leave unsaid it knows as a reader of many of them would: see `_UNSTATED` and below.
It shares no code with the world: posteriors are sums over grids of the hidden rate.
"""

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy import stats

from tests.contract.planners.desk import DeskReader

Floats = npt.NDArray[np.float64]

_N = r"(-?\d+(?:\.\d+)?)"
_SHARES: Floats = (np.arange(4000) + 0.5) / 4000
_RATES: Floats = np.arange(1, 9001) / 100.0

# What many questions teach, where a question does not state it.
_UNSTATED = {"tries": (0.6, 2.4), "moves": (2.0, 2.0), "polls": (4.0, 2.0), "faults": (2.0, 8.0)}
_CHAIN = _VOTES = 0.5
_HABITS = ((0.3, 3.0), (0.3, 8.0), (0.8, 3.0), (0.8, 8.0), (0.95, 3.0), (0.95, 8.0))
_LOGGED_RATES = tuple(half / 2.0 for half in range(1, 25))


class Forecaster:
    """Answers one episode, text by text."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._desk: DeskReader | None = None

    def reply(self, text: str) -> str:
        """Read a Turn and return a forecast in the form that the first text asks for."""
        self._texts.append(text)
        if text.startswith("You are a forecaster with an archive"):
            self._desk = DeskReader(text)
        elif self._desk:
            self._desk.read(text)
        if self._desk:
            return self._desk.reply()
        asked = self._texts[0].split("\n\n")[1]
        news = "" if len(self._texts) == 1 else text.partition(" Forecast again.")[0]
        if "each turn asks another question" in self._texts[0]:
            question = (news or asked).partition("Question: ")[2].partition(" Start your")[0]
            return f"Probability: {_twin(asked, question):.6f}"
        if "Question: Which" in asked:
            shares = zip("ABCDEF", _votes(asked, news), strict=False)
            cells = ", ".join(f"{name} {share:.6f}" for name, share in shares)
            return f"Probabilities: {cells}"
        chance = _chance(asked, news)
        if "probability that the answer is no" in self._texts[0]:
            chance = 1.0 - chance
        return f"Probability: {chance:.6f}"

    def end(self, text: str) -> None:
        """Read the last Turn, which has nothing to add."""
        assert not text


def _chance(asked: str, news: str) -> float:
    if "two unrelated questions" in asked:
        parts = re.search(r"\(1\) (.*?\?) \(2\) (.*?\?) Final", asked)
        assert parts is not None
        return _chance(parts[1], "") * _chance(parts[2], "")
    for mark, rule in _RULES.items():
        if mark in asked:
            return rule(asked, news)
    raise AssertionError(f"write a reader of this question in _RULES of {__file__}: {asked}")


def _twin(asked: str, question: str) -> float:
    """Answer one of five questions on two cases from the law of both together."""
    both, first, second = _cases(asked)
    for mark, share in {
        "no fault": 1.0 - first,
        "stand still": 1.0 - first,
        "at least one": first + second - both,
        "or both": first + second - both,
        "both": both,
        "and also": both,
        "the first": first,
        "the second": second,
        "the last": second,
    }.items():
        if mark in question:
            return share
    raise AssertionError(f"a question of no known kind: {question}")


def _numbers(pattern: str, text: str) -> list[float]:
    match = re.search(pattern, text)
    assert match is not None, (pattern, text)
    return [float(group) for group in match.groups()]


def _list(pattern: str, text: str) -> list[int]:
    match = re.search(pattern, text)
    assert match is not None, (pattern, text)
    return [int(number) for number in re.findall(r"\d+", match[1])]


def _beta(asked: str, kind: str) -> Floats:
    """The prior density of a probability, on the grid."""
    a, b = _UNSTATED[kind]
    if "prior distribution" in asked:
        a, b = _numbers(rf"Beta\({_N}, {_N}\)", asked)
    # The midpoint rule fails at the poles of the density: take the mass of each cell.
    edges = np.linspace(0.0, 1.0, len(_SHARES) + 1)
    return np.diff(stats.beta.cdf(edges, a, b))


def _mean(law: Floats, value: npt.ArrayLike) -> float:
    return float(np.dot(law, np.asarray(value)) / np.sum(law))


def _gamma(shape: float, mean: float) -> Floats:
    edges = np.concatenate([[0.0], _RATES[:-1] + 0.005, [np.inf]])
    return np.diff(stats.gamma.cdf(edges, shape, scale=mean / shape))


def _frequency(asked: str, news: str) -> float:
    name = re.findall(r"next try of (\w)", asked)[0]
    seen = [(int(k), int(n)) for k, n in re.findall(rf"{name} (\d+) of (\d+)", f"{asked} {news}")]
    a, b = _UNSTATED["tries"]
    if "prior distribution" in asked:
        a, b = _numbers(rf"Beta\({_N}, {_N}\)", asked)
    return (a + sum(k for k, _ in seen)) / (a + b + sum(n for _, n in seen))


def _contest(asked: str, news: str) -> float:
    games, a, of_a, b, of_b = _numbers(
        rf"best of {_N}.*A is rated {_N} with standard error {_N}, B {_N} with standard error {_N}",
        asked,
    )
    score = re.search(r"A has won (\d+), B (\d+)", news or asked)
    won, lost = map(int, score.groups()) if score else (0, 0)
    spread = math.hypot(of_a, of_b)
    true = a - b + spread * np.linspace(-8.0, 8.0, 4001)
    game = 1.0 / (1.0 + 10.0 ** (-true / 400.0))
    law = stats.norm.pdf(true, a - b, spread) * game**won * (1.0 - game) ** lost
    return _mean(law, stats.binom.sf(games // 2 - won, games - won - lost, game))


def _poisson(asked: str, news: str) -> float:
    seen = _list(r"so far: ([\d, ]+)\.", asked)
    seen += [int(number) for number in re.findall(r"\d+", news)]
    shape, mean = _UNSTATED["faults"]
    if "prior distribution" in asked:
        shape, mean = _numbers(rf"shape {_N} and mean {_N}\.", asked)
    days = re.search(r"the next (\d+) days", asked)
    (threshold,) = _numbers(rf"more than {_N} fault", asked)
    law = _gamma(shape, mean) * _seen(seen)
    return _mean(law, stats.poisson.sf(threshold, _RATES * (int(days[1]) if days else 1)))


def _seen(counts: Sequence[int], factors: Sequence[float] | None = None) -> Floats:
    """The chance of counts of days by the rate, scaled to a largest of 1."""
    logs = np.zeros_like(_RATES)
    for count, factor in zip(counts, factors or [1.0] * len(counts), strict=True):
        logs += stats.poisson.logpmf(count, factor * _RATES)
    scaled: Floats = np.exp(logs - logs.max())
    return scaled


def _walk(asked: str, _news: str) -> float:
    moves = re.findall(r"moves were ([-+]+) ", asked)[0]
    rise, steps = map(int, _numbers(rf"be {_N} above .* next {_N} steps", asked))
    law = _beta(asked, "moves")
    law = law * _SHARES ** moves.count("+") * (1.0 - _SHARES) ** moves.count("-")
    below = {0: np.ones_like(_SHARES)}
    reached = np.zeros_like(_SHARES)
    for _ in range(steps):
        after: dict[int, Floats] = defaultdict(lambda: np.zeros_like(_SHARES))
        for level, mass in below.items():
            after[level + 1] += mass * _SHARES
            after[level - 1] += mass * (1.0 - _SHARES)
        reached += after.pop(rise, 0.0)
        below = after
    return _mean(law, reached)


def _markov(asked: str, _news: str) -> float:
    names = re.findall(r"the states ([A-C, ]+)\.", asked)[0].split(", ")
    target = re.findall(r"Will it be in (\w)", asked)[0]
    (hours,) = map(int, _numbers(rf"{_N} hours?\?", asked))
    ever = "any time" in asked
    if "%" in asked:
        cells = {
            (old, new): float(share) / 100.0
            for old, row in re.findall(r"from (\w) (.*?)[;.]", asked)
            for new, share in re.findall(r"to (\w) (\d+)%", row)
        }
        now = re.findall(r"It is in (\w) now", asked)[0]
        counts = None
    else:
        path = re.findall(r"an hour each: ([A-C, ]+)\.", asked)[0].split(", ")
        now, cells = path[-1], {}
        counts = {(old, new): _CHAIN for old in names for new in names}
        for pair in itertools.pairwise(path):
            counts[pair] += 1.0

    def go(state: str, left: int) -> float:
        if not left:
            return float(state == target)
        total = 0.0
        for new in names:
            if counts is None:
                share = cells[state, new]
            else:
                share = counts[state, new] / sum(counts[state, name] for name in names)
                counts[state, new] += 1.0
            if share:
                total += share * (1.0 if ever and new == target else go(new, left - 1))
            if counts is not None:
                counts[state, new] -= 1.0
        return total

    return go(now, hours)


def _branching(asked: str, _news: str) -> float:
    *chances, cells, generations = _numbers(
        rf"probabilities {_N}, {_N}, {_N}, {_N}\. The line starts with {_N} .* after {_N} gen",
        asked,
    )
    dead = 0.0
    for _ in range(int(generations)):
        dead = sum(chance * dead**count for count, chance in enumerate(chances))
    return float(dead**cells)


def _autoregression(asked: str, _news: str) -> float:
    (mean,) = _numbers(rf"long-run mean {_N}", asked)
    (threshold,) = _numbers(rf"above {_N}", asked)
    if "Daily readings" in asked:
        series = [day - mean for day in _list(r"latest last: ([\d, ]+)\.", asked)]
        logs, tails = [], []
        for share, noise in _HABITS:
            centre, new = share * np.array(series[:-1]), np.array(series[1:])
            # By symmetry of the nearer tail, so that far cells keep their size.
            distance = np.abs(new - centre)
            cell = stats.norm.sf(distance - 0.5, 0, noise) - stats.norm.sf(distance + 0.5, 0, noise)
            logs.append(np.log(cell).sum())
            tails.append(stats.norm.sf(threshold - mean + 0.5, share * series[-1], noise))
        return _mean(np.exp(np.array(logs) - max(logs)), np.array(tails))
    share, noise, now = _numbers(rf"is {_N} times .* deviation {_N}\. Today it is {_N}\.", asked)
    days = re.search(r"in (\d+) days", asked)
    level, variance = now - mean, 0.0
    for _ in range(int(days[1]) if days else 1):
        level, variance = share * level, share**2 * variance + noise**2
    return float(stats.norm.sf(threshold - mean, level, math.sqrt(variance)))


def _polls(asked: str, news: str) -> float:
    law = _beta(asked, "polls")
    for k, n in re.findall(r"(\d+) of (\d+) for A", f"{asked} {news}"):
        law = law * _SHARES ** int(k) * (1.0 - _SHARES) ** (int(n) - int(k))
        law = law / law.max()
    (voters,) = map(int, _numbers(rf"{_N} others will vote", asked))
    stated = re.search(r"more than (\d+) of the", asked)
    needed = int(stated[1]) if stated else voters // 2
    return _mean(law, stats.binom.sf(needed, voters, _SHARES))


def _votes(asked: str, news: str) -> list[float]:
    names = re.findall(r"one of ([A-F, ]+),", asked)[0].split(", ")
    weights = dict.fromkeys(names, _VOTES)
    if "prior distribution" in asked:
        stated = re.findall(r"weights (.*?)\. Named", asked)[0]
        weights = {name: float(w) for name, w in re.findall(rf"([A-F]) {_N}", stated)}
    for counts in [asked.partition("Named so far:")[2], news]:
        for name, count in re.findall(r"\b([A-F]) (\d+)", counts):
            weights[name] += int(count)
    return [weights[name] / sum(weights.values()) for name in names]


def _censored(asked: str, _news: str) -> float:
    limit, days = _numbers(rf"days with more than {_N} faults?\. Of the last {_N} days", asked)
    logged = _list(r"these numbers of faults: ([\d, ]+|none)\.", asked)
    (threshold,) = _numbers(rf"day bring more than {_N} fault", asked)
    rates = np.array(_LOGGED_RATES)
    logs = (days - len(logged)) * stats.poisson.logcdf(limit, rates)
    logs += sum(stats.poisson.logpmf(count, rates) for count in logged)
    return _mean(np.exp(logs - logs.max()), stats.poisson.sf(threshold, rates))


def _hidden_law(asked: str, _news: str) -> float:
    return _cases(asked)[2]


def _cases(asked: str) -> tuple[float, float, float]:
    """Weigh every law; return the chances of both cases, of the first and of the last one."""
    total = both = first = last = 0.0
    for weight, chances in (_machine if "A machine runs" in asked else _plant)(asked):
        total += weight
        both += weight * chances[0] * chances[-1]
        first += weight * chances[0]
        last += weight * chances[-1]
    return both / total, first / total, last / total


Weighed = Iterator[tuple[float, list[float]]]
"""By law its likelihood, and the chances of the cases asked about."""


def _plant(asked: str) -> Weighed:
    names = re.findall(r"(?:switches|gauges), ([A-Z, ]+) and ([A-Z])[.,]", asked)[0]
    letters = [*names[0].split(", "), names[1]]
    sure, error = (
        share / 100.0 for share in _numbers(rf"probability {_N}%, else .*ty {_N}%", asked)
    )
    record = re.findall(r"(\w+): (fault|ok)", asked.partition("Days so far")[2])
    plan = re.findall(r"On the next day (\w+)(?:, on the day after it (\w+))?", asked)[0]
    ahead = ["" if day == "none" else day for number, day in enumerate(plan) if day or not number]
    for means_fault in (_by_switches if "switches" in asked else _by_gauges)(letters):
        likelihood = 1.0
        for day, what in record:
            chance = sure if means_fault(day.replace("none", "")) else error
            likelihood *= chance if what == "fault" else 1.0 - chance
        yield likelihood, [sure if means_fault(day) else error for day in ahead]


def _by_switches(letters: list[str]) -> Iterator[Callable[[str], bool]]:
    def odd(live: tuple[str, ...], on: str) -> bool:
        return len(set(live) & set(on)) % 2 == 1

    for size in range(len(letters) + 1):
        for live in itertools.combinations(letters, size):
            yield partial(odd, live)


def _by_gauges(letters: list[str]) -> Iterator[Callable[[str], bool]]:
    def counts(guide: str, one: str, other: str, signs: tuple[bool, ...], high: str) -> bool:
        return (one in high) == signs[0] if guide in high else (other in high) == signs[1]

    for chosen in itertools.permutations(letters, 3):
        for signs in itertools.product((True, False), repeat=2):
            yield partial(counts, *chosen, signs)


def _machine(asked: str) -> Weighed:
    letters = re.findall(r"has the buttons ([A-Z, ]+)\.", asked)[0].split(", ")
    (error,) = _numbers(rf"is wrong with probability {_N}%", asked)
    told = re.findall(r"some of them: (.*?)\. The sensor", asked)[0].split(", ")
    ahead = re.findall(r"pressed next: ([A-Z, ]+)\.", asked)[0].split(", ")
    for start in (True, False):
        for effects in itertools.product(
            ["nothing", "start", "stop", "change"], repeat=len(letters)
        ):
            does, runs, likelihood = dict(zip(letters, effects, strict=True)), start, 1.0
            for press in told:
                button, _, said = press.partition(" ")
                runs = _after(does[button], runs=runs)
                if said:
                    right = (said == "runs") == runs
                    likelihood *= 1.0 - error / 100.0 if right else error / 100.0
            states = []
            for button in ahead:
                runs = _after(does[button], runs=runs)
                states.append(float(runs))
            yield likelihood, states


def _after(effect: str, *, runs: bool) -> bool:
    return {"nothing": runs, "start": True, "stop": False, "change": not runs}[effect]


_RULES: dict[str, Callable[[str, str], float]] = {
    "next try of": _frequency,
    "best of": _contest,
    "A log keeps only": _censored,
    "Faults per day so far": _poisson,
    "moves were": _walk,
    "A machine is in": _markov,
    "The line starts with": _branching,
    "long-run mean": _autoregression,
    "others will vote": _polls,
    "A plant has": _hidden_law,
    "A machine runs or": _hidden_law,
}
