"""Laws of the scores: bounded, linear in the weights, and best for whoever says what they think."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.rewards.scoring import (
    LOG_FLOOR,
    ORDERED_SCORES,
    SCORES,
    Forecast,
    Score,
    brier,
    clip_forecast,
    log,
    ranked,
    ranked_upper,
    score_of,
)
from tokengym.testing import check_reward

SLACK = 1e-12


def normalised(weights: list[float]) -> Forecast:
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)


@st.composite
def forecasts(draw: st.DrawFn, count: int, smallest: float = 0.0) -> Forecast:
    weight = st.floats(smallest, 1.0)
    return normalised(draw(st.lists(weight, min_size=count, max_size=count).filter(sum)))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Forecast, Forecast]:
    count = draw(st.integers(2, 6))
    return draw(forecasts(count)), draw(forecasts(count))


ALL_SCORES = {**SCORES, **ORDERED_SCORES}
every_score = pytest.mark.parametrize("score", ALL_SCORES.values(), ids=ALL_SCORES.keys())
unordered = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES.keys())


@pytest.mark.nightly
@every_score
def test_every_score_lies_in_the_unit_interval(score: Score) -> None:
    check_reward(lambda pair: score(*pair), pairs(), range=(0.0, 1.0), slack=SLACK)


@every_score
@given(pair=pairs())
def test_no_report_beats_the_honest_one(score: Score, pair: tuple[Forecast, Forecast]) -> None:
    belief, report = pair
    assert score(belief, belief) >= score(report, belief) - SLACK


@pytest.mark.parametrize("name", ["brier", "spherical", "ranked", "ranked_upper"])
@given(pair=pairs())
def test_a_report_that_differs_is_worse(name: str, pair: tuple[Forecast, Forecast]) -> None:
    belief, report = pair
    if max(abs(p - q) for p, q in zip(belief, report, strict=True)) > 1e-3:
        assert ALL_SCORES[name](belief, belief) > ALL_SCORES[name](report, belief)


@given(belief=forecasts(3, LOG_FLOOR), report=forecasts(3, LOG_FLOOR))
def test_log_is_strict_above_its_floor(belief: Forecast, report: Forecast) -> None:
    inside = min(*belief, *report) >= LOG_FLOOR
    if inside and max(abs(p - q) for p, q in zip(belief, report, strict=True)) > 1e-3:
        assert log(belief, belief) > log(report, belief)


@every_score
@given(pair=pairs(), data=st.data())
def test_a_score_is_linear_in_the_weights(
    score: Score, pair: tuple[Forecast, Forecast], data: st.DataObject
) -> None:
    report, weights = pair
    count = len(report)
    alone = [tuple(float(i == j) for i in range(count)) for j in range(count)]
    parts = [w * score(report, sure) for w, sure in zip(weights, alone, strict=True)]
    assert score(report, weights) == pytest.approx(math.fsum(parts), abs=1e-9)


@given(p=st.floats(0.0, 1.0), y=st.sampled_from([0, 1]))
def test_the_binary_brier_is_one_minus_the_squared_miss(p: float, y: int) -> None:
    assert brier((1.0 - p, p), (1.0 - y, float(y))) == pytest.approx(1.0 - (p - y) ** 2)


@unordered
@given(count=st.integers(2, 6), outcome=st.integers(0, 5))
def test_wrong_certainty_earns_no_more_than_the_floor(
    score: Score, count: int, outcome: int
) -> None:
    right = tuple(float(i == outcome % count) for i in range(count))
    wrong = tuple(float(i == (outcome + 1) % count) for i in range(count))
    floor = 1.0 if score is not log else 1.0 + math.log(1.0 - (count - 1) * LOG_FLOOR) / 4.6
    assert score(right, right) == pytest.approx(floor, abs=1e-4)
    assert score(wrong, right) == pytest.approx(0.0, abs=1e-12)


@given(forecast=st.integers(2, 8).flatmap(forecasts), floor=st.sampled_from([0.001, 0.01, 0.1]))
def test_a_held_forecast_is_a_distribution_above_its_floor(
    forecast: Forecast, floor: float
) -> None:
    held = clip_forecast(forecast, floor)
    assert math.fsum(held) == pytest.approx(1.0)
    assert min(held) >= floor - SLACK
    assert held == forecast or min(forecast) < floor


def test_scores_of_one_forecast_match_hand_computation() -> None:
    forecast, rain = (0.3, 0.7), (0.0, 1.0)
    assert brier(forecast, rain) == pytest.approx(0.91)
    assert log(forecast, rain) == pytest.approx(1.0 + math.log(0.7) / math.log(100.0))
    assert SCORES["spherical"](forecast, rain) == pytest.approx(0.7 / math.sqrt(0.58))


@given(pair=pairs())
def test_the_ranked_score_averages_threshold_brier_scores(pair: tuple[Forecast, Forecast]) -> None:
    forecast, weights = pair
    thresholds = range(1, len(forecast))
    above = [brier(*((sum(of[:j]), sum(of[j:])) for of in (forecast, weights))) for j in thresholds]
    assert ranked(forecast, weights) == pytest.approx(math.fsum(above) / len(above))
    weighted = math.fsum(j * score for j, score in zip(thresholds, above, strict=True))
    assert ranked_upper(forecast, weights) == pytest.approx(weighted / sum(thresholds))


@given(pair=st.tuples(forecasts(2), forecasts(2)))
def test_ranked_scores_of_unordered_outcomes_are_brier_scores(
    pair: tuple[Forecast, Forecast],
) -> None:
    for name, score in ORDERED_SCORES.items():
        assert score(*pair) == pytest.approx(brier(*pair))
        assert score_of(name, ordered=False) is brier
        assert score_of(name, ordered=True) is score


def test_near_misses_cost_less_where_outcomes_are_ordered() -> None:
    happened = (1.0, 0.0, 0.0)
    near, far = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    assert brier(near, happened) == brier(far, happened)
    assert ranked(near, happened) == 0.5 > ranked(far, happened) == 0.0
    # The upper threshold weighs twice the lower one.
    assert ranked_upper(near, happened) == pytest.approx(2.0 / 3.0)


def naive_log(forecast: Forecast, weights: Forecast) -> float:
    """The log score with each probability clipped on its own, so that the sum is above 1."""
    logs = [math.log(max(p, LOG_FLOOR)) for p in forecast]
    return 1.0 + math.fsum(w * one for w, one in zip(weights, logs, strict=True)) / 4.6051702


def cut(score: Score, floor: float, forecast: Forecast, weights: Forecast) -> float:
    """The expectation of a score that is cut off below, rescaled to [0, 1]."""
    count = len(weights)
    alone = [tuple(float(i == j) for i in range(count)) for j in range(count)]
    cuts = [max(0.0, score(forecast, one) - floor) / (1.0 - floor) for one in alone]
    return math.fsum(w * one for w, one in zip(weights, cuts, strict=True))


def test_only_clipping_probabilities_singly_rewards_lies() -> None:
    belief, lie = (0.496, 0.495, 0.009), (0.5005, 0.4995, 0.0)
    assert naive_log(lie, belief) > naive_log(belief, belief) + 1e-4
    assert log(lie, belief) <= log(belief, belief)


@pytest.mark.parametrize("score", [brier, ranked, ranked_upper])
def test_cutting_a_score_off_below_rewards_a_lie(score: Score) -> None:
    belief = (0.6, 0.0, 0.4)
    sure = (1.0, 0.0, 0.0)
    assert score(sure, belief) < score(belief, belief)
    assert cut(score, 0.6, sure, belief) > cut(score, 0.6, belief, belief) + 0.05
