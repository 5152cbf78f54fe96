"""Laws of twins played in a level: what fits together has no gap, and each breach is found."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from tokengym.envs.core.play import play
from tokengym.envs.core.task import Task
from tokengym.envs.forecasting.coherence import incoherence
from tokengym.envs.forecasting.question import Question
from tokengym.envs.forecasting.world import ForecastWorld
from tokengym.envs.registry import baselines, make_world

FIRST, NOT_FIRST, SECOND, BOTH, EITHER = (2, 3), (0, 1), (1, 3), (3,), (1, 2, 3)
EVENTS = (FIRST, NOT_FIRST, SECOND, BOTH, EITHER)
IS_YES = np.array([[state in event for state in range(4)] for event in EVENTS], np.float64)
"""By question and state whether the answer is yes."""


def asked(event: tuple[int, ...]) -> Question:
    return Question("?", 0, False, None, None, event=event)


def gaps(
    first: float, not_first: float, second: float, both: float, either: float
) -> dict[str, float]:
    stated = (first, not_first, second, both, either)
    return dict(incoherence([(asked(e), p) for e, p in zip(EVENTS, stated, strict=True)]))


def is_of_one_law(stated: tuple[float, ...]) -> bool:
    """Whether some probabilities of the four states give the five that are stated."""
    equal = np.vstack([IS_YES, np.ones(4)])
    return bool(linprog(np.zeros(4), A_eq=equal, b_eq=[*stated, 1.0], method="highs").success)


@given(st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4), st.permutations(range(5)))
def test_probabilities_of_one_law_have_no_gap(weights: list[float], order: list[int]) -> None:
    stated_Q = IS_YES @ (np.array(weights) / sum(weights))
    assert incoherence([(asked(EVENTS[i]), stated_Q[i]) for i in order]) == pytest.approx(
        dict.fromkeys(("complement_gap", "implication_gap", "union_gap", "incoherence"), 0.0)
    )


@pytest.mark.nightly
def test_what_has_no_gap_is_of_one_law() -> None:
    """Over a grid of all answers: the laws that are checked are all there are."""
    thirds = (0.0, 1 / 3, 2 / 3, 1.0)
    found = [
        (gaps(*stated)["incoherence"] < 1e-9, is_of_one_law(stated))
        for stated in itertools.product(thirds, repeat=5)
        if abs(stated[0] + stated[1] - 1.0) < 1e-9
    ]
    assert sum(fits for fits, _ in found) > 10
    assert all(fits == exists for fits, exists in found)


def test_each_breach_is_measured() -> None:
    assert gaps(0.6, 0.5, 0.3, 0.2, 0.7)["complement_gap"] == pytest.approx(0.1)
    assert gaps(0.6, 0.4, 0.3, 0.2, 0.9)["union_gap"] == pytest.approx(0.2)
    assert gaps(0.6, 0.4, 0.3, 0.5, 0.4)["implication_gap"] == pytest.approx((0.2 + 0.2 + 0.1) / 5)
    assert gaps(0.0, 1.0, 0.0, 1.0, 1.0)["union_gap"] == 1.0
    assert gaps(0.6, 0.5, 0.3, 0.2, 0.9)["incoherence"] == pytest.approx((0.1 + 0.2) / 3)
    assert incoherence([]) == {}


WORLD = ForecastWorld.cast(make_world("forecast", "twins", label="expected"))


def play_stating(task: Task, stated: Sequence[float]) -> float:
    """What five answers earn, in the order of `EVENTS`."""
    turn = WORLD.start(task)
    while not turn.done:
        place = EVENTS.index(WORLD.question.event or ())
        turn = WORLD.reply(f"Probability: {stated[place]:.6f}")
    return WORLD.returns["forecaster"]


def test_no_answers_of_a_grid_beat_honest_ones() -> None:
    """By enumeration: too high or too low by a tenth, coherent or not."""
    for index in range(2):
        task = WORLD.task("test", index)
        honest_Q = IS_YES @ np.array(task.answer["p_bayes"])
        near = [(max(0.0, p - 0.1), p, min(1.0, p + 0.1)) for p in honest_Q]
        earned = {stated: play_stating(task, stated) for stated in itertools.product(*near)}
        honest = earned[tuple(honest_Q)]
        assert honest == pytest.approx(WORLD.optimum(task)["forecaster"].value, abs=4e-5)
        for stated, value in earned.items():
            farthest = np.abs(np.array(stated) - honest_Q).max()
            # A tenth in one of five answers costs .95 · .75 / 5 · .1² = .0014.
            assert value < honest - (0.001 if farthest > 0.09 else -4e-5)


def test_coherence_earns_a_quarter() -> None:
    """Two ways to be as far from one half differ by what coherence earns, and by the odds."""
    for index in range(5):
        task = WORLD.task("test", index)
        likely = task.answer["p_bayes"][2] + task.answer["p_bayes"][3]
        both_likely = play_stating(task, (0.8, 0.8, 0.5, 0.5, 0.5))
        opposite = play_stating(task, (0.8, 0.2, 0.5, 0.5, 0.5))
        # The opposite stated at .2 and at .8 differs in its Brier score by .6 - 1.2 · P(opposite).
        brier = 0.95 * 0.75 / 5 * (0.6 - 1.2 * (1.0 - likely))
        # Only the law of opposites tells the two apart: .8 and .8 exceed 1 by .6.
        assert opposite - both_likely == pytest.approx(brier + 0.95 * 0.25 * 0.6 / 3, abs=1e-4)


def test_the_oracle_is_coherent_and_scattered_forecasts_are_not() -> None:
    scattered = []
    for task in WORLD.first_tasks("test", 8):
        found = {
            name: play(WORLD, task, baselines("forecast")[name]).turns[-1].metrics
            for name in ("oracle", "empirical", "random")
        }
        assert found["oracle"]["incoherence"] == pytest.approx(0.0, abs=2e-6)
        assert found["empirical"]["incoherence"] <= 2e-3
        scattered.append(found["random"]["incoherence"])
    assert min(scattered) > 0.0
    assert np.mean(scattered) > 0.02


@pytest.mark.parametrize("place", range(5))
def test_malformed_replies_forfeit_coherence(place: int) -> None:
    turn = WORLD.start(WORLD.task("test", 0))
    for reply in np.roll(["?", *["Probability: 0.5"] * 4], place):
        assert "incoherence" not in turn.metrics
        turn = WORLD.reply(reply)
    assert turn.done
    assert turn.metrics["incoherence"] == 0.0
    part = 0.05 + 0.95 * 0.75 * 0.75
    assert WORLD.returns["forecaster"] == pytest.approx(0.8 * part, abs=0.01)
    assert play_stating(WORLD.task("test", 0), [0.5] * 5) == pytest.approx(
        part + 0.95 * 0.25, abs=1e-4
    )


def test_the_outcomes_of_twins_follow_from_each_other() -> None:
    world = ForecastWorld.cast(make_world("forecast", "twins"))
    for index in range(12):
        turn = world.start(world.task("test", index))
        label_of: dict[tuple[int, ...] | None, float] = {}
        while not turn.done:
            event = world.question.event
            turn = world.reply("Probability: 0.5")
            label_of[event] = turn.metrics["label"]
        assert label_of[FIRST] + label_of[NOT_FIRST] == 1.0
        assert label_of[BOTH] == label_of[FIRST] * label_of[SECOND]
        assert label_of[EITHER] == max(label_of[FIRST], label_of[SECOND])


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
