"""Every closed form against brute force that shares no code with it: enumeration or integration."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.families.autoregression import ahead_law, posterior
from tokengym.envs.forecasting.families.contest import series_chance
from tokengym.envs.forecasting.families.markov import chain_chance, urn_chance
from tokengym.envs.forecasting.families.walk import brownian_reach, reach_chance

GRID = (np.arange(20_000) + 0.5) / 20_000
"""Midpoints for integrals over a chance."""

few = settings(max_examples=25)


def mean_over(law: npt.ArrayLike, value: npt.ArrayLike) -> float:
    return float(np.sum(np.multiply(law, value)) / np.sum(law))


@few
@given(a=st.sampled_from([0.5, 1.0, 2.0]), n=st.integers(1, 30), data=st.data())
def test_frequency_is_the_posterior_mean_of_the_rate(a: float, n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    shown = {"hits": [0, k], "tries": [9, n], "later": None, "asked": 1, "prior": [a, a]}
    # Substituting rate = sin² makes the Beta(½, ½) density flat, so its poles do no harm.
    rate = np.sin(np.pi * GRID / 2.0) ** 2
    law = (rate * (1.0 - rate)) ** (a - 0.5) * stats.binom.pmf(k, n, rate)
    assert FAMILIES["frequency"].predictive(shown)[1] == pytest.approx(
        mean_over(law, rate), abs=1e-6
    )


@few
@given(
    counts=st.lists(st.integers(0, 12), min_size=1, max_size=6),
    later=st.none() | st.lists(st.integers(0, 12), min_size=1, max_size=4),
    ahead=st.integers(1, 4),
    threshold=st.integers(0, 30),
    shape=st.sampled_from([1.0, 2.0]),
)
def test_poisson_tail_integrates_over_the_rate(
    counts: list[int], later: list[int] | None, ahead: int, threshold: int, shape: float
) -> None:
    shown = {
        "counts": counts,
        "later": later,
        "ahead": ahead,
        "threshold": threshold,
        "prior": [shape, 5.0],
    }
    rate = 40.0 * GRID
    seen = np.array([*counts, *(later or [])])
    law = stats.gamma.pdf(rate, shape, scale=5.0 / shape)
    law = law * np.prod(stats.poisson.pmf(seen[:, None], rate), axis=0)
    tail = stats.poisson.sf(threshold, ahead * rate)
    assert FAMILIES["poisson"].predictive(shown)[1] == pytest.approx(mean_over(law, tail), abs=1e-5)


@few
@given(n=st.integers(1, 40), half=st.integers(0, 30), data=st.data())
def test_polls_tail_integrates_over_the_share(n: int, half: int, data: st.DataObject) -> None:
    k, more = data.draw(st.integers(0, n)), data.draw(st.integers(0, 10))
    shown = {
        "asked": [n],
        "for": [k],
        "later": {"asked": [10], "for": [more]},
        "voters": 2 * half + 1,
        "prior": [2.0, 3.0],
    }
    law = stats.beta.pdf(GRID, 2.0, 3.0) * stats.binom.pmf(k, n, GRID)
    law = law * stats.binom.pmf(more, 10, GRID)
    wins = stats.binom.sf(half, 2 * half + 1, GRID)
    assert FAMILIES["polls"].predictive(shown)[1] == pytest.approx(mean_over(law, wins), abs=1e-6)


@few
@given(counts=st.lists(st.integers(0, 9), min_size=3, max_size=3), prior=st.sampled_from([1, 2]))
def test_voter_integrates_over_the_simplex(counts: list[int], prior: int) -> None:
    side = (np.arange(400) + 0.5) / 400
    x, y = np.meshgrid(side, side)
    inside = x + y < 1.0
    x, y = x[inside], y[inside]
    shares = np.stack([x, y, 1.0 - x - y])
    weights = np.array([prior, 1.0, prior])
    law = (shares ** (np.array(counts) + weights - 1)[:, None]).prod(axis=0)
    shown = {"counts": counts, "later": None, "prior": [prior, 1.0, prior]}
    expected = [mean_over(law, share) for share in shares]
    assert FAMILIES["voter"].predictive(shown) == pytest.approx(expected, abs=3e-3)


@few
@given(game=st.floats(0.01, 0.99), to_win=st.integers(1, 4), data=st.data())
def test_a_series_is_won_as_often_as_its_games_say(
    game: float, to_win: int, data: st.DataObject
) -> None:
    need, other = data.draw(st.integers(1, to_win)), data.draw(st.integers(1, to_win))
    games = need + other - 1
    won = math.fsum(
        math.prod(game if win else 1.0 - game for win in played)
        for played in itertools.product([0, 1], repeat=games)
        if sum(played) >= need
    )
    assert series_chance(game, need, other) == pytest.approx(won, abs=1e-12)


def paths(steps: int) -> Iterator[tuple[int, ...]]:
    return itertools.product([1, -1], repeat=steps)


def reached(path: tuple[int, ...], rise: int) -> bool:
    return max(itertools.accumulate(path), default=0) >= rise


@few
@given(up=st.floats(0.05, 0.95), steps=st.integers(1, 10), rise=st.integers(1, 10))
def test_reflection_counts_every_path_of_a_walk(up: float, steps: int, rise: int) -> None:
    counted = math.fsum(
        math.prod(up if move > 0 else 1.0 - up for move in path)
        for path in paths(steps)
        if reached(path, rise)
    )
    closed = reach_chance(rise, steps, lambda ups, downs: up**ups * (1.0 - up) ** downs)
    assert closed == pytest.approx(counted, abs=1e-12)


@few
@given(seen=st.text("+-", min_size=0, max_size=15), steps=st.integers(1, 8), rise=st.integers(1, 8))
def test_a_walk_of_unknown_drift_integrates_over_it(seen: str, steps: int, rise: int) -> None:
    shown = {"seen": seen, "prior": [2.0, 2.0], "rise": rise, "steps": steps}
    law = GRID ** (seen.count("+") + 1) * (1.0 - GRID) ** (seen.count("-") + 1)
    chance = np.zeros_like(GRID)
    for path in paths(steps):
        if reached(path, rise):
            ups = path.count(1)
            chance += GRID**ups * (1.0 - GRID) ** (steps - ups)
    assert FAMILIES["walk"].predictive(shown)[1] == pytest.approx(mean_over(law, chance), abs=1e-6)


@few
@given(rise=st.integers(1, 20), time=st.integers(1, 200), drift=st.sampled_from([-0.6, 0.0, 0.6]))
def test_brownian_reach_is_a_chance_that_grows_with_time(
    rise: int, time: int, drift: float
) -> None:
    now, later = (brownian_reach(rise, t, drift, 1.0 - drift**2) for t in (time, time + 1))
    assert 0.0 <= now <= later + 1e-12 <= 1.0 + 1e-9


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[list[float]], int, int, int, bool]:
    size = draw(st.integers(2, 3))
    rows = []
    for _ in range(size):
        cells = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(sum))
        rows.append([cell / sum(cells) for cell in cells])
    ever = draw(st.booleans())
    start = draw(st.integers(0, size - 1))
    target = draw(st.integers(0, size - 1).filter(lambda state: not ever or state != start))
    return rows, start, target, draw(st.integers(1, 5)), ever


def true_of(path: tuple[int, ...], target: int, ever: bool) -> bool:
    return target in path if ever else path[-1] == target


@few
@given(chain=chains())
def test_a_chain_of_known_matrix_sums_its_paths(
    chain: tuple[list[list[float]], int, int, int, bool],
) -> None:
    rows, start, target, steps, ever = chain
    summed = math.fsum(
        math.prod(rows[old][new] for old, new in itertools.pairwise((start, *path)))
        for path in itertools.product(range(len(rows)), repeat=steps)
        if true_of(path, target, ever)
    )
    assert chain_chance(rows, start, target, steps, ever=ever) == pytest.approx(summed, abs=1e-12)


@settings(max_examples=8)
@given(
    counts=st.lists(st.floats(0.5, 9.0), min_size=4, max_size=4),
    steps=st.integers(1, 4),
    ever=st.booleans(),
)
def test_the_urn_integrates_over_a_chains_two_rows(
    counts: list[float], steps: int, ever: bool
) -> None:
    rows = [counts[:2], counts[2:]]
    urn = urn_chance([list(row) for row in rows], 0, 1, steps, ever=ever)
    rng = np.random.default_rng(7)
    draws = 3000
    chains = np.stack([rng.dirichlet(row, size=draws) for row in rows], axis=1)
    chances = [chain_chance(chain.tolist(), 0, 1, steps, ever=ever) for chain in chains]
    assert urn == pytest.approx(
        np.mean(chances), abs=5.0 * float(np.std(chances)) / math.sqrt(draws)
    )


@few
@given(
    split=st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30)),
    cells=st.integers(1, 3),
    generations=st.integers(1, 3),
)
def test_branching_follows_the_law_of_the_number_of_cells(
    split: tuple[int, int, int], cells: int, generations: int
) -> None:
    parts = [*split, 100 - sum(split)]
    offspring = np.array(parts) / 100.0
    law = np.zeros(cells + 1)
    law[cells] = 1.0
    for _ in range(generations):
        powers = [np.ones(1)]
        for _ in range(len(law) - 1):
            powers.append(np.convolve(powers[-1], offspring))
        after = np.zeros(3 * (len(law) - 1) + 1)
        for size, mass in enumerate(law):
            after[: len(powers[size])] += mass * powers[size]
        law = after
    shown = {"hundredths": parts, "cells": cells, "generations": generations}
    assert FAMILIES["branching"].predictive(shown)[1] == pytest.approx(law[0], abs=1e-12)


@few
@given(
    deviation=st.integers(-20, 20),
    pull=st.sampled_from([0.1, 0.5, 0.9]),
    noise=st.integers(2, 8),
    ahead=st.integers(1, 8),
)
def test_autoregression_days_ahead_follow_the_recursion(
    deviation: int, pull: float, noise: int, ahead: int
) -> None:
    mean, variance = float(deviation), 0.0
    for _ in range(ahead):
        mean, variance = pull * mean, pull**2 * variance + noise**2
    assert ahead_law(deviation, pull, noise, ahead) == pytest.approx((mean, math.sqrt(variance)))


@few
@given(series=st.lists(st.integers(-15, 15), min_size=2, max_size=10))
def test_autoregression_posterior_weighs_rounded_cells(series: list[int]) -> None:
    hidden = [(pull, noise) for pull in (0.3, 0.8, 0.95) for noise in (3.0, 8.0)]
    weights = []
    for pull, noise in hidden:
        centre = pull * np.array(series[:-1])
        new = np.array(series[1:])
        cells = stats.norm.cdf(new + 0.5, centre, noise) - stats.norm.cdf(new - 0.5, centre, noise)
        weights.append(np.prod(cells))
    expected = np.array(weights) / sum(weights)
    assert posterior(series) == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_autoregression_tail_is_the_simulated_one() -> None:
    shown = {"mean": 50, "series": [58], "known": [0.7, 4.0], "ahead": 3, "threshold": 55}
    rng = np.random.default_rng(11)
    level = np.full(200_000, 8.0)
    for _ in range(3):
        level = 0.7 * level + 4.0 * rng.normal(size=level.size)
    assert FAMILIES["autoregression"].predictive(shown)[1] == pytest.approx(
        float((level > 5.0).mean()), abs=0.005
    )


def test_a_conjunction_of_independent_questions_is_their_product() -> None:
    contest = {
        "ratings": [1700, 1600],
        "errors": [80, 50],
        "games": 3,
        "score": [1, 0],
        "later": None,
    }
    branching = {"hundredths": [40, 20, 30, 10], "cells": 2, "generations": 3}
    shown = {
        "parts": [
            {"family": "contest", "shown": contest},
            {"family": "branching", "shown": branching},
        ]
    }
    product = FAMILIES["contest"].predictive(contest)[1]
    product *= FAMILIES["branching"].predictive(branching)[1]
    assert FAMILIES["conjunction"].predictive(shown)[1] == pytest.approx(product)
