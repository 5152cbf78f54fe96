"""forecast:easy, 2026-11-27, 2 minutes: posterior predictive by conjugate priors and quadrature.

Written from prompts and 60 train Tasks alone. The squared error (Brier score) is proper, so the
best reply is the posterior predictive probability itself. Beta-binomial updating gives it for the
tries, and the negative binomial tail after a Gamma-Poisson update for the faults. For the Elo
series, the winning chance given the rating difference is averaged over that difference's normal
distribution by the trapezoidal rule. On the train Tasks the expected scores recorded in `value`
agree with these probabilities. A text of no known kind is answered with 0.5.
"""

import math
import re

NUMBER = r"(\d+(?:\.\d+)?)"


def next_try(text: str) -> float | None:
    """Chance that the source asked about succeeds, under a Beta prior."""
    prior = re.search(rf"Beta\({NUMBER}, {NUMBER}\)", text)
    asked = re.search(r"next try of (\w+) succeed", text)
    if not prior or not asked:
        return None
    record = re.search(rf"\b{asked[1]} (\d+) of (\d+)", text)
    wins, tries = (int(record[1]), int(record[2])) if record else (0, 0)
    alpha, beta = float(prior[1]), float(prior[2])
    return (alpha + wins) / (alpha + beta + tries)


def at_most(limit: int, shape: float, rate: float) -> float:
    """Chance of at most `limit` faults in a day whose mean is Gamma(shape, rate)."""
    stay = rate / (rate + 1)
    term = stay**shape
    total = 0.0
    for count in range(limit + 1):
        total += term
        term *= (shape + count) / (count + 1) * (1 - stay)
    return total


def next_day(text: str) -> float | None:
    """Chance that the next day's faults pass the mark, under a Gamma prior of the rate."""
    prior = re.search(rf"Gamma with shape {NUMBER} and mean {NUMBER}", text)
    asked = re.search(r"next day bring more than (\d+) fault", text)
    if not prior or not asked:
        return None
    listed = re.search(r"so far: ([\d, ]+)", text)
    counts = [int(found) for found in re.findall(r"\d+", listed[1])] if listed else []
    shape, mean = float(prior[1]), float(prior[2])
    return 1 - at_most(int(asked[1]), shape + sum(counts), shape / mean + len(counts))


def win_series(game: float, needed: int) -> float:
    """Chance of being first to win `needed` games, each won with chance `game`."""
    return sum(
        math.comb(needed - 1 + lost, lost) * game**needed * (1 - game) ** lost
        for lost in range(needed)
    )


def series(text: str) -> float | None:
    """Chance that the player asked about wins the series, ratings being uncertain."""
    needed = re.search(r"wins (\d+) games? first", text)
    first, second = (
        re.search(rf"\b{name}(?: is rated)? {NUMBER} with standard error {NUMBER}", text)
        for name in "AB"
    )
    asked = re.search(r"Will (\w+) win", text)
    if not (needed and first and second and asked):
        return None
    gap = float(first[1]) - float(second[1])
    spread = math.hypot(float(first[2]), float(second[2]))
    total = weights = 0.0
    for step in range(-800, 801):
        deviate = step / 100
        weight = math.exp(-deviate * deviate / 2)
        game = 1 / (1 + 10 ** (-(gap + deviate * spread) / 400))
        total += weight * win_series(game, int(needed[1]))
        weights += weight
    return total / weights if asked[1] == "A" else 1 - total / weights


def reply(texts: list[str], replies: list[str]) -> str:
    """Answer the newest text with the posterior predictive probability."""
    del replies
    for method in (next_try, next_day, series):
        chance = method(texts[-1])
        if chance is not None:
            return f"Probability: {min(max(chance, 0.0), 1.0):.3f}"
    return "Probability: 0.500"
