"""Every closed form against brute force that shares no code with it: enumeration or integration."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.families.markov import chain_chance, urn_chance
from tokengym.envs.forecasting.families.walk import brownian_reach

GRID = (np.arange(20_000) + 0.5) / 20_000
"""Midpoints for integrals over a chance."""


def mean_over(law: npt.ArrayLike, value: npt.ArrayLike) -> float:
    return float(np.sum(np.multiply(law, value)) / np.sum(law))


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


@given(rise=st.integers(1, 20), time=st.integers(1, 200), drift=st.sampled_from([-0.6, 0.0, 0.6]))
def test_brownian_reach_is_a_chance_that_grows_with_time(
    rise: int, time: int, drift: float
) -> None:
    now, later = (brownian_reach(rise, t, drift, 1.0 - drift**2) for t in (time, time + 1))
    assert 0.0 <= now <= later + 1e-12 <= 1.0 + 1e-9


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
