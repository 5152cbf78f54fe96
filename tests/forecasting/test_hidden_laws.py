"""The odds of the families that hide a law, against brute force that shares no code with them."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from tokengym.envs.core.task import to_plain_json
from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.families.base import Shown
from tokengym.envs.forecasting.families.evidence import ERRORS
from tokengym.envs.forecasting.levels import LEVELS

few = settings(max_examples=20)


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


PRIOR_DRAWS = 200_000


def agree(share_C: npt.NDArray[np.float64], kept: int, found: Sequence[float]) -> None:
    """Whether shares among so many simulated worlds are chances, up to six standard errors."""
    assume(kept > 300)
    for share, chance in zip(share_C, found, strict=True):
        assert abs(share - chance) < 6.0 * math.sqrt(chance * (1.0 - chance) / kept) + 1e-9


def joint_of(name: str, shown: Shown) -> list[float]:
    """The chances of the four states of two cases, as the world has them."""
    return list(FAMILIES[f"twin_{name}"].predictive({"facts": shown, "order": []}))


def states_of(cases_C: Sequence[npt.NDArray[np.bool_]]) -> npt.NDArray[np.float64]:
    """Shares of the four states of two simulated cases."""
    return np.bincount(2 * cases_C[0] + cases_C[1], minlength=4) / len(cases_C[0])


patterns = st.integers(0, 31)
days = st.lists(st.tuples(patterns, st.integers(0, 1)), min_size=1, max_size=6)


@settings(max_examples=6)
@given(
    days=days,
    asked=st.tuples(patterns, patterns),
    error=st.sampled_from(ERRORS),
    kind=st.sampled_from(["switches", "gauges"]),
)
def test_plants_are_as_simulated_ones_that_had_the_same_days(
    days: list[tuple[int, int]], asked: tuple[int, int], error: int, kind: str
) -> None:
    rng = np.random.default_rng(0)
    if kind == "switches":
        live = rng.random((PRIOR_DRAWS, 5)) < 0.5
    else:
        gauges = rng.permuted(np.tile(np.arange(5), (PRIOR_DRAWS, 1)), axis=1)
        inverse = rng.random((PRIOR_DRAWS, 2)) < 0.5

    def happens(pattern: int, kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        high = np.array([letter == "1" for letter in f"{pattern:05b}"])
        if kind == "switches":
            brings = (live[kept] & high).sum(axis=1) % 2 == 1
        else:
            guide, one, other = gauges[kept, :3].T
            brings = np.where(
                high[guide], high[one] != inverse[kept, 0], high[other] != inverse[kept, 1]
            )
        departs = rng.random(len(brings)) < error / 100.0
        faults: npt.NDArray[np.bool_] = brings != departs
        return faults

    kept = np.ones(PRIOR_DRAWS, bool)
    for pattern, fault in days:
        kept[kept] = happens(pattern, kept) == fault
    shown = {
        "count": 5,
        "error": error,
        "days": [pattern for pattern, _ in days],
        "faults": [fault for _, fault in days],
        "asked": list(asked),
    }
    shares = states_of([happens(pattern, kept) for pattern in asked])
    agree(shares, int(kept.sum()), joint_of(kind, shown))


@settings(max_examples=6)
@given(
    presses=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from([None, 0, 1])), min_size=1, max_size=9
    ),
    ahead=st.lists(st.integers(0, 2), min_size=2, max_size=4),
    error=st.sampled_from(ERRORS),
)
def test_buttons_do_what_those_of_simulated_machines_do_that_had_the_same_sensor(
    presses: list[tuple[int, int | None]], ahead: list[int], error: int
) -> None:
    rng = np.random.default_rng(0)
    effects = rng.choice(["nothing", "start", "stop", "change"], size=(PRIOR_DRAWS, 3))
    runs = rng.random(PRIOR_DRAWS) < 0.5
    for button, said in presses:
        does = effects[:, button]
        runs = np.where(does == "change", ~runs, (does == "start") | (runs & (does != "stop")))
        if said is not None:
            sensor = runs != (rng.random(len(runs)) < error / 100.0)
            effects, runs = effects[sensor == said], runs[sensor == said]
    states = []
    for button in ahead:
        does = effects[:, button]
        runs = np.where(does == "change", ~runs, (does == "start") | (runs & (does != "stop")))
        states.append(runs)
    shown = {
        "count": 3,
        "error": error,
        "pressed": [button for button, _ in presses],
        "sensor": [said for _, said in presses],
        "ahead": ahead,
        "cases": 2,
    }
    agree(states_of([states[0], states[-1]]), len(runs), joint_of("buttons", shown))


@few
@given(name=st.sampled_from(["switches", "gauges", "buttons"]), seed=st.integers(0, 2**32))
def test_one_case_has_the_odds_that_it_has_among_two(name: str, seed: int) -> None:
    drawn = FAMILIES[f"twin_{name}"].draw(np.random.default_rng(seed), LEVELS["twins"].knobs)
    facts = to_plain_json(drawn)["facts"]
    joint = joint_of(name, facts)
    cases = {"cases": 1, "asked": facts.get("asked", [])[:1], "ahead": facts.get("ahead", [])[:1]}
    alone = FAMILIES[name].predictive({**facts, **cases})
    assert alone[1] == pytest.approx(joint[2] + joint[3])


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
