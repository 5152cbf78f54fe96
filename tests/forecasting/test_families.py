"""Laws of every family at every level that asks it."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.task import to_plain_json
from tokengym.envs.core.world import PROMPTS
from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.families.base import Shown
from tokengym.envs.forecasting.families.walk import brownian_reach
from tokengym.envs.forecasting.generator import draw, draw_outcomes
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.forecasting.question import questions

ASKED = [(level, name) for level, row in LEVELS.items() for name in row.families]
asked = pytest.mark.parametrize(("level", "name"), ASKED)
seeds = st.integers(0, 2**32)


def shown_by(level: str, name: str, seed: int) -> Shown:
    drawn: Shown = to_plain_json(
        FAMILIES[name].draw(np.random.default_rng(seed), LEVELS[level].knobs)
    )
    return drawn


@asked
@given(seed=seeds)
def test_every_forecast_is_a_distribution_over_the_outcomes(
    level: str, name: str, seed: int
) -> None:
    family, shown = FAMILIES[name], shown_by(level, name, seed)
    outcomes = 2 if family.options is None else family.options(shown)
    rng = np.random.default_rng(seed)
    for forecast in (family.predictive(shown), family.empirical(shown), family.latent(shown, rng)):
        assert len(forecast) == outcomes
        assert min(forecast) >= 0.0
        assert math.fsum(forecast) == pytest.approx(1.0)


@pytest.mark.nightly
@asked
@settings(max_examples=3)
@given(seed=seeds)
def test_hidden_chances_average_to_the_predictive_one(level: str, name: str, seed: int) -> None:
    family, shown = FAMILIES[name], shown_by(level, name, seed)
    rng = np.random.default_rng(seed + 1)
    draws = np.array([family.latent(shown, rng)[-1] for _ in range(400)])
    predictive = family.predictive(shown)[-1]
    if len(set(draws)) < 10:
        # The spread of so few chances says nothing of a rare one: that of outcomes is known.
        happened = rng.random(len(draws)) < draws
        assert binomtest(int(happened.sum()), len(draws), predictive).pvalue > 1e-7
    else:
        error = draws.std() / math.sqrt(len(draws))
        assert draws.mean() == pytest.approx(predictive, abs=6.0 * error + 2e-3)


@asked
@given(seed=seeds)
def test_the_shares_of_the_replays_tend_to_the_posterior(level: str, name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    answer = draw_outcomes(to_plain_json(draw(rng, (name,), LEVELS[level])), rng)
    replays = answer["outcomes"][1:]
    for outcome, chance in enumerate(answer["p_bayes"]):
        error = math.sqrt(chance * (1.0 - chance) / len(replays))
        assert abs(replays.count(str(outcome)) / len(replays) - chance) <= 6.0 * error + 0.05


@asked
@given(seed=seeds)
def test_questions_are_short_ascii_and_a_function_of_the_instance(
    level: str, name: str, seed: int
) -> None:
    instance = to_plain_json(draw(np.random.default_rng(seed), (name,), LEVELS[level]))
    for prompt in PROMPTS:
        said = questions(instance, prompt)
        assert said == questions(json.loads(json.dumps(instance)), prompt)
        assert len(said) == LEVELS[level].turns
        for question in said:
            assert question.text.isascii()
            assert "\n" not in question.text
            assert "e-" not in question.text
        assert len(said[0].text) <= {"easy": 160 if prompt == "terse" else 460}.get(level, 1700)
        most = 240 if level == "twins" else 120
        assert all(len(question.text) <= most for question in said[1:])


@given(seed=seeds, name=st.sampled_from(LEVELS["hard"].families))
def test_the_negated_twin_has_the_complementary_odds(seed: int, name: str) -> None:
    instance = to_plain_json(draw(np.random.default_rng(seed), (name,), LEVELS["hard"]))
    if FAMILIES[name].options is None:
        (question,) = questions({**instance, "negated": False}, "full")
        (twin,) = questions({**instance, "negated": True}, "full")
        assert question.predictive is not None
        assert twin.predictive == question.predictive[::-1]
        assert twin.text == question.text


@given(seed=seeds, name=st.sampled_from(LEVELS["update"].families))
def test_the_first_turn_says_nothing_of_the_news(seed: int, name: str) -> None:
    instance = to_plain_json(draw(np.random.default_rng(seed), (name,), LEVELS["update"]))
    other = to_plain_json(draw(np.random.default_rng(seed + 1), (name,), LEVELS["update"]))
    first, _ = questions(instance, "full")
    if name != "voter" or len(instance["shown"]["counts"]) == len(other["shown"]["counts"]):
        changed = {**instance["shown"], "later": other["shown"]["later"]}
        if name == "contest":
            changed["later"] = [0, 1]
        assert questions({**instance, "shown": changed}, "full")[0] == first


@given(rise=st.integers(1, 20), time=st.integers(1, 200), drift=st.sampled_from([-0.6, 0.0, 0.6]))
def test_brownian_reach_is_a_chance_that_grows_with_time(
    rise: int, time: int, drift: float
) -> None:
    now, later = (brownian_reach(rise, t, drift, 1.0 - drift**2) for t in (time, time + 1))
    assert 0.0 <= now <= later + 1e-12 <= 1.0 + 1e-9


def test_a_family_without_a_law_is_refused() -> None:
    with pytest.raises(OptionError, match="'frequency' needs its law"):
        replace(FAMILIES["frequency"], law="")
