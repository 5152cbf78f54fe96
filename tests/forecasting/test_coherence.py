"""Laws of twins played in a level: what fits together has no gap, and each breach is found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokengym.envs.core.play import play
from tokengym.envs.forecasting.coherence import incoherence
from tokengym.envs.forecasting.question import Question
from tokengym.envs.registry import baselines, make_world

ABOVE, AT_MOST, HIGHER, OTHER, BOTH = (2, 3, 4, 5), (0, 1), (4, 5), (1, 3, 5), (3, 5)


def asked(event: tuple[int, ...]) -> Question:
    return Question("?", 0, False, None, None, event=event)


def gaps(
    above: float, at_most: float, higher: float, other: float, both: float
) -> dict[str, float]:
    events = (ABOVE, AT_MOST, HIGHER, OTHER, BOTH)
    stated = (above, at_most, higher, other, both)
    return dict(incoherence([(asked(e), p) for e, p in zip(events, stated, strict=True)]))


@given(st.lists(st.floats(0.01, 1.0), min_size=6, max_size=6), st.permutations(range(5)))
def test_probabilities_of_one_law_have_no_gap(weights: list[float], order: list[int]) -> None:
    shares = np.array(weights) / sum(weights)
    events = (ABOVE, AT_MOST, HIGHER, OTHER, BOTH)
    stated = [(asked(events[i]), float(shares[list(events[i])].sum())) for i in order]
    assert incoherence(stated) == pytest.approx(
        dict.fromkeys(("complement_gap", "threshold_gap", "conjunction_gap", "incoherence"), 0.0)
    )


def test_each_breach_is_measured() -> None:
    assert gaps(0.6, 0.5, 0.3, 0.5, 0.3)["complement_gap"] == pytest.approx(0.1)
    assert gaps(0.6, 0.4, 0.8, 0.5, 0.3)["threshold_gap"] == pytest.approx(0.2)
    assert gaps(0.6, 0.4, 0.3, 0.5, 0.9)["conjunction_gap"] == pytest.approx(0.4)
    assert gaps(0.9, 0.1, 0.3, 0.8, 0.5)["conjunction_gap"] == pytest.approx(0.2)
    assert gaps(0.6, 0.5, 0.8, 0.5, 0.9)["incoherence"] == pytest.approx((0.1 + 0.2 + 0.4) / 3)
    assert incoherence([]) == {}


@settings(max_examples=8)
@given(index=st.integers(0, 500))
def test_the_oracle_is_coherent_and_scattered_forecasts_are_not(index: int) -> None:
    world = make_world("forecast", "twins", label="expected")
    task, rng = world.task("test", index), np.random.default_rng(index)
    found = {
        name: play(world, task, baselines("forecast")[name], rng).turns[-1].metrics["incoherence"]
        for name in ("oracle", "empirical", "random")
    }
    assert found["oracle"] == pytest.approx(0.0, abs=2e-6)
    assert found["empirical"] <= 2e-3
    assert found["random"] > 0.0


def test_a_malformed_reply_leaves_the_laws_of_the_others() -> None:
    world = make_world("forecast", "twins")
    turn = world.start(world.task("test", 0))
    for reply in ("?", *["Probability: 0.5"] * 4):
        assert "incoherence" not in turn.metrics
        turn = world.reply(reply)
    assert turn.done
    assert turn.metrics.get("incoherence", 0.0) <= 0.5


def test_the_outcomes_of_twins_follow_from_each_other() -> None:
    world = make_world("forecast", "twins")
    task = world.task("test", 3)
    kinds = task.instance["shown"]["order"]
    turn, labels = world.start(task), {}
    for kind in kinds:
        turn = world.reply("Probability: 0.5")
        labels[kind] = turn.metrics["label"]
    assert labels["above"] + labels["at_most"] == 1.0
    assert labels["higher"] <= labels["above"]
    assert labels["both"] == labels["above"] * labels["other"]


def test_five_certain_forecasts_that_come_true_return_one() -> None:
    world = make_world("forecast", "twins")
    task = world.task("test", 3)
    turn, outcomes = world.start(task), []
    while not turn.done:
        turn = world.reply("Probability: 0.5")
        outcomes.append(turn.metrics["label"])
    turn = world.start(task)
    for outcome in outcomes:
        turn = world.reply(f"Probability: {outcome:.3f}")
    assert turn.done
    assert world.returns["forecaster"] == 1.0
