"""Laws of skill: two ends, the bootstrap of their ratio, what is claimed of a gain."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.written_run import rollouts, scale_of, write_evaluation
from tokengym.agents.evaluation.trained import Skill, read_trained
from tokengym.agents.scale.level_scale import Earned, skill_gain, skill_of
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import RunSummary
from tokengym.agents.training.presets import preset
from tokengym.rewards.estimates import Estimate
from tokengym.rewards.skill import Yardstick, describe_skill

returns = st.integers(0, 16).map(lambda n: n / 16)
tasks = st.lists(st.tuples(returns, returns, returns), min_size=2, max_size=20)


def skill_between(ends: Yardstick, before: npt.ArrayLike, after: npt.ArrayLike) -> Skill:
    return Skill(skill_of(ends, before), skill_of(ends, after), skill_gain(ends, after, before))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@given(tasks)
def test_skill_is_the_way_from_blind_to_oracle(rows: list[tuple[float, float, float]]) -> None:
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


def test_nothing_is_claimed_inside_the_noise() -> None:
    noise = np.random.default_rng(4).normal(0.0, 0.3, (2, 64))
    scale = Yardstick((0.0,) * 64, (1.0,) * 64, "null")
    skill = skill_between(scale, *(0.5 + row for row in noise))
    assert "no change beyond chance" in str(skill)


def test_a_change_within_chance_has_an_interval_that_holds_none() -> None:
    """Half of (-.005, .082) around .047 would be .044, and leave 0 out."""
    gain = Estimate(0.047, -0.005, 0.082, 1024)
    assert "no change beyond chance (0.047 (-0.005 to 0.082);" in str(Skill(gain, gain, gain))
    assert describe_skill(gain) == "0.047 (-0.005 to 0.082)"


def test_an_unmeasurable_skill_says_how_many_tasks_measure_it() -> None:
    """Sixteen Tasks, as on record: 1.095 ± .874; ten times as many are needed."""
    assert describe_skill(Estimate(1.095, 0.221, 1.969, 16)) == (
        "0.2 to 2.0 (too few Tasks; about 170 needed)"
    )
    assert describe_skill(Estimate(0.61, 0.41, 0.81, 64)) == "0.610 ± 0.200"
    assert describe_skill(Estimate(-13.0, -15.0, -11.0, 64)) == "-13.000 ± 2.000"
    assert describe_skill(Estimate(math.nan, math.nan, math.nan)) == "undefined"


@pytest.mark.parametrize(("ends", "what"), [((0.05, 3.14), "gained"), ((-3.14, -0.05), "lost")])
def test_a_gain_that_few_tasks_show_is_no_number(ends: tuple[float, float], what: str) -> None:
    skill = Estimate(0.5, 0.4, 0.6, 16)
    said = str(Skill(skill, skill, Estimate(sum(ends) / 5, *ends, 16)))
    assert f"{what} 0.1 to 3.1 (too few Tasks; about 620 needed)" in said


def test_tasks_that_were_lost_do_not_count() -> None:
    whole, less = Yardstick((0.0, 0.25), (1.0, 0.75), ""), Yardstick((0.0,), (1.0,), "")
    assert whole.skill((0.5, np.nan), rng()) == less.skill((0.5,), rng())
    assert math.isnan(whole.skill((np.nan, np.nan), rng()).value)


def test_known_expected_returns_decide_before_outcomes(tmp_path: Path) -> None:
    """Outcomes of 64 questions hide what the exact probabilities show."""
    noise = np.random.default_rng(5).normal(0.0, 0.3, (2, 64))
    ends = Yardstick((0.5,) * 64, (1.0,) * 64, "null")
    config, run = preset("forecast"), RunFolder(tmp_path)
    run.write_config(config)
    played = {
        name: [
            rollouts(
                config,
                (mean + row).tolist(),
                ends=[{"expected_return/forecaster": mean + by} for by in (-0.01, 0.01)],
            )
        ]
        for name, mean, row in zip(("before", "after"), (0.7, 0.75), noise, strict=True)
    }
    known = Earned(ends.blind_T, ends.blind_T), Earned(ends.oracle_T, ends.oracle_T)
    scale = scale_of(ends.blind_T, ends.oracle_T)
    both = replace(scale, returns=dict(zip(("blind", "oracle"), known, strict=True)))
    write_evaluation(run, played, [both])
    run.write_outcome(RunSummary(None))
    (found,) = read_trained(run).values()
    assert found.skill().gain.value == pytest.approx(0.1)
    assert "gained 0.100" in str(found.skill())
    realised = skill_gain(found.scale.realised, found.after.paid_T, found.before.paid_T)
    assert realised.low < 0.0 < realised.high


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
