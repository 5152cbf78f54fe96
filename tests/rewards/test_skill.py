"""Laws of skill: two ends, negative below the blind policy, intervals that cover, paired gains."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.agents.training.folder.run_summary import Evaluation, References, RunSummary
from tokengym.rewards.skill import Yardstick

returns = st.integers(0, 16).map(lambda n: n / 16)
tasks = st.lists(st.tuples(returns, returns, returns), min_size=2, max_size=20)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@given(tasks)
def test_skill_is_the_share_of_the_way_from_blind_to_oracle(
    rows: list[tuple[float, float, float]],
) -> None:
    blind, policy, gap = (np.array(column) for column in zip(*rows, strict=True))
    oracle = blind + gap + 0.125
    scale = Yardstick(tuple(blind), tuple(oracle), "null")
    found = scale.skill(policy, rng())
    expected = (policy.sum() - blind.sum()) / (oracle.sum() - blind.sum())
    assert found.value == pytest.approx(expected)
    assert scale.skill(blind, rng()).value == pytest.approx(0.0)
    assert scale.skill(oracle, rng()).value == pytest.approx(1.0)
    gain = scale.gain(policy, blind, rng())
    assert gain.value == pytest.approx(expected)


def test_intervals_cover_as_often_as_they_say() -> None:
    """64 Tasks of differing hardness, again and again; the truth is known."""
    draws = np.random.default_rng(1)
    covered = 0
    for _ in range(300):
        hard = draws.uniform(0.0, 0.5, 64)
        blind, oracle = 0.5 - hard, 1.0 - 0.2 * hard
        policy = blind + 0.4 * (oracle - blind) + draws.normal(0.0, 0.1, 64)
        found = Yardstick(tuple(blind), tuple(oracle), "null").skill(policy, draws)
        covered += found.low <= 0.4 <= found.high
    assert 0.90 <= covered / 300 <= 0.98


def test_a_small_gain_is_seen_where_intervals_of_each_side_overlap() -> None:
    draws = np.random.default_rng(2)
    hard = draws.uniform(0.0, 1.0, 256)
    scale = Yardstick(tuple(0.4 * hard), tuple(0.4 * hard + 0.5), "null")
    before = 0.4 * hard + draws.normal(0.2, 0.3, 256)
    after = before + draws.normal(0.02, 0.02, 256)
    assert scale.skill(before, rng()).high > scale.skill(after, rng()).low
    assert scale.gain(after, before, rng()).low > 0.0


def test_a_run_that_learned_one_constant_is_not_called_a_success() -> None:
    """A pretrained model that came to say the number of the prompt's example whatever was asked.

    It went from .008 to .685 with the best constant at .767 and the oracle at .890: most of the way
    from its start to the oracle, and still worse than not reading the question.
    """
    noise = np.random.default_rng(3).normal(0.0, 0.05, 256)
    scale = Yardstick(tuple(0.767 + noise), tuple(0.890 + noise), "best constant")
    lines = References({}, scale)
    before, after = Evaluation((0.008,) * 256), Evaluation(tuple(0.685 + noise))
    skill = RunSummary(before, after, {"forecaster": lines}, None, {}).skill("forecaster")
    assert skill.after.high < 0.0
    assert skill.after.value == pytest.approx((0.685 - 0.767) / (0.890 - 0.767), abs=0.01)
    assert "-0.6" in str(skill)


def test_nothing_is_claimed_inside_the_noise() -> None:
    noise = np.random.default_rng(4).normal(0.0, 0.3, (2, 64))
    scale = Yardstick((0.0,) * 64, (1.0,) * 64, "null")
    lines = References({}, scale)
    before, after = (Evaluation(tuple(0.5 + row)) for row in noise)
    skill = RunSummary(before, after, {"forecaster": lines}, None, {}).skill("forecaster")
    assert "no change beyond chance" in str(skill)


@pytest.mark.parametrize("ends", [((), ()), ((0.0,), (1.0, 1.0))])
def test_ends_that_do_not_fit_are_refused(
    ends: tuple[tuple[float, ...], tuple[float, ...]],
) -> None:
    with pytest.raises(ValueError, match="both ends on the same Tasks"):
        Yardstick(*ends, "null")
    with pytest.raises(ValueError, match="expected 1 returns"):
        Yardstick((0.0,), (1.0,), "null").skill((0.0, 1.0), rng())


def test_the_interval_is_the_bootstrap_over_all_tasks() -> None:
    """Six Tasks have 6**6 resamples: the percentiles of all of them, which few draws come near."""
    blind = np.array([0.0, 0.25, 0.5, 0.125, 0.25, 0.0])
    policy = np.array([0.5, 0.75, 0.5, 0.25, 1.0, 0.125])
    oracle = np.array([1.0, 0.75, 1.0, 0.5, 1.25, 0.5])
    picks = np.array(list(itertools.product(range(6), repeat=6)))
    sums = [(policy - blind)[picks].sum(axis=1), (oracle - blind)[picks].sum(axis=1)]
    exact = np.quantile(sums[0] / sums[1], (0.025, 0.975))
    scale = Yardstick(tuple(blind), tuple(oracle), "null")
    found = [scale.skill(policy, np.random.default_rng(seed)) for seed in range(20)]
    ends = np.mean([one[1:3] for one in found], axis=0)
    assert ends == pytest.approx(exact, abs=0.01)
    assert {one.samples for one in found} == {6}
    paired = scale.gain(policy, blind, rng())
    assert paired == pytest.approx(scale.skill(policy, rng()))
