"""The odds of the families that hide a law, against brute force that shares no code with them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.families.conditions import FACTORS
from tokengym.envs.forecasting.families.regimes import run_lengths
from tokengym.envs.forecasting.families.sources import RELIABILITY

few = settings(max_examples=20)
counts_of_days = st.lists(st.integers(0, 14), min_size=1, max_size=5)
names = st.sampled_from(sorted(RELIABILITY))


@few
@given(
    ratings=st.tuples(st.integers(1200, 2000), st.integers(1200, 2000)),
    errors=st.tuples(st.integers(5, 20), st.integers(5, 20)),
    won=st.integers(0, 2),
    lost=st.integers(0, 2),
)
def test_a_series_integrates_over_the_error_of_the_ratings(
    ratings: tuple[int, int], errors: tuple[int, int], won: int, lost: int
) -> None:
    shown = {
        "ratings": ratings,
        "errors": [10 * error for error in errors],
        "games": 5,
        "score": [won, lost],
        "later": None,
    }
    spread = 10.0 * math.hypot(*errors)
    true = ratings[0] - ratings[1] + spread * np.linspace(-8.0, 8.0, 20_001)
    game = 1.0 / (1.0 + 10.0 ** (-true / 400.0))
    law = stats.norm.pdf(true, ratings[0] - ratings[1], spread) * game**won * (1.0 - game) ** lost
    # A wins 3 of 5 if all 5 were played: at least 3 - won of the games left.
    series = stats.binom.sf(2 - won, 5 - won - lost, game)
    mean = float(integrate.trapezoid(law * series) / integrate.trapezoid(law))
    # The family's quadrature is 7.5e-5 off at most, where both errors are 200 and it stands 2:2; a
    # forecast 1e-4 off costs 1e-8, which the grid of rewards, 1.5e-5, does not show.
    assert FAMILIES["contest"].predictive(shown)[1] == pytest.approx(mean, abs=1e-4)


def run_chance(counts: list[int], following: int) -> float:
    """The chance of a run of counts and of what follows, by integration over the rate."""
    rate = np.linspace(1e-6, 120.0, 6001)
    law = stats.expon.pdf(rate, scale=9.0)
    for count in counts:
        law = law * stats.poisson.pmf(count, rate)
    if following >= 0:
        law = law * stats.poisson.sf(following, rate)
    return float(integrate.simpson(law, x=rate))


@settings(max_examples=8)
@given(counts=counts_of_days, threshold=st.integers(0, 15))
def test_regimes_sum_over_all_days_of_change(counts: list[int], threshold: int) -> None:
    change = 0.12
    total = above = 0.0
    for changes in itertools.product([False, True], repeat=len(counts)):
        prior = math.prod(change if changed else 1.0 - change for changed in changes)
        cuts = [0, *(day for day, changed in enumerate(changes) if changed and day), len(counts)]
        # Whether the next day opens a new run is the last of the choices.
        runs = [counts[a:b] for a, b in itertools.pairwise(cuts)]
        past = math.prod(run_chance(run, -1) for run in runs)
        kept = math.prod(run_chance(run, -1) for run in runs[:-1])
        kept *= run_chance(runs[-1], threshold)
        total += prior * past
        above += prior * ((1.0 - change) * kept + change * past * run_chance([], threshold))
    found = FAMILIES["regimes"].predictive({"counts": counts, "threshold": threshold})[1]
    assert found == pytest.approx(above / total, rel=2e-3, abs=1e-4)


@given(counts=counts_of_days)
def test_the_law_of_run_lengths_sums_to_one(counts: list[int]) -> None:
    law = run_lengths(counts)
    assert len(law) == len(counts) + 1
    assert math.fsum(law) == pytest.approx(1.0)


@few
@given(
    days=st.lists(
        st.tuples(st.sampled_from(sorted(FACTORS)), st.integers(0, 20)), min_size=1, max_size=5
    ),
    following=st.sampled_from(sorted(FACTORS)),
    threshold=st.integers(0, 20),
)
@example(days=[("snow", 19)], following="snow", threshold=15)
@example(days=[("snow", 20)] * 5, following="snow", threshold=15)
def test_conditions_integrate_over_the_plants_own_rate(
    days: list[tuple[str, int]], following: str, threshold: int
) -> None:
    # Five days of snow with 20 faults each put the mean at 146, and the deviation at 14.
    rate = np.linspace(1e-6, 400.0, 40_001)
    law = stats.gamma.pdf(rate, 2.0, scale=5.0)
    for weather, count in days:
        law = law * stats.poisson.pmf(count, FACTORS[weather] * rate)
    tail = stats.poisson.sf(threshold, FACTORS[following] * rate)
    shown = {
        "weather": [*(weather for weather, _ in days), following],
        "counts": [count for _, count in days],
        "threshold": threshold,
    }
    mean = float(np.sum(law * tail) / np.sum(law))
    assert FAMILIES["conditions"].predictive(shown)[1] == pytest.approx(mean, rel=1e-3, abs=1e-5)


@few
@given(
    voices=st.dictionaries(names, st.booleans(), min_size=1, max_size=6),
    base=st.integers(30, 70),
)
def test_witnesses_weigh_both_truths(voices: dict[str, bool], base: int) -> None:
    chances = {
        truth: (base if truth else 100 - base)
        * math.prod(
            RELIABILITY[name] if said is truth else 1.0 - RELIABILITY[name]
            for name, said in voices.items()
        )
        for truth in (True, False)
    }
    shown = {"base": base, "names": list(voices), "says": list(voices.values()), "copy": None}
    found = FAMILIES["witnesses"].predictive(shown)[1]
    assert found == pytest.approx(chances[True] / sum(chances.values()))
    copied = {**shown, "copy": ["Zoe", 0]}
    assert FAMILIES["witnesses"].predictive(copied)[1] == found
    assert "Zoe only repeats" in FAMILIES["witnesses"].full(copied)


@settings(max_examples=10)
@given(
    reports=st.lists(
        st.tuples(names, names, st.integers(0, 12), st.integers(0, 12)).filter(
            lambda day: day[0] != day[1]
        ),
        min_size=1,
        max_size=3,
    ),
    threshold=st.integers(0, 15),
)
def test_a_ledger_integrates_over_rates_and_true_counts(
    reports: list[tuple[str, str, int, int]], threshold: int
) -> None:
    # Midpoints of steps that grow with the rate: days without a fault leave it near 0.
    place = (np.arange(2000) + 0.5) / 2000
    rate = 90.0 * place**3
    law = stats.gamma.pdf(rate, 1.5, scale=8.0 / 1.5) * place**2
    for first, second, one, other in reports:
        day = np.zeros_like(rate)
        for true in range(150):
            chance = math.prod(
                (RELIABILITY[name] if n == true else 0.0) + (1.0 - RELIABILITY[name]) / 31.0
                for name, n in ((first, one), (second, other))
            )
            day += chance * stats.poisson.pmf(true, rate)
        law = law * day
    tail = stats.poisson.sf(threshold, rate)
    shown = {
        "reports": [
            [name, number, 0, n]
            for number, (first, second, one, other) in enumerate(reports)
            for name, n in ((first, one), (second, other))
        ],
        "asked": 0,
        "threshold": threshold,
    }
    mean = float(np.sum(law * tail) / np.sum(law))
    assert FAMILIES["ledger"].predictive(shown)[1] == pytest.approx(mean, abs=1e-6)


@few
@given(
    logged=st.lists(st.integers(5, 14), max_size=6),
    left_out=st.integers(0, 20),
    threshold=st.integers(0, 15),
)
def test_a_censored_log_counts_the_days_it_left_out(
    logged: list[int], left_out: int, threshold: int
) -> None:
    days = len(logged) + left_out
    weights, tails = [], []
    for rate in np.arange(0.5, 12.5, 0.5):
        kept = math.prod(stats.poisson.pmf(n, rate) for n in logged)
        weights.append(kept * stats.poisson.cdf(4, rate) ** left_out)
        tails.append(stats.poisson.sf(threshold, rate))
    shown = {"days": days, "limit": 4, "logged": logged, "threshold": threshold}
    mean = float(np.dot(weights, tails) / np.sum(weights))
    assert FAMILIES["censored"].predictive(shown)[1] == pytest.approx(mean, rel=1e-6, abs=1e-9)
