"""Laws of forecast verification: what the figures are, and that intervals take events as units."""

import numpy as np
import pytest

from tokengym.rewards.calibration import auc, expected_error, murphy
from tokengym.rewards.clustered import mean_over_clusters
from tokengym.rewards.estimates import mean_estimate
from tokengym.rewards.verification import Verification, verify_forecasts

STATED = np.array([0.9, 0.8, 0.3, np.nan, 0.5, 0.1])
OUTCOMES = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0])
EVENTS = ["a", "a", "b", "b", "c", "d"]


def verified(base_rate: float = 0.4) -> Verification:
    return verify_forecasts(STATED, OUTCOMES, EVENTS, base_rate, np.random.default_rng(0))


def test_the_figures_are_those_of_the_well_formed_forecasts() -> None:
    found, given = verified(), ~np.isnan(STATED)
    p, y = STATED[given], OUTCOMES[given]
    loss = (p - y) ** 2
    assert (found.asked, found.forecasts, found.events) == (6, 5, 4)
    assert found.brier.value == pytest.approx(loss.mean())
    assert found.skill.value == pytest.approx(1.0 - loss.sum() / ((0.4 - y) ** 2).sum())
    assert found.accuracy.value == pytest.approx(3.5 / 5)
    assert found.auc is not None
    assert found.auc.value == auc(p, y)
    assert found.murphy == murphy(p, y, 10)
    assert found.calibration is not None
    assert found.calibration.error == expected_error(p, y, np.random.default_rng(0)).error


def test_a_malformed_reply_earns_nothing_of_the_reward() -> None:
    p, y = STATED[~np.isnan(STATED)], OUTCOMES[~np.isnan(STATED)]
    assert verified().reward.value == pytest.approx((1.0 - (p - y) ** 2).sum() / 6)


def test_exact_probabilities_have_no_auc_and_no_calibration_error() -> None:
    found = verify_forecasts([0.2, 0.6], [0.3, 0.5], ["a", "b"], 0.5, np.random.default_rng(0))
    assert found.auc is None
    assert found.calibration is None


@pytest.mark.parametrize(
    ("stated", "events", "reason"),
    [([np.nan], ["a"], "no well-formed"), ([0.5, 0.5], ["a"], "one shape"), ([1.5], ["a"], "0, 1")],
)
def test_what_cannot_be_verified_is_refused(
    stated: list[float], events: list[str], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        verify_forecasts(stated, [1.0] * len(stated), events, 0.5, np.random.default_rng(0))


def test_intervals_over_events_hold_where_those_over_questions_do_not() -> None:
    rng = np.random.default_rng(4)
    held = naive = 0
    for _ in range(300):
        sizes = rng.integers(1, 12, size=30)
        cluster = np.repeat(np.arange(30), sizes)
        values = rng.normal(size=30)[cluster] + 0.3 * rng.normal(size=len(cluster))
        estimate = mean_over_clusters(values, cluster)
        alone = mean_estimate(values.tolist())
        held += estimate.low <= 0.0 <= estimate.high
        naive += alone.low <= 0.0 <= alone.high
    assert held >= 0.89 * 300
    assert naive < 0.75 * 300


def test_bootstrap_intervals_widen_with_the_events() -> None:
    rng = np.random.default_rng(1)
    chance = rng.uniform(size=60)
    p, y = np.repeat(chance, 6), np.repeat((rng.random(60) < chance).astype(float), 6)
    widths = []
    for events in (np.repeat(np.arange(60), 6), np.arange(360)):
        found = verify_forecasts(p, y, list(map(str, events)), 0.5, np.random.default_rng(0))
        assert found.auc is not None
        widths.append([e.high - e.low for e in (found.brier, found.skill, found.auc)])
    assert all(wide > 1.8 * narrow for wide, narrow in zip(*widths, strict=True))


def test_a_perfect_order_is_no_set_of_equal_values() -> None:
    p, y = np.array([0.1, 0.2, 0.8, 0.9] * 4), np.array([0.0, 0.0, 1.0, 1.0] * 4)
    found = verify_forecasts(p, y, list("abcdefghijklmnop"), 0.5, np.random.default_rng(0))
    assert str(found.auc) == "1.000"
